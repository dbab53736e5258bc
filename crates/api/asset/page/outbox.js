// Databases of applications whose outbox tables are read. They are set in the server's configuration, so this only shows.

import { html } from "../vendor/preact.js";
import { Badge } from "../part/badge.js";
import { resource } from "../part/resource.js";
import { under } from "../part/table.js";
import { Moment, count, span } from "../part/time.js";

const columns = [
  { head: "Source", cell: (row) => html`${row.name}${under(row.database)}` },
  { head: "Tenant", cell: (row) => row.tenant },
  { head: "Kind", cell: (row) => row.kind },
  { head: "State", cell: (row) => html`<${Badge} status=${row.status} />${under(row.error)}` },
  {
    head: "Waiting",
    kind: "num",
    cell: (row) =>
      row.waiting === null ? "–" : html`${count(row.waiting)}${row.waiting > 0 && under(`for ${span(row.lag_seconds)}`)}`,
  },
  { head: "Accepted", kind: "num", cell: (row) => count(row.accepted) },
  { head: "Refused", kind: "num", cell: (row) => count(row.invalid) },
  { head: "Last taken", cell: (row) => html`<${Moment} at=${row.last_taken_at} />` },
];

export default resource({
  title: "Outbox sources",
  path: "/v1/outbox",
  rowKey: (row) => row.name,
  columns,
  every: 3_000,
  empty: html`An application may write mails into a table of its own database, in its own transaction. Sources are set as
    ${" "}<code>[outbox.NAME]</code> in postway.toml.`,
});
