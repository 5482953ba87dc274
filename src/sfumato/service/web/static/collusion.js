// The collusion explorer: tick recipients, and see what they could reconstruct together.

import { ask, element, say, short } from "./api.js";

const explorer = document.getElementById("explorer");
const summary = document.getElementById("summary");
const percent = (share) => `${(100 * share).toFixed(1)} %`;

function bars(title, rows, most) {
  const height = 10 + rows.length * 62;
  const parts = [element("title", {}, title)];
  rows.forEach((row, i) => {
    const y = 16 + i * 62;
    parts.push(element("text", { x: 0, y: y + 2, class: "strong" }, row.name));
    row.bars.forEach((one, j) => {
      const at = y + 7 + j * 17;
      const width = Math.max(1, 270 * Math.min(one.value / most, 1));
      parts.push(element("rect", { class: one.kind, x: 0, y: at, width, height: 13 }));
      parts.push(element("text", { x: width + 8, y: at + 11 }, one.label));
    });
  });
  return element("svg", { viewBox: `0 0 400 ${height}`, role: "img", "aria-label": title }, ...parts);
}

function errors(numbers) {
  const rows = numbers.columns.map((column) => ({
    name: column.name,
    bars: [
      { kind: "ours", value: column.ours / column.spread, label: `wrong by ${short(column.ours)}${column.unit}` },
      { kind: "naive", value: column.independent / column.spread, label: `wrong by ${short(column.independent)}${column.unit}` },
    ],
  }));
  const title = "How wrong their best guess of a record is; as long as the column is wide, they know nothing";
  return [element("h2", {}, "How wrong their best guess is"), bars(title, rows, 1),
    element("p", { class: "pale" }, "A longer bar is better protection: a full one is as wrong as guessing the mean.")];
}

function guesses(numbers) {
  const column = numbers.guesses[0];
  const span = column.high - column.low || 1;
  const x = (value) => 10 + 380 * Math.max(0, Math.min(1, (value - column.low) / span));
  const parts = [element("title", {}, `Ten records: true ${column.column} and the guesses`)];
  column.truth.forEach((truth, i) => {
    if (truth === null) return;
    const y = 18 + i * 26;
    parts.push(element("line", { class: "reach", x1: 10, y1: y, x2: 390, y2: y }));
    parts.push(element("line", { class: "gap-ours", x1: x(truth), y1: y - 4, x2: x(column.ours[i]), y2: y - 4 }));
    parts.push(element("line", { class: "gap-naive", x1: x(truth), y1: y + 4, x2: x(column.independent[i]), y2: y + 4 }));
    parts.push(element("circle", { class: "ours", cx: x(column.ours[i]), cy: y - 4, r: 4 }));
    parts.push(element("circle", { class: "naive", cx: x(column.independent[i]), cy: y + 4, r: 4 }));
    parts.push(element("rect", { class: "truth", x: x(truth) - 2, y: y - 9, width: 4, height: 18 }));
  });
  const y = 18 + column.truth.length * 26;
  parts.push(element("text", { x: 10, y, class: "pale" }, column.days?.[0] ?? short(column.low)));
  parts.push(element("text", { x: 390, y, class: "pale", "text-anchor": "end" }, column.days?.[1] ?? short(column.high)));
  return [element("h2", {}, `Ten records: ${column.column}, and what they would guess`),
    element("svg", { viewBox: `0 0 400 ${y + 8}`, role: "img", "aria-label": `True ${column.column} and guesses` }, ...parts)];
}

function categories(found) {
  const rows = found.map((column) => ({
    name: `${column.name} (${percent(column.blind)} by always guessing the commonest)`,
    bars: [
      { kind: "ours", value: column.ours, label: percent(column.ours) },
      { kind: "naive", value: column.independent, label: percent(column.independent) },
    ],
  }));
  const title = "The probability that they give to the true category";
  return [element("h2", {}, title), bars(title, rows, 1),
    element("p", { class: "pale" }, "A shorter bar is better protection.")];
}

function verdict(found) {
  const best = found.recipients[0];
  const names = found.recipients.map((one) => one.name).join(", ");
  if (found.recipients.length === 1) return `${names} alone has the copy at fidelity ${short(best.fidelity)}. Tick a second one.`;
  const told = `${names} together know what ${best.name} alone knows (fidelity ${short(best.fidelity)}), and no more`;
  if (!found.numbers) return `${told}.`;
  const { ours, independent } = found.numbers.error;
  return `${told}: ${percent(ours)} of the variance stays hidden. Had the noise been independent, ${percent(independent)} would.`;
}

let latest = 0;

async function show() {
  const turn = ++latest;
  const ticked = [...document.querySelectorAll("input[name=recipient]:checked")].map((box) => box.value);
  const places = ["errors", "guesses", "categories"].map((id) => document.getElementById(id));
  if (!ticked.length) {
    summary.textContent = "Tick at least one recipient.";
    for (const place of places) place.replaceChildren();
    return;
  }
  const query = ticked.map((name) => `recipient=${encodeURIComponent(name)}`).join("&");
  try {
    const found = await ask("GET", `/api/v1/datasets/${explorer.dataset.dataset}/collusion?${query}`);
    if (turn !== latest) return;
    summary.textContent = verdict(found);
    places[0].replaceChildren(...(found.numbers ? errors(found.numbers) : []));
    places[1].replaceChildren(...(found.numbers ? guesses(found.numbers) : []));
    places[2].replaceChildren(...(found.categories?.length ? categories(found.categories) : []));
  } catch (error) {
    say(error.message);
    summary.textContent = error.message;
  }
}

for (const box of document.querySelectorAll("input[name=recipient]")) box.addEventListener("change", show);
if (document.querySelector("input[name=recipient]")) show();
else summary.hidden = true;
