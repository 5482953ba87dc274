// Page on which a table is uploaded and its policy is drafted: columns, levels and text are three views of one policy,
// which the service edits and validates. The draft is kept in this browser tab until it is added or discarded.

import { callApi, element, showMessage, waitForJob } from "./api.js";
import { drawMap } from "./riskmap.js";
import { uploadFile } from "./upload.js";

const KEPT = "sfumato-draft";
const LIMIT = 0.9; // more than this of a column counts as disclosed
const find = (id) => document.getElementById(id);
const percent = (share) => `${Math.round(100 * Math.max(0, Math.min(1, share)))} %`;
const roles = {
  copula: "copula: looks like the data",
  gaussian: "gaussian: noise in the number",
  uniform: "uniform: replaced at random",
  keep: "keep: released unchanged",
  drop: "drop: left out",
  id: "id: identifies a record",
  entity: "entity: person or household",
};

let draft; // { upload or source, dataset, policy, columns, levels, trial }

/** Where the table of the draft is. */
function table() {
  return draft.source ? { source: draft.source } : { upload: draft.upload };
}

function keep() {
  try {
    sessionStorage.setItem(KEPT, JSON.stringify(draft));
  } catch {
    sessionStorage.removeItem(KEPT); // too large a draft is not kept
  }
}

function fail(error) {
  find("fault").textContent = error?.message ?? "";
  find("fault").hidden = !error;
}

function histogram(column) {
  const top = Math.max(...column.shares, 1e-9);
  const width = 120 / Math.max(column.shares.length, 1);
  const named = column.labels.length === column.shares.length;
  const said = column.labels.length
    ? (named ? `most frequent: ${column.labels.slice(0, 3).map((label, i) => `${label} ${percent(column.shares[i])}`).join(", ")}`
      : `from ${column.labels[0]} to ${column.labels.at(-1)}`)
    : "no frequent value";
  const bars = column.shares.map((share, i) => element("rect", { class: "actual", x: (i * width).toFixed(1),
    y: (36 - 34 * share / top).toFixed(1), width: Math.max(width - 1, 0.8).toFixed(1), height: (34 * share / top).toFixed(1) }));
  const picture = element("svg", { viewBox: "0 0 120 38", class: "histogram", role: "img", "aria-label": said }, ...bars);
  const cell = element("td", { "data-head": "Values" }, picture, element("small", {}, said));
  if (column.spikes.length) cell.append(element("small", {}, `often: ${column.spikes.join(", ")}`));
  return cell;
}

function roleOf(column) {
  const chooser = element("select", { "aria-label": `Role of ${column.name}` });
  const choices = column.choices.includes(column.role) || !column.role ? column.choices : [...column.choices, column.role];
  for (const role of choices) {
    const option = element("option", { value: role }, roles[role] ?? role);
    option.selected = role === column.role;
    chooser.append(option);
  }
  chooser.addEventListener("change", () => edit({ roles: { [column.name]: chooser.value } }, column.name));
  return element("td", { "data-head": "Role" }, chooser);
}

function recovered(column) {
  const cell = element("td", { "data-head": "An attacker recovers" });
  const perturbed = !["drop", "id", "entity", "keep"].includes(column.role);
  const shares = draft.trial?.recovered[column.name];
  if (column.role === "keep") cell.append(element("strong", { class: "bad" }, "all of it"));
  else if (!perturbed) cell.append(element("span", { class: "pale" }, "not in copies"));
  else if (!shares) cell.append(element("span", { class: "pale" }, "not tried yet"));
  else {
    Object.keys(draft.trial.levels).forEach((level, i) => {
      const bar = element("svg", { viewBox: "0 0 100 8", preserveAspectRatio: "none", class: "share", "aria-hidden": "true" },
        element("rect", { class: "reach", x: 0, y: 0, width: 100, height: 8, fill: "none" }),
        element("rect", { class: shares[i] > LIMIT ? "independent" : "actual", x: 0, y: 0, width: 100 * Math.min(1, Math.max(0, shares[i])), height: 8 }));
      cell.append(element("small", {}, `${level} ${percent(shares[i])}`), bar);
    });
  }
  return cell;
}

function showColumns() {
  find("columns").tBodies[0].replaceChildren(...draft.columns.map((column) => element("tr", {},
    element("th", { scope: "row" }, column.name, element("small", {}, column.kind)),
    histogram(column),
    element("td", { "data-head": "Missing" }, column.missing ? `${(100 * column.missing).toFixed(1)} %` : "none"),
    roleOf(column),
    element("td", { "data-head": "Why" }, column.reason),
    recovered(column))));
}

function levelRow(name, fidelity, i) {
  const field = (id, label, value, more) => {
    const input = element("input", { id: `${id}-${i}`, value, required: "", ...more });
    input.addEventListener("change", changeLevels);
    return element("span", { class: "field" }, element("label", { for: `${id}-${i}` }, label), input);
  };
  const remove = element("button", { type: "button", class: "plain" }, "Remove", element("span", { class: "hidden" }, ` ${name}`));
  remove.addEventListener("click", () => { remove.parentElement.remove(); changeLevels(); });
  return element("div", { class: "row level" }, field("level", "Level", name, { pattern: "[A-Za-z0-9_\\-]+" }),
    field("fidelity", "Fidelity", fidelity, { type: "number", min: 0.01, max: 0.99, step: "any" }), remove);
}

function changeLevels() {
  if (!find("ladder").reportValidity()) return;
  const stated = [...find("levels").children].map((row) => [...row.querySelectorAll("input")].map((input) => input.value));
  const order = stated.map(([name, fidelity]) => [name, Number(fidelity)]).sort((one, other) => other[1] - one[1]);
  edit({ levels: Object.fromEntries(order) }, "levels");
}

function showLevels() {
  find("levels").replaceChildren(...Object.entries(draft.levels).map(([name, fidelity], i) => levelRow(name, fidelity, i)));
  find("map").hidden = !draft.trial;
  if (draft.trial) drawMap(draft.trial.points, draft.levels);
}

function show() {
  find("drafted").hidden = false;
  find("policy").value = draft.policy;
  showColumns();
  showLevels();
  keep();
}

let edits = Promise.resolve();

// Edits follow one another: each is about the policy that the one before has made.
function edit(change, focus) {
  edits = edits.then(async () => {
    try {
      const body = { ...table(), policy: draft.policy, ...change };
      Object.assign(draft, await callApi("POST", "/api/v1/policies", body));
      if (draft.trial) find("tried").textContent = "The policy has changed since it was tried.";
      fail();
    } catch (error) {
      fail(error);
    }
    const inside = document.activeElement?.closest("#drafted");
    show();
    if (inside && focus !== "levels") document.querySelector(`[aria-label="Role of ${CSS.escape(focus)}"]`)?.focus();
  });
  return edits;
}

const tabs = [...document.querySelectorAll("[role=tab]")];
function open(tab) {
  for (const one of tabs) {
    one.setAttribute("aria-selected", one === tab);
    one.tabIndex = one === tab ? 0 : -1;
    find(one.getAttribute("aria-controls")).hidden = one !== tab;
  }
}
for (const [i, tab] of tabs.entries()) {
  tab.addEventListener("click", () => open(tab));
  tab.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = tabs[(i + step + tabs.length) % tabs.length];
    open(next);
    next.focus();
  });
}

async function whileBusy(button, work) {
  button.disabled = true;
  try {
    await work();
  } catch (error) {
    showMessage(error.message);
  } finally {
    button.disabled = false;
  }
}

const choose = find("choose");
function suggestName() {
  const stem = choose.elements.file.files[0]?.name.replace(/\.[^.]*$/, "").replace(/[^A-Za-z0-9._-]/g, "-") ?? "";
  if (!choose.elements.dataset.value) choose.elements.dataset.value = stem;
}
choose.elements.file.addEventListener("change", suggestName);

const from = find("from"); // only where the service knows sources
function showChoice() {
  const own = !from?.value;
  find("file-field").hidden = !own;
  choose.elements.file.required = own;
  choose.querySelector("button").textContent = own ? "Upload and draft a policy" : "Read it and draft a policy";
  if (!own && !choose.elements.dataset.value) choose.elements.dataset.value = from.value;
}
from?.addEventListener("change", showChoice);
showChoice();

suggestName(); // for a file that was chosen before this script had loaded

choose.querySelector("button").disabled = false;
choose.addEventListener("submit", (event) => {
  event.preventDefault();
  whileBusy(choose.querySelector("button"), async () => {
    const dataset = choose.elements.dataset.value;
    const source = from?.value;
    const where = source ? { source } : { upload: await uploadFile(choose.elements.file.files[0], choose.querySelector("progress")) };
    draft = { ...where, dataset, ...await callApi("POST", "/api/v1/suggestions", { ...where, dataset }) };
    fail();
    show();
    open(tabs[0]);
    tabs[0].focus();
  });
});

find("apply").addEventListener("click", () => whileBusy(find("apply"), async () => {
  const text = find("policy").value;
  try {
    Object.assign(draft, await callApi("POST", "/api/v1/policies", { ...table(), policy: text }));
    fail();
    show();
    showMessage("The columns and levels follow the text.");
  } catch (error) {
    fail(error); // the text stays as it is, to be corrected
  }
}));

let trial;
find("try").addEventListener("click", () => whileBusy(find("try"), async () => {
  const said = find("tried");
  try {
    const started = await callApi("POST", "/api/v1/trials", { ...table(), policy: draft.policy });
    trial = started.job;
    find("stop").hidden = false;
    const done = await waitForJob(trial, (job) => { said.textContent = job.stage; });
    draft.trial = done.result;
    said.textContent = "Tried: see what an attacker recovers of each column, and the map beside the levels.";
    show();
  } catch (error) {
    said.textContent = error.message;
  } finally {
    find("stop").hidden = true;
  }
}));
find("stop").addEventListener("click", () => callApi("DELETE", `/api/v1/jobs/${trial}`).catch((error) => showMessage(error.message)));

find("more").addEventListener("click", () => {
  const fidelities = Object.values(draft.levels);
  const lowest = Math.min(...fidelities, 0.9);
  find("levels").append(levelRow(`level${fidelities.length + 1}`, Number((lowest / 2).toPrecision(2)), fidelities.length));
  changeLevels();
});

find("keep").addEventListener("submit", (event) => {
  event.preventDefault();
  const form = find("keep");
  whileBusy(form.querySelector("button"), async () => {
    if (find("policy").value !== draft.policy) throw new Error("Apply the text of the policy first, or undo your changes in it.");
    const [traced, replace] = [form.elements.traced.checked, form.elements.replace.checked];
    const { job } = await callApi("POST", "/api/v1/datasets", { policy: draft.policy, ...table(), traced, replace });
    location.assign(`/console/jobs/${job}`);
  });
});

find("discard").addEventListener("click", () => {
  sessionStorage.removeItem(KEPT);
  location.reload();
});

const kept = sessionStorage.getItem(KEPT);
if (kept) {
  draft = JSON.parse(kept);
  choose.elements.dataset.value = draft.dataset;
  find("resumed").hidden = false;
  show();
}
