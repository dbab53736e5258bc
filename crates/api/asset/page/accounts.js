// The relays that mail goes out by.

import { html } from "../vendor/preact.js";
import { patch, post, url } from "../api.js";
import { PRESET, accountBody, accountFields } from "../part/account_fields.js";
import { Badge, Switched } from "../part/badge.js";
import { resource, switching } from "../part/resource.js";
import { showSteps } from "../part/steps.js";
import { under } from "../part/table.js";
import { When } from "../part/time.js";
import { link } from "../route.js";

const at = (row) => url`/v1/accounts/${row.id}`;
const limits = ({ per_minute, per_hour, per_day }) =>
  [
    [per_minute, "minute"],
    [per_hour, "hour"],
    [per_day, "day"],
  ]
    .filter(([number]) => number > 0)
    .map(([number, unit]) => `${number} a ${unit}`)
    .join(", ");

const columns = [
  { head: "Account", cell: (row) => html`<a href=${link(`accounts/${encodeURIComponent(row.id)}`)}>${row.id}</a>` },
  { head: "Kind", cell: (row) => html`${row.kind}${row.pec && html` <${Badge} status="PEC" />`}` },
  {
    head: "Goes to",
    cell: (row) => (row.host ? html`<span class="break">${row.host}:${row.port}</span>` : (row.region ?? row.endpoint)),
  },
  { head: "Limits", cell: (row) => limits(row.limits) },
  {
    head: "State",
    cell: ({ suspended, circuit }) =>
      html`<${Switched} on=${!suspended} />${circuit?.state === "open" &&
        html` <${Badge} status="circuit open" tone="bad" />
          ${under(html`${circuit.reason || circuit.code}; tried again <${When} at=${circuit.until} past="soon" />`)}`}`,
  },
];

export default resource({
  title: "Accounts",
  what: "account",
  path: "/v1/accounts",
  at,
  columns,
  fields: accountFields,
  preset: PRESET,
  every: 5_000,
  create: (body) => post("/v1/accounts", accountBody(body)),
  change: (row, body) => patch(at(row), accountBody(body, row)),
  trial: async (row) => showSteps(row.id, await post(`${at(row)}/test`)),
  acts: [
    { name: "Test", run: async (row) => void (await showSteps(row.id, await post(`${at(row)}/test`))) },
    ...switching(at, (row) => !row.suspended),
  ],
  removal: (row) => `The account ${row.id} is gone for good. This is refused while mail waits for it.`,
  empty: "An account says how mail leaves: an SMTP relay, a provider, or the sandbox.",
});
