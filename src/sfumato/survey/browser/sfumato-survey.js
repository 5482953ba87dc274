/* Client of a Sfumato survey: perturbs answers on this device, checks the guidance of the collector, and sends nothing else. */

import { Refused, checkDefinition, checkMatrix, digestOf, encode, encodeAnswer, guidedResponse, inspectGuidance, itemsOf, oneHot, randomisedResponse, seededIntegers, sha256 } from "./sfumato-perturbation.js";

export * from "./sfumato-perturbation.js";

const randomHex = (count) => Array.from(crypto.getRandomValues(new Uint8Array(count)), (byte) => byte.toString(16).padStart(2, "0")).join("");

/* ---- Encrypted storage: one record for each survey, under a key that cannot be exported from this browser --------- */

const completed = (request) => new Promise((resolve, reject) => {
  request.onsuccess = () => resolve(request.result);
  request.onerror = () => reject(request.error);
});

/* What this page stored. A page that is open cannot be made to forget a row by clearing the browser's storage. */
const memory = new Map();

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
    return (await completed((await this.transaction("readonly")).objectStore(store).get(this.name))) ?? memory.get(`${store} ${this.name}`);
  }

  async key() {
    return (await this.read("keys")) ?? crypto.subtle.generateKey({ name: "AES-GCM", length: 256 }, false, ["encrypt", "decrypt"]);
  }

  /** Deletes the answers to a survey that has ended, even if its service is gone. */
  async purge() {
    const record = await this.read("kept");
    if (record?.sealed && Date.now() > record.ends) await this.end(record);
  }

  /** Deletes answers that will not be sent any more, and records whether anything had left this device. */
  async end({ state, clear }) {
    await this.put(state === "tried" || clear ? "unconfirmed" : state === "none" ? "none" : "dropped", null, { clear });
  }

  /** The stored record: its state, and its content if this browser can decrypt it. */
  async get() {
    const record = await this.read("kept");
    if (!record?.sealed) return record;
    const algorithm = { name: "AES-GCM", iv: record.iv, additionalData: this.associated };
    try {
      const plain = await crypto.subtle.decrypt(algorithm, await this.key(), record.sealed);
      return { ...record, content: upgraded(JSON.parse(new TextDecoder().decode(plain))) };
    } catch {
      // It belongs to another version of the survey, or its key is lost. A row that may have been sent is never drawn again.
      await this.put(record.state === "tried" ? "unconfirmed" : "none", null, { clear: record.clear });
      return this.read("kept");
    }
  }

  /** Stores a record, with notes that are not encrypted; resolves when it is on disk. */
  async put(state, content, notes = {}) {
    const record = { state, ...notes }, key = content && (await this.key());
    if (content) {
      record.iv = crypto.getRandomValues(new Uint8Array(12));
      const algorithm = { name: "AES-GCM", iv: record.iv, additionalData: this.associated };
      record.sealed = await crypto.subtle.encrypt(algorithm, key, new TextEncoder().encode(JSON.stringify(content)));
    }
    const transaction = await this.transaction("readwrite");
    const store = (name, value) => {
      const records = transaction.objectStore(name);
      if (value) records.put(value, this.name);
      else records.delete(this.name);
      memory.set(`${name} ${this.name}`, value);
    };
    store("keys", key);
    store("kept", content || state !== "none" ? record : undefined);
    await transaction.ended;
  }
}

/** The content of a record, as versions 0.1 and 0.2 stored it too: the answers apart, and the disclosure under other names. */
function upgraded({ from, foresight, ...content }) {
  return { ...(foresight && { disclosure: { probability: foresight.right, ...foresight } }), ...from, ...content };
}

/* ---- The respondent ------------------------------------------------------------------------------------------------
 * States: `none`; `waiting` for guidance; `ready`: perturbed, and shown to the respondent; `tried`: it may have been sent,
 * so that from now on the same row is sent or none. Final states: `sent`: the survey confirmed the row; `rejected`: it
 * refused the row; `unconfirmed`: it ended or changed before it confirmed the row; `dropped`: nothing was sent.
 *
 * All random numbers come from one seed per person and survey. It is stored before a row is shown, outlives every change
 * of the answers, and is deleted when the row is final: there is no second draw, whatever the survey replies.
 */

const FINAL = {
  tried: "your answer is on its way, and can no longer be changed",
  sent: "you have already answered this survey, and it takes one answer per person",
  rejected: "your answer was sent and refused, and this browser sends no other",
  unconfirmed: "your answer was sent, and this browser sends no other",
  dropped: "your answers to this survey were deleted, and it takes no others",
};

const REJECTED = [404, 409, 410, 422]; // statuses after which the survey will never take the row
const TIMEOUT = 60_000; // milliseconds that a request may take
const UNREACHABLE = "The survey cannot be reached.";
const AGAIN = "The same row will be sent again, and never another one.";

export class Respondent {
  constructor({ server, survey, ticket, log }) {
    this.server = server.replace(/\/$/, "");
    this.survey = survey;
    this.invitation = ticket;
    this.log = log;
    this.name = `${this.server}/${survey}`;
    this.storage = new EncryptedStorage(this.name);
  }

  /** A request without cookies or referrer, which does not identify the respondent, and which no redirect takes elsewhere. */
  async request(path, body) {
    const options = { credentials: "omit", referrerPolicy: "no-referrer", cache: "no-store", redirect: "error", signal: AbortSignal.timeout(TIMEOUT) };
    const post = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
    return fetch(`${this.server}/api/v1/respond/${encodeURIComponent(this.survey)}${path}`, body ? { ...options, ...post } : options);
  }

  async load() {
    await this.exclusively(() => this.storage.purge());
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
      const lasting = lastingOf(stored);
      if (![undefined, choice.level].includes(lasting.level)) throw new Refused("the privacy level was chosen before the random changes were drawn, and stays");
      const content = { ...lasting, codes, label, choice, ticket: lasting.ticket ?? this.invitation ?? randomHex(16) };
      await this.store("waiting", content, stored?.clear);
      return { ...(await this.advance()), unseen: true };
    });
  }

  /** Stores answers until the survey ends; `clear` says that unperturbed answers have left this device. */
  store(state, content, clear) {
    return this.storage.put(state, content, { ends: this.ends, clear });
  }

  classQuestion() {
    return this.definition.questions.find(({ name }) => name === this.definition.class);
  }

  /** Takes the stored answers one step further, without sending them. */
  async advance() {
    const stored = await this.storage.get();
    if (stored?.content && (this.isOver() || this.state === "closed")) await this.storage.end(stored);
    if (stored?.state !== "waiting" || this.isOver() || this.state === "closed") return progressOf(await this.storage.get());
    const content = { ...stored.content, seed: stored.content.seed ?? randomHex(32) };
    const waiting = { ...progressOf(stored), state: "waiting" };
    try {
      const perturbed = await this.perturb(content);
      if (perturbed.reason) return { ...waiting, reason: perturbed.reason };
      await this.store("ready", { ...content, ...perturbed }, stored.clear);
    } catch (error) {
      if (error instanceof TypeError || error instanceof DOMException) return { ...waiting, reason: UNREACHABLE };
      if (!(error instanceof Refused)) throw error;
      return { ...waiting, refused: true, reason: `Your browser refused what the survey asks for: ${error.message}.` };
    }
    return progressOf(await this.storage.get());
  }

  /** The row to send, and how much it discloses; or the reason to wait. The same answers and seed give the same row. */
  async perturb({ codes, label, choice, ticket, seed }) {
    const common = { ticket, version: this.version };
    if (choice.clear) {
      const disclosure = { exposure: codes.map(() => 1), capacity: this.sizes.reduce((sum, size) => sum + Math.log2(size), 0) };
      return { body: { ...common, row: codes, label }, disclosure };
    }
    if (this.definition.mode === "randomised") {
      const { retention } = this.definition.levels[choice.level];
      const row = randomisedResponse(codes, this.sizes, retention, await seededIntegers(seed, 2 * codes.length));
      const disclosure = { probability: retention.map((one, i) => one + (1 - one) / this.sizes[i]) };
      // The level stays with the draw: at another level, chosen in view of the row, the same numbers could suit better.
      return { body: { ...common, level: choice.level, row }, disclosure, level: choice.level };
    }
    const guidance = await this.guidance(choice);
    if (guidance.reason) return guidance;
    const { epoch, matrix, disclosure } = guidance;
    const row = guidedResponse(oneHot(codes, this.sizes), matrix, this.definition.guided.floor, await seededIntegers(seed, matrix.length));
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
      const stored = await this.storage.get(), { content } = stored;
      const unperturbed = Boolean(content.choice.clear), clear = Boolean(unperturbed || stored.clear);
      const body = this.invitation ? { ...content.body, ticket: this.invitation } : content.body;
      await this.store("tried", content, clear);
      let response;
      try {
        response = await this.request(unperturbed ? "/bootstrap" : "/answers", body);
      } catch {
        return { ...progress, state: "tried", reason: `The survey cannot be reached, or you are offline. ${AGAIN}` };
      }
      return this.handleResponse(response, { state: "tried", content, clear });
    });
  }

  /** What a reply means for a row that has left this device: it is final, or the same row is sent again. */
  async handleResponse(response, tried) {
    const { content, clear } = tried, { status } = response;
    const reply = (await response.json().catch(() => null)) ?? {};
    if (response.ok && typeof reply.counted === "boolean") {
      // The sender of an invitation knows its ticket, and would find the receipt too.
      const receipt = this.invitation ? undefined : await this.receiptOf(content.ticket);
      await this.storage.put("sent", null, { clear, receipt });
      return { state: "sent", clear, counted: reply.counted, receipt };
    }
    const isProblem = response.headers.get("content-type")?.startsWith("application/problem+json");
    const detail = isProblem && reply.detail ? `The survey replied: “${String(reply.detail).slice(0, 500)}”` : "";
    if (isProblem && status === 410 && content.choice.clear) {
      // It needs no more unperturbed answers, and says that it did not store these: they are perturbed, and shown again.
      await this.store("waiting", { ...content, body: undefined, choice: { ...content.choice, clear: false, automatic: false } }, clear);
      return { reason: `Your unchanged answers were sent, and the survey did not take them. ${detail}`, ...(await this.advance()), unseen: true };
    }
    if (isProblem && REJECTED.includes(status)) {
      await this.storage.put("rejected", null, { clear });
      return { state: "rejected", clear, reason: detail };
    }
    await this.store("tried", content, clear); // again, in case the reply cleared the browser's storage
    const final = status === 403; // only another link, with an invitation, can help
    return { ...progressOf(tried), final, reason: `The survey did not confirm your answer (status ${status}). ${detail} ${final ? "" : AGAIN}` };
  }

  /** The receipt of an answer: the beginning of the hash of its ticket, which tells nothing about the row. */
  async receiptOf(ticket) {
    return (await sha256(`${this.survey}\0${ticket}`)).slice(0, 16);
  }

  /** Looks for a receipt among those of all answers that count. All are asked for, so that nobody learns which. */
  async checkReceipt(receipt) {
    const response = await this.request("/receipts").catch(() => ({ ok: false }));
    if (!response.ok) throw new Refused("the receipts cannot be read now");
    const { receipts } = await response.json();
    return { found: receipts.includes(receipt), count: receipts.length };
  }

  status() {
    return this.exclusively(() => this.advance());
  }

  /** Deletes answers that were not sent. The seed stays, so that no second row can be drawn. */
  forget() {
    return this.exclusively(async () => {
      const stored = await this.storage.get();
      if (FINAL[stored?.state]) throw new Refused(FINAL[stored.state]);
      if (stored) await this.store("none", lastingOf(stored), stored.clear);
      return progressOf(await this.storage.get());
    });
  }
}

/** What outlives every change of the answers: the ticket, the seed of the random numbers, and the level drawn for. */
function lastingOf(stored) {
  const { ticket, seed, level } = stored?.content ?? {};
  return { ticket, seed, level };
}

function progressOf(stored) {
  if (!stored) return { state: "none" };
  const { body, disclosure, level, choice } = stored.content ?? {};
  // Unperturbed answers are never sent before the respondent has looked at them.
  return { state: stored.state, clear: stored.clear, receipt: stored.receipt, body, disclosure, level, automatic: Boolean(choice?.automatic && !choice.clear) };
}
