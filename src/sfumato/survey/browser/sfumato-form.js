/* <sfumato-survey server="https://..." survey="name">: a form that asks the questions, shows what will be sent, and sends it.
 * With log="https://..." guidance must also be in a copy of the public log that somebody else keeps. With lang="de" it
 * speaks German; without, the language of the page.
 */

import { directionOf, languageOf, translator } from "./sfumato-messages.js";
import { Refused, Respondent, labelsOf, percent, protection } from "./sfumato-survey.js";

const RETRY_INTERVAL = 15_000; // milliseconds between two attempts to send answers that wait

const ONE_DIRECTION = "{count}: the survey may use at most one combination of your answers, up to {bits} bits of information, besides your answer to “{question}”.";

const make = (tag, properties = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children.flat());
  return element;
};

const checkbox = (name, text, properties = {}) => make("label", { className: "check" }, make("input", { type: "checkbox", name, ...properties }), ` ${text}`);

export class Form extends HTMLElement {
  async connectedCallback() {
    this.read(this.tag || this.getAttribute("lang") || document.documentElement.lang || navigator.language);
    this.respondent = this.connect();
    this.message = make("p", { role: "status" });
    try {
      await this.respondent.load();
      this.texts = localised(this.respondent.definition, this.tag);
      await this.show(await this.respondent.status());
    } catch (error) {
      if (error instanceof Refused) this.dispatchEvent(new CustomEvent("sfumato-progress", { detail: "closed" }));
      this.replaceChildren(make("p", { role: "alert", className: "alarm" }, this.t(error instanceof Refused ? sentence(error.message) : "The survey cannot be reached. Try again later.")));
      return;
    }
    if (this.watching) return;
    addEventListener("online", () => this.resume());
    this.watching = setInterval(() => this.resume(), RETRY_INTERVAL);
  }

  connect() {
    const ticket = new URLSearchParams(location.hash.slice(1)).get("ticket");
    const survey = this.getAttribute("survey"), server = this.getAttribute("server") || location.origin;
    return new Respondent({ server, survey, ticket, log: this.getAttribute("log") });
  }

  /** Speaks the language of a tag, as far as there is a catalogue. */
  read(tag) {
    this.tag = tag;
    this.t = translator(tag);
    Object.assign(this, { lang: languageOf(tag), dir: directionOf(languageOf(tag)) });
  }

  /** A text of the survey's author, in the author's language. */
  said(text) {
    return make("span", { dir: "auto", ...(this.texts.language && { lang: this.texts.language }) }, text);
  }

  /** Tries again to send answers that wait, if the respondent agreed to that. */
  async resume() {
    const { state, automatic, unseen, final } = this.progress;
    const mayGo = { waiting: automatic, ready: automatic && !unseen, tried: !final };
    if (!mayGo[state]) return;
    await this.show(await this.respondent.send());
  }

  async show(progress) {
    this.progress = progress;
    const { state, unseen, reason, automatic, body } = progress;
    if (["ready", "tried"].includes(state) && !unseen && !reason && (automatic || state === "tried")) return this.resume();
    if (body) this.fingerprint = await this.respondent.fingerprint();
    const view = { none: () => this.questions(), ready: () => this.review(progress), tried: () => this.review(progress), waiting: () => this.waiting(progress) }[state];
    this.replaceChildren(...(view ? view() : this.ended(progress)));
    this.querySelector("h2")?.focus();
    const closed = state === "none" && (this.respondent.state !== "open" || this.respondent.isOver());
    this.dispatchEvent(new CustomEvent("sfumato-progress", { detail: closed ? "closed" : state }));
    return undefined;
  }

  title(text) {
    return make("h2", { tabIndex: -1 }, text);
  }

  button(text, action, className = "") {
    const button = make("button", { type: "button", className }, text);
    button.onclick = async () => {
      button.disabled = true;
      try {
        await action();
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        this.message.textContent = this.t(sentence(error.message));
      } finally {
        button.disabled = false;
      }
    };
    return button;
  }

  /* ---- Questions ---- */

  questions() {
    const { definition, state } = this.respondent;
    if (state !== "open" || this.respondent.isOver()) return [this.title(this.t("This survey is closed")), make("p", {}, this.t("It takes no more answers."))];
    const form = make("form", { noValidate: true }, definition.questions.map((one, i) => this.question(one, fieldOf(i))), this.privacy());
    form.onsubmit = (event) => event.preventDefault();
    const agree = make("input", { type: "checkbox", name: "agree" });
    const preview = this.button(this.t("Show me what will be sent"), async () => {
      if (!agree.checked) throw new Refused("agree to the text above first, or leave this page: nothing was sent");
      await this.show(await this.respondent.prepare(this.answers(form), this.choice(form)));
    });
    this.message.textContent = "";
    return [
      make("p", { className: "pale" }, `${this.lead()} ${this.t("The survey closes on {day}.", { day: new Date(this.respondent.ends - 1).toLocaleDateString(this.tag) })}`),
      make("section", { className: "card" }, make("p", {}, this.said(this.texts.consent)), make("label", { className: "check" }, agree, ` ${this.t("I agree")}`)),
      form, preview, this.message,
    ];
  }

  /** What happens to answers, in a sentence. */
  lead() {
    if (this.respondent.definition.mode !== "guided") return this.t("Your answers are randomly changed in this browser before they are sent.");
    return this.t("Your answers are randomly changed in this browser before they are sent, except the one to “{question}”, which is sent unchanged.", { question: this.classText() });
  }

  classText() {
    return this.texts.questions[this.respondent.definition.class].text;
  }

  question({ name, kind, options, unit }, field) {
    const { mode, class: target } = this.respondent.definition, { text, options: shown } = this.texts.questions[name];
    const note = mode === "guided" && name === target ? make("p", {}, make("strong", {}, this.t("This answer is sent unchanged.")), ` ${this.t("Only your other answers are randomly changed.")}`) : [];
    if (kind === "number" || kind === "date") {
      const input = kind === "date" ? make("input", { type: "date", name: field }) : make("input", { type: "number", step: "any", name: field, inputMode: "decimal" });
      return make("label", {}, this.said(text), unit ? ` (${unit})` : "", note, input);
    }
    const type = kind === "multiple" ? "checkbox" : "radio";
    const ranks = ["", ...options.keys()].map((rank) => make("option", { value: rank }, rank === "" ? "" : String(rank + 1)));
    const choose = (value, i) => make("label", { className: "check" }, make("input", { type, name: field, value }), " ", this.said(shown[i]));
    const rank = (value, i) => make("label", { className: "check" }, make("select", { name: field }, ranks.map((one) => one.cloneNode(true))), " ", this.said(shown[i]));
    const hint = kind === "ranking" ? make("p", { className: "pale" }, this.t("Give each option a rank of its own, 1 for the first.")) : [];
    return make("fieldset", { className: kind }, make("legend", {}, this.said(text)), note, hint, options.map(kind === "ranking" ? rank : choose));
  }

  answers(form) {
    const data = new FormData(form);
    const number = (text) => (text ? Number(text) : NaN);
    const one = ({ kind, options }, field) => ({ number: () => number(data.get(field)), multiple: () => data.getAll(field), ranking: () => ordered(options, data.getAll(field)) }[kind] ?? (() => data.get(field)))();
    return Object.fromEntries(this.respondent.definition.questions.map((question, i) => [question.name, one(question, fieldOf(i))]));
  }

  /** The slider for the privacy level, with an explanation, and the further choices of a guided survey. */
  privacy() {
    const { definition, needsUnperturbed, items } = this.respondent, steps = definition.levels.length;
    const { level: drawn, clear } = this.progress; // what an earlier draw, or an earlier attempt, has settled
    const guided = definition.mode === "guided";
    const max = guided ? Math.min(8, items.length) : steps - 1;
    const start = guided ? Math.min(labelsOf(this.respondent.classQuestion()).length, max) : Math.floor((steps - 1) / 2);
    const slider = make("input", { type: drawn === undefined ? "range" : "hidden", name: "trust", min: guided ? 1 : 0, max, value: drawn ?? start });
    const explanation = make("output", {});
    const explain = () => {
      const value = Number(slider.value), level = definition.levels[value];
      explanation.textContent = guided
        ? this.t(value === 1 ? ONE_DIRECTION : "{count}: the survey may use at most {count} combinations of your answers, up to {bits} bits of information, besides your answer to “{question}”.", { count: value, bits: (definition.guided.capacity * value).toFixed(0), question: this.classText() })
        : this.t("{level}, {protection}: {probabilities}. What is sent changes the odds of a guess about one answer at most {odds}-fold (ε is {epsilon} per question, {total} in total).", { level: level.name, protection: this.t(protection(level.epsilon)), probabilities: this.probabilities(level.retention), odds: Math.exp(level.epsilon).toFixed(1), epsilon: level.epsilon, total: level.total });
    };
    const picture = make("div", { className: "worst" });
    const redraw = () => {
      explain();
      if (!guided) picture.replaceChildren(...this.worstCase(definition.levels[Number(slider.value)]));
    };
    slider.oninput = redraw;
    redraw();
    const more = [];
    if (guided) {
      more.push(checkbox("truncate", this.t("If the survey asks for more, send only what I allow")));
      more.push(checkbox("automatic", this.t("If it asks for more now, keep my answers encrypted on this device, and send them when it asks for less"), { checked: true }));
      if (needsUnperturbed && !clear) more.push(checkbox("clear", this.t("Help the survey to start: send my true answers, NOT randomly changed")));
    }
    const sides = this.dir === "rtl" ? "More privacy at the start, more accurate results at the end" : "More privacy to the left, more accurate results to the right";
    const hint = drawn === undefined ? sides : "You chose this before the random changes were drawn, so it stays:";
    const label = make("label", {}, this.t(hint), slider);
    return make("fieldset", { className: "trust" }, make("legend", {}, this.t("How much may the survey learn about you?")), label, explanation, picture, more);
  }

  /** What the whole row can tell at most, in words and a picture: the posterior of a fact that half of the people share. */
  worstCase({ retention }) {
    const epsilon = retention.reduce((sum, kept, i) => sum + Math.log1p((kept * this.respondent.sizes[i]) / (1 - kept)), 0); // of all answers together
    const sure = 1 / (1 + Math.exp(-epsilon)), share = sure > 0.99 ? this.t("over {share}", { share: percent(0.99) }) : percent(sure);
    const worst = this.t("The worst case: if all your answers followed from one fact about you, which is true of every second person, somebody who sees what is sent could be {share} sure of it, instead of {half}.", { share, half: percent(0.5) });
    const text = sure > 0.95 ? `${worst} ${this.t("Against that, this level protects nothing; it protects single answers.")}` : worst;
    return [make("meter", { min: 0, max: 1, low: 0.75, high: 0.95, optimum: 0.5, value: sure, "aria-label": text }), make("p", {}, text)];
  }

  probabilities(retention) {
    const truth = retention.map((kept, i) => kept + (1 - kept) / this.respondent.sizes[i]);
    const [least, most] = [Math.min(...truth), Math.max(...truth)].map(percent);
    const share = least === most ? least : this.t("{least} to {most}", { least, most });
    return this.t("your true answer is sent with a probability of {share}, otherwise a random one", { share });
  }

  choice(form) {
    const data = new FormData(form), value = Number(data.get("trust"));
    if (this.respondent.definition.mode === "randomised") return { level: value };
    return { allowed: value, truncate: data.has("truncate"), automatic: data.has("automatic"), clear: data.has("clear") };
  }

  /* ---- Review of what will be sent ---- */

  review({ state, body, disclosure, reason }) {
    const { definition, items, sizes } = this.respondent, tried = state === "tried";
    const rows = items.map((item, i) => make("tr", {}, make("th", { scope: "row" }, this.said(questionText(this.texts, item))), make("td", {}, this.disclosed(disclosure, item, i, body.row))));
    const total = sizes.reduce((sum, size) => sum + Math.log2(size), 0).toFixed(0);
    const worst = definition.mode === "guided" ? [] : [make("div", { className: "worst" }, this.worstCase(definition.levels[body.level]))];
    const bits = disclosure.capacity === undefined ? [] : [make("p", {}, this.t("At most {bits} bits of your {total} bits of information about these questions can be learned, whatever else is known about you.", { bits: disclosure.capacity.toFixed(1), total }))];
    const label = definition.mode === "guided" ? [make("p", {}, make("strong", {}, this.t("Your answer to “{question}” is sent unchanged.", { question: this.classText() })))] : [];
    this.message.textContent = this.t(reason ?? "");
    return [
      this.title(this.t("What can be learned from your answers")),
      make("table", {}, make("tbody", {}, rows)), ...worst, ...bits, ...label,
      make("h3", {}, this.t("This is sent from your device, and nothing else")),
      make("pre", { tabIndex: 0, dir: "ltr" }, JSON.stringify(body)),
      make("p", { className: "pale" }, this.t("The random numbers were drawn once: every attempt sends the same, and other answers are changed by the same numbers, so that repetition reveals nothing more. Fingerprint of this survey: {fingerprint}. Everybody who is asked in the same way sees the same fingerprint.", { fingerprint: this.fingerprint })),
      make("p", { className: "buttons" }, this.button(this.t(tried ? "Try again" : "Send this"), () => this.send()), tried ? [] : this.button(this.t("Change my answers"), () => this.restart(), "plain")),
      this.message,
    ];
  }

  async send() {
    await this.show(await this.respondent.send());
  }

  /** How much is disclosed about one item, as a meter and in words. */
  disclosed({ probability, exposure }, item, i, row) {
    const share = probability ? probability[i] : exposure[i], answer = this.labels(item)[row[i]];
    const guided = () => (share === 1 ? this.t("“{answer}” is sent unchanged", { answer }) : this.t("at most {share} of it can be learned, whatever you answered", { share: percent(share) }));
    const text = probability ? this.t("“{answer}” is sent; it is your true answer with a probability of {share} (a blind guess: {guess})", { answer, share: percent(share), guess: percent(1 / item.size) }) : guided();
    return [make("meter", { min: 0, max: 1, value: share, "aria-label": text }), make("small", {}, text)];
  }

  /** The answers to an item in the respondent's language. */
  labels({ question, option, labels }) {
    const asked = this.respondent.definition.questions.find(({ name }) => name === question);
    if (option) return labels.map((one) => this.t(one));
    return asked.cuts?.length ? this.intervals(asked) : labelsOf({ ...asked, options: this.texts.questions[question].options });
  }

  /** The intervals of a number or a day in the respondent's language. */
  intervals({ kind, cuts, unit }) {
    const pairs = cuts.slice(1).map((high, i) => [cuts[i], high]), last = cuts.at(-1);
    if (kind === "date")
      return [this.t("before {day}", { day: cuts[0] }), ...pairs.map(([low, high]) => this.t("from {low}, before {high}", { low, high })), this.t("from {day}", { day: last })];
    const shown = (number) => (unit ? `${number} ${unit}` : `${number}`);
    const more = unit ? this.t("{end} or more {unit}", { end: last, unit }) : this.t("{end} or more", { end: last });
    return [this.t("below {end}", { end: shown(cuts[0]) }), ...pairs.map(([least, most]) => this.t("{least} to {most}", { least, most: shown(most) })), more];
  }

  async restart() {
    await this.show(await this.respondent.forget());
  }

  /* ---- Waiting and the end ---- */

  waiting({ reason, refused, automatic, clear }) {
    const nothing = clear ? "The randomly changed version was not sent" : "Nothing was sent";
    this.message.textContent = "";
    const moment = new Date(this.respondent.definition.ends).toLocaleString(this.tag);
    return [
      this.title(this.t(refused ? `${nothing}: this survey asks for too much` : `${nothing} yet`)),
      make("p", { className: refused ? "alarm" : "", role: refused ? "alert" : "status" }, this.t(reason ?? "")),
      make("p", {}, `${this.t("Your answers are stored encrypted on this device until {moment}, then deleted.", { moment })} ${automatic ? this.t("You can close this page; open it again later to let them be sent.") : ""}`),
      make("p", { className: "buttons" }, this.button(this.t("Check again"), async () => this.show(await this.respondent.status())), this.button(this.t("Delete my answers"), () => this.restart(), "plain")),
      this.message,
    ];
  }

  /** The last page. It says of a row that left this device that it did, whatever the survey replied. */
  ended({ state, reason, counted, clear, receipt }) {
    const guided = this.respondent.definition.mode === "guided";
    const changed = guided ? this.t("Only the randomly changed version and, unchanged, your answer to “{question}” left this device.", { question: this.classText() }) : this.t("Only the randomly changed version left this device.");
    const what = clear ? this.t("Your unchanged answers left this device, as you chose.") : changed;
    const deleted = this.t("Your answers were deleted here, and no other version will be sent.");
    const [title, text] = {
      sent: ["Sent. Thank you", counted === false ? "It had arrived before, and counts once." : ""],
      rejected: ["Sent, but not accepted", "The survey refused what was sent."],
      unconfirmed: ["Sent, but not confirmed", "The survey ended or changed before it confirmed what was sent, which may or may not count."],
      dropped: ["Your answers were deleted, not sent", "The survey ended before they could be sent."],
      previewed: ["This was a preview", "Nothing was sent, and nothing was stored."],
    }[state];
    const role = ["sent", "previewed"].includes(state) ? "status" : "alert", left = ["dropped", "previewed"].includes(state) ? "" : `${what} ${deleted}`;
    const all = [text, reason ?? ""].filter(Boolean).map((one) => this.t(one)).concat(left || []).join(" ");
    this.message.textContent = "";
    return [this.title(this.t(title)), make("p", { role }, all), ...(state === "sent" && receipt ? this.receipt(receipt) : []), this.message];
  }

  /** The receipt, and a look for it in the list that the survey publishes. */
  receipt(receipt) {
    const said = this.t("Your receipt is {receipt}. When it has closed, the survey publishes the receipts of all answers that it counted; they tell nothing about the answers, and your browser reads all of them, so that nobody learns which is yours.", { receipt });
    if (this.respondent.state !== "closed" && !this.respondent.isOver()) return [make("p", { className: "pale" }, `${said} ${this.t("Open this page again then.")}`)];
    const check = this.button(this.t("Check that my answer was counted"), async () => {
      const { found, count } = await this.respondent.checkReceipt(receipt);
      const text = found ? "Your receipt is among the {count} that were counted." : "Your receipt is NOT among the {count} that were counted. Ask those who run the survey, and show them your receipt.";
      this.message.textContent = this.t(text, { count });
      this.message.className = found ? "" : "alarm";
    }, "plain");
    return [make("p", { className: "pale" }, said), make("p", {}, check)];
  }
}

/** The name of the field of a question, which no other field of the form has. */
const fieldOf = (index) => `question-${index}`;

const sentence = (text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;

/** Options in the order of their ranks; none where two have the same, or one has no rank. */
function ordered(options, ranks) {
  const isComplete = new Set(ranks).size === options.length && !ranks.includes("");
  return isComplete ? options.map((_, rank) => options[ranks.indexOf(String(rank))]) : [];
}

/** The texts of a survey in the language of a tag, where its author gave a translation, and the language that they are in. */
function localised({ title, consent, questions, language, translations = {} }, tag) {
  const found = [tag, tag.split("-")[0]].find((one) => one in translations), own = translations[found] ?? {};
  const texts = questions.map(({ name, text, options = [] }) => {
    const translated = own.questions?.[name] ?? {};
    return [name, { text: translated.text || text, options: translated.options?.length ? translated.options : options, original: options }];
  });
  return { language: found ?? language, title: own.title || title, consent: own.consent || consent, questions: Object.fromEntries(texts) };
}

function questionText({ questions }, { question, option }) {
  const { text, options, original } = questions[question];
  return option ? `${text} ${options[original.indexOf(option)]}` : text;
}

customElements.define("sfumato-survey", Form);
