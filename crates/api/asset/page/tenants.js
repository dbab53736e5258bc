// Whose mail it is.

import { html } from "../vendor/preact.js";
import { chooseTenant, currentTenant, url, withQuery } from "../api.js";
import { Switched } from "../part/badge.js";
import { resource, switching } from "../part/resource.js";
import { Moment } from "../part/time.js";
import { go, link } from "../route.js";

/** The one that the server was set up with; it cannot be deleted. */
const FIRST = "default";

const at = (row) => url`/v1/tenants/${row.id}`;

const columns = [
  { head: "Tenant", cell: (row) => html`<a href=${link(`tenants/${encodeURIComponent(row.id)}`)}>${row.id}</a>` },
  { head: "Name", cell: (row) => row.name },
  { head: "Default account", cell: (row) => row.default_account },
  { head: "Weight", kind: "num", cell: (row) => row.weight },
  { head: "State", cell: (row) => html`<${Switched} on=${!row.suspended} />` },
  { head: "Made", cell: (row) => html`<${Moment} at=${row.created_at} />` },
];

const fields = () => [
  { name: "id", label: "Id", required: true },
  { name: "name", label: "Name", required: true },
];

const changed = () => dispatchEvent(new Event("tenantschange"));

const removal = (row) =>
  row.id !== FIRST && {
    text: `All that is of the tenant ${row.id} is deleted: its accounts, templates, keys and mail. What waits is deleted
      as well, and is not sent. This cannot be undone, and the id cannot be used again.`,
    path: withQuery(at(row), { confirm: row.id }),
    typed: row.id,
    done: () => {
      changed();
      if (row.id !== currentTenant()) return;
      chooseTenant(FIRST);
      go("tenants");
    },
  };

export default resource({
  title: "Tenants",
  what: "tenant",
  path: "/v1/tenants",
  scope: "admin",
  at,
  columns,
  fields,
  fixed: true,
  created: changed,
  acts: switching(at, (row) => !row.suspended),
  removal,
});
