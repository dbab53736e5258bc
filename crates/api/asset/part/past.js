// What happened in past hours, as the server counted it: of a tenant, or of one account.

import { html } from "../vendor/preact.js";
import { get } from "../api.js";
import { Chart } from "./chart.js";
import { Loaded, useLoad } from "./load.js";

const HOUR_MS = 3_600_000;

/** The lines of a chart of these rows. */
export const lines = (rows) => [
  { name: "accepted", tone: "info", values: rows.map((row) => row.accepted) },
  { name: "sent", tone: "good", values: rows.map((row) => row.sent) },
  { name: "failed", tone: "bad", values: rows.map((row) => row.failed) },
  ...(rows.some((row) => "bounced" in row)
    ? [
        { name: "bounced", tone: "warn", values: rows.map((row) => row.bounced) },
        { name: "complained", tone: "muted", values: rows.map((row) => row.complained) },
      ]
    : []),
];

/** Hours as counted by the server, summed over accounts; those without a row are zero. */
export function Past({ label, hours, account }) {
  const first = Math.floor(Date.now() / HOUR_MS) - hours + 1;
  const past = useLoad(
    (signal) => get("/v1/statistics", { by: "hour", since: new Date(first * HOUR_MS).toISOString(), account }, signal),
    [hours, account],
    60_000,
  );
  return html`<${Loaded} from=${past}>
    ${({ data }) => {
      const rows = Array.from({ length: hours }, (_, n) => ({
        at: (first + n) * HOUR_MS,
        accepted: 0,
        sent: 0,
        failed: 0,
        bounced: 0,
        complained: 0,
      }));
      for (const one of data) {
        const row = rows[Math.floor(Date.parse(one.at) / HOUR_MS) - first];
        for (const name of ["accepted", "sent", "failed", "bounced", "complained"]) if (row) row[name] += one[name];
      }
      return html`<${Chart} label=${label} times=${rows.map((row) => row.at)} lines=${lines(rows)} />`;
    }}
  <//>`;
}
