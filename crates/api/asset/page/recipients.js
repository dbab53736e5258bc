// The directory of the people that the tenant writes to.

import { html, useState } from "../vendor/preact.js";
import { url } from "../api.js";
import { Filters } from "../part/filters.js";
import { Resource } from "../part/resource.js";
import { spellings } from "../part/spelling.js";
import { Moment } from "../part/time.js";

const FILTERS = [
  { name: "address", label: "Address" },
  { name: "external_id", label: "Your id" },
];

const columns = [
  { head: "Name", cell: (row) => row.name },
  { head: "Address", cell: (row) => html`<span class="break">${spellings(row.address, row.address_unicode)}</span>` },
  { head: "Your id", cell: (row) => row.external_id },
  { head: "Personal number", cell: (row) => row.personal_number },
  { head: "Changed", cell: (row) => html`<${Moment} at=${row.updated_at} />` },
];

const fields = (row) => [
  { name: "address", label: "Address", required: true },
  { name: "name", label: "Name" },
  { name: "external_id", label: "Your id" },
  { name: "locale", label: "Language", hint: "Such as de-AT; the tenant's when empty." },
  {
    name: "personal_number",
    label: "Personal number",
    kind: "secret",
    hint: row?.personal_number ? `One is set (${row.personal_number}).` : "Encrypted at rest, shown masked.",
  },
];

const about = {
  title: "Recipients",
  what: "recipient",
  path: "/v1/recipients",
  at: (row) => url`/v1/recipients/${row.id}`,
  columns,
  fields,
  versioned: true,
  removal: (row) =>
    `${row.name || row.address} leaves this list. Mail that names this recipient is not sent any more, also none that
      waits already. The entry is kept, marked as deleted, and the address itself may still be written to.`,
  empty: "Messages may name a recipient instead of an address.",
};

export default function Recipients() {
  const [query, setQuery] = useState({ address: "", external_id: "" });
  // Half an address is refused by the server: it is asked once it is whole.
  const asked = { ...query, address: /.@.+\../.test(query.address) ? query.address : "" };
  return html`<${Resource} ...${about} query=${asked}
    intro=${html`<${Filters} label="Filter recipients" fields=${FILTERS} value=${query} set=${setQuery} />`} />`;
}
