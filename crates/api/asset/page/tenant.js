// One tenant: its settings and its keys. `#/settings` is that of the selected tenant; its own key only reads
// them.

import { html, useState } from "../vendor/preact.js";
import { currentTenant, get, patch, post, remove, session, url } from "../api.js";
import { Badge, Switched } from "../part/badge.js";
import { Button } from "../part/button.js";
import { accounts } from "../part/controls.js";
import { confirm, edit, secretOnce } from "../part/dialog.js";
import { Form } from "../part/form.js";
import { Icon } from "../part/icon.js";
import { LastHours } from "../part/last_hour.js";
import { Loaded, useLoad } from "../part/load.js";
import { Past } from "../part/past.js";
import { Facts, Listing } from "../part/table.js";
import { Moment, count } from "../part/time.js";
import { toast } from "../part/toast.js";
import { link } from "../route.js";

const FIELDS = [
  { name: "name", label: "Name" },
  { name: "default_account", label: "Default account", kind: "known", load: accounts, hint: "For mail that names none." },
  { name: "weight", label: "Weight", kind: "number", hint: "Its share where tenants compete." },
  { name: "return_path", label: "Return path" },
  { name: "default_from", label: "Default sender" },
  { name: "bounce_domain", label: "Bounce domain" },
  { name: "feedback_id", label: "Feedback-ID" },
  { name: "locale", label: "Language of templates", hint: "For mail that names none: de, de-AT, zh-Hant." },
  { name: "id_header", label: "Field for the client's id", hint: "Such as X-Genro-Mail-ID." },
  {
    name: "report_retention_seconds",
    label: "Keep reported messages for",
    kind: "duration",
    hint: "As the gateway is set when empty: 7 d unless changed.",
  },
  { name: "unreported_retention_days", label: "Keep unreported ones, days", kind: "number", hint: "90 when empty." },
  { name: "content.subject_chars", label: "Longest subject, characters", kind: "number", also: ["content"] },
  { name: "content.html_bytes", label: "Largest HTML, bytes", kind: "number" },
  { name: "content.message_bytes", label: "Largest message, bytes", kind: "number" },
  {
    name: "large_files.policy",
    label: "Attachments too large to mail",
    kind: "choice",
    options: [
      ["reject", "refuse the message"],
      ["warn", "warn and send"],
      ["rewrite", "send a link"],
    ],
    also: ["large_files"],
  },
  { name: "large_files.above_bytes", label: "Too large above, bytes", kind: "number" },
  { name: "large_files.link_days", label: "Links work for, days", kind: "number" },
  { name: "callback_form", label: "Reports are written as", kind: "choice", options: ["event", "outbox", "batch"] },
  {
    name: "on_doubt",
    label: "Mail that may have left or not",
    kind: "choice",
    options: [
      ["", "send again: perhaps twice"],
      ["hold", "hold: never twice"],
    ],
  },
  { name: "daily_quota.messages", label: "Messages a day", kind: "number", hint: "Any number when empty. Days are those of UTC." },
  { name: "daily_quota.bytes", label: "Bytes a day", kind: "number" },
  { name: "daily_quota.recipients", label: "Recipients a day", kind: "number" },
  {
    name: "virus_policy",
    label: "Mail that the virus scanner could not scan",
    kind: "choice",
    options: [
      ["open", "passes"],
      ["closed", "waits"],
      ["off", "nothing is scanned"],
    ],
  },
  {
    name: "allowed_senders",
    label: "Allowed senders",
    kind: "list",
    hint: "Addresses, domains, *.example.com; one a line. Any when empty.",
  },
  { name: "bind_reply_to", label: "Reply-To must be an allowed sender, too", kind: "check" },
  { name: "guard_content", label: "Reading bodies takes the right read:content", kind: "check" },
  { name: "content.html_required", label: "Every composed message must have HTML", kind: "check" },
  { name: "content.auto_text", label: "Mail with HTML alone gets a text made of it", kind: "check" },
  { name: "auto_submitted", label: "Mail says that a program sent it", kind: "check" },
  { name: "test", label: "For tests: what the sandbox captures counts as sent", kind: "check" },
];

export default function Tenant({ params }) {
  const id = params.id ?? currentTenant();
  const path = session().admin ? url`/v1/tenants/${id}` : "/v1/tenant";
  const tenant = useLoad((signal) => get(path, {}, signal), [id]);
  const save = async (body) => {
    if (Object.keys(body).length) await patch(path, { ...body, version: tenant.data.version });
    toast("Saved");
    dispatchEvent(new Event("tenantschange"));
    tenant.reload();
  };
  return html`
    ${params.id && html`<p class="crumb"><a href=${link("tenants")}><${Icon} name="back" />Tenants</a></p>`}
    <${Loaded} from=${tenant}>
      ${(one) => html`
        <div class="title"><h1>${params.id ? one.name || one.id : `Settings of ${one.name || one.id}`}</h1>
          <${Switched} on=${!one.suspended} /></div>
        ${id === currentTenant() && html`<${Today} one=${one} />`}
        ${!session().admin && html`<${Shown} one=${one} />`}
        ${session().admin && html`<${Keys} path=${`${path}/keys`} />
        <section class="card"><h2>What it is called at</h2><${Remotes} one=${one} save=${save} /></section>
        <section class="card"><h2>Settings</h2><${Form} key=${one.version} fields=${FIELDS} value=${one} action="Save"
          onSubmit=${save} /></section>`}
      `}
    <//>
  `;
}

/** What it does now: its last day by hour, and how its mail stands. */
function Today({ one }) {
  const stands = [
    ["waiting", { waiting: true }],
    ["held", { held_by: "any" }],
    ["in doubt", { status: "in_doubt" }],
    ["failed", { status: "failed" }],
  ];
  const now = useLoad(
    (signal) => Promise.all(stands.map(([, filter]) => get("/v1/messages", { ...filter, limit: 1, count: true }, signal))),
    [one.id],
    15_000,
  );
  const many = ({ count: { messages, or_more: more } }) => `${count(messages)}${more ? "+" : ""}`;
  return html`<${LastHours} /><section class="card"><h2>Last 24 hours, by hour</h2><${Past} label="Last 24 hours, by hour" hours=${24} />
    ${now.data && html`<ul class="counts spaced">${stands.map(([name, filter], place) => html`<li>
      <a href=${link("messages", filter)}>${name} <strong>${many(now.data[place])}</strong></a></li>`)}</ul>`}</section>`;
}

function said(value) {
  if (Array.isArray(value)) return value.join(", ");
  return typeof value === "boolean" ? (value ? "yes" : "no") : value;
}
const at = (one, name) => name.split(".").reduce((part, key) => part?.[key], one);

/** The settings for those who may not change them. */
const Shown = ({ one }) => html`<${Facts} pairs=${[
  ["Id", html`<code class="break">${one.id}</code>`],
  ...FIELDS.map(({ name, label }) => [label, said(at(one, name))]),
  ...REMOTES.map(([name, title]) => [title, one[name]?.url]),
]} />`;

const REMOTES = [
  ["client_sync", "Delivery reports go to"],
  ["attachment_endpoint", "Attachments named by endpoint are fetched from"],
];

const remoteFields = (name) => {
  const by = (kind) => (held) => held[`${name}.auth.type`] === kind;
  return [
    { name: `${name}.url`, label: "Address", placeholder: "https://app.example.com", hint: "Empty: none." },
    { name: `${name}.path`, label: "Path under it" },
    {
      name: `${name}.auth.type`,
      label: "Signs in with",
      kind: "choice",
      options: [
        ["none", "nothing"],
        ["bearer", "a token"],
        ["basic", "name and password"],
      ],
    },
    { name: `${name}.auth.username`, label: "User name", when: by("basic") },
    { name: `${name}.auth.token`, label: "Token", kind: "secret", when: by("bearer") },
    { name: `${name}.auth.password`, label: "Password", kind: "secret", when: by("basic") },
  ];
};

function Remotes({ one, save }) {
  const modify = (name, title) => () =>
    edit({
      title,
      fields: remoteFields(name),
      value: one,
      save: (body) => save(body[name]?.url === null ? { [name]: null } : body),
    });
  return html`<ul class="choices">
    ${REMOTES.map(
      ([name, title]) =>
        html`<li><span>${title} ${one[name] ? html`<code class="break">${one[name].url}${one[name].path}</code>`
          : html`<span class="muted">nowhere</span>`}</span><${Button} onClick=${modify(name, title)}>Change<//></li>`,
    )}
  </ul>`;
}

const KEY_FIELDS = [
  { name: "name", label: "Name", hint: "Who uses it." },
  { name: "expires_at", label: "Expires", kind: "time" },
  { name: "send", label: "May send, cancel and retry", kind: "check", also: ["scopes"] },
  { name: "read", label: "May read", kind: "check" },
  { name: "manage", label: "May manage accounts, templates and the rest", kind: "check" },
  { name: "content", label: "May read bodies where that is a right of its own", kind: "check" },
  {
    name: "allow_ips",
    label: "Only from",
    kind: "list",
    rows: 2,
    hint: "Addresses and networks, one a line; anywhere when empty.",
  },
];

function Keys({ path }) {
  const [turn, setTurn] = useState(0);
  const make = async () => {
    const save = ({ send, read, manage, content, ...body }) =>
      post(path, {
        ...body,
        scopes: Object.entries({ send, read, manage, "read:content": content }).flatMap(([scope, on]) => (on ? [scope] : [])),
      });
    const made = await edit({
      title: "New key",
      fields: KEY_FIELDS,
      preset: { send: true, read: true },
      action: "Create",
      save,
    });
    if (!made) return;
    setTurn(turn + 1);
    await secretOnce("The new key", "It is shown this once.", made.key);
  };
  const revoke = async (row) => {
    if (
      !(await confirm({
        title: "Revoke this key?",
        text: `${row.name || row.prefix} opens nothing any more, and sessions signed in with it end.`,
        action: "Revoke",
        kind: "danger",
      }))
    )
      return;
    await remove(`${path}/${encodeURIComponent(row.id)}`);
    toast("Revoked");
    setTurn(turn + 1);
  };
  return html`<section class="card">
    <div class="title"><h2>Keys</h2><span class="grow"></span><${Button} kind="primary" icon="plus"
      onClick=${make}>New key<//></div>
    <${Listing} caption="Keys" path=${path} turn=${turn}
      empty=${html`<p class="muted">No keys: only the admin key opens this tenant.</p>`} columns=${[
      { head: "Key", cell: (row) => html`${row.name}<br /><code class="small">${row.prefix}</code>` },
      { head: "May", cell: (row) => row.scopes.join(", ") },
      { head: "From", cell: (row) => row.allow_ips.join(", ") || "anywhere" },
      { head: "Made by", cell: (row) => row.created_by ?? "" },
      { head: "Used", cell: (row) => html`<${Moment} at=${row.last_used_at} />` },
      { head: "Expires", cell: (row) => (row.expires_at ? html`<${Moment} at=${row.expires_at} />` : "never") },
      {
        head: "Actions",
        kind: "doing",
        cell: (row) =>
          row.revoked_at
            ? html`<${Badge} status="revoked" />`
            : html`<${Button} kind="danger" onClick=${() => revoke(row)}>Revoke<//>`,
      },
    ]} />
  </section>`;
}
