// A client for Postway, a durable email gateway.

import type { CallOptions, FeedEntry, FieldError, Message, ReadEventsOptions } from "./operations.js";
import { Operations } from "./operations.js";

export type * from "./operations.js";

export declare const VERSION: string;
/** The states in which nothing more happens to a message by itself. `in_doubt` is not one of them: it may be sent again. */
export declare const ENDED: ReadonlySet<string>;

export interface ClientOptions {
  /** Where the gateway is; `POSTWAY_URL` when absent. */
  url?: string;
  /** The key to speak with; `POSTWAY_API_KEY` when absent. */
  key?: string;
  /** The tenant that an admin key works for. */
  tenant?: string;
  /** For one try; 60,000 when absent. */
  timeoutMs?: number;
  /** How often a try is made again; 5 when absent. */
  retries?: number;
  /** In the place of Node's own. */
  fetch?: typeof globalThis.fetch;
  /** Waits between tries. */
  sleep?: (ms: number, signal?: AbortSignal) => Promise<unknown>;
}

/** Calls one gateway with one key. Tries are repeated where that sends nothing twice. */
export declare class Client extends Operations {
  constructor(options?: ClientOptions);
  /**
   * What happens to messages, in order, without an end. Keep the `cursor` of an entry once you have dealt with it, and give it
   * as `after` the next time; `now` begins with what comes from now on.
   */
  followEvents(options?: ReadEventsOptions): AsyncGenerator<FeedEntry, never, undefined>;
  /** The message once nothing more happens to it by itself, or as it is after `timeoutMs` (60,000). */
  waitForMessage(id: string, options?: CallOptions & { timeoutMs?: number }): Promise<Message>;
  /** Any call of a later gateway that this package does not know: JSON in, JSON out. */
  call(method: string, path: string, body?: unknown, options?: CallOptions & { query?: Record<string, unknown> }): Promise<any>;
}

export interface VerifyOptions {
  /** How old a call may be in seconds, and how far ahead of this clock; 300 when absent. */
  toleranceS?: number;
  /** The time, in seconds since 1970. */
  now?: number;
}

/**
 * The event that a call brings. Throws `InvalidWebhook` unless the call is signed, and recent. `secret` is what `createWebhook`
 * showed, or several of them while they are changed; `body` is what came, before anything parses it.
 */
export declare function verifyWebhook(
  secret: string | string[],
  headers: Headers | Record<string, string | string[] | undefined>,
  body: Uint8Array | string,
  options?: VerifyOptions,
): WebhookEvent;

/** What a webhook tells. */
export interface WebhookEvent {
  type: string;
  timestamp: string;
  sequence?: number | null;
  data: Record<string, any>;
}

/** The root of all errors of this package. */
export declare class PostwayError extends Error {}
/** The gateway could not be reached, or the connection was lost before its answer. */
export declare class NoAnswer extends PostwayError {
  /** Whether the request may have been carried out all the same. */
  readonly mayHaveHappened: boolean;
}
/** An answer came that the gateway does not give. */
export declare class UnreadableAnswer extends PostwayError {}
/** A call that is not proven to come from the gateway. Answer it with 401, and do not read it. */
export declare class InvalidWebhook extends PostwayError {}
/** The gateway refused. */
export declare class ApiError extends PostwayError {
  readonly status: number;
  /** A word for programs. */
  readonly code: string;
  readonly requestId?: string;
  /** Every field at fault. */
  readonly details: FieldError[];
  /** In seconds. */
  readonly retryAfter?: number;
}
/** 401: no key, or a wrong one. */
export declare class Unauthorized extends ApiError {}
/** 403: the key may not do this. */
export declare class Forbidden extends ApiError {}
/** 404: there is no such thing in this tenant. */
export declare class NotFound extends ApiError {}
/** 409: the id or key stands for something else, or the state does not allow it. */
export declare class Conflict extends ApiError {}
/** 422: see `details`. Nothing was stored. */
export declare class ValidationFailed extends ApiError {}
/** 429: too often; `retryAfter` says when to repeat. */
export declare class TooManyRequests extends ApiError {}
/** 503: the gateway cannot do it now; nothing was done. */
export declare class Unavailable extends ApiError {}
