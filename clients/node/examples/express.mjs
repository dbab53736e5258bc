// A shop in Express: mails an order's receipt, and hears what became of it.
//
//   npm install express postway
//   POSTWAY_API_KEY=pw_… WEBHOOK_SECRET=whsec_… node express.mjs

import express from "express";
import { Client, InvalidWebhook, ValidationFailed, verifyWebhook } from "postway";

const app = express();
const gateway = new Client();
const seen = new Set(); // in your program: a table with a unique key

app.post("/orders/:number", express.urlencoded(), async (request, response) => {
  const { number } = request.params;
  try {
    // The id makes a repeat harmless: however often the browser asks, one mail is sent.
    const receipt = await gateway.sendMessage({
      id: `order-${number}`,
      from: "Shop <shop@example.com>",
      to: request.body.email,
      subject: `Your order ${number}`,
      text: "Thank you.",
    });
    response.status(202).json({ mail: receipt.id });
  } catch (refusal) {
    if (!(refusal instanceof ValidationFailed)) throw refusal;
    response.status(422).json({ wrong: refusal.details.map((one) => one.field) });
  }
});

// The body as it came: what express.json() would make of it is not what was signed.
app.post("/hooks/mail", express.raw({ type: "*/*" }), (request, response) => {
  let event;
  try {
    event = verifyWebhook(process.env.WEBHOOK_SECRET, request.headers, request.body);
  } catch (refusal) {
    if (!(refusal instanceof InvalidWebhook)) throw refusal;
    return response.sendStatus(401);
  }
  const id = request.headers["webhook-id"];
  if (!seen.has(id)) {
    seen.add(id); // a call is repeated when its answer was lost
    console.log(event.type, event.data.id ?? "");
  }
  response.sendStatus(204);
});

const server = app.listen(Number(process.env.PORT ?? 3000), "127.0.0.1", () => {
  console.log("listening on", server.address().port);
});
