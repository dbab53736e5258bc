// Sending one mail by hand, for a try.

import { html } from "../vendor/preact.js";
import { get, may, post } from "../api.js";
import { Form } from "../part/form.js";
import { useLoad } from "../part/load.js";
import { toast } from "../part/toast.js";
import { go } from "../route.js";

const fields = (accounts) => [
  { name: "from", label: "From", placeholder: "Shop <shop@example.com>", required: true },
  { name: "to", label: "To", kind: "list", rows: 2, hint: "One address a line.", required: true },
  { name: "subject", label: "Subject", wide: true },
  { name: "text", label: "Text", kind: "area", rows: 6 },
  { name: "html", label: "HTML", kind: "area", rows: 6 },
  accounts
    ? {
        name: "account",
        label: "Account",
        kind: "choice",
        options: [["", "the tenant's default"], ...accounts.map(({ id, kind }) => [id, `${id} (${kind})`])],
      }
    : { name: "account", label: "Account", hint: "The tenant's default when empty." },
  { name: "batch", label: "Batch" },
  { name: "tags", label: "Tags", kind: "list", rows: 2, wide: false },
  { name: "send_at", label: "Not before", kind: "time" },
];

export default function Send() {
  const accounts = useLoad(async (signal) => (may("read") ? (await get("/v1/accounts", {}, signal)).data : null));
  const submit = async (mail) => {
    const { uid, status } = await post("/v1/messages", mail);
    toast(`Accepted: ${status}`);
    if (may("read")) go(`messages/${uid}`);
  };
  return html`<div class="title"><h1>Send a mail</h1></div>
    <section class="card">
      ${accounts.loading ? null : html`<${Form} fields=${fields(accounts.data)} action="Send" onSubmit=${submit} />`}
    </section>`;
}
