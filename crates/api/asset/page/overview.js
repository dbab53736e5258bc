// The state of the tenant's mail, live: what needs attention, the outcome of today's mail, then the charts. Every figure
// leads to its messages, and whatever is wrong to where it can be put right.

import { html, useEffect, useState } from "../vendor/preact.js";
import { currentTenant, follow, get, may, post, url } from "../api.js";
import { Badge } from "../part/badge.js";
import { Button } from "../part/button.js";
import { Chart } from "../part/chart.js";
import { Icon } from "../part/icon.js";
import { Loading, useLoad } from "../part/load.js";
import { Past, lines } from "../part/past.js";
import { Table } from "../part/table.js";
import { Tabs } from "../part/tabs.js";
import { Moment, When, count, share, span, startOfDay } from "../part/time.js";
import { toast } from "../part/toast.js";
import { FirstMail } from "../part/first_mail.js";
import { link } from "../route.js";

/** A message that has been due for longer than this is late. */
const LATE_SECONDS = 300;
/** The server counts no further. */
const HELD_MAX = 100_000;
const HOLDER_MAX = 2_000;
const COUNT_MS = 15_000;

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
  <${Today} />
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
        ${now.held > 0 && html`<li><a href=${link("messages", { held_by: "any" })}><${Badge} status="held" /><strong>
          ${held(now)}</strong></a></li>`}
      </ul>
      <dl class="rest spaced">
        <div><dt>in the last minute, a second</dt><dd>${now.rates.accepted} accepted, ${now.rates.sent} sent,
          ${" "}${now.rates.failed} failed</dd></div>
        <div><dt>oldest due</dt><dd>${now.oldest_due_seconds ? span(now.oldest_due_seconds) : "none"}</dd></div>
        <div><dt>time in queue</dt><dd>${wait(now.time_in_queue.p50_ms)} median, ${wait(now.time_in_queue.p95_ms)} for
          95 %</dd></div>
      </dl>
    </section>
    ${
      now.failures.length > 0 &&
      html`<section class="card">
      <h2>Why messages failed, last 24 hours</h2>
      <ul class="bars">
        ${now.failures.slice(0, 8).map(
          ({ code, count: number }) => html`<li>
            <a href=${link("messages", { status: "failed", error_code: code, span: "24" })}>${cause(code)}
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

const Tile = ({ name, query, counted, note, tone = "" }) =>
  html`<a class=${`tile ${tone}`} href=${link("messages", query)}><span>${name}</span>
    <strong>${counted ? `${count(counted.messages)}${counted.or_more ? "+" : ""}` : "…"}</strong>
    <small>${note}</small></a>`;

const midnight = () => new Date(startOfDay()).toISOString();

/** What was accepted today and what became of it. Each figure is the number of messages that its list shows. */
function Today() {
  const since = midnight();
  const asked = {
    accepted: { since },
    sent: { since, status: "sent" },
    delivered: { since, outcome: "delivered" },
    bounced: { since, outcome: "bounced" },
    complained: { since, outcome: "complained" },
    failed: { since, status: "failed" },
    waiting: { waiting: "true" },
  };
  const today = useLoad(
    async (signal) => {
      const all = Object.entries(asked).map(async ([name, query]) => {
        const { count: found } = await get("/v1/messages", { ...query, limit: 1, count: true }, signal);
        return [name, found];
      });
      return Object.fromEntries(await Promise.all(all));
    },
    [since],
    COUNT_MS,
  );
  const found = today.data ?? {};
  const number = (name) => found[name]?.messages ?? 0;
  const of = (name, whole) => (today.data ? `${share(number(name), number(whole))} of ${whole}` : "");
  const tile = (name, note, tone) =>
    html`<${Tile} name=${name} query=${asked[name]} counted=${found[name]} note=${note} tone=${tone} />`;
  return html`<section class="today" aria-labelledby="today">
    <h2 id="today">Accepted today</h2>
    <div class="tiles">
      ${tile("accepted", "since midnight")}
      ${tile("sent", of("sent", "accepted"))}
      ${tile("delivered", "said by the receiver")}
      ${tile("bounced", of("bounced", "sent"), number("bounced") > 0 ? "bad" : "")}
      ${tile("complained", of("complained", "sent"), number("complained") > 0 ? "bad" : "")}
      ${tile("failed", of("failed", "accepted"), number("failed") > 0 ? "bad" : "")}
      ${tile("waiting", "of any day")}
    </div>
    ${today.error && html`<p class="muted small">The figures could not be read: ${today.error.message}</p>`}
  </section>`;
}

const HELD_WORDS = {
  tenant: () => "The tenant is suspended",
  batch: (code) => `The batch ${code} is suspended`,
  account: (id) => `The account ${id} is suspended`,
  limit: (id) => `The account ${id} has used up its limit`,
  circuit: (id) => `The account ${id} is paused after errors`,
};

/** What holds mail, with the way to its messages and what can be done. */
function holderProblem({ held_by: by, messages, since, until, reason }) {
  const [, kind, name] = by.match(/^([^:]*):?(.*)$/s);
  const number = `${count(messages)}${messages >= HOLDER_MAX ? " or more" : ""}`;
  const why = html`${reason && `${reason}; `}<a href=${link("messages", { held_by: by })}>
    ${number} ${messages === 1 ? "message waits" : "messages wait"}</a>
    ${since && html`, since <${When} at=${since} />`}${until && html`; tried again <${When} at=${until} past="soon" />`}`;
  const at = `${{ batch: "batches", account: "accounts" }[kind] ?? "accounts"}/${encodeURIComponent(name)}`;
  const activate = async () => {
    await post(kind === "tenant" ? url`/v1/tenants/${currentTenant()}/activate` : `/v1/${at}/activate`);
    toast("Activated");
  };
  const page = kind === "tenant" ? link("settings") : kind === "batch" ? link("batches") : link(at);
  const acts = {
    tenant: may("admin") && html`<${Button} onClick=${activate}>Activate<//>`,
    batch: may("manage") && html`<${Button} onClick=${activate}>Activate<//>`,
    account: may("manage") && html`<${Button} onClick=${activate}>Activate<//>`,
    circuit: html`<a class="button" href=${page}>Test it</a>`,
  };
  return { bad: kind === "circuit", href: page, what: HELD_WORDS[kind]?.(name) ?? by, why, act: acts[kind] };
}

/** A daily quota of which 80 or 100 per cent are used. */
function quotaProblem(quota) {
  const isSpent = quota.warning_percent >= 100;
  const bounds = ["messages", "bytes", "recipients"].filter((name) => quota[name]);
  const parts = bounds.map((name) => `${count(quota[name].used)} of ${count(quota[name].of)} ${name}`);
  return {
    bad: isSpent,
    href: link("settings"),
    what: isSpent ? "The daily quota is used up" : `${quota.warning_percent} % of the daily quota is used`,
    why: html`${parts.join(", ")}${isSpent && "; mail is refused"} until <${When} at=${quota.renewed_at} past="soon" />`,
  };
}

/** What needs somebody: what it is, why, since when, and what to press. Nothing is shown where nothing does. */
function Problems({ now }) {
  const unheld = now.circuits.filter(({ account }) => !now.holders.some(({ held_by: by }) => by === `circuit:${account}`));
  const problems = [
    ...now.holders.map(holderProblem),
    ...unheld.map((one) => ({
      bad: true,
      href: link(`accounts/${encodeURIComponent(one.account)}`),
      what: `The account ${one.account} is paused after errors`,
      why: html`${one.reason || one.code}; tried again <${When} at=${one.open_until} past="soon" />`,
      act: html`<a class="button" href=${link(`accounts/${encodeURIComponent(one.account)}`)}>Test it</a>`,
    })),
    ...now.domains.map(({ domain, checks, wrong }) => ({
      bad: wrong,
      href: link("domains"),
      what: `${domain} is not set up in DNS`,
      why: `${checks.join(", ")} ${wrong ? "wrong or missing" : "missing"}: receivers may refuse its mail or file it as spam`,
      act: html`<a class="button" href=${link("domains")}>Records to add</a>`,
    })),
    ...now.mailboxes.map((one) => ({
      bad: Boolean(one.error),
      href: link("mailboxes"),
      what: `Mailbox ${one.mailbox} ${one.error ? "cannot be read" : `is ${count(one.lag)} behind`}`,
      why: one.error,
    })),
    ...now.subscribers.map((one) => ({
      bad: Boolean(one.disabled_reason),
      href: link(`webhooks/${encodeURIComponent(one.id)}`),
      what: one.disabled_reason ? "A webhook is switched off" : "A webhook has calls due",
      why: `${one.url}${one.disabled_reason ? `: ${one.disabled_reason}` : ""}`,
    })),
    ...now.nodes
      .filter((node) => node.status === "dead")
      .map((node) => ({ href: link("nodes"), what: `Node ${node.name} is gone`, why: "its work is taken over" })),
    now.in_doubt_held > 0 && {
      bad: true,
      href: link("messages", { held_by: "doubt" }),
      what: `${count(now.in_doubt_held)} in doubt ${now.in_doubt_held === 1 ? "waits" : "wait"} for your word`,
      why: "the relay's last answer was lost: each may have arrived, and is not sent again by itself",
      act: html`<a class="button" href=${link("messages", { held_by: "doubt" })}>Resolve</a>`,
    },
    now.oldest_due_seconds > LATE_SECONDS && {
      bad: true,
      href: link("messages", { status: "ready" }),
      what: "The queue does not keep up",
      why: `the oldest has been due for ${span(now.oldest_due_seconds)}`,
    },
    now.quota?.warning_percent > 0 && quotaProblem(now.quota),
  ].filter(Boolean);
  if (!problems.length) return null;
  problems.sort((one, other) => Number(other.bad ?? false) - Number(one.bad ?? false));
  return html`<section class="problems" aria-labelledby="problems">
    <h2 id="problems">Needs you now</h2>
    <ul>${problems.map(({ bad, href, what, why, act }) =>
      html`<li class=${bad ? "bad" : ""} key=${what}><${Icon} name="warn" /><div><a href=${href}>${what}</a>
        ${why && html`: <span>${why}</span>`}</div>${act}</li>`)}</ul>
  </section>`;
}

const CAUSES = {
  smtp_550: "550, unknown recipient or refused",
  smtp_551: "551, recipient elsewhere",
  smtp_552: "552, mailbox full",
  smtp_553: "553, address not allowed",
  smtp_554: "554, refused",
  connect_refused: "nothing listens there",
  connect_dns: "the relay's name is not known",
  connect_timeout: "the relay does not answer",
  auth_failed: "user name or password refused",
};
/** A failure in words, with its code. */
const cause = (code) => html`<span>${CAUSES[code] ?? code.replaceAll("_", " ")} <code class="muted">${code}</code></span>`;

const LastHour = ({ minutes }) =>
  html`<${Chart} label="Last hour, by minute" times=${minutes.map((minute) => Date.parse(minute.at))}
    lines=${lines(minutes)} />`;
