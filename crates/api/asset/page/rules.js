// What is done with mail that comes in. A rule can be tried on a mail without doing anything.

import { html } from "../vendor/preact.js";
import { patch, post, url } from "../api.js";
import { Badge, Switched } from "../part/badge.js";
import { Button } from "../part/button.js";
import { ask, edit } from "../part/dialog.js";
import { mailboxes } from "../part/controls.js";
import { resource } from "../part/resource.js";

/** A condition or an action in words. */
const words = (one) =>
  Object.entries(one)
    .map(([name, value]) => (name === "field" || name === "do" ? value : `${name} ${plain(value)}`))
    .join(" ");

function plain(value) {
  if (Array.isArray(value)) return value.join(", ");
  return typeof value === "object" ? JSON.stringify(value) : value;
}

const columns = [
  { head: "Place", kind: "num", cell: (row) => row.position },
  { head: "Rule", cell: (row) => row.id },
  { head: "Mailbox", cell: (row) => row.mailbox },
  {
    head: "Where all hold",
    kind: "wide",
    cell: (row) => (row.match.length ? row.match.map((one) => html`<div>${words(one)}</div>`) : "always"),
  },
  {
    head: "Then",
    kind: "wide",
    cell: (row) =>
      html`${row.actions.map((one) => html`<div>${words(one)}</div>`)}
        ${row.follow_up && html`<div class="muted small">reminds every ${row.follow_up.every_hours} h</div>`}`,
  },
  { head: "State", cell: (row) => html`<${Switched} on=${row.active} words=${["active", "off"]} />` },
];

const fields = (row) =>
  [
    !row && { name: "id", label: "Id", hint: "One is made when empty." },
    { name: "mailbox", label: "Mailbox", kind: "known", options: [["", "Choose a mailbox"]], load: mailboxes, required: true },
    { name: "position", label: "Place", kind: "number", hint: "Lower ones are asked first." },
    { name: "active", label: "It is asked", kind: "check" },
    {
      name: "match",
      label: "All of these must hold",
      kind: "conditions",
      hint: "Without a condition the rule is for every mail.",
    },
    {
      name: "actions",
      label: "What is done then",
      kind: "deeds",
      hint: "Addresses, contacts and tags may name what a pattern found, such as {order}.",
    },
    { name: "follow_up.every_hours", label: "Remind every … hours", kind: "number", also: ["follow_up"], hint: "Until somebody has dealt with it; empty: never." },
    { name: "follow_up.times_max", label: "At most … times", kind: "number" },
  ].filter(Boolean);

/** Reminders are there or not; a form sends only what changed of them. */
function ruleBody(body, row) {
  if (!body.follow_up) return body;
  const plan = { ...row?.follow_up, ...body.follow_up };
  for (const [name, value] of Object.entries(plan)) if (value === null) delete plan[name];
  return { ...body, follow_up: plan.every_hours ? plan : null };
}

const Trial = ({ result }) => html`
  <p><${Badge} status=${result.matched ? "it matches" : "it does not match"}
    tone=${result.matched ? "good" : "warn"} /> ${result.reason}</p>
  <ul class="results">
    ${result.conditions.map((one) =>
      html`<li><${Badge} status=${one.holds ? "holds" : "fails"}
        tone=${one.holds ? "good" : "bad"} /> ${one.why}</li>`)}</ul>
  ${Object.keys(result.captures).length > 0 &&
    html`<h3>Found</h3><ul class="results">
      ${Object.entries(result.captures).map(([name, value]) => html`<li><code>${name}</code> ${value}</li>`)}</ul>`}
  ${result.actions.length > 0 &&
    html`<h3>It would</h3><ul class="results">${result.actions.map((one) => html`<li>${words(one)}</li>`)}</ul>`}
`;

/** Base64 of a text in UTF-8. */
const base64 = (text) => btoa(Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join(""));

async function tryIt(row) {
  const form = [
    !row && { name: "rule.match", label: "All of these must hold", kind: "conditions" },
    !row && { name: "rule.actions", label: "What is done then", kind: "deeds", also: ["rule"] },
    { name: "inbound", label: "A mail that came in, by its id" },
    {
      name: "raw",
      label: "Or a mail as it is",
      kind: "area",
      rows: 8,
      placeholder: "From: ada@example.net\nSubject: order 17\n\nHello",
    },
  ].filter(Boolean);
  const save = ({ raw, ...body }) =>
    post("/v1/rules/dry-run", { ...body, ...(row && { id: row.id }), ...(raw && { raw: base64(raw) }) });
  const result = await edit({
    title: row ? `Try ${row.id}` : "Try a rule",
    note: "Nothing is done and nothing is stored.",
    action: "Try",
    fields: form,
    save,
  });
  if (result) await ask("What it would do", () => html`<${Trial} result=${result} />`);
}

export default resource({
  title: "Rules",
  what: "rule",
  path: "/v1/rules",
  at: (row) => url`/v1/rules/${row.id}`,
  columns,
  fields,
  versioned: true,
  preset: { active: true, actions: [{ do: "forward", to: [] }] },
  create: (body) => post("/v1/rules", ruleBody(body)),
  change: (row, body) => patch(url`/v1/rules/${row.id}`, ruleBody(body, row)),
  trial: (row) => tryIt(row),
  tools: () => html`<${Button} onClick=${() => tryIt()}>Try a rule<//>`,
  acts: [{ name: "Try", scope: "read", run: tryIt }],
  removal: (row) => `Mail is no longer held against the rule ${row.id}.`,
  empty: "Rules say what is done with mail that comes into a mailbox.",
});
