// The domains that mail is sent from: what DNS says about each, what to paste, and since when it is right.

import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { get, may, post, remove, url } from "../api.js";
import { Button, Copy } from "../part/button.js";
import { edit } from "../part/dialog.js";
import { Empty, Loaded, useLoad } from "../part/load.js";
import { When } from "../part/time.js";
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
    ${open && html`<ul class="findings">${one.findings.map((finding) => html`<${Finding} one=${finding} />`)}</ul>`}
  </section>`;
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
