// Mail that is held and let go as one.

import { html } from "../vendor/preact.js";
import { get, may, post, url } from "../api.js";
import { Badge, Switched } from "../part/badge.js";
import { Button } from "../part/button.js";
import { ask, edit } from "../part/dialog.js";
import { Loaded, useLoad } from "../part/load.js";
import { resource, switching } from "../part/resource.js";
import { Moment, count } from "../part/time.js";
import { link } from "../route.js";

/** The server counts no further. */
const WAITING_MAX = 10_000;
const OPEN = ["accepted", "validating", "ready", "scheduled", "sending", "in_doubt"];
const at = (row) => url`/v1/batches/${row.code}`;

/** How far a batch is, as counted by the server. */
function Progress({ row }) {
  const batch = useLoad((signal) => get(at(row), {}, signal), [row.code], 3_000);
  return html`<${Loaded} from=${batch}>${({ code, by_status, counted_all }) => {
    const all = Object.values(by_status).reduce((sum, number) => sum + number, 0);
    const waiting = OPEN.reduce((sum, state) => sum + (by_status[state] ?? 0), 0);
    return html`
      <p role="status">${count(all - waiting)} of ${count(all)} done${
        counted_all ? "" : "; it has more, these were counted"}</p>
      <progress value=${all - waiting} max=${all || 1} aria-label="Progress"></progress>
      <ul class="counts spaced">
        ${Object.entries(by_status).map(([status, number]) =>
          html`<li><a href=${link("messages", { batch: code, status })}><${Badge} status=${status} /><strong>
            ${count(number)}</strong></a></li>`)}</ul>
    `;
  }}<//>`;
}

const columns = [
  { head: "Batch", cell: (row) => html`<a href=${link("messages", { batch: row.code })}>${row.code}</a>` },
  { head: "State", cell: (row) => html`<${Switched} on=${!row.suspended} />` },
  {
    head: "Waiting",
    kind: "num",
    cell: (row) => (row.waiting < WAITING_MAX ? count(row.waiting) : `${count(WAITING_MAX)}+`),
  },
  { head: "Suspended", cell: (row) => row.suspended_since && html`<${Moment} at=${row.suspended_since} />` },
];

const suspendAhead = (again) => async () => {
  const fields = [
    { name: "code", label: "Code", required: true, hint: "Of a batch that need not have had a message yet." },
  ];
  if (
    await edit({
      title: "Suspend a batch",
      fields,
      action: "Suspend",
      save: ({ code = "" }) => post(`${at({ code })}/suspend`),
    })
  )
    again();
};

export default resource({
  title: "Batches",
  path: "/v1/batches",
  rowKey: (row) => row.code,
  columns,
  every: 3_000,
  tools: (again) => may("manage") && html`<${Button} onClick=${suspendAhead(again)}>Suspend by code<//>`,
  acts: [
    {
      name: "Progress",
      scope: "read",
      run: async (row) => void (await ask(`Batch ${row.code}`, () => html`<${Progress} row=${row} />`)),
    },
    ...switching(at, (row) => !row.suspended),
  ],
  empty: "Give messages a batch, and they can be held and let go together.",
});
