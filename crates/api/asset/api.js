// The way to the server: the same /v1 that programs use, signed in by a cookie.
//
// A request that changes something carries X-CSRF-Token; an admin's requests name the selected tenant. An answer
// that is no success is thrown as an ApiError, with the faults of single fields in `details`. A 401 ends the session
// for the page.

/** Why the server did not do it. */
export class ApiError extends Error {
  constructor(status, { code, message, request_id, details } = {}) {
    super(message ?? `the server answered ${status}`);
    Object.assign(this, { status, code, requestId: request_id, details: details ?? [] });
  }
}

// Over TLS no neighbour under the same domain can set a cookie of this name.
const TENANT_COOKIE = location.protocol === "https:" ? "__Host-postway_tenant" : "postway_tenant";
const cookieTenant = () => document.cookie.match(new RegExp(`(?:^|; )${TENANT_COOKIE}=([^;]+)`))?.[1];
let who = null;
// Each tab looks at a tenant of its own, which its address names; a new one begins with the one chosen last.
let tenant = cookieTenant() ?? "default";
let ended = () => {};

/** Who is signed in: `{admin, tenant, tenants, scopes, user, role, csrf_token, version}`, or null. */
export const session = () => who;
/** The tenant that is looked at. */
export const currentTenant = () => who?.tenant ?? tenant;
/** Whether who signed in has several tenants to look at. */
export const hasTenants = () => Boolean(who && !who.tenant);
/**
 * Whether who signed in may do this: `send`, `read`, `manage` or `admin`; `users` is for those who manage them, `person`
 * for those who are not a key.
 */
export const may = (scope) => {
  if (!who) return false;
  if (scope === "person") return Boolean(who.user);
  if (scope === "users") return who.admin || who.role === "admin";
  return who.admin || (scope !== "admin" && who.scopes.includes(scope));
};
/** Calls `then` when the server no longer knows the session. */
export const onEnd = (then) => (ended = then);

/** Looks at another tenant. */
export function chooseTenant(id) {
  tenant = id;
  tellTenant();
}

/**
 * The cookie is for what a browser asks for without headers: frames and downloads. All tabs share it, so a tab that is
 * turned to says its own tenant before anything is clicked in it.
 */
function tellTenant() {
  if (cookieTenant() === tenant) return;
  const secure = location.protocol === "https:" ? "; Secure" : "";
  document.cookie = `${TENANT_COOKIE}=${tenant}; Path=/; SameSite=Strict; Max-Age=31536000${secure}`;
}
for (const turned of ["focus", "pointerdown", "keydown"])
  addEventListener(turned, () => hasTenants() && tellTenant(), { capture: true });

/** A path with its values encoded: url`/v1/accounts/${id}`. */
export const url = (parts, ...values) => String.raw({ raw: parts }, ...values.map(encodeURIComponent));

/** A path with those parameters that have a value. */
export function withQuery(path, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return given.length ? `${path}?${new URLSearchParams(given)}` : path;
}

function headers(more) {
  const named = { ...more };
  if (who) named["X-CSRF-Token"] = who.csrf_token;
  if (hasTenants()) named["X-Tenant"] = tenant;
  return named;
}

async function refuse(response) {
  if (response.status === 401 && who) {
    who = null;
    ended();
  }
  const answer = await response.json().catch(() => ({}));
  throw new ApiError(response.status, answer.error);
}

/** Sends a request and gives the answer as it came. `body` is JSON unless `type` says otherwise. */
export async function send(method, path, { body, type, query, signal } = {}) {
  const kind = type ?? (body === undefined ? undefined : "application/json");
  let response;
  try {
    response = await fetch(withQuery(path, query), {
      method,
      signal,
      headers: headers(kind && { "Content-Type": kind }),
      body: type || body === undefined ? body : JSON.stringify(body),
    });
  } catch (cause) {
    if (cause.name === "AbortError") throw cause;
    throw new ApiError(0, { message: "the server cannot be reached: is it running?" });
  }
  return response.ok ? response : refuse(response);
}

async function json(method, path, options) {
  const response = await send(method, path, options);
  return response.status === 204 ? null : response.json();
}

export const get = (path, query, signal) => json("GET", path, { query, signal });
export const post = (path, body, options) => json("POST", path, { body, ...options });
export const put = (path, body) => json("PUT", path, { body });
export const patch = (path, body) => json("PATCH", path, { body });
export const remove = (path) => json("DELETE", path);
/** What an address holds, as text. */
export const text = (path, signal) => send("GET", path, { signal }).then((response) => response.text());

/** Remembers who is signed in, and looks at a tenant of theirs. */
function entered(session) {
  who = session;
  if (who?.tenants && !who.tenants.includes(tenant)) tenant = who.tenants[0];
  return who;
}

/** Signs in with a key. */
export async function signIn(key) {
  return entered(await post("/v1/session", { key }));
}

/** Signs in with a name, a password and a code. */
export async function signInPerson(tried) {
  return entered(await post("/v1/session", tried));
}

/** Signs in with a passkey: `sign` has the device answer a challenge. */
export async function signInPasskey(sign) {
  const challenge = await post("/v1/session/passkey/challenge");
  const passkey = await sign(challenge);
  return entered(await post("/v1/session/passkey", { ceremony: challenge.ceremony, passkey }));
}

/** One of the two steps in which a person accepts an invitation. */
export async function acceptInvitation(step) {
  const answer = await post("/v1/session/invitation", step);
  if (answer.session) entered(answer.session);
  return answer;
}

/** Reads the session; null if no one is signed in. */
export async function restore() {
  try {
    entered(await get("/v1/session"));
  } catch (error) {
    if (error.status !== 401) throw error;
    who = null;
  }
  return who;
}

export async function signOut() {
  const way = who?.way;
  await remove("/v1/session");
  who = null;
  // Who came from a provider signs out there, too.
  if (way === "oidc") location.href = "/v1/session/oidc/logout";
}

const RETRY_MS_MAX = 15_000;
const wait = (ms, signal) =>
  new Promise((done) => {
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", () => (clearTimeout(timer), done()), { once: true });
  });

/**
 * Follows server-sent events until `signal` stops it, also across a server that goes away for a while. EventSource would
 * not do: it sends no headers. `told(data)` gets each event, `state(live)` whether it is connected.
 */
export async function follow(path, told, state, signal) {
  let pause = 500;
  while (!signal.aborted) {
    try {
      const response = await fetch(path, { signal, headers: headers({ Accept: "text/event-stream" }) });
      if (!response.ok) await refuse(response);
      state(true);
      let rest = "";
      for await (const part of chunks(response.body)) {
        const events = (rest + part).split("\n\n");
        rest = events.pop();
        for (const event of events) {
          const data = event.match(/^data: ?(.*)$/m)?.[1];
          if (data) told(JSON.parse(data));
        }
        pause = 500;
      }
    } catch (error) {
      if (error.status === 401 || error.status === 403) return;
    }
    if (signal.aborted) return;
    state(false);
    await wait(pause, signal);
    pause = Math.min(pause * 2, RETRY_MS_MAX);
  }
}

async function* chunks(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    yield value;
  }
}
