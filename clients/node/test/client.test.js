// The client against a server that misbehaves as it is told to: `npm test`.

import assert from "node:assert";
import { createHmac } from "node:crypto";
import { createServer } from "node:http";
import { test } from "node:test";
import * as postway from "postway";

const receipt = { id: "order-1", uid: "0192", status: "accepted" };
const mail = { from: "shop@example.com", to: "ada@example.net", text: "Hi" };
const key = "a-key-that-nobody-shows";
const refusal = (code) => ({ error: { code, message: "no", request_id: "r-1", details: [{ field: "to", message: "no @" }] } });

/** Answers requests in turn: with a status, headers and a body, or, where it is told null, by hanging up. */
async function serve(context, answers, options = {}) {
  const requests = [];
  const waits = [];
  const server = createServer(async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    requests.push({ url: request.url, headers: request.headers, body: Buffer.concat(parts) });
    const answer = answers.shift();
    if (answer === null) return request.socket.destroy();
    const [status, headers, content] = answer;
    response.writeHead(status, headers);
    response.end(content instanceof Uint8Array ? content : JSON.stringify(content));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${server.address().port}`;
  const sleep = async (ms) => void waits.push(ms);
  return { client: new postway.Client({ url, key, sleep, timeoutMs: 30_000, ...options }), requests, waits, url, server };
}

test("tries of one call have one key, and calls have their own", async (context) => {
  const good = [202, {}, receipt];
  const answers = [null, [500, {}, refusal("internal")], [502, {}, Buffer.from("<html>")], good, good];
  const { client, requests, waits } = await serve(context, answers);
  assert.deepEqual(await client.sendMessage(mail), receipt);
  await client.sendMessage(mail);
  const keys = requests.map((one) => one.headers["idempotency-key"]);
  assert.equal(new Set(keys.slice(0, 4)).size, 1);
  assert.ok(keys[0] && keys[0] !== keys[4]);
  assert.equal(waits.length, 3);
});

test("a message with an id needs no key", async (context) => {
  const { client, requests } = await serve(context, [null, [202, {}, receipt]]);
  await client.sendMessage({ ...mail, id: "order-1" });
  assert.deepEqual(requests.map((one) => one.headers["idempotency-key"]), [undefined, undefined]);
});

test("what must not be done twice is not repeated after a loss", async (context) => {
  const { client, requests } = await serve(context, [null, [201, {}, {}]]);
  await assert.rejects(client.createAccount({ id: "relay-1" }), (error) => error instanceof postway.NoAnswer && error.mayHaveHappened);
  assert.equal(requests.length, 1);
});

test("it is repeated where nothing was done", async (context) => {
  const answers = [[503, { "Retry-After": "7" }, refusal("unavailable")], [429, {}, refusal("too_many_requests")], [201, {}, { id: "relay-1" }]];
  const { client, requests, waits } = await serve(context, answers);
  await client.createAccount({ id: "relay-1" });
  assert.equal(requests.length, 3);
  assert.ok(waits[0] >= 7_000, String(waits));
});

test("a wait that is too long is the caller's", async (context) => {
  const { client, waits } = await serve(context, [[429, { "Retry-After": "3600" }, refusal("too_many_requests")]]);
  await assert.rejects(client.sendMessage(mail), (error) => error instanceof postway.TooManyRequests && error.retryAfter === 3600);
  assert.deepEqual(waits, []);
});

test("a gateway that stays away is an error in the end", async (context) => {
  const { client, waits, server } = await serve(context, [], { retries: 3 });
  await new Promise((resolve) => server.close(resolve));
  await assert.rejects(client.createAccount({ id: "relay-1" }), (error) => error instanceof postway.NoAnswer && !error.mayHaveHappened);
  assert.equal(waits.length, 3);
  assert.ok(waits.every((wait) => wait >= 250 && wait <= 4_000), String(waits));
});

test("refusals have types and are not repeated", async (context) => {
  const kinds = { 401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 409: "Conflict", 422: "ValidationFailed", 413: "ApiError" };
  for (const [status, name] of Object.entries(kinds)) {
    const { client } = await serve(context, [[Number(status), {}, refusal("word")]]);
    await assert.rejects(client.sendMessage(mail), (error) => {
      assert.ok(error instanceof postway[name]);
      assert.deepEqual([error.name, error.status, error.code, error.requestId], [name, Number(status), "word", "r-1"]);
      return error.details[0].field === "to";
    });
  }
});

test("redirects are not followed, and answers of something else are not believed", async (context) => {
  const answers = [[302, { Location: "http://127.0.0.1:9/" }, Buffer.alloc(0)], [200, { "Content-Type": "text/html" }, Buffer.from("<html>")]];
  const { client } = await serve(context, answers);
  await assert.rejects(client.sendMessage(mail), postway.UnreadableAnswer);
  await assert.rejects(client.getMessage("order-1"), postway.UnreadableAnswer);
});

test("pages are gone through, and a list that does not go on ends", async (context) => {
  const pages = [{ data: [{ id: "a" }], next_cursor: "x" }, { data: [], next_cursor: "y" }, { data: [{ id: "b" }] }];
  const stuck = { data: [], next_cursor: "x" };
  const { client, requests } = await serve(context, [...pages, stuck, stuck].map((page) => [200, {}, page]));
  const found = [];
  for await (const one of client.allMessages({ status: "sent", limit: 1 })) found.push(one.id);
  assert.deepEqual(found, ["a", "b"]);
  assert.equal(requests[0].url, "/v1/messages?status=sent&limit=1");
  assert.ok(requests[1].url.endsWith("&cursor=x") && requests[2].url.endsWith("&cursor=y"));
  await assert.rejects(client.allMessages().next(), postway.UnreadableAnswer);
});

test("ids stay within their part of the path", async (context) => {
  const { client, requests } = await serve(context, [[200, {}, { id: "x" }]]);
  await client.getMessage("a/../b?c#d");
  assert.equal(requests[0].url, "/v1/messages/a%2F..%2Fb%3Fc%23d");
  for (const wrong of ["", ".", "..", undefined]) assert.throws(() => client.getMessage(wrong), TypeError);
});

test("a message is waited for", async (context) => {
  const { client, waits } = await serve(context, ["ready", "sending", "sent"].map((status) => [200, {}, { status }]));
  assert.equal((await client.waitForMessage("order-1")).status, "sent");
  assert.equal(waits.length, 2);
});

test("raw mail and answers stay bytes", async (context) => {
  const raw = Buffer.from("Subject: \xff\r\n\r\nHi\r\n", "latin1");
  const { client, requests } = await serve(context, [[202, {}, receipt], [200, {}, raw]]);
  await client.sendRawMessage(raw, { id: "raw-1", from: "shop@example.com" });
  assert.deepEqual(Buffer.from(await client.getRawMessage("raw-1")), raw);
  const [{ url, body, headers }] = requests;
  assert.equal(url, "/v1/messages/raw?id=raw-1&from=shop%40example.com");
  assert.deepEqual([body, headers["content-type"]], [raw, "message/rfc822"]);
});

test("a call ends when its caller says so", async (context) => {
  const { client } = await serve(context, []);
  await assert.rejects(client.sendMessage(mail, { signal: AbortSignal.abort(new Error("enough")) }), /enough/);
});

test("the key is not shown, and an address is checked", async () => {
  const client = new postway.Client({ url: "https://mail.example.com/gateway/", key });
  assert.ok(!JSON.stringify(client).includes(key) && !(await import("node:util")).inspect(client, { showHidden: true }).includes(key));
  for (const url of ["ftp://example.com", "http://user:secret@example.com", "http://example.com?x=1", "example.com"]) {
    assert.throws(() => new postway.Client({ url, key }), TypeError);
  }
});

test("a webhook is believed when it is signed, and then alone", () => {
  const secret = `whsec_${Buffer.from("a secret of some length").toString("base64")}`;
  const other = `whsec_${Buffer.from("another").toString("base64")}`;
  const body = '{"type":"email.sent","data":{"id":"order-1"}}';
  const signed = (changed = {}, stamp = "1900000000") => {
    const digest = createHmac("sha256", "a secret of some length").update(`id-1.${stamp}.${body}`).digest("base64");
    return { "webhook-id": "id-1", "webhook-timestamp": stamp, "webhook-signature": `v1,bm90IG91cnM= v1,${digest}`, ...changed };
  };
  const now = 1900000010;
  assert.equal(postway.verifyWebhook(secret, signed(), body, { now }).type, "email.sent");
  assert.equal(postway.verifyWebhook([other, secret], new Headers(signed()), Buffer.from(body), { now }).type, "email.sent");
  const svix = Object.fromEntries(Object.entries(signed()).map(([name, value]) => [name.replace("webhook", "svix"), value]));
  postway.verifyWebhook(secret, svix, body, { now });
  for (const [headers, what, by, at] of [
    [signed(), '{"type":"email.sent"}', secret, now],
    [signed(), body, other, now],
    [signed(), body, secret, 1900000301],
    [signed(), body, secret, 1899999699],
    [signed({}, "-1900000000"), body, secret, now],
    [signed({ "webhook-id": "id-2" }), body, secret, now],
    [signed({ "webhook-signature": "v1," }), body, secret, now],
    [{}, body, secret, now],
  ]) {
    assert.throws(() => postway.verifyWebhook(by, headers, what, { now: at }), postway.InvalidWebhook);
  }
  for (const empty of ["whsec_", "whsec_***"]) assert.throws(() => postway.verifyWebhook(empty, signed(), body, { now }), TypeError);
  assert.throws(() => postway.verifyWebhook(secret, signed(), JSON.parse(body), { now }), TypeError);
});
