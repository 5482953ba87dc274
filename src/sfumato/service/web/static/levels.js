// Page on which levels are compared: ten records at the fidelity of the slider, with disclosure risk and utility.

import { callApi, element, formatNumber, reveal, showMessage, UPPER_BOUND, waitForJob } from "./api.js";
import { drawMap } from "./riskmap.js";
import { latestTrial, strongest } from "./trial.js";

const chooser = document.getElementById("chooser");
const slider = document.getElementById("fidelity");
const value = document.getElementById("value");
const summary = document.getElementById("summary");
const percent = (share) => `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`;

const originals = document.getElementById("originals");
originals.checked = false; // after a reload too: to look at original records is asked for each time

let latest = 0;

function bar(share) {
  const width = Math.max(0, Math.min(1, share)) * 120;
  const text = element("title", {}, percent(share));
  const frame = element("rect", { class: "reach", x: 0, y: 4, width: 120, height: 10, fill: "none" });
  return element("svg", { viewBox: "0 0 122 18", role: "img", "aria-label": percent(share) }, text, frame,
    element("rect", { class: "actual", x: 0, y: 4, width, height: 10 }));
}

function riskAndUtility(column) {
  const row = element("tr", {}, element("th", { scope: "row" }, column.name));
  const chart = element("span", { class: "bar" });
  if (column.kind === "number") {
    const residual = column.standard_deviation ? column.attacker / column.standard_deviation : 0;
    chart.append(bar(residual));
    const [attacker, deviation, analyst] = [column.attacker, column.standard_deviation, column.analyst].map(formatNumber);
    const mean = column.day ?? formatNumber(column.mean);
    row.append(
      element("td", { "data-head": "Disclosure risk" }, `the best linear estimate has RMSE ${attacker}${column.unit} (${deviation}${column.unit} without the copy)`),
      element("td", {}, chart),
      element("td", { "data-head": "Utility" }, `estimates the mean ${mean} to ± ${analyst}${column.unit} (95 % confidence)`),
    );
  } else {
    chart.append(bar(1 - column.attacker));
    const [accuracy, baseline] = [percent(column.attacker), percent(column.baseline)];
    const margin = (100 * column.analyst).toFixed(2);
    row.append(
      element("td", { "data-head": "Disclosure risk" }, `from this column alone, the likeliest category is right for ${accuracy} (${baseline} without the copy)`),
      element("td", {}, chart),
      element("td", { "data-head": "Utility" }, `estimates a share to ± ${margin} percentage points (95 % confidence)`),
    );
  }
  return row;
}

function showRecords(preview) {
  const names = Object.keys(preview.copy);
  const head = element("tr", {}, ...names.map((name) => element("th", { scope: "col" }, name)));
  document.querySelector("#rows thead").replaceChildren(head);
  const count = preview.copy[names[0]]?.length ?? 0;
  document.getElementById("whose").textContent = originals.checked ? "These are original records: the access log says that you looked."
    : "These records are invented: they look like yours, and are nobody's.";
  const rows = [];
  for (let i = 0; i < count; i++) {
    rows.push(element("tr", {}, ...names.map((name) => {
      const cell = element("td", {}, preview.copy[name][i]);
      const original = preview.original[name]?.[i];
      if (original !== undefined && original !== preview.copy[name][i]) cell.append(element("small", {}, original));
      return cell;
    })));
  }
  document.querySelector("#rows tbody").replaceChildren(...rows);
}

async function update() {
  const request = ++latest;
  const fidelity = Number(slider.value);
  value.textContent = fidelity.toFixed(2);
  try {
    const preview = await callApi("GET", `/api/v1/datasets/${chooser.dataset.dataset}/preview?fidelity=${fidelity}&originals=${originals.checked}`);
    if (request !== latest) return;
    const residual = (100 * preview.residual_error).toFixed(0);
    const retained = (100 * preview.fidelity).toFixed(0);
    const replaced = preview.columns.some((column) => column.kind === "category" && !column.preserved);
    const linear = `the best linear estimate leaves ${residual} % of a column's variance`
      + `${replaced ? `, and a category is retained with probability ${retained} %` : ""}`;
    const level = `At fidelity ${preview.fidelity.toFixed(3)}`;
    summary.textContent = trial ? `${level}: ${strongest(trial, preview.fidelity)}; ${linear}. The audit tries all attacks.`
      : `${level}, ${linear}. ${UPPER_BOUND}`;
    document.querySelector("#figures tbody").replaceChildren(...preview.columns.map(riskAndUtility));
    showRecords(preview);
  } catch (error) {
    showMessage(error.message);
  }
}

let timer;
slider.addEventListener("input", () => {
  value.textContent = Number(slider.value).toFixed(2);
  clearTimeout(timer);
  timer = setTimeout(update, 60);
});
originals.addEventListener("change", update);
for (const button of document.querySelectorAll("[data-fidelity]")) {
  button.disabled = false;
  button.addEventListener("click", () => {
    slider.value = button.dataset.fidelity;
    update();
  });
}
/* ---- The strongest attacks ---- */

const [tried, tryButton, stopButton] = ["tried", "try", "stop"].map((id) => document.getElementById(id));
let trial, job;
tryButton.disabled = false;

function showTrial(found) {
  trial = found;
  if (!found) return;
  document.getElementById("map").hidden = false;
  const measured = Object.entries(found.recovered);
  if (!measured.length) {
    tried.textContent = "No column of the sample could be attacked.";
    return;
  }
  const worst = Object.entries(found.levels).map(([level], i) => {
    const [column, shares] = measured.reduce((one, other) => (other[1][i] > one[1][i] ? other : one));
    return `${level} ${percent(shares[i])} of ${column}`;
  });
  tried.textContent = `The best of five attacks on a sample recovers at most: ${worst.join(", ")}.`;
  drawMap(found.points, found.levels);
}

tryButton.addEventListener("click", async () => {
  tryButton.disabled = true;
  try {
    ({ job } = await callApi("POST", `/api/v1/datasets/${chooser.dataset.dataset}/trials`));
    stopButton.hidden = false;
    showTrial((await waitForJob(job, ({ stage }) => { tried.textContent = stage; })).result);
    await update();
  } catch (error) {
    tried.textContent = error.message;
  } finally {
    tryButton.disabled = false;
    stopButton.hidden = true;
  }
});
stopButton.addEventListener("click", () => callApi("DELETE", `/api/v1/jobs/${job}`).catch((error) => showMessage(error.message)));

latestTrial(chooser.dataset.dataset).then(showTrial).catch((error) => showMessage(error.message)).finally(update).finally(() => reveal("shown"));
