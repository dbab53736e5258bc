// How the tenant's mail is doing, live. Whatever is wrong leads to where it can be put right.

import { html, useEffect, useState } from "../vendor/preact.js";
import { follow, get, may } from "../api.js";
import { Badge } from "../part/badge.js";
import { Chart } from "../part/chart.js";
import { Icon } from "../part/icon.js";
import { Loaded, Loading, useLoad } from "../part/load.js";
import { Table } from "../part/table.js";
import { Tabs } from "../part/tabs.js";
import { Moment, When, count, span } from "../part/time.js";
import { FirstMail } from "../part/first_mail.js";
import { link } from "../route.js";

/** A message that has been due for longer than this is late. */
const LATE_SECONDS = 300;
const HOUR_MS = 3_600_000;
/** The server counts no further. */
const HELD_MAX = 100_000;
/** Where what is held is found, each with what holds it. */
const HELD = link("messages", { status: "ready" });

export default function Overview() {
  const [now, setNow] = useState(null);
  const [live, setLive] = useState(false);
  useEffect(() => {
    const stop = new AbortController();
    follow("/v1/overview", setNow, setLive, stop.signal);
    return () => stop.abort();
  }, []);
  const total = now && Object.values(now.by_status).reduce((sum, number) => sum + number, 0);
  return html`
    <div class="title">
      <h1>Overview</h1>
      <span class=${`live ${live ? "on" : ""}`} role="status">${live ? "live" : "connecting…"}</span>
      <span class="grow"></span>
      ${may("send") && total > 0 && html`<a class="button" href=${link("send")}><${Icon} name="send" />Send a mail</a>`}
    </div>
    ${!now ? html`<${Loading} />` : total === 0 ? html`<${FirstMail} />` : html`<${Standing} now=${now} />`}
  `;
}

const Standing = ({ now }) => html`
  <${Problems} now=${now} />
  <section class="tiles" aria-label="Now">
    <${Tile} name="accepted" value=${`${now.rates.accepted}/s`} />
    <${Tile} name="sent" value=${`${now.rates.sent}/s`} />
    <${Tile} name="failed" value=${`${now.rates.failed}/s`} tone=${now.rates.failed > 0 ? "bad" : ""} />
    <${Tile} name="oldest due" value=${now.oldest_due_seconds ? span(now.oldest_due_seconds) : "none"}
      tone=${now.oldest_due_seconds > LATE_SECONDS ? "bad" : ""} />
    <${Tile} name="in queue, median" value=${wait(now.time_in_queue.p50_ms)} />
    <${Tile} name="in queue, 95 %" value=${wait(now.time_in_queue.p95_ms)} />
  </section>
  <section class="card">
    <h2>What happened</h2>
    <${Tabs} place="time" label="Time shown" tabs=${[
      { name: "Hour", body: () => html`<${LastHour} minutes=${now.last_hour} />` },
      { name: "Day", body: () => html`<${Past} label="Last 24 hours, by hour" hours=${24} />` },
      { name: "Week", body: () => html`<${Past} label="Last 7 days, by hour" hours=${7 * 24} />` },
    ]} />
  </section>
  <div class="columns">
    <section class="card">
      <h2>Messages by state</h2>
      <ul class="counts">
        ${Object.entries(now.by_status)
          .filter(([, number]) => number > 0)
          .map(
            ([status, number]) =>
              html`<li><a href=${link("messages", { status })}><${Badge} status=${status} /><strong>
                ${count(number)}</strong></a></li>`,
          )}
        ${now.held > 0 && html`<li><a href=${HELD}><${Badge} status="held" /><strong>
          ${held(now)}</strong></a></li>`}
      </ul>
    </section>
    ${
      now.failures.length > 0 &&
      html`<section class="card">
      <h2>Why messages failed, last day</h2>
      <ul class="bars">
        ${now.failures.slice(0, 8).map(
          ({ code, count: number }) => html`<li>
            <a href=${link("messages", { status: "failed", error_code: code })}><code>${code}</code>
              <span>${count(number)}</span></a>
            <progress value=${number} max=${now.failures[0].count} aria-label=${`${code}: ${number}`}></progress>
          </li>`,
        )}
      </ul>
    </section>`
    }
  </div>
  ${
    now.nodes.length > 0 &&
    html`<section class="card">
    <h2>Nodes</h2>
    <${Table} caption="Nodes" rows=${now.nodes} columns=${[
      {
        head: "Node",
        cell: (node) => html`${node.name} ${node.is_self && html`<span class="muted">(this one)</span>`}`,
      },
      { head: "State", cell: (node) => html`<${Badge} status=${node.status} />` },
      { head: "Version", cell: (node) => node.version },
      { head: "Started", cell: (node) => html`<${Moment} at=${node.started_at} />` },
    ]} />
  </section>`
  }
`;

const held = (now) => (now.held < HELD_MAX ? count(now.held) : `${count(HELD_MAX)}+`);
const wait = (ms) => (ms === null ? "–" : span(ms / 1000));

const Tile = ({ name, value, tone = "" }) =>
  html`<div class=${`tile ${tone}`}><span>${name}</span><strong>${value}</strong></div>`;

/** What needs somebody. Nothing is shown where nothing does. */
function Problems({ now }) {
  const problems = [
    ...now.circuits.map((one) => [
      link(`accounts/${encodeURIComponent(one.account)}`),
      `Account ${one.account} is left alone`,
      html`${one.reason || one.code}; tried again <${When} at=${one.open_until} past="soon" />`,
    ]),
    ...now.mailboxes.map((one) => [
      link("mailboxes"),
      `Mailbox ${one.mailbox} ${one.error ? "cannot be read" : `is ${count(one.lag)} behind`}`,
      one.error,
    ]),
    ...now.subscribers.map((one) => [
      link(`webhooks/${encodeURIComponent(one.id)}`),
      one.disabled_reason ? "A webhook is switched off" : "A webhook is behind",
      `${one.url}${one.disabled_reason ? `: ${one.disabled_reason}` : ""}`,
    ]),
    ...now.nodes
      .filter((node) => node.status === "dead")
      .map((node) => [link("nodes"), `Node ${node.name} is gone`, "its work is taken over"]),
    now.in_doubt_held > 0 && [
      link("messages", { status: "in_doubt" }),
      `${count(now.in_doubt_held)} in doubt ${now.in_doubt_held === 1 ? "waits" : "wait"} for your word`,
      "the relay's last answer was lost: each may have arrived, and is not sent again by itself",
    ],
    now.held > 0 && [
      HELD,
      `${held(now)} held`,
      `by a suspension, a used-up limit or an account that is left alone${
        now.oldest_held_seconds ? `; the oldest has been due for ${span(now.oldest_held_seconds)}` : ""
      }`,
    ],
    now.oldest_due_seconds > LATE_SECONDS && [
      link("messages", { status: "ready" }),
      "The queue does not keep up",
      `the oldest has been due for ${span(now.oldest_due_seconds)}`,
    ],
  ].filter(Boolean);
  if (!problems.length) return null;
  return html`<section class="problems" aria-label="Needs attention">
    <ul>${problems.map(([href, what, why]) =>
      html`<li><${Icon} name="warn" /><a href=${href}>${what}</a> <span>${why}</span></li>`)}</ul>
  </section>`;
}

const lines = (rows) => [
  { name: "accepted", tone: "info", values: rows.map((row) => row.accepted) },
  { name: "sent", tone: "good", values: rows.map((row) => row.sent) },
  { name: "failed", tone: "bad", values: rows.map((row) => row.failed) },
];

const LastHour = ({ minutes }) =>
  html`<${Chart} label="Last hour, by minute" times=${minutes.map((minute) => Date.parse(minute.at))}
    lines=${lines(minutes)} />`;

/** Hours as counted by the server, summed over accounts; those without a row are zero. */
function Past({ label, hours }) {
  const first = Math.floor(Date.now() / HOUR_MS) - hours + 1;
  const past = useLoad(
    (signal) => get("/v1/statistics", { by: "hour", since: new Date(first * HOUR_MS).toISOString() }, signal),
    [hours],
    60_000,
  );
  return html`<${Loaded} from=${past}>
    ${({ data }) => {
      const rows = Array.from({ length: hours }, (_, n) => ({
        at: (first + n) * HOUR_MS,
        accepted: 0,
        sent: 0,
        failed: 0,
      }));
      for (const one of data) {
        const row = rows[Math.floor(Date.parse(one.at) / HOUR_MS) - first];
        for (const name of ["accepted", "sent", "failed"]) if (row) row[name] += one[name];
      }
      return html`<${Chart} label=${label} times=${rows.map((row) => row.at)} lines=${lines(rows)} />`;
    }}
  <//>`;
}
