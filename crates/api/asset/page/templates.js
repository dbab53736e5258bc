// Mails with holes in them.

import { html } from "../vendor/preact.js";
import { url } from "../api.js";
import { resource } from "../part/resource.js";
import { under } from "../part/table.js";
import { Moment } from "../part/time.js";
import { go, link } from "../route.js";

const page = (row) => `templates/${encodeURIComponent(row.name)}`;

const columns = [
  { head: "Template", cell: (row) => html`<a href=${link(page(row))}>${row.name}</a>` },
  {
    head: "Subject",
    kind: "wide",
    cell: (row) => html`${row.subject}${under(row.description)}`,
  },
  { head: "Language", cell: (row) => row.locale ?? "" },
  { head: "Parts", cell: (row) => row.parts.join(", ") },
  { head: "Version", kind: "num", cell: (row) => row.version },
  { head: "Changed", cell: (row) => html`<${Moment} at=${row.created_at} />` },
];

const fields = () => [
  { name: "name", label: "Name", required: true },
  { name: "description", label: "What it is for" },
  { name: "subject", label: "Subject", wide: true, placeholder: "Welcome, {{ name }}" },
  { name: "html", label: "HTML", kind: "area", rows: 8, placeholder: "<p>Hello {{ name }}</p>" },
  { name: "sample", label: "Sample variables (JSON)", kind: "json" },
];

export default resource({
  title: "Templates",
  what: "template",
  path: "/v1/templates",
  at: (row) => url`/v1/templates/${row.name}`,
  rowKey: (row) => row.name,
  columns,
  fields,
  fixed: true,
  created: (row) => go(page(row)),
  removal: (row) => `The template ${row.name} is gone with all its versions.`,
  empty: html`A template has holes such as <code>{{ name }}</code> that a message fills in.`,
});
