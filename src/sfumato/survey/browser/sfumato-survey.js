/* Answers a Sfumato survey: blurs answers on this device, checks what the collector asks for, and sends nothing else. */

import { Refused, bits, checkDefinition, code, coded, digestOf, drawn, guided, inspect, itemsOf, randomise, sha256, sound } from "./sfumato-law.js";

export * from "./sfumato-law.js";

const hex = (count) => Array.from(crypto.getRandomValues(new Uint8Array(count)), (byte) => byte.toString(16).padStart(2, "0")).join("");

/* ---- The keeping: one sealed record a survey, under a key that cannot leave this browser ------------------------- */

const done = (request) => new Promise((resolve, reject) => {
  request.onsuccess = () => resolve(request.result);
  request.onerror = () => reject(request.error);
});

class Keeping {
  constructor(name) {
    this.name = name;
  }

  /** Associated data: a record cannot be moved to another survey, or read as an answer to another version of it. */
  bind(version) {
    this.bound = new TextEncoder().encode(`${this.name}|${version}|1`);
  }

  async store(mode) {
    const opening = indexedDB.open("sfumato-survey", 1);
    opening.onupgradeneeded = () => ["kept", "keys"].forEach((name) => opening.result.createObjectStore(name));
    const database = await done(opening);
    const transaction = database.transaction(["kept", "keys"], mode, { durability: "strict" });
    transaction.ended = new Promise((resolve, reject) => {
      transaction.oncomplete = resolve;
      transaction.onabort = () => reject(transaction.error);
    }).finally(() => database.close());
    return transaction;
  }

  async read(store) {
    return done((await this.store("readonly")).objectStore(store).get(this.name));
  }

  async key() {
    const found = await this.read("keys");
    if (found) return found;
    const made = await crypto.subtle.generateKey({ name: "AES-GCM", length: 256 }, false, ["encrypt", "decrypt"]);
    const transaction = await this.store("readwrite");
    transaction.objectStore("keys").put(made, this.name);
    await transaction.ended;
    return made;
  }

  /** Deletes what was sealed for a survey that is over, even if its collector is gone. */
  async purge() {
    const record = await this.read("kept");
    if (record?.sealed && Date.now() > record.ends) await this.put("dropped");
  }

  /** What is kept: its state, and what it holds if this browser can open it. */
  async get() {
    const record = await this.read("kept");
    if (!record?.sealed) return record;
    const how = { name: "AES-GCM", iv: record.iv, additionalData: this.bound };
    try {
      const plain = await crypto.subtle.decrypt(how, await this.key(), record.sealed);
      return { ...record, held: JSON.parse(new TextDecoder().decode(plain)) };
    } catch {
      // Of another version of the survey, or without its key. What was tried is never drawn again.
      await this.put(record.state === "tried" ? "dropped" : "none");
      return this.read("kept");
    }
  }

  /** Resolves when it is on disk. */
  async put(state, held, ends) {
    const record = { state, ends };
    if (held) {
      record.iv = crypto.getRandomValues(new Uint8Array(12));
      const how = { name: "AES-GCM", iv: record.iv, additionalData: this.bound };
      record.sealed = await crypto.subtle.encrypt(how, await this.key(), new TextEncoder().encode(JSON.stringify(held)));
    }
    const transaction = await this.store("readwrite");
    if (!held) transaction.objectStore("keys").delete(this.name);
    const kept = transaction.objectStore("kept");
    if (state === "none") kept.delete(this.name);
    else kept.put(record, this.name);
    await transaction.ended;
  }
}

/* ---- The respondent ------------------------------------------------------------------------------------------------
 * States: `none`; `waiting` for guidance; `ready`, blurred and shown; `tried`, from the moment that it may have left, after
 * which the same row is sent or none; `sent`; `dropped`.
 */

const FINAL = {
  tried: "your answer is on its way, and cannot be changed any more",
  sent: "you have answered this survey, and it takes one answer a person",
  dropped: "your answers to this survey were deleted, and it takes no others",
};

export class Respondent {
  constructor({ server, survey, ticket, log }) {
    this.server = server.replace(/\/$/, "");
    this.survey = survey;
    this.given = ticket;
    this.log = log;
    this.name = `${this.server}/${survey}`;
    this.keeping = new Keeping(this.name);
  }

  /** Without cookies or referrer: the collector is not told who asks. */
  async ask(path, body) {
    const how = { credentials: "omit", referrerPolicy: "no-referrer", cache: "no-store" };
    const post = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
    return fetch(`${this.server}/api/v1/respond/${encodeURIComponent(this.survey)}${path}`, body ? { ...how, ...post } : how);
  }

  async load() {
    await this.keeping.purge();
    const answer = await this.ask("");
    if (!answer.ok) throw new Refused((await answer.json().catch(() => ({}))).detail ?? "the survey cannot be reached");
    const said = await answer.json();
    if ((await sha256(said.definition)) !== said.version) throw new Refused("the survey is not the one it says it is");
    const definition = JSON.parse(said.definition);
    checkDefinition(definition);
    Object.assign(this, { definition, version: said.version, state: said.state, wanted: said.wanted, digests: [] });
    this.items = itemsOf(definition);
    this.sizes = this.items.map(({ size }) => size);
    this.ends = Date.parse(definition.ends);
    this.keeping.bind(said.version);
    return this;
  }

  /** One at a time, whatever the number of tabs and clicks. */
  alone(work) {
    return navigator.locks.request(`sfumato ${this.name}`, work);
  }

  over() {
    return Date.now() > this.ends;
  }

  /** What people who answer the same survey can compare: it differs if they are asked differently. */
  async fingerprint() {
    return (await sha256(`${this.version}${this.digests.join("")}`)).slice(0, 16);
  }

  /** Keeps answers sealed; nothing is sent. Returns what would be sent, or why it has to wait. */
  prepare(answers, choice) {
    return this.alone(async () => {
      const kept = await this.keeping.get();
      if (FINAL[kept?.state]) throw new Refused(FINAL[kept.state]);
      const codes = code(this.definition, answers);
      const label = this.definition.mode === "guided" ? coded(this.questionOfClass(), answers[this.definition.class])[0] : 0;
      if (!codes || label < 0) throw new Refused("some questions are not answered");
      const said = { codes, label, choice, ticket: kept?.held?.ticket ?? this.given ?? hex(16) };
      if (kept?.state !== "ready" || JSON.stringify(kept.held.from) !== JSON.stringify(said))
        await this.keeping.put("waiting", said, this.ends);
      return { ...(await this.advance()), fresh: true };
    });
  }

  questionOfClass() {
    return this.definition.questions.find(({ name }) => name === this.definition.class);
  }

  /** Takes what is kept one step further, without sending it. */
  async advance() {
    const kept = await this.keeping.get();
    if (kept?.held && (this.over() || this.state === "closed")) await this.keeping.put("dropped");
    if (kept?.state !== "waiting" || this.over() || this.state === "closed") return this.shown(await this.keeping.get());
    const { choice } = kept.held;
    try {
      const blurred = await this.blurred(kept.held);
      if (blurred.why) return { state: "waiting", automatic: automatic(choice), why: blurred.why };
      await this.keeping.put("ready", { ...blurred, from: kept.held, ticket: kept.held.ticket }, this.ends);
    } catch (error) {
      const waiting = { state: "waiting", automatic: automatic(choice) };
      if (error instanceof TypeError) return { ...waiting, why: "The collector cannot be reached." };
      if (!(error instanceof Refused)) throw error;
      return { ...waiting, refused: true, why: `What the collector asks for was refused: ${error.message}.` };
    }
    return this.shown(await this.keeping.get());
  }

  /** What would be sent, drawn once, and what it tells; or why to wait. */
  async blurred({ codes, label, choice, ticket }) {
    const common = { ticket, version: this.version };
    if (choice.clear) {
      const foresight = { exposure: codes.map(() => 1), capacity: this.sizes.reduce((sum, size) => sum + Math.log2(size), 0) };
      return { body: { ...common, row: codes, label }, foresight };
    }
    if (this.definition.mode === "randomised") {
      const { retention } = this.definition.levels[choice.level];
      const row = randomise(codes, this.sizes, retention, drawn(2 * codes.length));
      return { body: { ...common, level: choice.level, row }, foresight: { right: retention.map((one, i) => one + (1 - one) / this.sizes[i]) } };
    }
    const found = await this.guidance(choice);
    if (found.why) return found;
    const row = guided(bits(codes, this.sizes), found.matrix, this.definition.guided.floor, drawn(found.matrix.length));
    return { body: { ...common, epoch: found.epoch, used: found.matrix[0].length, label, row }, foresight: found.foresight };
  }

  /** Guidance that this respondent may follow, checked; or why to wait. */
  async guidance({ allowed, truncate }) {
    const answer = await this.ask("/guidance");
    if (!answer.ok) return { why: "The collector cannot be reached." };
    const { epoch, matrix, digests } = await answer.json();
    if (!matrix) return { why: "There is no guidance yet: the survey is still looking for its first answers." };
    sound(matrix, this.sizes);
    await this.compare(digests, epoch, await digestOf(this.version, epoch, matrix));
    if (matrix[0].length > allowed && !truncate)
      return { why: `The survey now asks for ${matrix[0].length} directions, more than the ${allowed} that you allow.` };
    const used = matrix.map((row) => row.slice(0, allowed));
    // A seed that the collector cannot know: guidance cannot be tuned to pass by luck.
    return { epoch, matrix: used, foresight: inspect(used, this.sizes, { ...this.definition.guided, seed: hex(4), allowed }) };
  }

  /** Refuses guidance that is not everybody's, as far as this device can see: by what it saw before, and by another log. */
  async compare(digests, epoch, digest) {
    if (digests[epoch - 1] !== digest || digests.length !== epoch) throw new Refused("it is not the one that the public log shows to everybody");
    const place = `sfumato log ${this.name}`, seen = JSON.parse(localStorage.getItem(place) ?? "[]");
    if (seen.some((one, i) => digests[i] !== one)) throw new Refused("the public log was rewritten since you last looked");
    if (this.log) {
      const other = await (await fetch(this.log, { credentials: "omit", cache: "no-store" })).json();
      if (other.version !== this.version || digests.some((one, i) => other.digests[i] !== one))
        throw new Refused("another copy of the public log shows something else");
    }
    localStorage.setItem(place, JSON.stringify(digests));
    this.digests = digests;
  }

  shown(kept) {
    if (!kept) return { state: "none" };
    const { body, foresight, from, choice } = kept.held ?? {};
    return { state: kept.state, body, foresight, automatic: automatic(from?.choice ?? choice) };
  }

  /** Sends what is ready: the same row however often it is tried. */
  send() {
    return this.alone(async () => {
      const now = await this.advance();
      if (!["ready", "tried"].includes(now.state)) return now;
      const { held } = await this.keeping.get();
      const clear = Boolean(held.from.choice.clear), body = this.given ? { ...held.body, ticket: this.given } : held.body;
      await this.keeping.put("tried", held, this.ends);
      let answer;
      try {
        answer = await this.ask(clear ? "/bootstrap" : "/answers", body);
      } catch {
        return { ...now, state: "tried", why: "You seem to be offline. The answer is kept, and sent when you are back." };
      }
      return this.answered(answer, held, clear);
    });
  }

  async answered(answer, held, clear) {
    if (answer.ok) {
      await this.keeping.put("sent");
      return { state: "sent", clear, ...(await answer.json()) };
    }
    const ours = answer.headers.get("content-type")?.startsWith("application/problem+json");
    const { detail = "" } = ours ? await answer.json() : {};
    if (ours && answer.status === 410) {
      // Unblurred answers are not wanted any more, and this one was not kept: it is blurred, and shown again.
      const { from } = held;
      await this.keeping.put("waiting", { ...from, choice: { ...from.choice, clear: false, automatic: false } }, this.ends);
      return { ...(await this.advance()), fresh: true };
    }
    if (ours && [404, 409, 422].includes(answer.status)) {
      await this.keeping.put("dropped");
      return { state: "dropped", why: detail };
    }
    const tried = { ...this.shown({ state: "tried", held }), why: detail };
    return answer.status === 403 ? { ...tried, stuck: true } : { ...tried, why: `The collector is busy; it will be tried again. ${detail}` };
  }

  status() {
    return this.alone(() => this.advance());
  }

  /** Deletes what was not sent; what was is not forgotten, so that it is not drawn again. */
  forget() {
    return this.alone(async () => {
      const kept = await this.keeping.get();
      if (FINAL[kept?.state]) throw new Refused(FINAL[kept.state]);
      await this.keeping.put("none");
    });
  }
}

/** Nothing unblurred goes without being looked at. */
const automatic = (choice) => Boolean(choice?.automatic && !choice.clear);
