/** The service worker: keeps the files of a build and answers from them, with or without a network. One store a build. */
import built from "virtual:built";

interface Waiting {
  waitUntil(work: Promise<unknown>): void;
}

interface Fetching extends Waiting {
  readonly request: Request;
  respondWith(answer: Promise<Response>): void;
}

interface Scope {
  readonly registration: { readonly scope: string };
  readonly clients: { claim(): Promise<void> };
  addEventListener(type: "install" | "activate", listener: (event: Waiting) => void): void;
  addEventListener(type: "fetch", listener: (event: Fetching) => void): void;
}

const scope = globalThis as unknown as Scope;
const NAME = `qvr-playground-${built.version}`;
const address = (path: string): string => new URL(path, scope.registration.scope).href;

const FILES = ["./", ...built.files];

scope.addEventListener("install", (event) => {
  event.waitUntil(caches.open(NAME).then((store) => store.addAll(FILES.map(address))));
});

scope.addEventListener("activate", (event) => {
  const clean = async (): Promise<void> => {
    const old = (await caches.keys()).filter((name) => name.startsWith("qvr-playground-") && name !== NAME);
    await Promise.all(old.map((name) => caches.delete(name)));
    await scope.clients.claim();
  };
  event.waitUntil(clean());
});

scope.addEventListener("fetch", (event) => {
  const { method, url } = event.request;
  if (method === "GET" && url.startsWith(scope.registration.scope)) {
    event.respondWith(answer(event));
  }
});

async function answer(event: Fetching): Promise<Response> {
  const store = await caches.open(NAME);
  const { pathname } = new URL(event.request.url);
  const wanted = pathname.endsWith("/index.html") ? address("./") : event.request;
  return (await store.match(wanted, { ignoreSearch: true })) ?? fetch(event.request);
}
