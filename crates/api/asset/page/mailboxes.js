// Mailboxes that are watched: for bounces, for receipts of certified mail, for mail to send on.

import { html } from "../vendor/preact.js";
import { may, post, url } from "../api.js";
import { Badge, Switched } from "../part/badge.js";
import { resource, switching } from "../part/resource.js";
import { showSteps } from "../part/steps.js";
import { under } from "../part/table.js";
import { Moment, When, count } from "../part/time.js";
import { link } from "../route.js";

const at = (row) => url`/v1/mailboxes/${row.id}`;

const columns = [
  {
    head: "Mailbox",
    cell: (row) => html`<a href=${link(`mailboxes/${encodeURIComponent(row.id)}`)}>${row.id}</a>${under(row.description)}`,
  },
  { head: "Where", cell: (row) => html`<span class="break">${
        row.addresses.length ? row.addresses.join(", ") : `${row.username} at ${row.host}, ${row.folder}`
      }</span>` },
  { head: "For", cell: (row) => row.roles.join(", ") },
  {
    head: "State",
    cell: (row) =>
      html`<${Switched} on=${row.active} />
        ${row.error && html` <${Badge} status="failed" />
          ${under(html`${row.error}, since <${When} at=${row.error_since} />`)}`}`,
  },
  { head: "Behind", kind: "num", cell: (row) => (row.lag == null ? "–" : count(row.lag)) },
  { head: "Read", cell: (row) => html`<${Moment} at=${row.last_scanned_at} />` },
];

const ROLES = [
  ["bounces", "bounces and complaints"],
  ["forward", "mail that rules send on"],
  ["pec", "receipts of certified mail"],
  ["domain_reports", "DMARC and TLS reports about your domains"],
  ["events", "ordinary mail that webhooks are told of"],
];

const fields = (row) =>
  [
    !row && { name: "id", label: "Id", hint: "One is made when empty." },
    { name: "description", label: "What it is for" },
    { name: "host", label: "IMAP server", hint: "None for a mailbox that has addresses at the reception." },
    { name: "port", label: "Port", kind: "number", hint: "993, or 143 without implicit TLS." },
    { name: "tls", label: "TLS", kind: "choice", options: ["implicit", "starttls", "none"] },
    { name: "username", label: "User name" },
    may("admin") && {
      name: "addresses",
      label: "Addresses at the reception",
      kind: "list",
      rows: 2,
      wide: false,
      hint: "Instead of a server: desk@in.example.com, *@in.example.com, @bounces.example.com.",
    },
    {
      name: "password",
      label: "Password",
      kind: "secret",
      hint: row?.password_set ? "One is set; fill in to replace it." : undefined,
    },
    {
      name: "token",
      label: "OAuth 2 token, in its place",
      kind: "secret",
      hint: row?.token_set ? "One is set." : undefined,
    },
    {
      name: "oauth",
      label: "OAuth 2, in the place of either (JSON)",
      kind: "json",
      rows: 3,
      placeholder: '{"preset": "microsoft", "grant": "refresh_token", "client_id": "…"}',
    },
    { name: "folder", label: "Folder" },
    { name: "roles", label: "For", kind: "checks", options: ROLES },
    { name: "poll_seconds", label: "Between looks", kind: "duration", hint: "Such as 30 s or 5 min." },
    { name: "mail_bytes_max", label: "Largest mail that is read, bytes", kind: "number" },
    { name: "attempts_max", label: "Tries before a mail is dead", kind: "number" },
    {
      name: "on_doubt",
      label: "Forwards that may have left or not",
      kind: "choice",
      options: [
        ["", "as the account says"],
        ["resend", "send again: perhaps twice"],
        ["hold", "hold: never twice"],
      ],
    },
    {
      name: "start",
      label: "Where watching begins (JSON)",
      kind: "json",
      rows: 2,
      hint: '"now", "beginning", {"newest": 100} or {"since": "2026-01-31T00:00:00Z"}',
    },
    { name: "proxy", label: "Proxy", placeholder: "socks5://proxy.example.com:1080" },
    { name: "proxy_password", label: "Proxy's password", kind: "secret" },
    { name: "ca_pem", label: "Further certificate authorities (PEM)", kind: "area", rows: 3 },
    may("admin") && { name: "all_tenants", label: "Reports in it may be about any tenant's messages", kind: "check" },
  ].filter(Boolean);

export default resource({
  title: "Mailboxes",
  what: "mailbox",
  path: "/v1/mailboxes",
  at,
  columns,
  fields,
  versioned: true,
  every: 5_000,
  preset: { tls: "implicit", folder: "INBOX", roles: ["bounces"], start: "now" },
  trial: async (row) => showSteps(row.id, await post(`${at(row)}/test`)),
  acts: [
    { name: "Test", run: async (row) => void (await showSteps(row.id, await post(`${at(row)}/test`))) },
    ...switching(at, (row) => row.active),
  ],
  removal: (row) =>
    `${row.id} is not watched any more. Its rules, and all that is kept of mail that came by it, are deleted here; what
      is in the mailbox itself stays there.`,
  empty: "A mailbox brings in bounces, receipts of certified mail, and mail that rules send on.",
});
