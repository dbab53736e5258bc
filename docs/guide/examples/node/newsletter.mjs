// A template, a batch that is held back, and its release.
import { call } from "./postway.mjs";

await call("PUT", "/v1/templates/letter", {
  subject: "News for {{ name }}",
  html: "<p>Hello {{ name }}, there is news.</p>",
  sample: { name: "Ada" },
});
const preview = await call("POST", "/v1/templates/letter/preview", { variables: { name: "Grace" } });
console.log(preview.subject, preview.warnings);

await call("POST", "/v1/batches/news-2030-02/suspend"); // nothing of it leaves until somebody has looked
const readers = { "ada@example.net": "Ada", "grace@example.net": "Grace", "not an address": "Nobody" };
const answer = await call("POST", "/v1/messages/batch", {
  defaults: { from: "News <news@example.com>", batch: "news-2030-02", priority: "low" },
  messages: Object.entries(readers).map(([to, name], number) => ({
    id: `news-2030-02-${number}`,
    to,
    template: { name: "letter", variables: { name } },
  })),
});
console.log(answer.accepted, "accepted,", answer.rejected, "rejected");
for (const { id, error } of answer.results) {
  if (error) console.log(id, error.message); // a refused one stops nobody
}

const explained = await call("GET", "/v1/messages/news-2030-02-0/explain");
console.log(explained.status, explained.gates.map((gate) => gate.gate));
await call("POST", "/v1/batches/news-2030-02/activate");
