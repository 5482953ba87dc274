// Forms that call the API: data-method and data-url define the request, the fields are its JSON body, and data-then
// names what happens with the response.

import { callApi, showMessage } from "./api.js";

function bodyOf(form) {
  if (form.dataset.json) return JSON.parse(form.dataset.json);
  const body = {};
  for (const field of form.elements) {
    if (!field.name || field.closest("[data-list]") || "path" in field.dataset || field.value === "") continue;
    if (field.type === "checkbox") body[field.name] = field.checked;
    else if ("boolean" in field.dataset) body[field.name] = field.value === "true";
    else if ("number" in field.dataset) body[field.name] = Number(field.value);
    else body[field.name] = field.value;
  }
  for (const list of form.querySelectorAll("[data-list]")) {
    const chosen = [...list.querySelectorAll("input:checked")].map((input) => input.value);
    if (chosen.length) body[list.dataset.list] = chosen;
  }
  return body;
}

function urlOf(form) {
  return form.dataset.url.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(form.elements[name].value));
}

function reveal(card, field, text) {
  const shown = document.getElementById(card);
  document.getElementById(field).textContent = text;
  shown.hidden = false;
  shown.scrollIntoView({ block: "center" });
  document.getElementById(field).focus();
}

const handlers = {
  signin: () => location.assign("/signin"),
  start: () => location.assign("/console"),
  job: ({ job }) => location.assign(`/console/jobs/${job}`),
  tickets: ({ tickets }) => {
    const links = document.getElementById("tickets");
    links.textContent = tickets.map((ticket) => links.dataset.link + ticket).join("\n");
    links.hidden = false;
    links.focus();
  },
  token: ({ token }) => reveal("handed", "secret", token),
  link: ({ token }) => {
    const service = document.getElementById("link-url").dataset.serviceUrl;
    reveal("link", "link-url", `${service}/open#${token}`);
  },
};

// What a role does not allow stays disabled: the service would refuse it.
const scopes = document.querySelector('meta[name="scopes"]')?.content.split(" ");

function isAllowed(form) {
  const needed = form.dataset.scope ?? "write";
  return !scopes || !needed || scopes.includes(needed);
}

for (const form of document.querySelectorAll("form[data-method]")) {
  const button = form.querySelector("button:not([type=button])");
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (form.dataset.confirm && !confirm(form.dataset.confirm)) return;
    button.disabled = true;
    try {
      const method = form.dataset.method;
      const response = await callApi(method, urlOf(form), method === "DELETE" ? undefined : bodyOf(form));
      if (form.dataset.then) handlers[form.dataset.then](response);
      else location.reload();
    } catch (error) {
      showMessage(error.message);
    } finally {
      button.disabled = false;
    }
  });
  button.disabled = !isAllowed(form); // disabled in the HTML: a click before this script has loaded would be lost
  if (button.disabled) button.title = "Your role does not allow this; ask an administrator.";
}

// A field that is not valid must be seen, to be corrected.
document.addEventListener("invalid", ({ target }) => target.closest("details")?.setAttribute("open", ""), true);

// Tables that are shown as cards on a phone stay tables for readers of screens.
const roles = { TABLE: "table", THEAD: "rowgroup", TBODY: "rowgroup", TR: "row", TD: "cell" };
for (const part of document.querySelectorAll(".stacked :is(table, thead, tbody, tr, th, td)")) {
  part.setAttribute("role", roles[part.tagName] ?? (part.scope === "row" ? "rowheader" : "columnheader"));
}

for (const button of document.querySelectorAll("[data-copy]")) {
  button.disabled = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    showMessage("Copied.");
  });
}
