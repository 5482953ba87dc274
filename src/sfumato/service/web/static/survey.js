// Live results of a survey: number of answers, shares with confidence intervals, alarms, and accuracy of classifiers.

import { callApi, element, reveal, showMessage } from "./api.js";

const live = document.getElementById("live");
const percent = (share) => `${(100 * share).toFixed(1)} %`;

function bar({ share, low, high }) {
  const svg = element("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none", class: "share", role: "img", "aria-label": `${percent(share)}, 95 % confidence interval ${percent(low)} to ${percent(high)}` });
  svg.append(
    element("rect", { x: 0, y: 2, width: 100 * share, height: 6, class: "bar" }),
    element("line", { x1: 100 * low, x2: 100 * high, y1: 5, y2: 5, class: "whisker" }),
  );
  return svg;
}

function row(one, index, all) {
  const text = `${percent(one.share)} (${percent(one.low)} to ${percent(one.high)})`;
  const item = index && all[index - 1].item === one.item ? "" : one.item;
  const share = element("td", {}, bar(one), element("small", {}, text));
  return element("tr", {}, element("th", { scope: "row" }, item), element("td", {}, one.answer), share);
}

function limits({ influence, disclosure, error }) {
  if (influence !== null) return `One forged answer changes a share by up to ${(100 * influence).toFixed(1)} points; the intervals assume that all answers are honest.`;
  if (disclosure !== null) return `Degree of privacy disclosure l_p ${disclosure.toFixed(2)}, degree of error l_e ${error.toFixed(2)}, for respondents like those who answered unperturbed. Every class answer is sent unperturbed.`;
  return "";
}

async function showStatus() {
  const found = await callApi("GET", `/api/v1/surveys/${live.dataset.survey}`);
  document.getElementById("answers").textContent = found.answers.toLocaleString("en");
  const levels = Object.entries(found.levels).map(([name, count]) => `${name} ${count.toLocaleString("en")}`);
  const unperturbed = found.clear ? [`${found.clear} unperturbed to start with`, `guidance ${found.epoch}`] : [];
  document.getElementById("levels").textContent = [...levels, ...unperturbed].map((text) => ` · ${text}`).join("");
  document.getElementById("state").textContent = found.state;
  document.getElementById("fingerprint").textContent = found.fingerprint;
  document.getElementById("limits").textContent = limits(found);
  document.getElementById("alarms").replaceChildren(...found.alarms.map((text) => element("p", { class: "alarm" }, `${text}.`)));
  document.getElementById("shares").replaceChildren(...found.shares.map(row));
  return found;
}

async function showAccuracy() {
  const { answers, qualities } = await callApi("POST", `/api/v1/surveys/${live.dataset.survey}/model`, { rows: [] });
  const accuracies = qualities.map((one) => `${one.model} ${percent(one.accuracy)} (${percent(one.low)} to ${percent(one.high)})`);
  document.getElementById("quality").textContent = `From ${answers.toLocaleString("en")} answers: ${accuracies.join(", ")}; evaluated on ${qualities[0].evaluated_on}.`;
}

let evaluatedAt = -1;
async function poll() {
  try {
    const started = Date.now();
    const { answers, state } = await showStatus();
    reveal("results");
    if (live.dataset.class && answers >= 20 && answers > 1.1 * evaluatedAt) {
      evaluatedAt = answers;
      await showAccuracy();
    }
    if (state === "open") setTimeout(poll, Math.max(3000, 10 * (Date.now() - started)));
  } catch (error) {
    reveal("results");
    showMessage(error.message);
    setTimeout(poll, 10000);
  }
}

if (live) poll();

/* ---- Weights to a known population ---- */

const weigh = document.getElementById("weigh");

function drawPopulation() {
  const answers = JSON.parse(document.getElementById("weighable").textContent)[document.getElementById("by").value];
  const even = Math.floor(1000 / answers.length) / 10;
  document.getElementById("population").replaceChildren(...answers.map((answer, index) => {
    const field = element("input", { type: "number", min: 0, max: 100, step: "any", required: "", "data-answer": answer });
    field.value = index ? even : Number((100 - even * (answers.length - 1)).toFixed(1));
    return element("div", { class: "field" }, element("label", {}, `${answer} (%)`, field));
  }));
}

async function showWeighted(event) {
  event.preventDefault();
  const shown = document.getElementById("weighted"), question = document.getElementById("by").value;
  const shares = Object.fromEntries([...weigh.querySelectorAll("[data-answer]")].map((field) => [field.dataset.answer, Number(field.value) / 100]));
  try {
    const found = await callApi("POST", `/api/v1/surveys/${live.dataset.survey}/weighted`, { question, shares });
    const head = element("tr", {}, ...["Question", "Answer", "Weighted share, with 95 % confidence interval"].map((text) => element("th", { scope: "col" }, text)));
    const table = element("table", {}, element("caption", {}, `As if the answers to ${question} were those of the population`), element("thead", {}, head), element("tbody", {}, ...found.map(row)));
    shown.replaceChildren(element("div", { class: "wide", tabindex: 0 }, table));
  } catch (error) {
    shown.replaceChildren(element("p", { class: "alarm" }, error.message));
  }
}

if (weigh) {
  drawPopulation();
  document.getElementById("by").addEventListener("change", drawPopulation);
  weigh.addEventListener("submit", showWeighted);
  weigh.querySelector("button").disabled = false;
}

/* ---- Cross table, and the methods paragraph ---- */

async function showCross(event) {
  event.preventDefault();
  const [first, second] = ["first", "second"].map((id) => document.getElementById(id).value);
  const shown = document.getElementById("crossed");
  try {
    const { cells, answers } = await callApi("GET", `/api/v1/surveys/${live.dataset.survey}/cross?${new URLSearchParams({ first, second })}`);
    const [rows, columns] = ["first", "second"].map((side) => [...new Set(cells.map((one) => one[side]))]);
    const head = element("tr", {}, element("th", { scope: "col" }, `${first} \\ ${second}`), ...columns.map((one) => element("th", { scope: "col" }, one)));
    const body = rows.map((row) => element("tr", {}, element("th", { scope: "row" }, row),
      ...cells.filter((one) => one.first === row).map((one) => element("td", {}, bar(one), element("small", {}, `${percent(one.share)} (${percent(one.low)} to ${percent(one.high)})`)))));
    const table = element("table", {}, element("caption", {}, `Shares of all respondents, from ${answers.toLocaleString("en")} answers, with 95 % confidence intervals`), element("thead", {}, head), element("tbody", {}, ...body));
    shown.replaceChildren(element("div", { class: "wide", tabindex: 0 }, table));
  } catch (error) {
    shown.replaceChildren(element("p", { class: "alarm" }, error.message));
  }
}

for (const button of document.querySelectorAll("#cross button, #methods")) button.disabled = false;
document.getElementById("cross")?.addEventListener("submit", showCross);
document.getElementById("methods")?.addEventListener("click", async () => {
  try {
    const { text } = await callApi("GET", `/api/v1/surveys/${live.dataset.survey}/methods`);
    Object.assign(document.getElementById("paragraph"), { textContent: text, hidden: false });
  } catch (error) {
    showMessage(error.message);
  }
});
