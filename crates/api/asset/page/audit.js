// Who changed what, when, by which request.

import { html, useState } from "../vendor/preact.js";
import { withQuery } from "../api.js";
import { Filters } from "../part/filters.js";
import { Icon } from "../part/icon.js";
import { Resource } from "../part/resource.js";
import { Moment } from "../part/time.js";
import { refine } from "../route.js";

const FILTERS = [
  { name: "tenant", label: "Tenant" },
  { name: "actor", label: "Who", placeholder: "user:ada" },
  { name: "action", label: "What", placeholder: "account." },
  { name: "target", label: "To" },
];

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

export default function Audit({ query: given }) {
  const [query, setQuery] = useState(() => Object.fromEntries(FILTERS.map(({ name }) => [name, given[name] ?? ""])));
  const set = (next) => {
    setQuery(next);
    refine("audit", next);
  };
  const all = withQuery("/v1/audit", { format: "jsonl", tenant: query.tenant });
  const tools = () => html`<a class="button" href=${all} download="audit.jsonl"><${Icon} name="down" />Export</a>`;
  return html`<${Resource} title="Audit log" path="/v1/audit" columns=${columns} query=${query} tools=${tools}
    intro=${html`<${Filters} label="Filter the audit log" fields=${FILTERS} value=${query} set=${set} />`}
    empty="Every change to tenants, accounts, keys and the rest is written here." />`;
}
