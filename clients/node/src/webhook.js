// Whether a call that claims to be a webhook's was made by the gateway, as Standard Webhooks has it.

import { createHmac, timingSafeEqual } from "node:crypto";
import { InvalidWebhook } from "./errors.js";

/** How old a call may be in seconds, and how far ahead of this clock. */
const toleranceS = 300;

/** The event that a call brings. Throws `InvalidWebhook` unless the call is signed, and recent. */
export function verifyWebhook(secret, headers, body, options = {}) {
  const entries = typeof headers.entries === "function" ? [...headers.entries()] : Object.entries(headers);
  const given = new Map(entries.map(([name, value]) => [name.toLowerCase(), String(value)]));
  const oneOf = (name) => given.get(`webhook-${name}`) || given.get(`svix-${name}`) || "";
  const [id, stamp, signatures] = [oneOf("id"), oneOf("timestamp"), oneOf("signature")];
  if (!id || !signatures) throw new InvalidWebhook("the call is not signed");
  if (!/^\d{1,12}$/.test(stamp)) throw new InvalidWebhook("the call has no time");
  const now = options.now ?? Date.now() / 1000;
  if (Math.abs(now - Number(stamp)) > (options.toleranceS ?? toleranceS)) {
    throw new InvalidWebhook("the call is too old, or its time is in the future");
  }
  const bytes = typeof body === "string" ? Buffer.from(body) : body;
  if (!(bytes instanceof Uint8Array)) throw new TypeError("body is what came, as bytes or text: not parsed JSON");
  const theirs = signatures.split(" ").filter((one) => one.startsWith("v1,")).map((one) => Buffer.from(one.slice(3)));
  for (const one of [secret].flat()) {
    const ours = Buffer.from(createHmac("sha256", keyOf(one)).update(`${id}.${stamp}.`).update(bytes).digest("base64"));
    if (theirs.some((other) => other.length === ours.length && timingSafeEqual(ours, other))) {
      return JSON.parse(new TextDecoder().decode(bytes));
    }
  }
  throw new InvalidWebhook("the signature is not of this secret");
}

function keyOf(secret) {
  const text = secret.replace(/^whsec_/, "");
  // An empty key would make a signature that anybody can make.
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(text)) throw new TypeError("a webhook's secret is `whsec_` and base64");
  return Buffer.from(text, "base64");
}
