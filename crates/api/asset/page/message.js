// One message: where it stands and why, what happened to it, to whom it goes, what it looks like, and what can be
// done.

import { html, useEffect } from "../vendor/preact.js";
import { get, may, url } from "../api.js";
import { Actions } from "../part/message_acts.js";
import { Badge, isHeld } from "../part/badge.js";
import { Copy } from "../part/button.js";
import { Icon } from "../part/icon.js";
import { Loaded, useLoad } from "../part/load.js";
import { Mail } from "../part/mail.js";
import { spellings } from "../part/spelling.js";
import { Facts, Table, under } from "../part/table.js";
import { Moment, When } from "../part/time.js";
import { Timeline, said } from "../part/timeline.js";
import { link } from "../route.js";

const OVER = ["sent", "captured", "invalid", "suppressed", "cancelled", "expired"];
/** Where there is no waiting to explain. `failed` can be retried, and is not over. */
const ENDED = ["failed", ...OVER];
/** What happens when a gate's time has come. */
const THEN = {
  schedule: "due",
  limit: "free again",
  circuit: "tried again",
  destination: "tried again",
  retry: "tried again",
  doubt: "sent again",
};
const LOOK_MS = 3_000;
/** A message that has ended may still bounce, or have pending notifications. */
const LATER_MS = 15_000;
const PRIORITY = ["immediate", "high", "normal", "low"];

const pause = ({ status }) => (OVER.includes(status) ? LATER_MS : LOOK_MS);

export default function Message({ params }) {
  const message = useLoad((signal) => get(url`/v1/messages/${params.id}`, {}, signal), [params.id], pause);
  const name = message.data && (message.data.subject || message.data.id);
  useEffect(() => {
    if (name) document.title = `${name} · Postway`;
  }, [name]);
  return html`<${Loaded} from=${message}>${(one) => html`<${Shown} one=${one} changed=${message.reload} />`}<//>`;
}

const Shown = ({ one, changed }) => {
  const path = url`/v1/messages/${one.uid}`;
  const code = (one.batch && html`<a href=${link("messages", { batch: one.batch })}>${one.batch}</a>`) || null;
  return html`
    <p class="crumb"><a href=${link("messages")}><${Icon} name="back" />Messages</a></p>
    <div class="title">
      <h1>${one.subject || "(no subject)"}</h1>
      <${Badge} status=${one.status} />${isHeld(one) && html`<${Badge} status="held" />`}
      ${one.exhausted && html`<${Badge} status="dead letter" tone="bad" />`}
      ${one.outcome && html`<${Badge} status=${one.outcome} />`}
    </div>
    <${Actions} one=${one} path=${path} changed=${changed} />
    ${ENDED.includes(one.status) ? html`<${End} one=${one} />` : html`<${Why} path=${path} one=${one} />`}
    <${Facts} pairs=${[
      ["Id", html`<code>${one.id}</code> <${Copy} text=${one.id} label="Copy the id" />`],
      ["Account", html`<a href=${link(`accounts/${encodeURIComponent(one.account)}`)}>${one.account}</a>`],
      ["Route", one.route && html`<${Route} route=${one.route} />`],
      ["Batch", code],
      ["Template", templateOf(one.events)],
      ["External id", one.external_id && html`<a class="break" href=${link("messages", { q: `external:"${one.external_id}"` })}>${one.external_id}</a>`],
      ["Priority", PRIORITY[one.priority]],
      ["Accepted", html`<${When} at=${one.created_at} />`],
      ["Due", one.due_at && html`<${When} at=${one.due_at} />`],
      ["Sent", one.sent_at && html`<${When} at=${one.sent_at} />`],
      ["Failed", one.failed_at && html`<${When} at=${one.failed_at} />`],
      ["Expires", one.expires_at && html`<${When} at=${one.expires_at} />`],
      ["Reported", one.reported_at && html`<${When} at=${one.reported_at} />`],
      ["Attempts", String(one.attempt)],
      [
        "Tags",
        one.tags.length > 0 &&
          one.tags.map((tag) => html`<a class="tag" href=${link("messages", { tag })}>${tag}</a> `),
      ],
      ["Message-ID", html`<code class="break">${one.message_id}</code>`],
      ["Relay's id", one.provider_message_id && html`<code class="break">${one.provider_message_id}</code>`],
      ["Request", one.request_id && html`<code class="break">${one.request_id}</code>`],
      [
        "Metadata",
        one.metadata &&
          Object.keys(one.metadata).length > 0 &&
          html`<${Metadata} fields=${one.metadata} />`,
      ],
    ].map(([name, value]) => [name, value || null])} />
    <section class="card"><h2>Recipients</h2><${Recipients} list=${one.recipients} /></section>
    <section class="card">
      <h2>What happened</h2>
      <${Timeline} events=${one.events} attempts=${one.attempts} recipients=${one.recipients} />
    </section>
    ${one.dialogue &&
      html`<section class="card"><h2>What was said in attempt ${one.dialogue.attempt}</h2>
        <pre class="source" tabindex="0">${one.dialogue.lines.join("\n")}</pre></section>`}
    <section class="card">
      <h2>The mail</h2>
      <${Mail} key=${one.status === "accepted" || one.status === "validating" ? "early" : "made"} path=${path}
        more=${[may("read") && { name: "Request", body: () => html`<${Payload} path=${path} />` }]} />
    </section>
    ${one.notifications.length > 0 &&
      html`<section class="card"><h2>Notifications</h2><${Notifications} list=${one.notifications} /></section>`}
    <${Receipts} path=${path} />
  `;
};

/** Its own data; each plain field leads to all mail that has it. */
const Metadata = ({ fields }) => Object.entries(fields).map(([key, value]) =>
  value !== null && typeof value === "object"
    ? html`<code class="break">${key}=${JSON.stringify(value)}</code> `
    : html`<a class="tag break" href=${link("messages", { metadata: `${key}=${value}` })} title="All mail with it">${key}=${String(value)}</a> `);

/** The template that it was made of, as its check says. */
function templateOf(events) {
  const checks = events.flatMap((event) => event.data.checks ?? []);
  const made = checks.find((one) => one.check === "TEMPLATE" && one.template);
  return made && html`<a href=${link(`templates/${encodeURIComponent(made.template)}`, { version: made.version })}>
    ${made.template}, version ${made.version}</a>`;
}

/** Which route chose the account, and why. */
const Route = ({ route }) => html`
  ${route.id && html`<a href=${link("routes")}>${route.id}</a>`}
  ${route.because.length > 0 && html` <span class="muted">${route.because.join(", ").replaceAll("_", " ")}</span>`}
  ${route.left_out.length > 0 && html` <span class="muted">left out: ${route.left_out.join(", ")}</span>`}
  ${route.waits_for && html` <${Badge} status=${route.waits_for} tone="warn" />`}
  ${route.passed_over.length > 0 &&
    html` <span class="muted">passed over, its accounts are gone: ${route.passed_over.join(", ")}</span>`}`;

/** Why it ended as it did, in the words of whoever ended it. */
const End = ({ one }) =>
  one.reason &&
  html`<p class=${`reason ${one.status === "cancelled" ? "" : "bad"}`}>
    ${one.exhausted && "Its tries are over. The last one: "}${one.reason}</p>`;

/** What holds it. Shown at once, as this is what one comes for. */
function Why({ path, one }) {
  const why = useLoad((signal) => get(`${path}/explain`, {}, signal), [path, one.version], LOOK_MS);
  if (!why.data) return null;
  const { gates, reason, next_at, acted } = why.data;
  return html`<section class="why card" aria-label="Why is it waiting?">
    <h2>Why is it waiting?</h2>
    ${reason && html`<p>${reason}</p>`}
    ${
      gates.length > 0
        ? html`<ul>${gates.map((gate) =>
          html`<li><${Badge} status=${gate.gate} tone="warn" /> ${gate.reason}
            ${gate.until && html` (${THEN[gate.gate] ?? "open"} <${When} at=${gate.until} past="soon" />)`}</li>`)}</ul>`
        : !reason &&
          html`<p>${one.status === "sending" ? "It is on its way."
            : "Nothing holds it: it goes as soon as its turn comes."}</p>`
    }
    ${acted?.actor && html`<p class="muted">${acted.actor} acted on it <${When} at=${acted.at} />: ${acted.type}.</p>`}
    ${next_at && html`<p class="muted">It goes <${When} at=${next_at} past="soon" />, as far as is known.</p>`}
  </section>`;
}

const Recipients = ({ list }) =>
  html`<${Table} caption="Recipients" rows=${list} rowKey=${(one) => `${one.kind} ${one.address}`} columns=${[
    {
      head: "Address",
      cell: (one) => html`<a class="break" href=${link("messages", { recipient: one.address })}
        title="All mail to this address">${spellings(one.address, one.address_unicode)}</a>`,
    },
    { head: "As", cell: (one) => one.kind },
    {
      head: "State",
      cell: (one) => html`<${Badge} status=${one.status} />${one.outcome && html` <${Badge} status=${one.outcome} />`}${
          (one.status === "suppressed" || ["bounced", "complained"].includes(one.outcome)) &&
          html` <a class="small" href=${link("suppressions", { address: one.address })}>suppressed?</a>`}`,
    },
    {
      head: "What was said",
      kind: "wide",
      cell: (one) =>
        html`${said(one)}${one.bounce &&
          under(html`${[one.bounce.type, one.bounce.code, one.bounce.reason].filter(Boolean).join(" · ")}
            ${" "}<${Moment} at=${one.bounce.at} />`)}`,
    },
  ]} />`;

function Notifications({ list }) {
  const webhooks = useLoad((signal) => get("/v1/webhooks", {}, signal));
  const names = new Map((webhooks.data?.data ?? []).map((one) => [one.id, one.description || one.url]));
  return html`<${Table} caption="Notifications" rows=${list} rowKey=${(one) => `${one.subscriber} ${one.sequence}`} columns=${[
    {
      head: "Who",
      cell: (one) =>
        html`<a class="break" href=${link(`webhooks/${encodeURIComponent(one.subscriber)}`)}
          title=${one.subscriber}>${names.get(one.subscriber) ?? one.subscriber}</a>`,
    },
    { head: "Event", cell: (one) => one.event },
    { head: "State", cell: (one) => html`<${Badge} status=${one.status} />` },
    { head: "Calls", kind: "num", cell: (one) => one.tries },
    { head: "Answer", kind: "num", cell: (one) => one.last_status ?? "" },
    { head: "Next", cell: (one) => one.next_at && html`<${When} at=${one.next_at} past="soon" />` },
  ]} />`;
}

function Payload({ path }) {
  const payload = useLoad((signal) => get(`${path}/payload`, {}, signal), [path]);
  return html`<${Loaded} from=${payload}>
    ${(body) => html`<pre class="source">${JSON.stringify(body, null, 2)}</pre>`}<//>`;
}

/** Receipts of certified mail; most messages have none, and nothing is shown then. */
function Receipts({ path }) {
  const receipts = useLoad((signal) => get(`${path}/pec`, { limit: 500 }, signal), [path]);
  if (!receipts.data?.data.length) return null;
  return html`<section class="card">
    <div class="title"><h2>PEC receipts</h2><span class="grow"></span><a class="button" href=${`${path}/pec/export`}
      download><${Icon} name="down" />Export as evidence</a></div>
    <${Table} caption="PEC receipts" rows=${receipts.data.data} rowKey=${(one) => one.inbound} columns=${[
      { head: "Receipt", cell: (one) => html`<a href=${link(`inbound/${one.inbound}`)}>${one.kind}</a>` },
      { head: "About", cell: (one) => one.address ?? "the whole message" },
      { head: "When", cell: (one) => html`<${Moment} at=${one.at} />` },
      { head: "Signature", cell: (one) => html`<${Badge} status=${one.signature} />` },
    ]} />
  </section>`;
}
