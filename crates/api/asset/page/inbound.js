// Mail that came in, and what was done with it.

import { html, useState } from "../vendor/preact.js";
import { get, post, url } from "../api.js";
import { Badge } from "../part/badge.js";
import { Filters } from "../part/filters.js";
import { useLoad } from "../part/load.js";
import { Resource } from "../part/resource.js";
import { under } from "../part/table.js";
import { Moment } from "../part/time.js";
import { link, refine } from "../route.js";

const STATES = ["", "received", "routing", "routed", "no_match", "gone", "waiting", "dead"];
const KINDS = ["", "bounce", "delay", "success", "complaint", "pec", "auto_reply", "domain_report", "ordinary"];

const filters = (mailboxes) => [
  { name: "mailbox", label: "Mailbox", kind: "choice", options: ["", ...mailboxes] },
  { name: "status", label: "State", kind: "choice", options: STATES },
  { name: "kind", label: "Kind", kind: "choice", options: KINDS },
];

const columns = [
  { head: "State", cell: (row) => html`<${Badge} status=${row.status} />` },
  { head: "Kind", cell: (row) => row.kind && html`<${Badge} status=${row.kind} />` },
  {
    head: "Mail",
    kind: "wide",
    cell: (row) => html`<a href=${link(`inbound/${row.id}`)}>${row.subject || "(no subject)"}</a>
      ${under([row.from, row.error].filter(Boolean).join(" · "))}`,
  },
  { head: "Mailbox", cell: (row) => html`<a href=${link(`mailboxes/${encodeURIComponent(row.mailbox)}`)}>${row.mailbox}</a>` },
  { head: "Tries", kind: "num", cell: (row) => row.tries },
  { head: "Arrived", cell: (row) => html`<${Moment} at=${row.arrived_at ?? row.created_at} />` },
];

const at = (row) => url`/v1/inbound/${row.id}`;
const acts = [
  {
    name: "Replay",
    when: (row) => ["dead", "no_match"].includes(row.status),
    run: (row) => post(`${at(row)}/replay`),
  },
  {
    name: "Resolve",
    when: (row) => row.follow_up && !row.resolved_at,
    run: (row) => post(`${at(row)}/resolve`),
  },
];

export default function Inbound({ query }) {
  const [asked, setAsked] = useState({
    mailbox: query.mailbox ?? "",
    status: query.status ?? "",
    kind: query.kind ?? "",
  });
  const mailboxes = useLoad((signal) => get("/v1/mailboxes", {}, signal));
  const known = new Set([...(mailboxes.data?.data ?? []).map(({ id }) => id), query.mailbox].filter(Boolean));
  const set = (next) => {
    setAsked(next);
    refine("inbound", next);
  };
  return html`<${Resource} title="Inbound mail" path="/v1/inbound" columns=${columns} query=${asked} acts=${acts}
    intro=${html`<${Filters} label="Filter inbound mail" fields=${filters(known)} value=${asked} set=${set} />`}
    empty="What comes into the mailboxes that are watched shows here." />`;
}
