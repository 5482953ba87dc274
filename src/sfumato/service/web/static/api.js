// Asking the service: JSON in and out, refusals as errors with the service's own sentence.

const csrf = document.querySelector('meta[name="csrf"]')?.content ?? "";

export async function ask(method, url, body, options = {}) {
  const headers = { "X-CSRF-Token": csrf, Accept: "application/json" };
  const binary = body instanceof Blob;
  if (body !== undefined && !binary) headers["Content-Type"] = "application/json";
  const answer = await fetch(url, {
    method,
    headers,
    body: body === undefined || binary ? body : JSON.stringify(body),
    ...options,
  });
  const text = await answer.text();
  const kind = answer.headers.get("content-type") ?? "";
  const data = kind.includes("json") && text ? JSON.parse(text) : text;
  if (!answer.ok) throw new Error(data?.detail ?? `The service answered with ${answer.status}.`);
  return data;
}

export function say(text) {
  const place = document.getElementById("said");
  const line = document.createElement("p");
  line.textContent = text;
  place.replaceChildren(line);
  setTimeout(() => line.remove(), 12000);
}

export async function finished(job, tell) {
  for (let pause = 150; ; pause = Math.min(pause * 1.4, 1500)) {
    const found = await ask("GET", `/api/v1/jobs/${job}`);
    tell?.(found);
    if (found.state === "done") return found;
    if (found.state === "failed" || found.state === "lost") {
      throw new Error(found.state === "failed" ? found.stage : "The worker that did this died; start it again.");
    }
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

export function element(name, attributes = {}, ...children) {
  const svg = ["svg", "line", "circle", "rect", "text", "title", "g"].includes(name);
  const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

export function short(value) {
  if (value === null || value === undefined) return "";
  return Number(value.toPrecision(3)).toLocaleString("en", { maximumSignificantDigits: 3 });
}
