// Page on which a survey is built: its questions as a form, its definition as text, and a preview are three views of one
// document, which the service checks. What is not saved is kept in this browser tab.

import { callApi, element, reveal, showMessage } from "./api.js";

const find = (id) => document.getElementById(id);
const kinds = {
  choice: "one answer of several", multiple: "several answers", scale: "a scale, from low to high", number: "a number",
  date: "a day", ranking: "a ranking (up to 4 options)", text: "free text",
};
const binned = ["number", "date"];
const KEPT = `sfumato-survey ${find("survey").value || "new"}${location.search}`;
const PAUSE = 350; // milliseconds without a change before the definition is checked

const kept = sessionStorage.getItem(KEPT);
let survey = JSON.parse(kept ?? find("document").textContent);
let checked; // what the service made of it last
let edited = false; // whether the text was changed since the service took it
let timer;

function keep() {
  edited = false; // what was done last counts
  sessionStorage.setItem(KEPT, JSON.stringify(survey));
  find("kept").textContent = "Not saved yet; kept in this tab.";
  clearTimeout(timer);
  timer = setTimeout(check, PAUSE);
}

function fail(error) {
  find("fault").textContent = error?.message ?? "";
  find("fault").hidden = !error;
}

/* ---- Checks by the service ---- */

let latest = 0;

async function check(text) {
  const turn = ++latest, people = Number(find("people").value) || 400, points = Number(find("points").value) || 5;
  const body = typeof text === "string" ? { definition: text } : { document: survey };
  try {
    const found = await callApi("POST", "/api/v1/surveys/check", { ...body, people, points });
    if (turn !== latest) return;
    checked = found;
    fail();
    if (typeof text === "string") {
      survey = found.document;
      edited = false;
      draw();
    } else find("definition").value = found.definition;
    drawPlan(found.plan);
    await drawPreview();
  } catch (error) {
    if (turn === latest) fail(error);
  }
}

function drawPlan(plan) {
  const number = (value) => value.toLocaleString("en", { maximumFractionDigits: 1 });
  const rows = (plan?.levels ?? []).map((one) => element("tr", {},
    element("th", { scope: "row" }, one.level, element("small", {}, `${one.protection} protection`)),
    element("td", {}, `${Math.round(100 * one.truth)} of 100 cases`),
    element("td", { class: "number" }, `± ${number(100 * one.margin)}`, element("small", {}, `at worst: ${one.widest}`)),
    element("td", { class: "number" }, number(one.people))));
  const none = element("tr", {}, element("td", { colspan: 4 }, "The accuracy of a guided survey depends on how people answer."));
  find("plan").replaceChildren(...(rows.length ? rows : [none]));
}

async function drawPreview() {
  if (checked && !find("preview-view").hidden) await document.querySelector("sfumato-preview").preview(checked.published, find("shown-in").value);
}

/* ---- The form ---- */

function labelled(text, field) {
  return element("div", { class: "field" }, element("label", {}, text, field));
}

function input(value, onChange, attributes = {}) {
  const field = element("input", { autocomplete: "off", ...attributes });
  field.value = value ?? "";
  field.addEventListener("input", () => { onChange(field.value); keep(); });
  return field;
}

function lines(question) {
  const cuts = binned.includes(question.kind), key = cuts ? "cuts" : "options";
  const said = { number: "Intervals begin at (one number a line)", date: "Intervals begin on (one day a line)", scale: "Options from low to high (one a line)" };
  const field = element("textarea", { rows: Math.max(3, (question[key] ?? []).length + 1), spellcheck: "false" });
  field.value = (question[key] ?? []).join("\n");
  field.addEventListener("input", () => {
    const found = field.value.split("\n").map((line) => line.trim()).filter(Boolean);
    question[key] = question.kind === "number" ? found.map((text) => (Number.isNaN(Number(text)) ? text : Number(text))) : found;
    keep();
  });
  return labelled(said[question.kind] ?? "Options (one a line)", field);
}

const before = new WeakMap(); // what each question had as another kind, should its author change back

function changeKind(question, kind) {
  const had = before.get(question) ?? {}, of = (one) => (binned.includes(one) ? one : "options");
  had[of(question.kind)] = question.cuts ?? question.options;
  before.set(question, had);
  question.kind = kind;
  delete question.options;
  delete question.cuts;
  if (kind === "date") question.cuts = had.date ?? ["1960-01-01", "1980-01-01", "2000-01-01"];
  else if (kind === "number") question.cuts = had.number ?? [10, 20, 50];
  else question.options = had.options ?? ["yes", "no"];
  const index = survey.questions.indexOf(question);
  draw();
  keep();
  find("questions").children[index].querySelector("select").focus();
}

function drawQuestion(question, index) {
  const chooser = element("select", {});
  for (const [kind, text] of Object.entries(kinds)) chooser.append(element("option", { value: kind }, text));
  chooser.value = question.kind;
  chooser.addEventListener("change", () => changeKind(question, chooser.value));
  const act = (text, label, action, disabled) => {
    const button = element("button", { type: "button", class: "plain", "aria-label": `${label} ${question.name}` }, text);
    button.disabled = disabled;
    button.addEventListener("click", () => {
      action(survey.questions);
      draw();
      keep();
      const moved = Math.max(0, survey.questions.indexOf(question)), again = find("questions").children[moved];
      [...again.querySelectorAll("button")].find((one) => one.textContent === text && !one.disabled)?.focus();
      if (!again.contains(document.activeElement)) again.querySelector("input").focus();
    });
    return button;
  };
  const last = survey.questions.length - 1;
  const move = (by) => (all) => all.splice(index + by, 0, ...all.splice(index, 1));
  const copy = (all) => all.splice(index + 1, 0, { ...structuredClone(question), name: unusedName(question.name) });
  const rename = (name) => {
    if (survey.class === question.name) survey.class = name;
    question.name = name;
    drawClasses();
  };
  const parts = element("div", { role: "group", "aria-label": `Question ${index + 1}` },
    element("div", { class: "row" },
      labelled("Question", input(question.text, (text) => (question.text = text), { maxlength: 1000 })),
      labelled("Kind of answer", chooser)),
    element("div", { class: "row" },
      lines(question),
      labelled("Name in results", input(question.name, rename, { maxlength: 100 })),
      ...(question.kind === "number" ? [labelled("Unit", input(question.unit, (unit) => (question.unit = unit), { maxlength: 20 }))] : [])),
    element("p", { class: "buttons" }, act("Up", "Move up", move(-1), index === 0), act("Down", "Move down", move(1), index === last),
      act("Duplicate", "Duplicate", copy), act("Remove", "Remove", (all) => all.splice(index, 1), last === 0)));
  return element("li", { class: "card" }, parts);
}

function unusedName(name) {
  const used = survey.questions.map((one) => one.name), stem = name.replace(/\d+$/, "");
  let number = 2;
  while (used.includes(`${stem}${number}`)) number += 1;
  return `${stem}${number}`;
}

function drawLevel(level, index) {
  const remove = element("button", { type: "button", class: "plain", "aria-label": `Remove ${level.name}` }, "Remove");
  remove.disabled = survey.levels.length === 1;
  remove.addEventListener("click", () => { survey.levels.splice(index, 1); draw(); keep(); });
  const epsilon = input(level.epsilon, (text) => (level.epsilon = Number(text)), { type: "number", min: 0.01, max: 3, step: "any" });
  return element("div", { class: "field card" }, labelled("Name", input(level.name, (name) => (level.name = name))), labelled("ε per question", epsilon), remove);
}

function drawClasses() {
  const none = element("option", { value: "" }, "nothing");
  find("class").replaceChildren(none, ...survey.questions.filter(({ kind }) => kind !== "multiple").map(({ name }) => element("option", { value: name }, name)));
  find("class").value = survey.class ?? "";
}

function draw() {
  drawClasses();
  for (const field of document.querySelectorAll("[data-part]")) field.value = survey[field.dataset.part] ?? "";
  find("questions").replaceChildren(...survey.questions.map(drawQuestion));
  find("levels").replaceChildren(...survey.levels.map(drawLevel));
}

/* ---- Tabs, and saving ---- */

const tabs = ["questions", "text", "preview"].map((name) => find(`tab-${name}`));

function show(chosen) {
  for (const tab of tabs) {
    const selected = tab === chosen;
    tab.setAttribute("aria-selected", selected);
    tab.tabIndex = selected ? 0 : -1;
    find(tab.getAttribute("aria-controls")).hidden = !selected;
  }
  drawPreview();
}

tabs.forEach((tab, i) => {
  tab.disabled = false; // a click before this script has loaded would be lost
  tab.addEventListener("click", () => show(tab));
  tab.addEventListener("keydown", ({ key }) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[key];
    if (!step) return;
    const next = tabs[(i + step + tabs.length) % tabs.length];
    show(next);
    next.focus();
  });
});

for (const field of document.querySelectorAll("[data-part]"))
  field.addEventListener("input", () => { survey[field.dataset.part] = field.value; keep(); });
for (const id of ["people", "points"]) {
  find(id).addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => check(edited ? find("definition").value : undefined), PAUSE); // a text to be corrected stays
  });
}
find("shown-in").addEventListener("change", drawPreview);
find("definition").addEventListener("input", () => {
  edited = true;
  clearTimeout(timer);
  timer = setTimeout(() => check(find("definition").value).then(() => sessionStorage.setItem(KEPT, JSON.stringify(survey))), PAUSE);
});
find("add-question").addEventListener("click", () => {
  survey.questions.push({ name: unusedName("question"), text: "", kind: "choice", options: ["yes", "no"] });
  draw();
  keep();
  find("questions").lastElementChild.querySelector("input").focus();
});
find("add-level").addEventListener("click", () => {
  survey.levels.push({ name: `level${survey.levels.length + 1}`, epsilon: 1 });
  draw();
  keep();
});
find("save").addEventListener("click", async () => {
  if (!find("survey").reportValidity()) return;
  clearTimeout(timer);
  try {
    const { definition } = await callApi("POST", "/api/v1/surveys/check", edited ? { definition: find("definition").value } : { document: survey });
    const name = find("survey").value;
    await callApi("PUT", `/api/v1/surveys/${encodeURIComponent(name)}`, { definition, invited: find("invited").checked });
    sessionStorage.removeItem(KEPT);
    location.assign(`/console/surveys/${encodeURIComponent(name)}`);
  } catch (error) {
    fail(error);
    showMessage(error.message);
  }
});

const scopes = document.querySelector('meta[name="scopes"]')?.content.split(" ");
find("save").disabled = Boolean(scopes && !scopes.includes("write"));
find("restored").hidden = !kept;
find("discard").addEventListener("click", () => { sessionStorage.removeItem(KEPT); location.reload(); });
draw();
show(tabs[0]); // hidden in the HTML: what is typed before this script has loaded would be lost
check().finally(() => reveal("builder"));
