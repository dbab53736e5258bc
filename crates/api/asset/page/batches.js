// Mail that is held and let go as one.

import { html, useEffect, useState } from "../vendor/preact.js";
import { get, may, post, url } from "../api.js";
import { Badge, Switched } from "../part/badge.js";
import { Button } from "../part/button.js";
import { ask, edit } from "../part/dialog.js";
import { resource, switching } from "../part/resource.js";
import { Ago, count } from "../part/time.js";
import { link } from "../route.js";

const COUNTED_MAX = 10_000;
const OPEN = ["accepted", "validating", "ready", "scheduled", "sending", "in_doubt"];
const at = (row) => url`/v1/batches/${row.code}`;

/** How far a batch is, counted message by message up to a bound. */
function Progress({ code }) {
  const [states, setStates] = useState({});
  const [over, setOver] = useState(false);
  const [error, setError] = useState(null);
  useEffect(() => {
    const stop = new AbortController();
    const read = async () => {
      const counts = {};
      let cursor,
        seen = 0;
      do {
        const page = await get("/v1/messages", { batch: code, limit: 500, cursor }, stop.signal);
        for (const { status } of page.data) counts[status] = (counts[status] ?? 0) + 1;
        setStates({ ...counts });
        cursor = page.next_cursor;
        seen += page.data.length;
      } while (cursor && seen < COUNTED_MAX);
      setOver(cursor ? "bound" : "end");
    };
    read().catch((fault) => stop.signal.aborted || setError(fault));
    return () => stop.abort();
  }, [code]);
  const all = Object.values(states).reduce((sum, number) => sum + number, 0);
  const waiting = OPEN.reduce((sum, state) => sum + (states[state] ?? 0), 0);
  return html`
    ${error && html`<p class="error" role="alert">${error.message}</p>`}
    <p role="status">${count(all - waiting)} of ${count(all)} done${over === "bound"
      ? `, of the newest ${count(COUNTED_MAX)}` : over ? "" : ", counting…"}</p>
    <progress value=${all - waiting} max=${all || 1} aria-label="Progress"></progress>
    <ul class="counts spaced">
      ${Object.entries(states).map(([status, number]) =>
        html`<li><a href=${link("messages", { batch: code, status })}><${Badge} status=${status} /><strong>
          ${count(number)}</strong></a></li>`)}</ul>
  `;
}

const columns = [
  { head: "Batch", cell: (row) => html`<a href=${link("messages", { batch: row.code })}>${row.code}</a>` },
  { head: "State", cell: (row) => html`<${Switched} on=${!row.suspended} />` },
  { head: "Waiting", kind: "num", cell: (row) => count(row.waiting) },
  { head: "Suspended", cell: (row) => row.suspended_since && html`<${Ago} at=${row.suspended_since} />` },
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
      run: async (row) => void (await ask(`Batch ${row.code}`, () => html`<${Progress} code=${row.code} />`)),
    },
    ...switching(at, (row) => !row.suspended),
  ],
  empty: "Give messages a batch, and they can be held and let go together.",
});
