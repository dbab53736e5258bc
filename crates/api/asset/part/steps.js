// How a trial of an account, a mailbox or a webhook went.

import { html } from "../vendor/preact.js";
import { Badge } from "./badge.js";
import { ask } from "./dialog.js";
import { Table } from "./table.js";

const columns = [
  { head: "Step", cell: (one) => one.step },
  { head: "Result", cell: (one) => html`<${Badge} status=${one.ok ? "ok" : "failed"} />` },
  { head: "What was said", kind: "wide", cell: (one) => one.detail },
  { head: "Time", kind: "num", cell: (one) => (one.duration_ms == null ? "" : `${one.duration_ms} ms`) },
];

/** Shows the steps of `{ok, steps}`. */
export const showSteps = (what, { ok, steps }) =>
  ask(
    ok ? `${what} works` : `${what} does not work`,
    (close) => html`
    <${Table} caption="Steps" rowKey=${(one) => one.step} rows=${steps} columns=${columns} />
    <div class="acts"><button type="button" class="primary" onClick=${() => close()}>Close</button></div>
  `,
  );
