// DKIM: keys that sign the mail of a domain, and the records to publish for them.

import { html } from "../vendor/preact.js";
import { url } from "../api.js";
import { Switched } from "../part/badge.js";
import { Copy } from "../part/button.js";
import { ask } from "../part/dialog.js";
import { resource, switching } from "../part/resource.js";
import { spellings } from "../part/spelling.js";
import { Moment } from "../part/time.js";

const at = (row) => url`/v1/dkim/${row.domain}/${row.selector}`;

const publish = (row) =>
  ask(
    "Publish this record",
    () => html`
    <p>Receivers cannot verify what the key signs before this TXT record is in the DNS of <strong>
      ${row.domain}</strong>:</p>
    <h3>Name</h3><p class="secret"><code>${row.dns_name}</code><${Copy} text=${row.dns_name}
      label="Copy the name" /></p>
    <h3>Value</h3><p class="secret"><code>${row.dns_record}</code><${Copy} text=${row.dns_record}
      label="Copy the value" /></p>
  `,
  );

const columns = [
  { head: "Domain", cell: (row) => spellings(row.domain, row.domain_unicode) },
  { head: "Selector", cell: (row) => row.selector },
  { head: "Algorithm", cell: (row) => row.algorithm },
  { head: "State", cell: (row) => html`<${Switched} on=${row.active} />` },
  { head: "Made", cell: (row) => html`<${Moment} at=${row.created_at} />` },
];

const fields = () => [
  { name: "domain", label: "Domain", required: true, hint: "The one in your From addresses." },
  { name: "selector", label: "Selector", hint: "Made of the month when empty." },
  {
    name: "algorithm",
    label: "Algorithm",
    kind: "choice",
    options: [
      ["rsa", "RSA, which every receiver verifies"],
      ["ed25519", "Ed25519"],
    ],
  },
];

export default resource({
  title: "Signing keys",
  what: "signing key",
  path: "/v1/dkim",
  at,
  rowKey: (row) => `${row.domain}/${row.selector}`,
  columns,
  fields,
  preset: { algorithm: "rsa" },
  fixed: true,
  created: publish,
  acts: [
    { name: "DNS record", scope: "read", run: async (row) => void (await publish(row)) },
    ...switching(at, (row) => row.active),
  ],
  removal: () => "It cannot be had back. Leave its record published until the mail it signed has arrived, a few days.",
  empty: "A signing key lets receivers verify that mail is from your domain (DKIM).",
});
