// A client for Postway, a durable email gateway.

export { Client, ENDED, VERSION } from "./client.js";
export {
  ApiError,
  Conflict,
  Forbidden,
  InvalidWebhook,
  NoAnswer,
  NotFound,
  PostwayError,
  TooManyRequests,
  Unauthorized,
  Unavailable,
  UnreadableAnswer,
  ValidationFailed,
} from "./errors.js";
export { verifyWebhook } from "./webhook.js";
