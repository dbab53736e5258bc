// Who changed what, when, by which request.

import { html, useState } from "../vendor/preact.js";
import { withQuery } from "../api.js";
import { Filters } from "../part/filters.js";
import { Icon } from "../part/icon.js";
import { Resource } from "../part/resource.js";
import { Moment } from "../part/time.js";

const FILTERS = [{ name: "tenant", label: "Tenant" }];

const columns = [
  { head: "When", cell: (row) => html`<${Moment} at=${row.at} />` },
  { head: "Who", cell: (row) => row.actor },
  { head: "What", cell: (row) => html`<code>${row.action}</code>` },
  { head: "To", cell: (row) => html`<span class="break">${row.target}</span>` },
  { head: "Tenant", cell: (row) => row.tenant },
  {
    head: "Particulars",
    kind: "wide",
    cell: (row) => row.detail && html`<code class="break small">${JSON.stringify(row.detail)}</code>`,
  },
];

export default function Audit() {
  const [query, setQuery] = useState({ tenant: "" });
  const all = withQuery("/v1/audit", { format: "jsonl", ...query });
  const tools = () => html`<a class="button" href=${all} download="audit.jsonl"><${Icon} name="down" />Export</a>`;
  return html`<${Resource} title="Audit log" path="/v1/audit" columns=${columns} query=${query} tools=${tools}
    intro=${html`<${Filters} label="Filter the audit log" fields=${FILTERS} value=${query} set=${setQuery} />`}
    empty="Every change to tenants, accounts, keys and the rest is written here." />`;
}
