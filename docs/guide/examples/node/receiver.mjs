// Receives webhooks: believes only what is signed, deals with each event once.
import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";

const secret = process.env.WEBHOOK_SECRET; // whsec_…, as `POST /v1/webhooks` showed it
const seen = new Set(); // in your program: a table with a unique key

/** `body` as it came: bytes, before any JSON is parsed. */
function isOurs(secret, headers, body) {
  const stamp = headers["webhook-timestamp"] ?? "";
  if (!/^\d+$/.test(stamp) || Math.abs(Date.now() / 1000 - stamp) > 300) return false; // somebody recorded it
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  const signed = Buffer.concat([Buffer.from(`${headers["webhook-id"]}.${stamp}.`), body]);
  const ours = Buffer.from("v1," + createHmac("sha256", key).update(signed).digest("base64"));
  const given = (headers["webhook-signature"] ?? "").split(" "); // one for each secret while they rotate
  return given.map((one) => Buffer.from(one)).some((one) => one.length === ours.length && timingSafeEqual(one, ours));
}

const server = createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const body = Buffer.concat(chunks);
  if (!isOurs(secret, request.headers, body)) return response.writeHead(401).end();
  const id = request.headers["webhook-id"];
  if (!seen.has(id)) {
    const event = JSON.parse(body); // a call is repeated when its answer was lost
    console.log(event.type, event.data.id ?? "");
    seen.add(id);
  }
  response.writeHead(204).end();
});
server.listen(Number(process.env.PORT ?? 8600), "127.0.0.1", () => {
  console.log("listening on", server.address().port);
});
