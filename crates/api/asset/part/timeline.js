// The history of a message: every event in order, and with the attempts what the relay said.

import { html } from "../vendor/preact.js";
import { Badge } from "./badge.js";
import { link } from "../route.js";
import { When, absolute, bytes, count, day, precise, span, step } from "./time.js";

/** Particulars that have a place of their own. */
const SHOWN = [
  ...["attempt", "duration_ms", "code", "category", "original_code", "will_retry", "next_attempt", "backoff_ms"],
  ...["due_at", "message", "reply", "request_id", "recipient", "address", "checks"],
];
/** Events after which an attempt is over. */
const ENDS = ["sent", "captured", "failed", "scheduled", "ready", "in_doubt"];

/** A value of any shape in words. */
function told(value) {
  if (Array.isArray(value)) return value.map(told).join("; ");
  if (value === null || typeof value !== "object") return String(value);
  return Object.entries(value)
    .map(([name, inner]) => `${name.replaceAll("_", " ")} ${told(inner)}`)
    .join(", ");
}

const CHECKS = {
  INTEGRITY: ({ bytes: size }) => `${bytes(size)} came in`,
  RECIPIENT: ({ recipients, known }) =>
    `${recipients === 1 ? "1 recipient" : `${count(recipients)} recipients`}${known ? ", as in the directory" : ""}`,
  TEMPLATE: ({ subject_chars, html_bytes, template, version, locale }) =>
    [
      template && `template ${template}, version ${version}${locale ? `, chosen for ${locale}` : ""}`,
      `a subject of ${count(subject_chars)} characters`,
      html_bytes ? `${bytes(html_bytes)} of HTML` : "no HTML",
    ]
      .filter(Boolean)
      .join(", "),
  OUTBOX: () => null,
};

/** What was looked at before a message was taken, in words. */
const checked = (checks) =>
  checks
    .map(({ check, ...found }) => (CHECKS[check] ?? ((rest) => `${check.toLowerCase()} ${told(rest)}`))(found))
    .filter(Boolean)
    .join("; ");

/** What a relay said, of an attempt or of a recipient. */
export const said = (one) => [one.smtp_code, one.enhanced_code, one.reply].filter(Boolean).join(" ");

const sameDay = (one, other) => day(one) === day(other);

/** Whether it was put off, and not only put back. */
const waits = ({ at, data }) => data.due_at && Date.parse(data.due_at) - Date.parse(at) > 1_000;

export const Timeline = ({ events, attempts = [], recipients = [] }) => html`<ol class="timeline">
  ${events.map((event, place) => {
    const last = events[place - 1];
    const attempt = ENDS.includes(event.type) && attempts.find(({ number }) => number === event.data.attempt);
    const to = recipients[event.data.recipient] ?? (event.data.address && { address: event.data.address });
    return html`<li key=${event.seq}>
      <div class="when"><time datetime=${event.at} title=${absolute(event.at)}>
        ${place === 0 || !sameDay(last.at, event.at) ? `${day(event.at)} ` : ""}${precise(event.at)}</time>
        ${last && html`<span class="step">${step(last.at, event.at)}</span>`}</div>
      <div>
        <${Badge} status=${event.type} />
        ${event.data.attempt && html` <span class="muted">attempt ${event.data.attempt}</span>`}
        ${event.data.code && html` <code>${event.data.code}</code>`}
        ${event.data.category && html` <span class="muted">${told(event.data.category).replaceAll("_", " ")}</span>`}
        ${event.data.message && event.data.message !== attempt?.reply && html`<p>${told(event.data.message)}</p>`}
        ${to && html`<p>${to.address} ${said(to) && html`<code>${said(to)}</code>`}</p>`}
        ${event.data.checks && html`<p class="muted">${checked(event.data.checks)}</p>`}
        ${attempt && html`<${Attempt} attempt=${attempt} />`}
        ${waits(event) && html`<p class="muted">to go <${When} at=${event.data.due_at} /></p>`}
        ${event.type === "bounced" && html`<${Bounce} data=${event.data} />`}
        <${Rest} data=${event.data} without=${event.type === "bounced" ? SAID : []} />
      </div>
    </li>`;
  })}
</ol>`;

const Attempt = ({ attempt }) => html`<p class="attempt">
  <span class="muted">by ${attempt.account}
    ${attempt.remote && ` to ${attempt.remote}`}, ${span(attempt.duration_ms / 1000)}</span>
  ${said(attempt) && html`<br /><code>${said(attempt)}</code>`}
</p>`;

/** What an event names that has a page of its own. */
const LINKS = {
  inbound: (id) => html`<a href=${link(`inbound/${id}`)}>the report</a>`,
  bulk_action: () => html`<a href=${link("bulk-actions")}>with others</a>`,
  template: (name) => html`<a href=${link(`templates/${encodeURIComponent(name)}`)}>${name}</a>`,
  account: (id) => html`<a href=${link(`accounts/${encodeURIComponent(id)}`)}>${id}</a>`,
  rule: (id) => html`<a href=${link("rules")}>${id}</a>`,
  by: (who) => (who === "operator" ? "an operator" : who),
};
const NAMES = { inbound: "told by", bulk_action: "done", status: "code" };

/** What a report says, as a sentence. */
const Bounce = ({ data }) => html`<p>${[data.type && `${data.type} bounce`, data.reason ?? data.diagnostic].filter(Boolean).join(": ")}
  ${data.status && html` <code>${data.status}</code>`}</p>`;
/** The particulars that the sentence has. */
const SAID = ["type", "reason", "diagnostic", "status"];

function Rest({ data, without = [] }) {
  const rest = Object.entries(data).filter(([name, value]) => ![...SHOWN, ...without].includes(name) && value !== null && value !== "");
  if (!rest.length) return null;
  return html`<dl class="rest">
    ${rest.map(([name, value]) => html`<div><dt>${NAMES[name] ?? name.replaceAll("_", " ")}</dt>
      <dd>${typeof value === "string" && LINKS[name] ? LINKS[name](value) : told(value)}</dd></div>`)}</dl>`;
}
