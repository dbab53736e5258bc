// The domains that mail is sent from: what DNS says about each, what to paste, and since when it is right.

import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { get, may, post, remove, url } from "../api.js";
import { Button, Copy } from "../part/button.js";
import { edit } from "../part/dialog.js";
import { Empty, Loaded, useLoad } from "../part/load.js";
import { Table } from "../part/table.js";
import { When, count } from "../part/time.js";
import { toast } from "../part/toast.js";
import { link } from "../route.js";

const TONES = { ok: "good", warn: "warn", absent: "", unknown: "warn", missing: "bad", wrong: "bad", unchecked: "" };
const WORDS = { ok: "ok", warn: "could be better", absent: "not set up", unknown: "no answer", missing: "missing", wrong: "wrong", unchecked: "not checked" };
const NAMES = { spf: "SPF", "spf lookups": "SPF lookups", dmarc: "DMARC", mx: "MX", "mta-sts": "MTA-STS", "tls-rpt": "TLS-RPT", dns: "DNS" };
const nameOf = (check) => NAMES[check] ?? check.replace(/^dkim/, "DKIM");
/** The checks that a domain is summed up by. */
const SUMMED = ["spf", "dkim", "dmarc", "mx", "mta-sts", "tls-rpt"];
/** Domains nobody has looked at are looked at without being asked, but not all at once. */
const UNASKED_MAX = 5;
const RANK = Object.keys(TONES);

/** The worst finding of each check. */
function summed(findings) {
  const worst = new Map();
  for (const { check, state } of findings) {
    const name = SUMMED.find((known) => check === known || check.startsWith(`${known} `)) ?? check;
    const before = worst.get(name);
    if (!before || RANK.indexOf(state) > RANK.indexOf(before)) worst.set(name, state);
  }
  return [...worst];
}

const State = ({ state, name }) => html`<span class=${`badge ${TONES[state] ?? ""}`}>${name ? `${name}: ` : ""}${WORDS[state] ?? state}</span>`;

const Record = ({ record }) => html`<div class="command">
  <pre tabindex="0" aria-label=${`Record for ${record.name}`}><code>${record.name}. ${record.type} ${record.value}</code></pre>
  <${Copy} text=${record.name} label="Copy the name">name<//><${Copy} text=${record.value} label="Copy the value">value<//>
</div>`;

const Finding = ({ one }) => html`<li>
  <div class="check"><${State} state=${one.state} /><strong>${nameOf(one.check)}</strong>
    ${one.found && html`<code class="break">${one.found}</code>`}</div>
  ${one.advice && one.state !== "ok" && !one.record && html`<p class="advice">${one.advice}</p>`}
  ${one.record && html`<p class="muted">${one.state === "absent" ? one.advice : one.state === "wrong" ? "Replace it by:" : "Add at your DNS provider:"}</p>
    <${Record} record=${one.record} />`}
</li>`;

function Domain({ one, changed }) {
  const [open, setOpen] = useState(["missing", "wrong"].includes(one.state));
  const [reports, setReports] = useState(false);
  const checkNow = async () => {
    const now = await post(url`/v1/domains/${one.domain}/check`);
    toast(`${now.domain}: ${WORDS[now.state]}`, ["missing", "wrong"].includes(now.state) ? "bad" : undefined);
    changed();
  };
  const forget = async () => {
    await remove(url`/v1/domains/${one.domain}`);
    changed();
  };
  const isOwn = one.signs || one.takes_bounces;
  const id = `domain-${one.domain}`;
  const purpose = [one.signs && "signed", one.takes_bounces && "takes bounces"].filter(Boolean).join(", ");
  return html`<section class="card domain" aria-labelledby=${id}>
    <div class="title">
      <h2 id=${id}>${one.domain_unicode ?? one.domain}</h2>
      <${State} state=${one.state} />
      ${purpose && html`<span class="muted">${purpose}</span>`}
      <span class="grow"></span>
      ${may("manage") && html`<${Button} icon="again" onClick=${checkNow}>Check now<//>`}
      ${may("manage") && !isOwn && html`<${Button} onClick=${forget}>Forget<//>`}
    </div>
    <p>${summed(one.findings).map(([check, state]) => html`<${State} name=${nameOf(check)} state=${state} /> `)}</p>
    <p class="muted small">${one.checked_at ? html`Checked <${When} at=${one.checked_at} />. ${one.right_since
      ? html`Right since <${When} at=${one.right_since} />.` : "Not right yet."}` : "Nobody has looked yet."}</p>
    ${one.findings.length > 0 && html`<button type="button" class="plain" aria-expanded=${String(open)} onClick=${() => setOpen(!open)}>
      ${open ? "Hide the records" : "Show the records"}</button>`}
    ${one.reported_at && html` <button type="button" class="plain" aria-expanded=${String(reports)} onClick=${() => setReports(!reports)}>
      ${reports ? "Hide the reports" : "Show the reports"}</button>`}
    ${reports && html`<${Reports} domain=${one.domain} />`}
    ${open && html`<ul class="findings">${one.findings.map((finding) => html`<${Finding} one=${finding} />`)}</ul>`}
  </section>`;
}

const share = (part, all) => (all ? `${Math.round((1000 * part) / all) / 10} %` : "–");

/** A bar for each day, the latest at the right: what passed below, what failed above. */
function Trend({ days, name }) {
  const most = Math.max(1, ...days.map((day) => day.passed + day.failed));
  const words = `${name}: ${days.length} days, at most ${count(most)} a day`;
  return html`<div class="trend" role="img" aria-label=${words}>${[...days].reverse().map((day) => html`<span
    title=${`${day.day}: ${count(day.passed)} passed, ${count(day.failed)} failed`}>
    <i class="bad" style=${`height:${(100 * day.failed) / most}%`}></i><i class="good" style=${`height:${(100 * day.passed) / most}%`}></i></span>`)}</div>`;
}

const SOURCES = [
  { head: "Sender", cell: (row) => html`<code>${row.address ?? "others"}</code> ${!row.is_known && html`<span class="badge bad">unknown</span>`}` },
  { head: "Messages", kind: "num", cell: (row) => count(row.total) },
  { head: "DMARC", kind: "num", cell: (row) => share(row.passed, row.total) },
  { head: "DKIM", kind: "num", cell: (row) => share(row.dkim_passed, row.total) },
  { head: "SPF", kind: "num", cell: (row) => share(row.spf_passed, row.total) },
  { head: "Held back", kind: "num", cell: (row) => count(row.held_back) },
  { head: "Last seen", cell: (row) => row.last_day },
];
const FAILURES = [
  { head: "Failure", cell: (row) => html`<code>${row.type}</code>` },
  { head: "Server", cell: (row) => row.server ?? "–" },
  { head: "Sessions", kind: "num", cell: (row) => count(row.total) },
  { head: "Last seen", cell: (row) => row.last_day },
];
/** As many senders as a reader looks at; the command line and the API have all. */
const SOURCES_SHOWN = 25;

function Reports({ domain }) {
  const summary = useLoad((signal) => get(url`/v1/domains/${domain}/reports/summary`, { days: 30 }, signal), [domain]);
  return html`<${Loaded} from=${summary}>${({ dmarc, tls }) => html`
    <h3>Who sends in its name, last 30 days</h3>
    ${dmarc.total ? html`
      <p>${count(dmarc.total)} messages, ${share(dmarc.passed, dmarc.total)} passed DMARC; ${count(dmarc.quarantined)} put aside and
        ${" "}${count(dmarc.rejected)} refused by receivers.${dmarc.unproven > 0 && ` ${count(dmarc.unproven)} are from reports whose senders nobody checked.`}</p>
      <${Trend} days=${dmarc.days} name="DMARC" />
      <${Table} caption="Senders" columns=${SOURCES} rows=${dmarc.sources.slice(0, SOURCES_SHOWN)} rowKey=${(row) => row.address ?? ""} />`
      : html`<p class="muted">No DMARC report counts mail of these days.</p>`}
    <h3>TLS with its servers</h3>
    ${tls.total ? html`
      <p>${count(tls.total)} sessions, ${count(tls.failed)} failed.</p>
      ${tls.failures.length > 0 && html`<${Table} caption="TLS failures" columns=${FAILURES} rows=${tls.failures} rowKey=${(row) => `${row.type} ${row.server}`} />`}`
      : html`<p class="muted">No TLS report counts sessions of these days.</p>`}`}<//>`;
}

export default function Domains() {
  const all = useLoad((signal) => get("/v1/domains", {}, signal));
  const asked = useRef(new Set());
  useEffect(() => {
    if (!all.data || !may("manage")) return;
    const fresh = all.data.data.filter(({ state, domain }) => state === "unchecked" && !asked.current.has(domain));
    if (!fresh.length) return;
    const some = fresh.slice(0, UNASKED_MAX);
    some.forEach(({ domain }) => asked.current.add(domain));
    Promise.allSettled(some.map(({ domain }) => post(url`/v1/domains/${domain}/check`))).then(all.reload);
  }, [all.data]);
  const add = async () => {
    const fields = [{ name: "domain", label: "Domain", required: true, placeholder: "example.com", wide: true, hint: "The part behind the @ of your sender addresses." }];
    const save = ({ domain }) => post(url`/v1/domains/${domain ?? ""}/check`);
    if (await edit({ title: "Check a domain", fields, action: "Check it", save })) all.reload();
  };
  return html`
    <div class="title">
      <h1>Domains</h1><span class="grow"></span>
      ${may("manage") && html`<${Button} kind="primary" icon="plus" onClick=${add}>Check a domain<//>`}
    </div>
    <p class="muted">What receivers find in DNS when they decide whether to trust your mail. Each domain is checked every six hours.</p>
    <${Loaded} from=${all}>${({ data }) => data.length
      ? data.map((one) => html`<${Domain} key=${`${one.domain} ${one.checked_at}`} one=${one} changed=${all.reload} />`)
      : html`<${Empty} title="No domains yet"><p>A domain is listed when a <a href=${link("signing-keys")}>signing key</a> is made for it, or when you check it.</p><//>`}<//>
  `;
}
