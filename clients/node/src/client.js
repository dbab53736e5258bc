// How calls are made: again where that is safe, with answers checked.

import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { ApiError, NoAnswer, UnreadableAnswer } from "./errors.js";
import { Operations } from "./operations.js";
import { attempt, failureOf, mayRepeat, queryOf, readAnswer } from "./request.js";

export const VERSION = "0.1.0";
/** The states in which nothing more happens to a message by itself. `in_doubt` is not one of them: it may be sent again. */
export const ENDED = new Set(["sent", "captured", "failed", "invalid", "suppressed", "cancelled", "expired"]);

const waitMinMs = 250;
const waitMaxMs = 30_000;
const safe = new Set(["GET", "HEAD", "PUT"]);

/** Calls one gateway with one key. */
export class Client extends Operations {
  #base;
  #headers;
  #timeout;
  #retries;
  #fetch;
  #sleep;

  constructor(options = {}) {
    super();
    const url = new URL(options.url ?? process.env.POSTWAY_URL ?? "http://127.0.0.1:8520");
    if (!["http:", "https:"].includes(url.protocol) || url.search || url.hash) {
      throw new TypeError("url is `http://` or `https://`, a host, and a path at most");
    }
    if (url.username || url.password) throw new TypeError("url must not have a password in it; give the key as `key`");
    const key = options.key ?? process.env.POSTWAY_API_KEY;
    if (!key) throw new TypeError("give a key, or set POSTWAY_API_KEY");
    this.#base = url.href.replace(/\/+$/, "");
    this.#headers = { authorization: `Bearer ${key}`, "user-agent": `postway-node/${VERSION}` };
    if (options.tenant !== undefined) this.#headers["x-tenant"] = options.tenant;
    this.#timeout = options.timeoutMs ?? 60_000;
    this.#retries = options.retries ?? 5;
    this.#fetch = options.fetch ?? globalThis.fetch;
    this.#sleep = options.sleep ?? ((ms, signal) => pause(ms, undefined, { signal }));
  }

  /** What happens to messages, in order, without an end. */
  async *followEvents(options = {}) {
    let { after } = options;
    for (;;) {
      const page = await this.readEvents({ wait: 25, ...options, after });
      yield* page.data;
      after = page.next_cursor;
    }
  }

  /** The message once nothing more happens to it by itself, or as it is after `timeoutMs`. */
  async waitForMessage(id, options = {}) {
    const deadline = Date.now() + (options.timeoutMs ?? 60_000);
    for (let wait = 100; ; wait = Math.min(wait * 1.5, 2_000)) {
      const message = await this.getMessage(id, options);
      const left = deadline - Date.now();
      if (ENDED.has(message.status) || left <= 0) return message;
      await this.#sleep(Math.min(wait, left), options.signal);
    }
  }

  /** Any call of a later gateway that this package does not know: JSON in, JSON out. */
  call(method, path, body, options = {}) {
    return this.request(method, path, { answer: "json", body, query: Object.keys(options.query ?? {}) }, { ...options, ...options.query });
  }

  /** Makes the call that `Operations` describes. */
  async request(method, path, { answer, body, bodyType = "application/json", query = [], headers = {}, keyed = false }, options) {
    const sent = { ...this.#headers, accept: answer === "json" ? "application/json" : "*/*" };
    for (const [name, header] of Object.entries(headers)) {
      if (options[name] != null) sent[header.toLowerCase()] = options[name];
    }
    // Tries of this call find each other by it. A message that has an id is found by that.
    if (keyed && !sent["idempotency-key"] && !body?.id) sent["idempotency-key"] = randomUUID();
    let data;
    if (body !== undefined) {
      sent["content-type"] = bodyType;
      data = typeof body === "string" || body instanceof Uint8Array ? body : JSON.stringify(body);
    }
    const url = this.#base + path + queryOf(query, options);
    const repeatable = keyed || safe.has(method);
    for (let tried = 0; ; tried++) {
      const isLast = tried >= this.#retries;
      let failure;
      try {
        const answered = await attempt(this.#fetch, url, { method, headers: sent, body: data }, this.#timeout, options.signal);
        if (answered.status >= 200 && answered.status < 300) return readAnswer(answer, answered.content);
        failure = failureOf(answered.status, answered.headers, answered.content);
        if (isLast || !mayRepeat(answered.status, repeatable)) throw failure;
      } catch (error) {
        if (!(error instanceof NoAnswer) || isLast || (error.mayHaveHappened && !repeatable)) throw error;
      }
      const asked = (failure instanceof ApiError && failure.retryAfter ? failure.retryAfter : 0) * 1000;
      if (asked > waitMaxMs) throw failure;
      // Chance keeps the clients of a gateway that was away from coming back all at once.
      const most = Math.max(waitMinMs * 2, Math.min(waitMaxMs, 500 * 2 ** tried));
      await this.#sleep(Math.max(asked, waitMinMs + Math.random() * (most - waitMinMs)), options.signal);
    }
  }

  /** Goes through all pages that `list` gives. */
  async *pages(list, options) {
    for (let cursor; ; ) {
      const page = await list({ ...options, cursor });
      yield* page.data;
      if (page.next_cursor == null) return;
      if (page.next_cursor === cursor) throw new UnreadableAnswer(`the list does not go on after ${cursor}`);
      cursor = page.next_cursor;
    }
  }
}
