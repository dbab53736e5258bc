// The people who operate the gateway: roles, tenants, invitations, and where they are signed in.

import { html } from "../vendor/preact.js";
import { patch, post, remove, session, url } from "../api.js";
import { secretOnce } from "../part/dialog.js";
import { Resource } from "../part/resource.js";
import { Moment } from "../part/time.js";
import { toast } from "../part/toast.js";

const ROLES = [
  ["viewer", "viewer: reads"],
  ["operator", "operator: acts on mail"],
  ["manager", "manager: changes what a tenant has"],
  ["admin", "admin: manages users and keys"],
];

const path = (row) => url`/v1/users/${row.name}`;

const ways = (row) =>
  [row.has_password && "password", row.passkeys > 0 && "passkey", row.issuer && "provider"].filter(Boolean).join(", ") || "not yet";

const columns = [
  { head: "Name", cell: (row) => html`${row.name}${row.display_name && html` <span class="muted">${row.display_name}</span>`}` },
  { head: "Role", cell: (row) => row.role },
  { head: "Tenants", kind: "wide", cell: (row) => row.tenants?.join(", ") ?? "all" },
  { head: "Signs in by", cell: (row) => (row.disabled_at ? html`disabled <${Moment} at=${row.disabled_at} />` : ways(row)) },
  { head: "Changed", cell: (row) => html`<${Moment} at=${row.updated_at} />` },
];

const fields = (row) =>
  [
    !row && { name: "name", label: "Name", required: true, hint: "What the user signs in with. It never changes." },
    { name: "display_name", label: "Display name" },
    { name: "email", label: "Address", hint: "The first sign-in at your provider finds the user by it." },
    { name: "role", label: "Role", kind: "choice", options: ROLES, required: true },
    { name: "tenants", label: "Tenants", kind: "list", hint: "One a line; * for all of them." },
    { name: "read_content", label: "Reads bodies where a tenant guards them", kind: "check" },
  ].filter(Boolean);

/** A star means all tenants, which the API calls null. */
const meant = (body) => (body.tenants?.includes("*") ? { ...body, tenants: null } : body);

async function invite(row) {
  const made = await post(`${path(row)}/invitation`);
  await secretOnce(
    `Invitation of ${row.name}`,
    "Whoever opens this link chooses how the user signs in, once and within seven days. Pass it on in private.",
    `${location.origin}${made.path}`,
  );
}

const acts = [
  { name: "Invite", scope: "users", when: (row) => !row.disabled_at, run: invite },
  {
    name: "Sign out",
    scope: "users",
    run: async (row) => {
      await remove(`${path(row)}/sessions`);
      toast(`${row.name} is signed out everywhere`);
    },
  },
  {
    name: "Disable",
    scope: "users",
    when: (row) => !row.disabled_at && row.name !== session().user,
    run: (row) => patch(path(row), { disabled: true }),
  },
  { name: "Enable", scope: "users", when: (row) => row.disabled_at, run: (row) => patch(path(row), { disabled: false }) },
];

export default function Users() {
  return html`<${Resource} title="Users" what="user" path="/v1/users" at=${path} columns=${columns} fields=${fields}
    scope="users" versioned acts=${acts} preset=${{ role: "operator" }}
    create=${(body) => post("/v1/users", { tenants: [], ...meant(body) })}
    change=${(row, body) => patch(path(row), meant(body))} created=${invite}
    removal=${(row) => row.name !== session().user && `${row.name} is signed out everywhere, and the name stays in the audit log.`}
    empty="Until there are some, everybody signs in with a key, and the audit log cannot tell them apart." />`;
}
