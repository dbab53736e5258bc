// What a program does with the Node client, against a real gateway. Prints one JSON object.

import assert from "node:assert";
import * as postway from "postway";

const gateway = new postway.Client();
const told = { refused: [] };
const mail = { from: "Shop <shop@example.com>", to: ["ada@example.net"], subject: "Hello", text: "Hi" };
const receipt = await gateway.sendMessage({ ...mail, id: "node-1" });
assert.deepEqual(await gateway.sendMessage({ ...mail, id: "node-1" }), receipt);
told.sent = (await gateway.waitForMessage("node-1")).status;
told.raw = new TextDecoder().decode(await gateway.getRawMessage("node-1"));
const byItself = await gateway.sendMessage(mail);
told.own = byItself.id === byItself.uid;
const again = () => gateway.sendMessage(mail, { idempotency_key: "k-2" });
assert.deepEqual(await again(), await again());
const messages = Array.from({ length: 7 }, (_, number) => ({ id: `node-b${number}`, tags: ["n"] }));
const batch = await gateway.sendBatch({ defaults: mail, messages: [...messages, { to: "nobody" }] });
told.batch = [batch.accepted, batch.rejected];
told.pages = [];
for await (const message of gateway.allMessages({ tag: "n", limit: 2 })) told.pages.push(message.id);
told.pages.sort();
const ready = Buffer.from("From: shop@example.com\r\nTo: ada@example.net\r\nSubject: Ready-made\r\n\r\nHi\r\n");
const options = { id: "node-raw", to: ["ada@example.net", "bob@example.net"], tag: ["one", "two"] };
told.ready = (await gateway.sendRawMessage(ready, options)).id;
told.recipients = (await gateway.getMessage("node-raw")).recipients.length;
for (const [call, kind] of [
  [() => gateway.getMessage("none"), postway.NotFound],
  [() => gateway.cancelMessage("node-1"), postway.Conflict],
  [() => gateway.sendMessage({ ...mail, id: "node-1", subject: "Other" }), postway.Conflict],
  [() => gateway.sendMessage({ from: "shop@example.com", to: "nobody", text: "Hi" }), postway.ValidationFailed],
  [() => new postway.Client({ key: "wrong-key-of-nobody-at-all-anywhere" }).getStats(), postway.Unauthorized],
]) {
  await call().catch((refusal) => {
    if (!(refusal instanceof kind)) throw refusal;
    told.refused.push(refusal.code);
  });
}
for await (const entry of gateway.followEvents({ limit: 1 })) {
  if (entry.type !== "email.sent") continue;
  told.feed = entry.message.id;
  break;
}
const template = await gateway.createTemplate({ name: "node", subject: "Hi {{ name }}", html: "<p>Hi</p>", sample: { name: "Ada" } });
told.template = [template.name, []];
for await (const one of gateway.allTemplates()) told.template[1].push(one.name);
await gateway.deleteTemplate("node");
told.suppressed = (await gateway.importSuppressions("gone@example.net\n")).imported;
told.exported = await gateway.exportSuppressions();
told.stats = Object.values((await gateway.getStats()).by_status).reduce((sum, one) => sum + one, 0) > 0;
told.unknown = typeof (await gateway.call("GET", "/v1/messages", undefined, { query: { limit: 1 } })).data[0].id === "string";
console.log(JSON.stringify(told));
