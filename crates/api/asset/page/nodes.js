// The processes that share the database.

import { html } from "../vendor/preact.js";
import { Badge } from "../part/badge.js";
import { resource } from "../part/resource.js";
import { Moment } from "../part/time.js";

const columns = [
  { head: "Node", cell: (row) => html`${row.name}${row.is_self && html` <span class="muted">(this one)</span>`}` },
  { head: "State", cell: (row) => html`<${Badge} status=${row.status} />` },
  { head: "Address", cell: (row) => row.address },
  { head: "Version", cell: (row) => row.version },
  { head: "Started", cell: (row) => html`<${Moment} at=${row.started_at} />` },
  { head: "Heartbeat", cell: (row) => html`<${Moment} at=${row.last_beat_at} />` },
];

export default resource({ title: "Nodes", path: "/v1/nodes", columns, every: 3_000 });
