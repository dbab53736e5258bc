// Kinds of mail that readers can leave one by one, and how readers and their providers take them.

import { html } from "../vendor/preact.js";
import { get, url } from "../api.js";
import { Badge } from "../part/badge.js";
import { useLoad } from "../part/load.js";
import { resource } from "../part/resource.js";
import { under } from "../part/table.js";

/** Above these shares of the mail sent, Gmail and Yahoo hold mail back. */
const COMPLAINTS_MAX = 0.001;
const BOUNCES_MAX = 0.05;

const percent = (rate) => (rate === null ? "–" : `${(rate * 100).toFixed(rate < 0.01 ? 2 : 1)} %`);

/** The figures of the last thirty days. */
function Figures({ row }) {
  const { data, error } = useLoad(
    (signal) => get(url`/v1/streams/${row.id}/statistics`, { by: "day" }, signal),
    [row.id],
  );
  if (error) return html`<span class="error">${error.message}</span>`;
  if (!data) return "…";
  const { sent, complaint_rate, bounce_rate, unsubscribe_rate } = data.total;
  const isBad = complaint_rate > COMPLAINTS_MAX || bounce_rate > BOUNCES_MAX;
  return html`${sent} sent${isBad && html`${" "}<${Badge} status="too many" />`}${under(
    `${percent(complaint_rate)} complained, ${percent(bounce_rate)} bounced, ${percent(unsubscribe_rate)} left`,
  )}`;
}

const columns = [
  { head: "Stream", kind: "wide", cell: (row) => html`${row.name || row.id}${under(row.description)}` },
  { head: "Id", cell: (row) => row.id },
  { head: "Readers can leave", cell: (row) => (row.unsubscribe ? "yes" : "no") },
  { head: "Last 30 days", cell: (row) => html`<${Figures} row=${row} />` },
];

const fields = (row) =>
  [
    !row && { name: "id", label: "Id", required: true, hint: "What messages name as their stream." },
    { name: "name", label: "Name", hint: "What readers see." },
    { name: "description", label: "What it is for", wide: true },
    { name: "unsubscribe", label: "Readers can leave it by a link", kind: "check" },
    { name: "unsubscribe_mailto", label: "Address to leave it by mail", hint: "Of a watched mailbox." },
  ].filter(Boolean);

export default resource({
  title: "Streams",
  what: "stream",
  path: "/v1/streams",
  at: (row) => url`/v1/streams/${row.id}`,
  columns,
  fields,
  versioned: true,
  removal: (row) => `Readers who left ${row.name || row.id} stay unsubscribed.`,
  empty: "A stream is a kind of mail, such as a newsletter, that readers can leave without losing the rest.",
});
