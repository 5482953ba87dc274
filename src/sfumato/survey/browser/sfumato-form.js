/* <sfumato-survey server="https://..." survey="name">: a form that asks the questions, shows what will be sent, and sends it.
 * With log="https://..." guidance must also be in a copy of the public log that somebody else keeps.
 */

import { Refused, Respondent, labelsOf, percent, protection } from "./sfumato-survey.js";

const RETRY_INTERVAL = 15_000; // milliseconds between two attempts to send answers that wait

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

class Form extends HTMLElement {
  async connectedCallback() {
    const ticket = new URLSearchParams(location.hash.slice(1)).get("ticket");
    const survey = this.getAttribute("survey"), server = this.getAttribute("server") || location.origin;
    this.respondent = new Respondent({ server, survey, ticket, log: this.getAttribute("log") });
    this.message = make("p", { role: "status" });
    try {
      await this.respondent.load();
      await this.show(await this.respondent.status());
    } catch (error) {
      this.replaceChildren(make("p", { role: "alert", className: "alarm" }, error instanceof Refused ? sentence(error.message) : "The survey cannot be reached. Try again later."));
      return;
    }
    addEventListener("online", () => this.resume());
    setInterval(() => this.resume(), RETRY_INTERVAL);
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
        this.message.textContent = sentence(error.message);
      } finally {
        button.disabled = false;
      }
    };
    return button;
  }

  /* ---- Questions ---- */

  questions() {
    const { definition, state } = this.respondent;
    if (state !== "open" || this.respondent.isOver()) return [this.title("This survey is closed"), make("p", {}, "It takes no more answers.")];
    const form = make("form", { noValidate: true }, definition.questions.map((one) => this.question(one)), this.privacy());
    form.onsubmit = (event) => event.preventDefault();
    const agree = make("input", { type: "checkbox", name: "agree" });
    const preview = this.button("Show me what will be sent", async () => {
      if (!agree.checked) throw new Refused("agree to the text above first, or leave this page: nothing was sent");
      await this.show(await this.respondent.prepare(this.answers(form), this.choice(form)));
    });
    this.message.textContent = "";
    return [
      make("section", { className: "card" }, make("p", {}, definition.consent), make("label", { className: "check" }, agree, " I agree")),
      form, preview, this.message,
    ];
  }

  question({ name, text, kind, options, unit }) {
    const { mode, class: target } = this.respondent.definition;
    const note = mode === "guided" && name === target ? make("p", {}, make("strong", {}, "This answer is sent unchanged."), " Only your other answers are randomly changed.") : [];
    if (kind === "number") {
      const field = make("input", { type: "number", step: "any", name, inputMode: "decimal" });
      return make("label", {}, text, unit ? ` (${unit})` : "", note, field);
    }
    const type = kind === "multiple" ? "checkbox" : "radio";
    const inputs = options.map((value) => make("label", { className: "check" }, make("input", { type, name, value }), ` ${value}`));
    return make("fieldset", {}, make("legend", {}, text), note, inputs);
  }

  answers(form) {
    const data = new FormData(form);
    const number = (text) => (text ? Number(text) : NaN);
    const one = ({ name, kind }) => (kind === "number" ? number(data.get(name)) : kind === "multiple" ? data.getAll(name) : data.get(name));
    return Object.fromEntries(this.respondent.definition.questions.map((question) => [question.name, one(question)]));
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
        ? `${value}: the survey may use at most ${value} ${value === 1 ? "combination" : "combinations"} of your answers, up to ${(definition.guided.capacity * value).toFixed(0)} bits of information, besides your answer to “${this.respondent.classQuestion().text}”.`
        : `${level.name}, ${protection(level.epsilon)}: ${this.probabilities(level.retention)}. What is sent changes the odds of a guess about one answer at most ${Math.exp(level.epsilon).toFixed(1)}-fold (ε is ${level.epsilon} per question, ${level.total} in total).`;
    };
    slider.oninput = explain;
    explain();
    const more = [];
    if (guided) {
      more.push(checkbox("truncate", "If the survey asks for more, send only what I allow"));
      more.push(checkbox("automatic", "If it asks for more now, keep my answers encrypted on this device, and send them when it asks for less", { checked: true }));
      if (needsUnperturbed && !clear) more.push(checkbox("clear", "Help the survey to start: send my true answers, NOT randomly changed"));
    }
    const hint = drawn === undefined ? "More privacy to the left, more accurate results to the right" : "You chose this before the random changes were drawn, so it stays:";
    const label = make("label", {}, hint, slider);
    return make("fieldset", { className: "trust" }, make("legend", {}, "How much may the survey learn about you?"), label, explanation, more);
  }

  probabilities(retention) {
    const truth = retention.map((kept, i) => kept + (1 - kept) / this.respondent.sizes[i]);
    const [least, most] = [Math.min(...truth), Math.max(...truth)].map(percent);
    return `your true answer is sent with a probability of ${least === most ? least : `${least} to ${most}`}, otherwise a random one`;
  }

  choice(form) {
    const data = new FormData(form), value = Number(data.get("trust"));
    if (this.respondent.definition.mode === "randomised") return { level: value };
    return { allowed: value, truncate: data.has("truncate"), automatic: data.has("automatic"), clear: data.has("clear") };
  }

  /* ---- Review of what will be sent ---- */

  review({ state, body, disclosure, reason }) {
    const { definition, items, sizes } = this.respondent, tried = state === "tried";
    const rows = items.map((item, i) => make("tr", {}, make("th", { scope: "row" }, questionText(definition, item)), make("td", {}, this.disclosed(disclosure, item, i, body.row))));
    const total = sizes.reduce((sum, size) => sum + Math.log2(size), 0).toFixed(0);
    const bits = disclosure.capacity === undefined ? [] : [make("p", {}, `At most ${disclosure.capacity.toFixed(1)} bits of your ${total} bits of information about these questions can be learned, whatever else is known about you.`)];
    const label = definition.mode === "guided" ? [make("p", {}, make("strong", {}, `Your answer to “${this.respondent.classQuestion().text}” is sent unchanged.`))] : [];
    this.message.textContent = reason ?? "";
    return [
      this.title("What can be learned from your answers"),
      make("table", {}, make("tbody", {}, rows)), ...bits, ...label,
      make("h3", {}, "This is sent from your device, and nothing else"),
      make("pre", { tabIndex: 0 }, JSON.stringify(body)),
      make("p", { className: "pale" }, `The random numbers were drawn once: every attempt sends the same, and other answers are changed by the same numbers, so that repetition reveals nothing more. Fingerprint of this survey: ${this.fingerprint}. Everybody who is asked in the same way sees the same fingerprint.`),
      make("p", { className: "buttons" }, this.button(tried ? "Try again" : "Send this", () => this.send()), tried ? [] : this.button("Change my answers", () => this.restart(), "plain")),
      this.message,
    ];
  }

  async send() {
    await this.show(await this.respondent.send());
  }

  /** How much is disclosed about one item, as a meter and in words. */
  disclosed({ probability, exposure }, item, i, row) {
    const share = probability ? probability[i] : exposure[i], answer = `“${item.labels[row[i]]}”`;
    const guided = () => (share === 1 ? `${answer} is sent unchanged` : `at most ${percent(share)} of it can be learned, whatever you answered`);
    const text = probability ? `${answer} is sent; it is your true answer with a probability of ${percent(share)} (a blind guess: ${percent(1 / item.size)})` : guided();
    return [make("meter", { min: 0, max: 1, value: share, "aria-label": text }), make("small", {}, text)];
  }

  async restart() {
    await this.show(await this.respondent.forget());
  }

  /* ---- Waiting and the end ---- */

  waiting({ reason, refused, automatic, clear }) {
    const nothing = clear ? "The randomly changed version was not sent" : "Nothing was sent";
    this.message.textContent = "";
    return [
      this.title(refused ? `${nothing}: this survey asks for too much` : `${nothing} yet`),
      make("p", { className: refused ? "alarm" : "", role: refused ? "alert" : "status" }, reason ?? ""),
      make("p", {}, `Your answers are stored encrypted on this device until ${new Date(this.respondent.definition.ends).toLocaleString()}, then deleted. ${automatic ? "You can close this page; open it again later to let them be sent." : ""}`),
      make("p", { className: "buttons" }, this.button("Check again", async () => this.show(await this.respondent.status())), this.button("Delete my answers", () => this.restart(), "plain")),
      this.message,
    ];
  }

  /** The last page. It says of a row that left this device that it did, whatever the survey replied. */
  ended({ state, reason, counted, clear }) {
    const { definition } = this.respondent;
    const label = definition.mode === "guided" ? ` and, unchanged, your answer to “${this.respondent.classQuestion().text}”` : "";
    const what = clear ? "Your unchanged answers left this device, as you chose." : `Only the randomly changed version${label} left this device.`;
    const deleted = "Your answers were deleted here, and no other version will be sent.";
    const [title, text] = {
      sent: ["Sent. Thank you", counted === false ? "It had arrived before, and counts once." : ""],
      rejected: ["Sent, but not accepted", "The survey refused what was sent."],
      unconfirmed: ["Sent, but not confirmed", "The survey ended or changed before it confirmed what was sent, which may or may not count."],
      dropped: ["Your answers were deleted, not sent", "The survey ended before they could be sent."],
    }[state];
    const role = state === "sent" ? "status" : "alert";
    return [this.title(title), make("p", { role }, [text, reason ?? "", state === "dropped" ? "" : `${what} ${deleted}`].filter(Boolean).join(" ")), this.message];
  }
}

const sentence = (text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;

function questionText(definition, { question, option }) {
  const { text } = definition.questions.find(({ name }) => name === question);
  return option ? `${text} ${option}` : text;
}

customElements.define("sfumato-survey", Form);
