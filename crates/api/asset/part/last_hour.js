// What happened in the last hour, as figures: made of the newest entries of a list, as far as a few calls read them.

import { html } from "../vendor/preact.js";
import { get } from "../api.js";
import { useLoad } from "./load.js";
import { count, share, short, span } from "./time.js";

const HOUR_MS = 3_600_000;
const PAGE = 500;
/** The most pages that are read for it. */
const PAGES_MAX = 4;
const LOOK_MS = 15_000;

/** The entries since an hour ago; `isWhole` unless there were too many to read. `at` says when an entry began. */
async function newest(path, query, at, signal) {
  const since = Date.now() - HOUR_MS;
  const found = [];
  let cursor;
  for (let pages = 0; pages < PAGES_MAX; pages++) {
    const page = await get(path, { ...query, limit: PAGE, cursor }, signal);
    found.push(...page.data.filter((one) => Date.parse(at(one)) >= since));
    cursor = page.next_cursor;
    const last = page.data.at(-1);
    if (!cursor || (last && Date.parse(at(last)) < since)) return { found, isWhole: true };
  }
  return { found, isWhole: false };
}

/** The value below which this part of the numbers is. */
function quantile(numbers, part) {
  const sorted = [...numbers].sort((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))];
}

/** One figure: `{name, value, note, tone}`. */
export const Figure = ({ name, value, note, tone, href }) => {
  const inside = html`<span>${name}</span><strong>${value}</strong><small>${note ?? ""}</small>`;
  const className = `tile ${tone ?? ""}`;
  return href ? html`<a class=${className} href=${href}>${inside}</a>` : html`<div class=${className}>${inside}</div>`;
};

/** Figures under a heading. `figures` makes them of the entries of the hour. */
export function LastHour({ path, query = {}, at, figures }) {
  const hour = useLoad((signal) => newest(path, query, at, signal), [path, JSON.stringify(query)], LOOK_MS);
  if (!hour.data) return null;
  const { found, isWhole } = hour.data;
  return html`<section class="card" aria-label="The last hour"><h2>The last hour</h2>
    <div class="tiles">${figures(found).map((figure) => html`<${Figure} ...${figure} />`)}</div>
    ${!isWhole && html`<p class="muted">Of the newest ${count(PAGE * PAGES_MAX)}; the hour had more.</p>`}</section>`;
}

/**
 * What an account, or a tenant with all of its accounts, did since the last hour began, as the server counted it: that hour
 * whole, and this one as far as it is.
 */
export function LastHours({ account }) {
  const now = Date.now();
  const began = (Math.floor(now / HOUR_MS) - 1) * HOUR_MS;
  const hour = useLoad(
    (signal) => get("/v1/statistics", { by: "hour", since: new Date(began).toISOString(), account }, signal),
    [account, began],
    LOOK_MS,
  );
  if (!hour.data) return null;
  const sum = (name) => hour.data.data.reduce((all, row) => all + (row[name] ?? 0), 0);
  const [accepted, sent, failed, bounced, deferred] = ["accepted", "sent", "failed", "bounced", "deferred"].map(sum);
  const took = hour.data.data.reduce((all, row) => all + (row.average_queue_ms ?? 0) * row.sent, 0);
  const minutes = Math.max(1, (now - began) / 60_000);
  const figures = [
    { name: "accepted", value: count(accepted), note: `${(accepted / minutes).toFixed(1)} a minute` },
    { name: "sent", value: count(sent), note: `${(sent / minutes).toFixed(1)} a minute` },
    { name: "failed", value: count(failed), note: share(failed, failed + sent), tone: failed ? "bad" : "" },
    { name: "put off", value: count(deferred) },
    { name: "bounced", value: count(bounced), note: share(bounced, sent) },
    sent > 0 && { name: "sent within", value: span(took / sent / 1000), note: "on average" },
  ].filter(Boolean);
  return html`<section class="card" aria-label="The last hour"><h2>Since ${short(began)}</h2>
    <div class="tiles">${figures.map((figure) => html`<${Figure} ...${figure} />`)}</div></section>`;
}

/** The figures of a webhook's deliveries. */
export function ofDeliveries(found) {
  const called = found.filter((one) => one.last_call);
  const times = called.map((one) => one.last_call.latency_ms);
  const failed = called.filter((one) => !(one.last_call.status >= 200 && one.last_call.status < 300));
  const open = found.filter((one) => ["pending", "calling", "waiting"].includes(one.status));
  const dead = found.filter((one) => one.status === "dead");
  return [
    { name: "due", value: count(found.length), note: `${(found.length / 60).toFixed(1)} a minute` },
    { name: "acknowledged", value: count(found.filter((one) => one.status === "acknowledged").length) },
    { name: "calls that failed", value: count(failed.length), note: share(failed.length, called.length), tone: failed.length ? "bad" : "" },
    { name: "waiting", value: count(open.length), note: open.some((one) => one.tries > 0) ? "some for another try" : "" },
    { name: "given up", value: count(dead.length), tone: dead.length ? "bad" : "" },
    times.length > 0 && { name: "half answer within", value: `${count(quantile(times, 0.5))} ms`, note: `95 % within ${count(quantile(times, 0.95))} ms` },
  ].filter(Boolean);
}

/** The figures of mail that came into a mailbox. */
export function ofInbound(found) {
  const of = (...states) => found.filter((one) => states.includes(one.status)).length;
  const times = found.filter((one) => one.settled_at).map((one) => Date.parse(one.settled_at) - Date.parse(one.created_at));
  const dead = of("dead");
  return [
    { name: "came in", value: count(found.length), note: `${(found.length / 60).toFixed(1)} a minute` },
    { name: "done", value: count(of("routed")) },
    { name: "nothing matched", value: count(of("no_match", "gone")), note: share(of("no_match", "gone"), found.length) },
    { name: "waiting", value: count(of("received", "routing", "waiting")) },
    { name: "dead", value: count(dead), tone: dead ? "bad" : "" },
    times.length > 0 && { name: "half done within", value: `${count(quantile(times, 0.5))} ms`, note: `95 % within ${count(quantile(times, 0.95))} ms` },
  ].filter(Boolean);
}
