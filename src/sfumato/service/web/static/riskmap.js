// Risk-utility map: each point is a level; to the right it discloses more, further up more can be predicted with a copy.

import { element } from "./api.js";

const percent = (share) => `${Math.round(100 * share)} %`;
const [LEFT, TOP, WIDTH, HEIGHT] = [44, 40, 330, 220];
const x = (share) => LEFT + WIDTH * Math.max(0, Math.min(1, share));
const y = (share) => TOP + HEIGHT * (1 - Math.max(0, Math.min(1, share)));

function axes() {
  const parts = [];
  for (const share of [0, 0.25, 0.5, 0.75, 1]) {
    parts.push(element("line", { class: "reach", x1: x(share), x2: x(share), y1: TOP, y2: TOP + HEIGHT }));
    parts.push(element("line", { class: "reach", x1: LEFT, x2: LEFT + WIDTH, y1: y(share), y2: y(share) }));
    parts.push(element("text", { class: "pale", x: x(share) - 10, y: TOP + HEIGHT + 16 }, percent(share)));
    parts.push(element("text", { class: "pale", x: 4, y: y(share) + 4 }, percent(share)));
  }
  parts.push(element("text", { x: LEFT + 40, y: TOP + HEIGHT + 34 }, "risk: recovered of the worst column"));
  parts.push(element("text", { x: 4, y: 12 }, "utility: predictions kept"));
  return parts;
}

export function drawMap(points, levels) {
  const ways = [...new Set(points.map((point) => point.mechanism))];
  const own = points.filter((point) => point.mechanism === ways[0]);
  const parts = axes();
  for (const fidelity of Object.values(levels)) {
    const near = own.reduce((one, other) => (Math.abs(other.fidelity - fidelity) < Math.abs(one.fidelity - fidelity) ? other : one));
    parts.push(element("line", { class: "rung", x1: x(near.recovered), x2: x(near.recovered), y1: TOP, y2: TOP + HEIGHT }));
  }
  ways.forEach((way, i) => {
    const style = i ? "independent" : "actual";
    const line = points.filter((point) => point.mechanism === way);
    line.forEach((point, j) => {
      const before = line[j - 1];
      if (before) {
        parts.push(element("line", { class: `gap-${style}`, x1: x(before.recovered), y1: y(before.preserved), x2: x(point.recovered), y2: y(point.preserved) }));
      }
    });
    line.forEach((point, j) => {
      const said = `${way}, fidelity ${point.fidelity}: ${percent(point.recovered)} of ${point.column} recovered, ${percent(point.preserved)} of predictions kept`;
      parts.push(element("circle", { class: style, cx: x(point.recovered), cy: y(point.preserved), r: 4.5 }, element("title", {}, said)));
      if (j % 2) { // every other one, since neighbours would cover each other
        parts.push(element("text", { class: "pale", x: x(point.recovered) - 8, y: y(point.preserved) + (i ? 18 : -9) }, `${point.fidelity}`));
      }
    });
  });
  const picture = element("svg", { viewBox: `0 0 ${LEFT + WIDTH + 26} ${TOP + HEIGHT + 44}`, role: "img", "aria-label": "Risk and utility of levels" }, ...parts);
  const key = element("p", { class: "key" }, ...ways.map((way, i) =>
    element("span", {}, element("span", { class: `swatch ${i ? "independent" : "actual"}` }), ` ${way}`)));
  document.getElementById("picture").replaceChildren(picture, key);
  document.getElementById("meaning").textContent = "Each point is a level. To the right, the best attack recovers more of the column at "
    + "the highest risk; further up, models that are trained on the copy predict more of what models of the original do. Dashed lines: "
    + `your levels, ${Object.entries(levels).map(([name, fidelity]) => `${name} ${fidelity}`).join(", ")}. Made on a sample; the audit tries all attacks.`;
  const cell = (text, kind = "") => element("td", kind ? { class: kind } : {}, text);
  document.querySelector("#points tbody").replaceChildren(...points.map((point) => element("tr", {},
    element("th", { scope: "row" }, point.mechanism), cell(`${point.fidelity}`, "number"), cell(point.column), cell(point.attack),
    cell(percent(point.recovered), "number"), cell(percent(point.preserved), "number"), cell(`${(100 * point.means).toFixed(1)} %`, "number"))));
}
