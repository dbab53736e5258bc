// Where one is signed in.

import { html } from "../vendor/preact.js";
import { remove, url } from "../api.js";
import { Button } from "../part/button.js";
import { Resource } from "../part/resource.js";
import { Moment } from "../part/time.js";

const columns = [
  { head: "Began", cell: (row) => html`<${Moment} at=${row.began_at} />${row.current && html` <span class="muted">here</span>`}` },
  { head: "Last used", cell: (row) => html`<${Moment} at=${row.seen_at} />` },
  { head: "By", cell: (row) => row.way },
  { head: "From", cell: (row) => row.address },
  { head: "Browser", kind: "wide", cell: (row) => html`<span class="break small">${row.agent}</span>` },
];

const acts = [
  { name: "End", scope: "person", when: (row) => !row.current, run: (row) => remove(url`/v1/sessions/${row.id}`) },
];

export default function Sessions() {
  const everywhere = async () => {
    await remove("/v1/sessions");
    location.reload();
  };
  const tools = () => html`<${Button} kind="danger" onClick=${everywhere}>Sign out everywhere<//>`;
  return html`<${Resource} title="Where you are signed in" path="/v1/sessions" columns=${columns} acts=${acts}
    tools=${tools} empty="" />`;
}
