/* <sfumato-preview>: the form as respondents see it, of a definition that nobody can answer yet. Nothing is sent or stored. */

import { Form } from "./sfumato-form.js";
import { Respondent, sha256 } from "./sfumato-survey.js";

/** Storage that is gone with the page. */
class Memory {
  bind() {}
  async purge() {}
  async get() {
    return this.record;
  }
  async put(state, content, notes = {}) {
    this.record = state === "none" && !content ? undefined : { state, content, ...notes };
  }
  async end() {
    this.record = undefined;
  }
}

class Previewer extends Respondent {
  constructor(published) {
    super({ server: location.origin, survey: "preview" });
    Object.assign(this, { published, storage: new Memory() });
  }

  async request(path) {
    const definition = { definition: this.published, version: await sha256(this.published), state: "open", wanted: false };
    return Response.json(path === "" ? definition : { epoch: 0, matrix: null, digests: [] });
  }

  exclusively(task) {
    return task();
  }

  async send() {
    await this.storage.end();
    return { state: "previewed" };
  }
}

class Preview extends Form {
  /** Shows a definition as devices receive it. */
  async preview(published, tag) {
    this.published = published;
    this.tag = tag;
    await super.connectedCallback();
  }

  async connectedCallback() {}

  connect() {
    return new Previewer(this.published);
  }
}

customElements.define("sfumato-preview", Preview);
