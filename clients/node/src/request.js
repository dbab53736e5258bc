// One try of a call: what is written, and what its answer means.

import { NoAnswer, UnreadableAnswer, apiError } from "./errors.js";

// Whether the request was carried out is known to be "no": it may be repeated whatever it does.
const nothingDone = new Set([429, 503]);
// Not known; only what may be done twice is repeated.
const unknown = new Set([500, 502, 504]);
// The request never left this machine.
const neverSent = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "UND_ERR_CONNECT_TIMEOUT"]);

/** What stands between two slashes. Dots alone would name another path, and so would nothing. */
export function segment(value) {
  const text = String(value);
  if (value == null || text === "" || text === "." || text === "..") throw new TypeError(`"${text}" cannot be an id`);
  return encodeURIComponent(text);
}

/** The query of these names, without those that are not given. */
export function queryOf(names, options) {
  const query = new URLSearchParams();
  for (const name of names) {
    for (const one of [options[name]].flat()) {
      if (one !== undefined && one !== null) query.append(name, String(one));
    }
  }
  const text = query.toString();
  return text ? `?${text}` : "";
}

/** Whether an answer with this status may be asked for again. */
export function mayRepeat(status, repeatable) {
  return nothingDone.has(status) || (unknown.has(status) && repeatable);
}

/** Makes the request once. */
export async function attempt(fetch, url, init, timeout, signal) {
  const ender = new AbortController();
  const end = () => ender.abort(signal.reason);
  if (signal?.aborted) throw signal.reason;
  signal?.addEventListener("abort", end, { once: true });
  const timer = setTimeout(() => ender.abort(new Error(`no answer within ${timeout} ms`)), timeout);
  try {
    // A redirect would carry the key elsewhere.
    const answer = await fetch(url, { ...init, redirect: "manual", signal: ender.signal });
    return { status: answer.status, headers: answer.headers, content: new Uint8Array(await answer.arrayBuffer()) };
  } catch (error) {
    if (signal?.aborted) throw signal.reason;
    const cause = error?.cause ?? error;
    const codes = [cause?.code, ...(cause?.errors ?? []).map((one) => one.code)].filter(Boolean);
    const reached = !(codes.length > 0 && codes.every((code) => neverSent.has(code)));
    throw new NoAnswer(`${new URL(url).host} did not answer: ${cause?.message || codes[0] || error}`, reached, { cause: error });
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", end);
  }
}

/** What a good answer brings. */
export function readAnswer(kind, content) {
  if (kind === "nothing") return undefined;
  if (kind === "bytes") return content;
  const text = new TextDecoder().decode(content);
  if (kind === "text") return text;
  try {
    return text === "" ? undefined : JSON.parse(text);
  } catch (error) {
    throw new UnreadableAnswer(`the answer is not JSON: ${error.message}`);
  }
}

/** The error that another answer is. */
export function failureOf(status, headers, content) {
  const asked = headers.get("retry-after") ?? "";
  const retryAfter = /^\d+$/.test(asked) ? Number(asked) : undefined;
  let error;
  try {
    ({ error } = JSON.parse(new TextDecoder().decode(content)));
  } catch {
    // Told below.
  }
  if (typeof error?.code === "string" && typeof error?.message === "string") return apiError(status, error, retryAfter);
  const message = `the answer is not the gateway's (${headers.get("content-type") ?? "no type"})`;
  // A proxy in between says so in words of its own.
  if (nothingDone.has(status) || unknown.has(status)) return apiError(status, { code: "unavailable", message }, retryAfter);
  return new UnreadableAnswer(`${status}: ${message}`);
}
