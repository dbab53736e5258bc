// The webhooks that get the events of messages.

import { html } from "../vendor/preact.js";
import { get, url } from "../api.js";
import { Switched } from "../part/badge.js";
import { Conduct, LOOK_MS } from "../part/conduct.js";
import { secretOnce } from "../part/dialog.js";
import { useLoad } from "../part/load.js";
import { Resource } from "../part/resource.js";
import { under } from "../part/table.js";
import { webhookFields } from "../part/webhook_fields.js";
import { link } from "../route.js";

const columns = (behind) => [
  {
    head: "Calls",
    kind: "wide",
    cell: (row) =>
      html`<a class="break" href=${link(`webhooks/${encodeURIComponent(row.id)}`)}>${row.url ?? row.id}</a>
        ${under(row.description)}`,
  },
  {
    head: "Events",
    cell: (row) =>
      row.events.includes("*") ? "all" : row.events.length > 3 ? `${row.events.length} kinds` : row.events.join(", "),
  },
  {
    head: "State",
    cell: (row) =>
      html`<${Switched} on=${row.active} words=${["active", "off"]} />${under(row.disabled_reason)}
        <${Conduct} webhook=${row} behind=${behind.some(({ id }) => id === row.id)} />`,
  },
];

const about = {
  title: "Webhooks",
  what: "webhook",
  path: "/v1/webhooks",
  at: (row) => url`/v1/webhooks/${row.id}`,
  fields: webhookFields,
  preset: { events: ["*"], form: "postway", active: true },
  fixed: true,
  every: LOOK_MS,
  created: (made) =>
    secretOnce("The webhook's secret", "Calls are signed with it. It is shown this once.", made.secret),
  empty: "A webhook is called whenever something happens to a message.",
};

export default function Webhooks() {
  const now = useLoad((signal) => get("/v1/overview", {}, signal), [], LOOK_MS);
  const behind = (now.data?.subscribers ?? []).filter(({ due }) => due);
  return html`<${Resource} ...${about} columns=${columns(behind)} />`;
}
