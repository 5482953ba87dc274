// Questions of a recipient in SQL, and their answers with intervals: a table, and bars where there is one estimate a row;
// and checks of copies.

import { callApi, element, formatNumber } from "./api.js";

const BARS = 40; // the most rows that are drawn

function table({ columns, shown }) {
  const head = element("tr", {}, ...columns.map((name) => element("th", { scope: "col" }, name)));
  const rows = shown.map((row) => element("tr", {}, ...row.map((cell) => element("td", {}, cell))));
  const all = element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows));
  return element("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Answer" }, all);
}

function bars({ columns, answer }) {
  const estimates = columns.filter((name) => answer.length && `${name}_low` in answer[0]);
  const labels = columns.filter((name) => !estimates.includes(name));
  const [name] = estimates;
  const rows = answer.filter((row) => row[name] !== null);
  if (estimates.length !== 1 || labels.length === 0 || rows.length < 2 || rows.length > BARS) return null;
  const most = Math.max(...rows.map((row) => row[`${name}_high`]));
  const least = Math.min(0, ...rows.map((row) => row[`${name}_low`]));
  const x = (value) => 112 + (278 * (value - least)) / (most - least || 1);
  const height = 24 * rows.length + 26;
  const drawn = element("svg", { viewBox: `0 0 400 ${height}`, role: "img", class: "bars" });
  drawn.append(element("title", {}, `${name} by ${labels.join(", ")}, with intervals`));
  rows.forEach((row, i) => {
    const y = 24 * i + 14;
    const [low, high] = [row[`${name}_low`], row[`${name}_high`]].map(x);
    drawn.append(
      element("text", { x: 104, y: y + 4, "text-anchor": "end" }, labels.map((label) => String(row[label])).join(", ").slice(0, 15)),
      element("rect", { x: x(Math.min(0, row[name])), y: y - 7, width: Math.abs(x(row[name]) - x(0)), height: 14 }),
      element("line", { x1: low, x2: high, y1: y, y2: y }),
      element("line", { x1: low, x2: low, y1: y - 4, y2: y + 4 }),
      element("line", { x1: high, x2: high, y1: y - 4, y2: y + 4 }),
    );
  });
  drawn.append(element("text", { x: x(most), y: height - 4, "text-anchor": "end" }, formatNumber(most)));
  return drawn;
}

for (const form of document.querySelectorAll("form[data-question]")) {
  const [field, button] = [form.querySelector("textarea"), form.querySelector("button")];
  const output = form.parentElement.querySelector("[data-answer]");
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    output.className = "estimating"; // the answer comes later, and has its room now
    output.replaceChildren(element("p", { class: "pale" }, "Estimating; this can take a minute."));
    try {
      const found = await callApi("POST", `/api/v1/copies/${form.dataset.question}/answers`, { question: field.value });
      const chart = bars(found);
      output.replaceChildren(table(found), ...(chart ? [chart] : []), element("p", {}, found.how));
    } catch (error) {
      output.replaceChildren(element("p", { class: "alarm", role: "alert" }, error.message));
    } finally {
      button.disabled = false;
    }
  });
  button.disabled = false; // disabled in the HTML: a click before this script has loaded would be lost
}

/* ---- Checks of copies ---- */

const check = document.getElementById("check"), said = document.getElementById("checked");
check?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = check.querySelector("button");
  button.disabled = true;
  said.className = "pale";
  said.textContent = "Checking…";
  try {
    const { dataset, version, recipient, rows } = await callApi("POST", "/api/v1/checks", document.getElementById("copy").files[0]);
    said.className = "verdict";
    said.textContent = `Unaltered: the certificate is valid. It is of ${dataset}${version ? `, version ${version}` : ""}, ${rows.toLocaleString("en")} rows${recipient ? `, for ${recipient}` : ""}.`;
  } catch (error) {
    said.className = "alarm";
    said.textContent = error.message;
  } finally {
    button.disabled = false;
  }
});
if (check) check.querySelector("button").disabled = false;
