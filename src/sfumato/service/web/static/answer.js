// Keeps the page of a survey on the device until it is done with, so that it can be opened, answered and sent again
// without a connection. Only what everybody gets is kept; answers are where the form keeps them, encrypted.

const PREFIX = "sfumato-answer ";
const KEPT = PREFIX + location.pathname;
const WORKER = { script: "/answer-worker.js", scope: "/answer/" };
const form = document.querySelector("sfumato-survey");
let isKept = false;

function needed() {
  const loaded = performance.getEntriesByType("resource").map(({ name }) => new URL(name));
  const own = loaded.filter(({ origin, pathname }) => origin === location.origin && !/\/(guidance|receipts|answers|bootstrap)$/.test(pathname));
  return [...new Set([`${location.pathname}${location.search}`, ...own.map(({ pathname, search }) => pathname + search)])];
}

async function keep() {
  if (isKept) return;
  isKept = true;
  await navigator.serviceWorker.register(WORKER.script, { scope: WORKER.scope });
  await (await caches.open(KEPT)).addAll(needed());
  if (isKept) form.dataset.kept = ""; // from now on the page opens without a connection
  else await drop(); // it came to its end meanwhile
}

async function drop() {
  isKept = false;
  delete form.dataset.kept;
  await caches.delete(KEPT);
  const others = (await caches.keys()).some((name) => name.startsWith(PREFIX));
  if (!others) await (await navigator.serviceWorker.getRegistration(WORKER.scope))?.unregister();
}

const unfinished = ["none", "ready", "tried", "waiting"];

// Who only looks at the page leaves nothing: it is kept from the first answer on. Where a browser has no such storage,
// in private windows say, the page needs a connection as any other.
if (navigator.serviceWorker && window.caches) {
  let progress = "";
  const settle = () => (unfinished.includes(progress) ? keep() : drop()).catch(() => {});
  form.addEventListener("input", settle);
  form.addEventListener("sfumato-progress", ({ detail }) => {
    progress = detail;
    if (detail !== "none") settle();
  });
}
