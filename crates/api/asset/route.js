// Where one is: the part of the address behind `#`, as a path and its parameters. `#/messages/ID?tab=text`. For who has
// several tenants, the tenant comes first, so that an address shows the same to everyone who opens it:
// `#/t/acme/messages/ID`.

import { currentTenant, hasTenants, withQuery } from "./api.js";

/** The pages: address, file under page/, title, and what a key must be allowed to do to be shown it. */
export const ROUTES = [
  ["", "overview", "Overview", "read"],
  ["send", "send", "Send a mail", "send"],
  ["messages", "messages", "Messages", "read"],
  ["messages/:id", "message", "Message", "read"],
  ["inbox", "inbox", "Sandbox inbox", "read"],
  ["dead-letters", "dead_letters", "Dead letters", "read"],
  ["bulk-actions", "bulk_actions", "Bulk actions", "read"],
  ["accounts", "accounts", "Accounts", "read"],
  ["accounts/:id", "account", "Account", "read"],
  ["batches", "batches", "Batches", "read"],
  ["templates", "templates", "Templates", "read"],
  ["templates/:name", "template", "Template", "read"],
  ["recipients", "recipients", "Recipients", "read"],
  ["streams", "streams", "Streams", "read"],
  ["suppressions", "suppressions", "Suppressions", "read"],
  ["domains", "domains", "Domains", "read"],
  ["signing-keys", "signing_keys", "Signing keys", "read"],
  ["mailboxes", "mailboxes", "Mailboxes", "read"],
  ["mailboxes/:id", "mailbox", "Mailbox", "read"],
  ["routes", "routes", "Routes", "read"],
  ["rules", "rules", "Rules", "read"],
  ["inbound", "inbound", "Inbound mail", "read"],
  ["inbound/:id", "inbound_mail", "Inbound mail", "read"],
  ["contacts", "contacts", "Contacts", "read"],
  ["webhooks", "webhooks", "Webhooks", "read"],
  ["webhooks/:id", "webhook", "Webhook", "read"],
  ["outbox", "outbox", "Outbox sources", "read"],
  ["tenants", "tenants", "Tenants", "admin"],
  ["tenants/:id", "tenant", "Tenant", "admin"],
  ["settings", "tenant", "Settings", "read"],
  ["nodes", "nodes", "Nodes", "admin"],
  ["audit", "audit", "Audit log", "admin"],
  ["users", "users", "Users", "users"],
  ["sessions", "sessions", "Where you are signed in", "person"],
  ["passkeys", "passkeys", "Passkeys", "person"],
].map(([path, file, title, scope]) => ({ path, file, title, scope }));

/** What the menu shows, in groups. */
export const MENU = [
  ["", ["", "messages", "send", "inbox", "dead-letters", "bulk-actions"]],
  ["Sending", ["accounts", "routes", "batches", "templates", "recipients", "streams", "suppressions", "domains", "signing-keys"]],
  ["Receiving", ["mailboxes", "rules", "inbound", "contacts"]],
  ["Connected", ["webhooks", "outbox"]],
  ["Operating", ["settings", "tenants", "users", "nodes", "audit", "sessions", "passkeys"]],
];

const inTenant = () => (hasTenants() ? `t/${encodeURIComponent(currentTenant())}/` : "");
/** The address of a page, in the tenant that is looked at: link("messages", {status: "failed"}). */
export const link = (path, query) => withQuery(`#/${inTenant()}${path}`, query);
export const go = (path, query) => (location.hash = link(path, query));
/** Changes the parameters of where one is, without a step in the browser's history. */
export const refine = (path, query) => history.replaceState(null, "", link(path, query));

/** Changes some parameters of where one is, without a step in the browser's history. */
export function remember(changes) {
  const { key, query } = here();
  refine(key, { ...query, ...changes });
}

/** The page that the address names: `{route, tenant, params, query, key}`; no route where there is none. */
export function here() {
  const [whole, search] = location.hash.replace(/^#\/?/, "").split("?");
  const [, named, path] = whole.match(/^(?:t\/([^/]+)(?:\/|$))?(.*)$/);
  const tenant = named && decoded(named);
  const parts = path.split("/").map(decoded);
  const query = Object.fromEntries(new URLSearchParams(search));
  for (const route of ROUTES) {
    const wanted = route.path.split("/");
    if (wanted.length !== parts.length) continue;
    if (!wanted.every((part, place) => part === parts[place] || (part.startsWith(":") && parts[place]))) continue;
    const params = Object.fromEntries(
      wanted.flatMap((part, place) => (part.startsWith(":") ? [[part.slice(1), parts[place]]] : [])),
    );
    return { route, tenant, params, query, key: path };
  }
  return { tenant, params: {}, query, key: path };
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
