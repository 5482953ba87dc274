/* <sfumato-survey server="https://..." survey="name">: a form that asks, shows what will be told, and sends.
 * With log="https://..." guidance must also be in a copy of the public log that somebody else keeps.
 */

import { Refused, Respondent, labelsOf, percent } from "./sfumato-survey.js";

const AGAIN = 15_000; // milliseconds between two looks at whether what waits may go

const make = (tag, said = {}, ...inside) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(said)) {
    if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...inside.flat());
  return element;
};

class Form extends HTMLElement {
  async connectedCallback() {
    const ticket = new URLSearchParams(location.hash.slice(1)).get("ticket");
    const survey = this.getAttribute("survey"), server = this.getAttribute("server") || location.origin;
    this.respondent = new Respondent({ server, survey, ticket, log: this.getAttribute("log") });
    this.say = make("p", { role: "status" });
    try {
      await this.respondent.load();
      await this.show(await this.respondent.status());
    } catch (error) {
      this.replaceChildren(make("p", { role: "alert", className: "alarm" }, error instanceof Refused ? sentence(error.message) : "The survey cannot be reached. Try again later."));
      return;
    }
    addEventListener("online", () => this.resume());
    setInterval(() => this.resume(), AGAIN);
  }

  /** Whatever waits is looked at again, and goes if its owner said so. */
  async resume() {
    const goes = { waiting: this.now.automatic, ready: this.now.automatic && !this.now.fresh, tried: !this.now.stuck };
    if (!goes[this.now.state]) return;
    await this.show(await this.respondent.send());
  }

  async show(now) {
    this.now = now;
    if (["ready", "tried"].includes(now.state) && !now.fresh && !now.why && (now.automatic || now.state === "tried")) return this.resume();
    if (now.body) this.mark = await this.respondent.fingerprint();
    const draw = { none: () => this.questions(), ready: () => this.review(now), tried: () => this.review(now), waiting: () => this.waiting(now) }[now.state];
    this.replaceChildren(...(draw ? draw() : this.ended(now)));
    this.querySelector("h2")?.focus();
    return undefined;
  }

  title(text) {
    return make("h2", { tabIndex: -1 }, text);
  }

  button(text, work, className = "") {
    const button = make("button", { type: "button", className }, text);
    button.onclick = async () => {
      button.disabled = true;
      try {
        await work();
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        this.say.textContent = sentence(error.message);
      } finally {
        button.disabled = false;
      }
    };
    return button;
  }

  /* ---- Asking ---- */

  questions() {
    const { definition, state } = this.respondent;
    if (state !== "open" || this.respondent.over()) return [this.title("This survey is closed"), make("p", {}, "It takes no answers any more.")];
    const form = make("form", { noValidate: true }, definition.questions.map((one) => this.question(one)), this.trust());
    form.onsubmit = (event) => event.preventDefault();
    const agree = make("input", { type: "checkbox", name: "agree" });
    const look = this.button("Show me what will be sent", async () => {
      if (!agree.checked) throw new Refused("agree to the text above first, or leave this page: nothing was sent");
      await this.show(await this.respondent.prepare(this.answers(form), this.choice(form)));
    });
    this.say.textContent = "";
    return [
      make("section", { className: "card" }, make("p", {}, definition.consent), make("label", { className: "check" }, agree, " I agree")),
      form, look, this.say,
    ];
  }

  question({ name, text, kind, options, unit }) {
    if (kind === "number") {
      const field = make("input", { type: "number", step: "any", name, inputMode: "decimal" });
      return make("label", {}, text, unit ? ` (${unit})` : "", field);
    }
    const type = kind === "multiple" ? "checkbox" : "radio";
    const ticks = options.map((value) => make("label", { className: "check" }, make("input", { type, name, value }), ` ${value}`));
    return make("fieldset", {}, make("legend", {}, text), ticks);
  }

  answers(form) {
    const said = new FormData(form);
    const one = ({ name, kind }) => (kind === "number" ? (said.get(name) ? Number(said.get(name)) : NaN) : kind === "multiple" ? said.getAll(name) : said.get(name));
    return Object.fromEntries(this.respondent.definition.questions.map((question) => [question.name, one(question)]));
  }

  trust() {
    const { definition, wanted, items } = this.respondent, steps = definition.levels.length;
    const guided = definition.mode === "guided";
    const most = guided ? Math.min(8, items.length) : steps - 1;
    const start = guided ? Math.min(labelsOf(this.respondent.questionOfClass()).length, most) : Math.floor((steps - 1) / 2);
    const slider = make("input", { type: "range", name: "trust", min: guided ? 1 : 0, max: most, value: start });
    const means = make("output", {});
    const explain = () => {
      const at = Number(slider.value), level = definition.levels[at];
      means.textContent = guided
        ? `${at}: at most ${at} ${at === 1 ? "direction" : "directions"} of your answers, up to ${(definition.guided.capacity * at).toFixed(0)} bits.`
        : `${level.name}: ${this.odds(level.retention)} (ε ${level.epsilon} a question, ${level.total} in all).`;
    };
    slider.oninput = explain;
    explain();
    const more = [];
    if (guided) {
      more.push(make("label", { className: "check" }, make("input", { type: "checkbox", name: "truncate" }), " If the survey asks for more, send only what I allow"));
      more.push(make("label", { className: "check" }, make("input", { type: "checkbox", name: "automatic", checked: true }), " If it asks for more now, keep my answers sealed on this device, and send them when it asks for less"));
      if (wanted) more.push(make("label", { className: "check" }, make("input", { type: "checkbox", name: "clear" }), " Help the survey to begin: send my answers as they are, NOT blurred"));
    }
    return make("fieldset", { className: "trust" }, make("legend", {}, "How much may the collector tell?"), make("label", {}, "Less to the left, more to the right", slider), means, more);
  }

  odds(retention) {
    const right = retention.map((kept, i) => kept + (1 - kept) / this.respondent.sizes[i]);
    const [least, most] = [Math.min(...right), Math.max(...right)].map(percent);
    return `the collector sees each true answer with a chance of ${least === most ? least : `${least} to ${most}`}, and cannot know when`;
  }

  choice(form) {
    const said = new FormData(form), at = Number(said.get("trust"));
    if (this.respondent.definition.mode === "randomised") return { level: at };
    return { allowed: at, truncate: said.has("truncate"), automatic: said.has("automatic"), clear: said.has("clear") };
  }

  /* ---- Showing what leaves ---- */

  review({ state, body, foresight, why }) {
    const { definition, items } = this.respondent, tried = state === "tried";
    const rows = items.map((item, i) => make("tr", {}, make("th", { scope: "row" }, asked(definition, item)), make("td", {}, this.told(foresight, item, i, body.row))));
    const bits = foresight.capacity === undefined ? [] : [make("p", {}, `In all, at most ${foresight.capacity.toFixed(1)} bits of your ${this.respondent.sizes.reduce((sum, s) => sum + Math.log2(s), 0).toFixed(0)} can be told, whatever the collector knows.`)];
    const label = definition.mode === "guided" ? [make("p", {}, `Your answer to “${definition.class}” is sent as it is.`)] : [];
    this.say.textContent = why ?? "";
    return [
      this.title("What the collector will be able to tell"),
      make("table", {}, make("tbody", {}, rows)), ...bits, ...label,
      make("h3", {}, "What leaves this device, and nothing else"),
      make("pre", { tabIndex: 0 }, JSON.stringify(body)),
      make("p", { className: "pale" }, `It was drawn once. Trying again sends the same, so that nothing can be averaged. Fingerprint of this survey: ${this.mark}; whoever is asked the same sees the same.`),
      make("p", { className: "buttons" }, this.button(tried ? "Try again" : "Send this", () => this.press()), tried ? [] : this.button("Change my answers", () => this.again(), "plain")),
      this.say,
    ];
  }

  async press() {
    await this.show(await this.respondent.send());
  }

  told({ right, exposure }, item, i, row) {
    const share = right ? right[i] : exposure[i], text = right
      ? `“${item.labels[row[i]]}” is sent, which is your true answer with a chance of ${percent(share)}; a guess has ${percent(1 / item.size)}`
      : share === 1 ? `“${item.labels[row[i]]}” is sent as it is` : share < 0.05 ? "can hardly be told" : `about ${percent(share)} of it can be told`;
    return [make("meter", { min: 0, max: 1, value: share, "aria-label": text }), make("small", {}, text)];
  }

  async again() {
    await this.respondent.forget();
    await this.show({ state: "none" });
  }

  /* ---- Waiting and the end ---- */

  waiting({ why, refused, automatic }) {
    this.say.textContent = "";
    return [
      this.title(refused ? "Nothing was sent: this survey asks for too much" : "Nothing was sent yet"),
      make("p", { className: refused ? "alarm" : "", role: refused ? "alert" : "status" }, why ?? ""),
      make("p", {}, `Your answers are sealed on this device until ${new Date(this.respondent.definition.ends).toLocaleString()}, then deleted. ${automatic ? "You can close this page; come back to it to let them go." : ""}`),
      make("p", { className: "buttons" }, this.button("Look again", async () => this.show(await this.respondent.status())), this.button("Delete my answers", () => this.again(), "plain")),
      this.say,
    ];
  }

  ended({ state, why, counted, clear }) {
    const left = clear ? "they were sent as they are, as you wished." : "only their blurred form left it.";
    if (state === "sent") return [this.title("Sent. Thank you"), make("p", {}, counted === false ? "It had arrived before, and counts once." : `Your answers were deleted from this device; ${left}`)];
    return [this.title("Your answers were deleted, not sent"), make("p", { role: "alert" }, why || "The survey ended before they could go."), this.say];
  }
}

const sentence = (text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;

function asked(definition, { question, option }) {
  const { text } = definition.questions.find(({ name }) => name === question);
  return option ? `${text} ${option}` : text;
}

customElements.define("sfumato-survey", Form);
