// Follows the feed as a stream of server-sent events: every event once, in order, also over restarts of this program.
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { headers, url } from "./postway.mjs";

const place = process.env.CURSOR_FILE ?? "cursor.txt";
let cursor = existsSync(place) ? readFileSync(place, "utf8") : undefined;

for (;;) {
  try {
    await follow(); // a stream ends after ten minutes
  } catch (error) {
    console.error(error.message);
    await pause(2000);
  }
}

async function follow() {
  const from = cursor ? { "last-event-id": cursor } : {};
  const answer = await fetch(`${url}/v1/events`, { headers: { ...headers, accept: "text/event-stream", ...from } });
  if (!answer.ok) throw new Error(`the gateway answered ${answer.status}`);
  let text = "";
  for await (const chunk of answer.body.pipeThrough(new TextDecoderStream())) {
    const blocks = (text + chunk).split("\n\n");
    text = blocks.pop(); // the last one may not be whole yet
    blocks.forEach(take);
  }
}

function take(block) {
  const field = (name) => block.match(new RegExp(`^${name}: ?(.*)$`, "m"))?.[1];
  if (!field("data")) return; // a comment, to keep the connection open
  const entry = JSON.parse(field("data"));
  console.log(entry.type, entry.message?.id ?? entry.inbound); // deal with it, then keep its cursor
  cursor = field("id");
  writeFileSync(`${place}.new`, cursor);
  renameSync(`${place}.new`, place);
}
