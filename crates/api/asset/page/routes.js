// Which account sends mail that names none. Routes can be tried on a message without sending it.

import { html } from "../vendor/preact.js";
import { post, url } from "../api.js";
import { Badge, Switched } from "../part/badge.js";
import { Button } from "../part/button.js";
import { ask, edit } from "../part/dialog.js";
import { resource } from "../part/resource.js";
import { link } from "../route.js";

const CONDITIONS = [
  ["sender_domains", "from"],
  ["tags", "tag"],
  ["batches", "batch"],
  ["streams", "stream"],
  ["priorities", "priority"],
  ["recipient_domains", "every recipient in"],
];
const MATCH = '{"sender_domains": ["*.example.com"], "priorities": ["low"]}';
const ACCOUNTS = '[{"account": "bulk-1", "weight": 3}, {"account": "bulk-2", "weight": 1}]';

/** The conditions of a route in words. */
const words = (match) =>
  CONDITIONS.filter(([name]) => match[name].length > 0).map(([name, said]) => `${said} ${match[name].join(", ")}`);

/** An account and its share, and whether it is still there. */
const Target = ({ one, alone }) => html`<div>
  ${one.missing ? one.account : html`<a href=${link(`accounts/${encodeURIComponent(one.account)}`)}>${one.account}</a>`}
  ${!alone && html` <span class="muted">× ${one.weight}</span>`}
  ${one.missing && html` <${Badge} status="missing" tone="bad" />`}</div>`;

const columns = [
  { head: "Place", kind: "num", cell: (row) => row.position },
  { head: "Route", cell: (row) => html`${row.id}<div class="muted small">${row.description}</div>` },
  {
    head: "Where all hold",
    kind: "wide",
    cell: (row) => (words(row.match).length ? words(row.match).map((one) => html`<div>${one}</div>`) : "all mail"),
  },
  {
    head: "Account",
    cell: (row) =>
      row.accounts.map((one) => html`<${Target} one=${one} alone=${row.accounts.length === 1} />`),
  },
  { head: "State", cell: (row) => html`<${Switched} on=${row.active} words=${["active", "off"]} />` },
];

const fields = (row) =>
  [
    !row && { name: "id", label: "Id", hint: "One is made when empty." },
    { name: "description", label: "What it is for" },
    { name: "position", label: "Place", kind: "number", hint: "The first route that matches decides." },
    { name: "active", label: "It is active", kind: "check" },
    {
      name: "match",
      label: "All of these must hold (JSON)",
      kind: "json",
      rows: 6,
      placeholder: MATCH,
      hint: `Lists of sender_domains, tags, batches, streams, priorities and recipient_domains; one entry of each list
        must match, and for recipient_domains every recipient. An empty object matches all mail.`,
    },
    {
      name: "accounts",
      label: "Accounts (JSON)",
      kind: "json",
      rows: 4,
      placeholder: ACCOUNTS,
      required: true,
      hint: "Each gets mail by its weight. One that is suspended, at fault or at its limit is left out meanwhile.",
    },
  ].filter(Boolean);

const Trial = ({ result }) => html`
  <p>${result.route ? html`The route <b>${result.route}</b> decides.` : "No route matches: the default account sends."}</p>
  <ul class="results">
    ${result.accounts.map((one) =>
      html`<li>${one.account}${result.accounts.length > 1 && html` <span class="muted">× ${one.weight}</span>`}
        ${one.held_by && html` <${Badge} status=${one.held_by} tone="warn" />`}</li>`)}</ul>
  ${result.steps.length > 0 &&
    html`<h3>Routes</h3><ul class="results">
      ${result.steps.map((step) =>
        html`<li><${Badge} status=${step.matched ? "matches" : "does not match"} tone=${step.matched ? "good" : "warn"} />
          ${" "}${step.route}${step.passed_over && ", but its accounts are gone"}
          <span class="muted"> ${step.conditions
            .map((one) => `${one.condition.replace("_", " ")}: ${one.holds ? "yes" : "no"}`)
            .join(", ")}</span></li>`)}</ul>`}
`;

const split = (text) => (text ? text.split(",").map((one) => one.trim()).filter(Boolean) : undefined);

async function tryIt() {
  const form = [
    { name: "from", label: "From", placeholder: "Shop <shop@example.com>" },
    { name: "to", label: "To", placeholder: "ada@example.net, bob@example.org" },
    { name: "tags", label: "Tags", placeholder: "orders, vip" },
    { name: "batch", label: "Batch" },
    { name: "stream", label: "Stream" },
    { name: "priority", label: "Priority", placeholder: "normal" },
  ];
  const result = await edit({
    title: "Try the routes",
    note: "Nothing is sent and nothing is stored.",
    action: "Try",
    fields: form,
    save: ({ to, tags, ...body }) => post("/v1/routes/try", { ...body, to: split(to), tags: split(tags) }),
  });
  if (result) await ask("Which account would send", () => html`<${Trial} result=${result} />`);
}

export default resource({
  title: "Routes",
  what: "route",
  path: "/v1/routes",
  at: (row) => url`/v1/routes/${row.id}`,
  columns,
  fields,
  versioned: true,
  preset: { active: true },
  tools: () => html`<${Button} onClick=${() => tryIt()}>Try a message<//>`,
  removal: (row) => `Mail that matches ${row.id} then takes the next route that matches, or the default account.`,
  empty: "Without routes, mail that names no account is sent by the default account.",
});
