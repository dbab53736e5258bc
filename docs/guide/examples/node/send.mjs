// Hands over a mail, repeats itself, and waits for the outcome.
import assert from "node:assert";
import { setTimeout as pause } from "node:timers/promises";
import { Refused, call } from "./postway.mjs";

const mail = {
  id: "order-2001",
  from: "Shop <shop@example.com>",
  to: ["Ada <ada@example.net>"],
  subject: "Your order",
  text: "Thank you.",
  tags: ["receipt"],
};
const accepted = await call("POST", "/v1/messages", mail); // it is on disk now
assert.deepEqual(await call("POST", "/v1/messages", mail), accepted); // the same id and content: the same message

try {
  await call("POST", "/v1/messages", { ...mail, subject: "Another order" });
} catch (error) {
  if (!(error instanceof Refused)) throw error;
  console.log(error.status, error.code); // 409 conflict: that id stands for something else
}

let message;
for (;;) {
  message = await call("GET", "/v1/messages/order-2001");
  if (["sent", "captured", "failed", "invalid", "suppressed", "cancelled", "expired"].includes(message.status)) break;
  console.log((await call("GET", "/v1/messages/order-2001/explain")).gates.map((gate) => gate.reason));
  await pause(500);
}
console.log(message.id, message.status, message.events.map((event) => event.type));
