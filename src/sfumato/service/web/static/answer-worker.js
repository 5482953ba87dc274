// Serves the pages of surveys that `answer.js` keeps where there is no connection; with one, what the service sends.

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

/** What is kept of the page that asks, and of no other: each has the scripts that it was opened with. */
async function kept(event) {
  const page = event.request.mode === "navigate" ? event.request.url : (await self.clients.get(event.clientId))?.url;
  if (!page) return undefined;
  const name = `sfumato-answer ${new URL(page).pathname}`;
  return (await caches.has(name)) ? (await caches.open(name)).match(event.request, { ignoreVary: true }) : undefined;
}

self.addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.method !== "GET" || new URL(request.url).origin !== location.origin) return;
  event.respondWith(fetch(request).catch(async (error) => {
    const found = await kept(event);
    if (!found) throw error;
    return found;
  }));
});
