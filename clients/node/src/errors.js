// What may go wrong with a call. Every error of this package is a PostwayError.

/** The root of all errors of this package. */
export class PostwayError extends Error {
  constructor(message, options) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** The gateway could not be reached, or the connection was lost before its answer. */
export class NoAnswer extends PostwayError {
  constructor(message, mayHaveHappened, options) {
    super(message, options);
    this.mayHaveHappened = mayHaveHappened;
  }
}

/** An answer came that the gateway does not give: something else listens there, or stands in between. */
export class UnreadableAnswer extends PostwayError {}

/** A call that is not proven to come from the gateway. Answer it with 401, and do not read it. */
export class InvalidWebhook extends PostwayError {}

/** The gateway refused: `code` is a word for programs, `details` names every field at fault. */
export class ApiError extends PostwayError {
  constructor(status, error, retryAfter) {
    super(`${status} ${error.code}: ${error.message}`);
    this.status = status;
    this.code = error.code;
    this.requestId = error.request_id ?? undefined;
    this.details = error.details ?? [];
    this.retryAfter = retryAfter;
  }
}

/** 401: no key, or a wrong one. */
export class Unauthorized extends ApiError {}
/** 403: the key may not do this. */
export class Forbidden extends ApiError {}
/** 404: there is no such thing in this tenant. */
export class NotFound extends ApiError {}
/** 409: the id or key stands for something else, or the state does not allow it. */
export class Conflict extends ApiError {}
/** 422: see `details`. Nothing was stored. */
export class ValidationFailed extends ApiError {}
/** 429: too often; `retryAfter` says when to repeat. */
export class TooManyRequests extends ApiError {}
/** 503: the gateway cannot do it now; nothing was done. */
export class Unavailable extends ApiError {}

const byStatus = new Map([
  [401, Unauthorized],
  [403, Forbidden],
  [404, NotFound],
  [409, Conflict],
  [422, ValidationFailed],
  [429, TooManyRequests],
  [503, Unavailable],
]);

/** The error for an answer with this status. */
export function apiError(status, error, retryAfter) {
  return new (byStatus.get(status) ?? ApiError)(status, error, retryAfter);
}
