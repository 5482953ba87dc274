// Client of the HTTP API: JSON requests and responses; error responses are thrown as errors with their detail.

const csrf = document.querySelector('meta[name="csrf"]')?.content ?? "";

// Pages that show simple attacks say so: the attacks of an audit can do much better.
export const UPPER_BOUND = "This is protection at most: other attacks can recover more, even whole columns, so run an audit "
  + "before you release a copy.";

export async function callApi(method, url, body, options = {}) {
  const headers = { "X-CSRF-Token": csrf, Accept: "application/json" };
  const binary = body instanceof Blob;
  if (body !== undefined && !binary) headers["Content-Type"] = "application/json";
  const response = await fetch(url, {
    method,
    headers,
    body: body === undefined || binary ? body : JSON.stringify(body),
    ...options,
  });
  const text = await response.text();
  const kind = response.headers.get("content-type") ?? "";
  const data = kind.includes("json") && text ? JSON.parse(text) : text;
  if (!response.ok) throw new Error(data?.detail ?? `The service returned HTTP status ${response.status}.`);
  return data;
}

// What a script draws is shown when it is complete: a page that fills up by and by would move under its reader.
export function reveal(id) {
  for (const name of ["data-pending", "aria-busy"]) document.getElementById(id).removeAttribute(name);
}

export function showMessage(text) {
  const region = document.getElementById("said");
  const line = document.createElement("p");
  line.textContent = text;
  region.replaceChildren(line);
  setTimeout(() => line.remove(), 12000);
}

export async function waitForJob(job, onProgress) {
  for (let pause = 150; ; pause = Math.min(pause * 1.4, 1500)) {
    const found = await callApi("GET", `/api/v1/jobs/${job}`);
    onProgress?.(found);
    if (found.state === "done") return found;
    if (found.state === "cancelled") throw new Error("This job was cancelled.");
    if (found.state === "failed" || found.state === "lost") {
      const lost = "The server process that ran this job died; start the job again.";
      throw new Error(found.state === "failed" ? found.stage : lost);
    }
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

export function element(name, attributes = {}, ...children) {
  const svg = ["svg", "line", "circle", "rect", "text", "title", "g"].includes(name);
  const created = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) created.setAttribute(key, value);
  created.append(...children);
  return created;
}

export function formatNumber(value) {
  if (value === null || value === undefined) return "";
  return Number(value.toPrecision(3)).toLocaleString("en", { maximumSignificantDigits: 3 });
}
