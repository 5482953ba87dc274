// Forms that speak to the API: data-method and data-url say where, fields become JSON, data-then what follows.

import { ask, say } from "./api.js";

function body(form) {
  if (form.dataset.json) return JSON.parse(form.dataset.json);
  const out = {};
  for (const field of form.elements) {
    if (!field.name || "path" in field.dataset || field.value === "") continue;
    if (field.type === "checkbox") out[field.name] = field.checked;
    else if ("number" in field.dataset) out[field.name] = Number(field.value);
    else out[field.name] = field.value;
  }
  return out;
}

function address(form) {
  return form.dataset.url.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(form.elements[name].value));
}

const then = {
  job: (said) => location.assign(`/console/jobs/${said.job}`),
  tickets: ({ tickets }) => {
    const place = document.getElementById("tickets");
    place.textContent = tickets.map((one) => place.dataset.link + one).join("\n");
    place.hidden = false;
    place.focus();
  },
  token: (said) => {
    document.getElementById("secret").textContent = said.token;
    const card = document.getElementById("handed");
    card.hidden = false;
    card.scrollIntoView({ block: "center" });
    document.getElementById("secret").focus();
  },
};

for (const form of document.querySelectorAll("form[data-method]")) {
  const button = form.querySelector("button:not([type=button])");
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (form.dataset.sure && !confirm(form.dataset.sure)) return;
    button.disabled = true;
    try {
      const method = form.dataset.method;
      const said = await ask(method, address(form), method === "DELETE" ? undefined : body(form));
      if (form.dataset.then) then[form.dataset.then](said);
      else location.reload();
    } catch (error) {
      say(error.message);
    } finally {
      button.disabled = false;
    }
  });
  button.disabled = false; // pages come with it disabled: a click before this script would have been a plain, lost submit
}

for (const button of document.querySelectorAll("[data-copy]")) {
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    say("Copied.");
  });
}
