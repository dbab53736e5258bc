// What is done with mail that comes in. A rule can be tried on a mail without doing anything.

import { html } from "../vendor/preact.js";
import { post, url } from "../api.js";
import { Badge, Switched } from "../part/badge.js";
import { Button } from "../part/button.js";
import { ask, edit } from "../part/dialog.js";
import { resource } from "../part/resource.js";

const MATCH = '[{"field": "subject", "regex": "order (?<order>[0-9]+)"}]';
const ACTIONS = '[{"do": "forward", "to": ["orders@example.com"]}, {"do": "stop"}]';

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
    { name: "mailbox", label: "Mailbox", required: true },
    { name: "position", label: "Place", kind: "number", hint: "Lower ones are asked first." },
    { name: "active", label: "It is asked", kind: "check" },
    {
      name: "match",
      label: "All of these must hold (JSON)",
      kind: "json",
      rows: 6,
      placeholder: MATCH,
      hint: `field is from, to, cc or subject with contains, equals or regex; header with name and value; size with min
        and max; or has_attachment with value.`,
    },
    {
      name: "actions",
      label: "What is done then (JSON)",
      kind: "json",
      rows: 6,
      placeholder: ACTIONS,
      hint: "do is forward (to or contact; as, from, account, on_doubt), tag, webhook, mark_seen, move or stop.",
    },
    {
      name: "follow_up",
      label: "Reminders (JSON)",
      kind: "json",
      rows: 2,
      placeholder: '{"every_hours": 24, "times_max": 10}',
    },
  ].filter(Boolean);

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
    !row && { name: "rule.match", label: "Conditions (JSON)", kind: "json", placeholder: MATCH },
    !row && { name: "rule.actions", label: "Actions (JSON)", kind: "json", placeholder: ACTIONS, also: ["rule"] },
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
  preset: { active: true },
  tools: () => html`<${Button} onClick=${() => tryIt()}>Try a rule<//>`,
  acts: [{ name: "Try", scope: "read", run: tryIt }],
  removal: (row) => `Mail is no longer held against the rule ${row.id}.`,
  empty: "Rules say what is done with mail that comes into a mailbox.",
});
