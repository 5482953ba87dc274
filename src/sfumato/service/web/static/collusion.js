// Simulation of collusion: what the selected recipients could reconstruct by combining their copies.

import { callApi, element, formatNumber, reveal, showMessage, UPPER_BOUND } from "./api.js";
import { latestTrial, strongest } from "./trial.js";

const explorer = document.getElementById("explorer");
const summary = document.getElementById("summary");
const percent = (share) => `${(100 * share).toFixed(1)} %`;

function barChart(title, rows, maximum) {
  const height = 10 + rows.length * 62;
  const parts = [element("title", {}, title)];
  rows.forEach((row, i) => {
    const y = 16 + i * 62;
    parts.push(element("text", { x: 0, y: y + 2, class: "strong" }, row.name));
    row.bars.forEach((one, j) => {
      const top = y + 7 + j * 17;
      const width = Math.max(1, 270 * Math.min(one.value / maximum, 1));
      parts.push(element("rect", { class: one.kind, x: 0, y: top, width, height: 13 }));
      parts.push(element("text", { x: width + 8, y: top + 11 }, one.label));
    });
  });
  return element("svg", { viewBox: `0 0 400 ${height}`, role: "img", "aria-label": title }, ...parts);
}

function estimationErrors(numbers) {
  const bar = (kind, error, column) => (
    { kind, value: error / column.standard_deviation, label: `RMSE ${formatNumber(error)}${column.unit}` }
  );
  const rows = numbers.columns.map((column) => ({
    name: column.name,
    bars: [bar("actual", column.actual, column), bar("independent", column.independent, column)],
  }));
  const title = "Root mean squared error of their best linear estimates, relative to the standard deviation of the column";
  return [element("h2", {}, "Residual error of the best linear estimate, if they collude"), barChart(title, rows, 1),
    element("p", { class: "pale" }, "Root mean squared error (RMSE) of their best linear estimates. A longer bar means better "
      + `protection: a full bar is the error of always estimating the mean. ${UPPER_BOUND}`)];
}

function estimates(numbers) {
  const column = numbers.estimates[0];
  const span = column.high - column.low || 1;
  const x = (value) => 10 + 380 * Math.max(0, Math.min(1, (value - column.low) / span));
  const whose = originals.checked ? "original" : "invented";
  const title = `Ten ${whose} records: true and linearly estimated ${column.column}`;
  const parts = [element("title", {}, title)];
  column.truth.forEach((truth, i) => {
    if (truth === null) return;
    const y = 18 + i * 26;
    parts.push(element("line", { class: "reach", x1: 10, y1: y, x2: 390, y2: y }));
    parts.push(element("line", { class: "gap-actual", x1: x(truth), y1: y - 4, x2: x(column.actual[i]), y2: y - 4 }));
    parts.push(element("line", { class: "gap-independent", x1: x(truth), y1: y + 4, x2: x(column.independent[i]), y2: y + 4 }));
    parts.push(element("circle", { class: "actual", cx: x(column.actual[i]), cy: y - 4, r: 4 }));
    parts.push(element("circle", { class: "independent", cx: x(column.independent[i]), cy: y + 4, r: 4 }));
    parts.push(element("rect", { class: "truth", x: x(truth) - 2, y: y - 9, width: 4, height: 18 }));
  });
  const y = 18 + column.truth.length * 26;
  parts.push(element("text", { x: 10, y, class: "pale" }, column.days?.[0] ?? formatNumber(column.low)));
  const high = column.days?.[1] ?? formatNumber(column.high);
  parts.push(element("text", { x: 390, y, class: "pale", "text-anchor": "end" }, high));
  return [element("h2", {}, title),
    element("svg", { viewBox: `0 0 400 ${y + 8}`, role: "img", "aria-label": title }, ...parts)];
}

function categories(found) {
  const rows = found.map((column) => ({
    name: `${column.name} (${percent(column.baseline)} without any copy)`,
    bars: [
      { kind: "actual", value: column.actual, label: percent(column.actual) },
      { kind: "independent", value: column.independent, label: percent(column.independent) },
    ],
  }));
  const title = "Posterior probability of the true category, from each column alone";
  return [element("h2", {}, title), barChart(title, rows, 1),
    element("p", { class: "pale" }, `A shorter bar means better protection. ${UPPER_BOUND}`)];
}

function verdict(found) {
  const best = found.recipients[0];
  const names = found.recipients.map((one) => one.name).join(", ");
  const fidelity = formatNumber(best.fidelity);
  if (found.recipients.length === 1) return `${names} alone has the copy at fidelity ${fidelity}. Select a second recipient.`;
  const owner = found.coarsened ? `the level of ${best.name} allows` : `${best.name} alone`;
  const conclusion = `${names} together learn no more than ${owner} (fidelity ${fidelity})`;
  const most = trial ? `${strongest(trial, best.fidelity)}; the audit tries all attacks` : UPPER_BOUND.slice(0, -1);
  if (!found.numbers) return `${conclusion}. ${most}.`;
  const { actual, independent } = found.numbers.residual_error;
  return `${conclusion}: their best linear estimate leaves ${percent(actual)} of the variance, and with independent noise `
    + `it would leave ${percent(independent)}. ${most}.`;
}

const originals = document.getElementById("originals");
originals.checked = false;
originals.addEventListener("change", update);

let latest = 0;
let trial; // of the strongest attacks, if somebody measured them

async function update() {
  const request = ++latest;
  const selected = [...document.querySelectorAll("input[name=recipient]:checked")].map((box) => box.value);
  const sections = ["errors", "guesses", "categories"].map((id) => document.getElementById(id));
  if (!selected.length) {
    summary.textContent = "Select at least one recipient.";
    for (const section of sections) section.replaceChildren();
    return;
  }
  const query = selected.map((name) => `recipient=${encodeURIComponent(name)}`).join("&");
  try {
    const found = await callApi("GET", `/api/v1/datasets/${explorer.dataset.dataset}/collusion?${query}&originals=${originals.checked}`);
    if (request !== latest) return;
    summary.textContent = verdict(found);
    sections[0].replaceChildren(...(found.numbers ? estimationErrors(found.numbers) : []));
    sections[1].replaceChildren(...(found.numbers ? estimates(found.numbers) : []));
    sections[2].replaceChildren(...(found.categories?.length ? categories(found.categories) : []));
  } catch (error) {
    showMessage(error.message);
    summary.textContent = error.message;
  }
}

for (const box of document.querySelectorAll("input[name=recipient]")) box.addEventListener("change", update);
if (document.querySelector("input[name=recipient]")) {
  latestTrial(explorer.dataset.dataset).then((found) => { trial = found; }).catch((error) => showMessage(error.message)).finally(update).finally(() => reveal("shown"));
} else {
  summary.hidden = true;
  reveal("shown");
}
