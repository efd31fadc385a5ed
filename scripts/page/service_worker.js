// Keeps all files of one build, and answers from them alone: a page and its workers are always of the same build, and
// need no network. A newer build's files are fetched beside them, and take over once no page of the older one is open.
// scripts/after_build.mjs fills in the two constants.
const FILES = ["index.html"];
const BUILD = "";

// Pages under other paths of the same origin have caches of their own.
const OWN = `warmroute ${self.registration.scope} `;
const NAME = OWN + BUILD;

// Files with a hash in their name never change.
const fresh = (file) => new Request(file, { cache: /-[0-9a-f]{16}/.test(file) ? "default" : "no-cache" });

self.addEventListener("install", (event) => {
  event.waitUntil(caches.open(NAME).then((cache) => cache.addAll(FILES.map(fresh))));
});

self.addEventListener("activate", (event) => {
  const clean = async () => {
    const names = (await caches.keys()).filter((name) => name.startsWith(OWN) && name !== NAME);
    await Promise.all(names.map((name) => caches.delete(name)));
    await self.clients.claim();
  };
  event.waitUntil(clean());
});

self.addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.method !== "GET" || !request.url.startsWith(self.registration.scope)) return;
  const answer = async () => {
    const cache = await caches.open(NAME);
    const { pathname } = new URL(request.url);
    const root = new URL(self.registration.scope).pathname;
    const found = await cache.match(pathname === root ? "index.html" : request, { ignoreSearch: true });
    return found ?? fetch(request);
  };
  event.respondWith(answer());
});
