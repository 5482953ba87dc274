// What a survey has received, as it comes in: counts, shares with their intervals, alarms, and how good models are.

import { ask, element, say } from "./api.js";

const live = document.getElementById("live");
const percent = (share) => `${(100 * share).toFixed(1)} %`;

function bar({ share, low, high }) {
  const svg = element("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none", class: "share", role: "img", "aria-label": `${percent(share)}, between ${percent(low)} and ${percent(high)}` });
  svg.append(
    element("rect", { x: 0, y: 2, width: 100 * share, height: 6, class: "bar" }),
    element("line", { x1: 100 * low, x2: 100 * high, y1: 5, y2: 5, class: "whisker" }),
  );
  return svg;
}

function row(one, at, all) {
  const text = `${percent(one.share)} (${percent(one.low)} to ${percent(one.high)})`;
  const item = at && all[at - 1].item === one.item ? "" : one.item;
  const share = element("td", {}, bar(one), element("small", {}, text));
  return element("tr", {}, element("th", { scope: "row" }, item), element("td", {}, one.answer), share);
}

async function show() {
  const found = await ask("GET", `/api/v1/surveys/${live.dataset.survey}`);
  document.getElementById("answers").textContent = found.answers.toLocaleString("en");
  const levels = Object.entries(found.levels).map(([name, count]) => `${name} ${count.toLocaleString("en")}`);
  const clear = found.clear ? [`${found.clear} unblurred to begin with`, `guidance ${found.epoch}`] : [];
  document.getElementById("levels").textContent = [...levels, ...clear].map((text) => ` · ${text}`).join("");
  document.getElementById("state").textContent = found.state;
  document.getElementById("mark").textContent = found.fingerprint;
  document.getElementById("alarms").replaceChildren(...found.alarms.map((text) => element("p", { class: "alarm" }, text)));
  document.getElementById("shares").replaceChildren(...found.shares.map(row));
  return found;
}

async function judge() {
  const { answers, qualities } = await ask("POST", `/api/v1/surveys/${live.dataset.survey}/model`, { rows: [] });
  const said = qualities.map((one) => `${one.model} ${percent(one.accuracy)} (${percent(one.low)} to ${percent(one.high)})`);
  document.getElementById("quality").textContent = `From ${answers.toLocaleString("en")} answers: ${said.join(", ")}; on ${qualities[0].seen_on}.`;
}

let before = -1;
async function look() {
  try {
    const began = Date.now();
    const { answers, state } = await show();
    if (live.dataset.class && answers >= 20 && answers > 1.1 * before) {
      before = answers;
      await judge();
    }
    if (state === "open") setTimeout(look, Math.max(3000, 10 * (Date.now() - began)));
  } catch (error) {
    say(error.message);
    setTimeout(look, 10000);
  }
}

if (live) look();
