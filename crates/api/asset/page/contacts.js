// Names and the addresses behind them, which rules look up.

import { html } from "../vendor/preact.js";
import { url } from "../api.js";
import { resource } from "../part/resource.js";
import { Moment } from "../part/time.js";

const columns = [
  { head: "Name", cell: (row) => row.name },
  { head: "Addresses", kind: "wide", cell: (row) => row.addresses.join(", ") },
  { head: "Id", cell: (row) => row.id },
  { head: "Changed", cell: (row) => html`<${Moment} at=${row.updated_at} />` },
];

const fields = (row) =>
  [
    !row && { name: "id", label: "Id", hint: "One is made when empty." },
    { name: "name", label: "Name", required: true },
    { name: "addresses", label: "Addresses", kind: "list", hint: "One a line." },
  ].filter(Boolean);

export default resource({
  title: "Contacts",
  what: "contact",
  path: "/v1/contacts",
  at: (row) => url`/v1/contacts/${row.id}`,
  columns,
  fields,
  versioned: true,
  removal: (row) => `Rules no longer find ${row.name}.`,
  empty: "A rule may send mail on to a contact by its name.",
});
