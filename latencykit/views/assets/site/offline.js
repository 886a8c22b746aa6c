// Keeps the page for use without a network: what it starts with at once, packages once they are used.
const NAME = "latencykit-@VERSION@", FIRST = @FIRST@;
addEventListener("install", (event) => {
  event.waitUntil(caches.open(NAME).then((cache) => cache.addAll(FIRST)).then(() => skipWaiting()));
});
addEventListener("activate", (event) => {
  event.waitUntil((async () => {
    for (const name of await caches.keys()) if (name.startsWith("latencykit-") && name !== NAME) await caches.delete(name);
    await clients.claim();
  })());
});
addEventListener("fetch", (event) => {
  const url = new URL(event.request.url);
  if (event.request.method !== "GET" || url.origin !== location.origin) return;
  event.respondWith((async () => {
    const cache = await caches.open(NAME);
    const kept = await cache.match(event.request, { ignoreSearch: true });
    if (kept) return kept;
    const reply = await fetch(event.request);
    if (reply.ok) cache.put(event.request, reply.clone());
    return reply;
  })());
});
