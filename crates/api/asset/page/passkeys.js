// The passkeys with which one signs in.

import { html } from "../vendor/preact.js";
import { post, url } from "../api.js";
import { Button } from "../part/button.js";
import { edit } from "../part/dialog.js";
import { canUsePasskeys, createPasskey } from "../part/passkey.js";
import { Resource } from "../part/resource.js";
import { Moment } from "../part/time.js";
import { toast } from "../part/toast.js";

const columns = [
  { head: "Name", cell: (row) => row.name },
  { head: "For", cell: (row) => row.host },
  { head: "Added", cell: (row) => html`<${Moment} at=${row.added_at} />` },
  { head: "Last used", cell: (row) => (row.used_at ? html`<${Moment} at=${row.used_at} />` : "never") },
];

const fields = [{ name: "name", label: "Name", required: true, hint: "What you call the device: laptop, phone, key ring." }];

/** Asks for a name, then the device for a passkey. */
async function add(again) {
  const challenge = await post("/v1/passkeys/challenge");
  const save = async ({ name = "" }) => {
    const passkey = await createPasskey(challenge, name);
    return post("/v1/passkeys", { ceremony: challenge.ceremony, passkey });
  };
  if (!(await edit({ title: "New passkey", action: "Add", fields, save }))) return;
  toast("The passkey is added");
  again();
}

export default function Passkeys() {
  const tools = (again) =>
    canUsePasskeys() && html`<${Button} kind="primary" icon="plus" onClick=${() => add(again)}>New passkey<//>`;
  return html`<${Resource} title="Passkeys" what="passkey" path="/v1/passkeys" at=${(row) => url`/v1/passkeys/${row.id}`}
    columns=${columns} scope="person" tools=${tools} removal=${(row) => `${row.name} no longer signs you in.`}
    empty=${canUsePasskeys() ? "A passkey signs you in with the finger, face or PIN of your device." : "Browsers offer passkeys on https and on localhost only."} />`;
}
