// The level chooser: as the slider moves, ten records at that fidelity and what it leaves to attackers and analysts.

import { ask, element, say, short } from "./api.js";

const chooser = document.getElementById("chooser");
const slider = document.getElementById("fidelity");
const value = document.getElementById("value");
const summary = document.getElementById("summary");
const percent = (share) => `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`;

let latest = 0;

function bar(share) {
  const width = Math.max(0, Math.min(1, share)) * 120;
  const text = element("title", {}, percent(share));
  const whole = element("rect", { class: "reach", x: 0, y: 4, width: 120, height: 10, fill: "none" });
  return element("svg", { viewBox: "0 0 122 18", role: "img", "aria-label": percent(share) }, text, whole,
    element("rect", { class: "ours", x: 0, y: 4, width, height: 10 }));
}

function figure(column) {
  const row = element("tr", {}, element("th", { scope: "row" }, column.name));
  const picture = element("span", { class: "bar" });
  if (column.kind === "number") {
    const left = column.spread ? column.attacker / column.spread : 0;
    picture.append(bar(left));
    row.append(
      element("td", {}, `is wrong by about ${short(column.attacker)}${column.unit}, of ${short(column.spread)} without it`),
      element("td", {}, picture),
      element("td", {}, `knows the mean, ${column.day ?? short(column.mean)}, to ± ${short(column.analyst)}${column.unit}`),
    );
  } else {
    picture.append(bar(1 - column.attacker));
    row.append(
      element("td", {}, `guesses right in ${percent(column.attacker)}, in ${percent(column.blind)} without it`),
      element("td", {}, picture),
      element("td", {}, `knows a share to ± ${(100 * column.analyst).toFixed(2)} points`),
    );
  }
  return row;
}

function records(found) {
  const names = Object.keys(found.copy);
  const head = element("tr", {}, ...names.map((name) => element("th", { scope: "col" }, name)));
  document.querySelector("#rows thead").replaceChildren(head);
  const count = found.copy[names[0]]?.length ?? 0;
  const rows = [];
  for (let i = 0; i < count; i++) {
    rows.push(element("tr", {}, ...names.map((name) => {
      const cell = element("td", {}, found.copy[name][i]);
      const truth = found.original[name]?.[i];
      if (truth !== undefined && truth !== found.copy[name][i]) cell.append(element("small", {}, truth));
      return cell;
    })));
  }
  document.querySelector("#rows tbody").replaceChildren(...rows);
}

async function show() {
  const turn = ++latest;
  const fidelity = Number(slider.value);
  value.textContent = fidelity.toFixed(2);
  try {
    const found = await ask("GET", `/api/v1/datasets/${chooser.dataset.dataset}/preview?fidelity=${fidelity}`);
    if (turn !== latest) return;
    const hidden = (100 * found.error).toFixed(0);
    const kept = (100 * found.fidelity).toFixed(0);
    summary.textContent = `At fidelity ${found.fidelity.toFixed(3)}, the best linear attacker is left with ${hidden} % `
      + `of a number's variance, and a category is kept with probability ${kept} %.`;
    document.querySelector("#figures tbody").replaceChildren(...found.columns.map(figure));
    records(found);
  } catch (error) {
    say(error.message);
  }
}

let waiting;
slider.addEventListener("input", () => {
  value.textContent = Number(slider.value).toFixed(2);
  clearTimeout(waiting);
  waiting = setTimeout(show, 60);
});
for (const button of document.querySelectorAll("[data-fidelity]")) {
  button.addEventListener("click", () => {
    slider.value = button.dataset.fidelity;
    show();
  });
}
show();
