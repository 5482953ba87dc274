/* Client of a Sfumato survey: perturbs answers on this device, checks the guidance of the collector, and sends nothing else. */

import { Refused, checkDefinition, checkMatrix, digestOf, encode, encodeAnswer, guidedResponse, inspectGuidance, itemsOf, oneHot, randomIntegers, randomisedResponse, sha256 } from "./sfumato-perturbation.js";

export * from "./sfumato-perturbation.js";

const randomHex = (count) => Array.from(crypto.getRandomValues(new Uint8Array(count)), (byte) => byte.toString(16).padStart(2, "0")).join("");

/* ---- Encrypted storage: one record for each survey, under a key that cannot be exported from this browser --------- */

const completed = (request) => new Promise((resolve, reject) => {
  request.onsuccess = () => resolve(request.result);
  request.onerror = () => reject(request.error);
});

class EncryptedStorage {
  constructor(name) {
    this.name = name;
  }

  /** Sets the associated data: a record cannot be moved to another survey, or read with another version of it. */
  bind(version) {
    this.associated = new TextEncoder().encode(`${this.name}|${version}|1`);
  }

  async transaction(mode) {
    const opening = indexedDB.open("sfumato-survey", 1);
    opening.onupgradeneeded = () => ["kept", "keys"].forEach((name) => opening.result.createObjectStore(name));
    const database = await completed(opening);
    const transaction = database.transaction(["kept", "keys"], mode, { durability: "strict" });
    transaction.ended = new Promise((resolve, reject) => {
      transaction.oncomplete = resolve;
      transaction.onabort = () => reject(transaction.error);
    }).finally(() => database.close());
    return transaction;
  }

  async read(store) {
    return completed((await this.transaction("readonly")).objectStore(store).get(this.name));
  }

  async key() {
    const stored = await this.read("keys");
    if (stored) return stored;
    const generated = await crypto.subtle.generateKey({ name: "AES-GCM", length: 256 }, false, ["encrypt", "decrypt"]);
    const transaction = await this.transaction("readwrite");
    transaction.objectStore("keys").put(generated, this.name);
    await transaction.ended;
    return generated;
  }

  /** Deletes the answers to a survey that has ended, even if its service is gone. */
  async purge() {
    const record = await this.read("kept");
    if (record?.sealed && Date.now() > record.ends) await this.put("dropped");
  }

  /** The stored record: its state, and its content if this browser can decrypt it. */
  async get() {
    const record = await this.read("kept");
    if (!record?.sealed) return record;
    const algorithm = { name: "AES-GCM", iv: record.iv, additionalData: this.associated };
    try {
      const plain = await crypto.subtle.decrypt(algorithm, await this.key(), record.sealed);
      return { ...record, content: JSON.parse(new TextDecoder().decode(plain)) };
    } catch {
      // It belongs to another version of the survey, or its key is lost. A row that may have been sent is never drawn again.
      await this.put(record.state === "tried" ? "dropped" : "none");
      return this.read("kept");
    }
  }

  /** Stores a record; resolves when it is on disk. */
  async put(state, content, ends) {
    const record = { state, ends };
    if (content) {
      record.iv = crypto.getRandomValues(new Uint8Array(12));
      const algorithm = { name: "AES-GCM", iv: record.iv, additionalData: this.associated };
      record.sealed = await crypto.subtle.encrypt(algorithm, await this.key(), new TextEncoder().encode(JSON.stringify(content)));
    }
    const transaction = await this.transaction("readwrite");
    if (!content) transaction.objectStore("keys").delete(this.name);
    const records = transaction.objectStore("kept");
    if (state === "none") records.delete(this.name);
    else records.put(record, this.name);
    await transaction.ended;
  }
}

/* ---- The respondent ------------------------------------------------------------------------------------------------
 * States: `none`; `waiting` for guidance; `ready`: perturbed, and shown to the respondent; `tried`: it may have been sent,
 * so that from now on the same row is sent or none; `sent`; `dropped`.
 */

const FINAL = {
  tried: "your answer is on its way, and can no longer be changed",
  sent: "you have already answered this survey, and it takes one answer per person",
  dropped: "your answers to this survey were deleted, and it takes no others",
};

const UNREACHABLE = "The survey cannot be reached.";

export class Respondent {
  constructor({ server, survey, ticket, log }) {
    this.server = server.replace(/\/$/, "");
    this.survey = survey;
    this.invitation = ticket;
    this.log = log;
    this.name = `${this.server}/${survey}`;
    this.storage = new EncryptedStorage(this.name);
  }

  /** A request without cookies or referrer, which does not identify the respondent. */
  async request(path, body) {
    const options = { credentials: "omit", referrerPolicy: "no-referrer", cache: "no-store" };
    const post = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
    return fetch(`${this.server}/api/v1/respond/${encodeURIComponent(this.survey)}${path}`, body ? { ...options, ...post } : options);
  }

  async load() {
    await this.storage.purge();
    const response = await this.request("");
    if (!response.ok) throw new Refused((await response.json().catch(() => ({}))).detail ?? "the survey cannot be reached");
    const content = await response.json();
    if ((await sha256(content.definition)) !== content.version) throw new Refused("the survey's definition does not match its hash");
    const definition = JSON.parse(content.definition);
    checkDefinition(definition);
    Object.assign(this, { definition, version: content.version, state: content.state, needsUnperturbed: content.wanted, digests: [] });
    this.items = itemsOf(definition);
    this.sizes = this.items.map(({ size }) => size);
    this.ends = Date.parse(definition.ends);
    this.storage.bind(content.version);
    return this;
  }

  /** Runs one task at a time, in all tabs of this browser. */
  exclusively(task) {
    return navigator.locks.request(`sfumato ${this.name}`, task);
  }

  isOver() {
    return Date.now() > this.ends;
  }

  /** A short hash for respondents to compare: it differs if they are asked differently. */
  async fingerprint() {
    return (await sha256(`${this.version}${this.digests.join("")}`)).slice(0, 16);
  }

  /** Stores answers encrypted, without sending them. Returns what would be sent, or the reason to wait. */
  prepare(answers, choice) {
    return this.exclusively(async () => {
      const stored = await this.storage.get();
      if (FINAL[stored?.state]) throw new Refused(FINAL[stored.state]);
      const codes = encode(this.definition, answers);
      const label = this.definition.mode === "guided" ? encodeAnswer(this.classQuestion(), answers[this.definition.class])[0] : 0;
      if (!codes || label < 0) throw new Refused("some questions are not answered");
      const content = { codes, label, choice, ticket: stored?.content?.ticket ?? this.invitation ?? randomHex(16) };
      if (stored?.state !== "ready" || JSON.stringify(stored.content.from) !== JSON.stringify(content))
        await this.storage.put("waiting", content, this.ends);
      return { ...(await this.advance()), unseen: true };
    });
  }

  classQuestion() {
    return this.definition.questions.find(({ name }) => name === this.definition.class);
  }

  /** Takes the stored answers one step further, without sending them. */
  async advance() {
    const stored = await this.storage.get();
    if (stored?.content && (this.isOver() || this.state === "closed")) await this.storage.put("dropped");
    if (stored?.state !== "waiting" || this.isOver() || this.state === "closed") return progressOf(await this.storage.get());
    const { choice } = stored.content;
    const waiting = { state: "waiting", automatic: isAutomatic(choice) };
    try {
      const perturbed = await this.perturb(stored.content);
      if (perturbed.reason) return { ...waiting, reason: perturbed.reason };
      await this.storage.put("ready", { ...perturbed, from: stored.content, ticket: stored.content.ticket }, this.ends);
    } catch (error) {
      if (error instanceof TypeError) return { ...waiting, reason: UNREACHABLE };
      if (!(error instanceof Refused)) throw error;
      return { ...waiting, refused: true, reason: `Your browser refused what the survey asks for: ${error.message}.` };
    }
    return progressOf(await this.storage.get());
  }

  /** The row to send, drawn once, and how much it discloses; or the reason to wait. */
  async perturb({ codes, label, choice, ticket }) {
    const common = { ticket, version: this.version };
    if (choice.clear) {
      const disclosure = { exposure: codes.map(() => 1), capacity: this.sizes.reduce((sum, size) => sum + Math.log2(size), 0) };
      return { body: { ...common, row: codes, label }, disclosure };
    }
    if (this.definition.mode === "randomised") {
      const { retention } = this.definition.levels[choice.level];
      const row = randomisedResponse(codes, this.sizes, retention, randomIntegers(2 * codes.length));
      const disclosure = { probability: retention.map((one, i) => one + (1 - one) / this.sizes[i]) };
      return { body: { ...common, level: choice.level, row }, disclosure };
    }
    const guidance = await this.guidance(choice);
    if (guidance.reason) return guidance;
    const { epoch, matrix, disclosure } = guidance;
    const row = guidedResponse(oneHot(codes, this.sizes), matrix, this.definition.guided.floor, randomIntegers(matrix.length));
    return { body: { ...common, epoch, used: matrix[0].length, label, row }, disclosure };
  }

  /** The current guidance, checked and cut to what this respondent allows; or the reason to wait. */
  async guidance({ allowed, truncate }) {
    const response = await this.request("/guidance");
    if (!response.ok) return { reason: UNREACHABLE };
    const { epoch, matrix, digests } = await response.json();
    if (!matrix) return { reason: "The survey is not ready yet: it still needs its first answers." };
    checkMatrix(matrix, this.sizes);
    await this.compareLogs(digests, epoch, await digestOf(this.version, epoch, matrix));
    if (matrix[0].length > allowed && !truncate)
      return { reason: `The survey now asks for ${matrix[0].length} combinations of your answers, more than the ${allowed} that you allow.` };
    const used = matrix.map((row) => row.slice(0, allowed));
    // The seed is unknown to the collector, so that guidance cannot be tuned to pass by luck.
    return { epoch, matrix: used, disclosure: inspectGuidance(used, this.sizes, { ...this.definition.guided, seed: randomHex(4), allowed }) };
  }

  /** Refuses guidance that differs from the public log, as this device saw it before and as another copy of the log has it. */
  async compareLogs(digests, epoch, digest) {
    if (digests[epoch - 1] !== digest || digests.length !== epoch) throw new Refused("it is not the one that the public log shows to everybody");
    const key = `sfumato log ${this.name}`, previous = JSON.parse(localStorage.getItem(key) ?? "[]");
    if (previous.some((one, i) => digests[i] !== one)) throw new Refused("the public log was rewritten since you last looked");
    if (this.log) {
      const other = await (await fetch(this.log, { credentials: "omit", cache: "no-store" })).json();
      if (other.version !== this.version || digests.some((one, i) => other.digests[i] !== one))
        throw new Refused("another copy of the public log shows something else");
    }
    localStorage.setItem(key, JSON.stringify(digests));
    this.digests = digests;
  }

  /** Sends the row that is ready: the same row at every attempt. */
  send() {
    return this.exclusively(async () => {
      const progress = await this.advance();
      if (!["ready", "tried"].includes(progress.state)) return progress;
      const { content } = await this.storage.get();
      const clear = Boolean(content.from.choice.clear), body = this.invitation ? { ...content.body, ticket: this.invitation } : content.body;
      await this.storage.put("tried", content, this.ends);
      let response;
      try {
        response = await this.request(clear ? "/bootstrap" : "/answers", body);
      } catch {
        return { ...progress, state: "tried", reason: "You seem to be offline. Your answer is stored, and will be sent when you are online again." };
      }
      return this.handleResponse(response, content, clear);
    });
  }

  async handleResponse(response, content, clear) {
    if (response.ok) {
      await this.storage.put("sent");
      return { state: "sent", clear, ...(await response.json()) };
    }
    const isProblem = response.headers.get("content-type")?.startsWith("application/problem+json");
    const { detail = "" } = isProblem ? await response.json() : {};
    if (isProblem && response.status === 410) {
      // The survey needs no more unperturbed answers and did not store this one: it is perturbed, and shown again.
      const { from } = content;
      await this.storage.put("waiting", { ...from, choice: { ...from.choice, clear: false, automatic: false } }, this.ends);
      return { ...(await this.advance()), unseen: true };
    }
    if (isProblem && [404, 409, 422].includes(response.status)) {
      await this.storage.put("dropped");
      return { state: "dropped", reason: detail };
    }
    const tried = { ...progressOf({ state: "tried", content }), reason: detail };
    return response.status === 403 ? { ...tried, final: true } : { ...tried, reason: `The survey is busy; your answer will be sent again. ${detail}` };
  }

  status() {
    return this.exclusively(() => this.advance());
  }

  /** Deletes answers that were not sent; that an answer was sent stays recorded, so that no second row is drawn. */
  forget() {
    return this.exclusively(async () => {
      const stored = await this.storage.get();
      if (FINAL[stored?.state]) throw new Refused(FINAL[stored.state]);
      await this.storage.put("none");
    });
  }
}

function progressOf(stored) {
  if (!stored) return { state: "none" };
  const { body, from, choice } = stored.content ?? {};
  return { state: stored.state, body, disclosure: disclosureOf(stored.content ?? {}), automatic: isAutomatic(from?.choice ?? choice) };
}

/** The disclosure of a stored row; version 0.1 stored it as `foresight`, with `right` for the probability. */
const disclosureOf = ({ disclosure, foresight }) => disclosure ?? (foresight && { probability: foresight.right, ...foresight });

/** Unperturbed answers are never sent before the respondent has looked at them. */
const isAutomatic = (choice) => Boolean(choice?.automatic && !choice.clear);
