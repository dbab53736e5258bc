// Finding messages, and watching them. What is asked is part of the address, so what is found can be linked to; the rows
// follow what happens, and new mail is announced instead of pushing them away.

import { html, useState } from "../vendor/preact.js";
import { get, may } from "../api.js";
import { Badge, holders, isHeld } from "../part/badge.js";
import { bulk } from "../part/bulk.js";
import { Button } from "../part/button.js";
import { Filters } from "../part/filters.js";
import { Icon } from "../part/icon.js";
import { Empty, useLoad } from "../part/load.js";
import { Listing } from "../part/table.js";
import { Moment, count, fromField, toField } from "../part/time.js";
import { link, refine } from "../route.js";

const STATES = [
  ..."accepted validating ready scheduled sending sent captured".split(" "),
  ..."failed invalid in_doubt suppressed cancelled expired".split(" "),
];
const OUTCOMES = "delivered bounced complained delayed auto_replied".split(" ");
const HELD = [
  ["", "any"],
  ["any", "held by anything"],
  ["tenant", "held: tenant suspended"],
  ["doubt", "held: waits for your word"],
];
const HOUR_MS = 3_600_000;
const SPANS = [
  ["1", "the last hour"],
  ["24", "the last 24 hours"],
  ["168", "the last 7 days"],
];

const filters = (accounts, held) => [
  {
    name: "q",
    label: "Search",
    kind: "search",
    wide: true,
    placeholder: "address, @domain, id, subject, smtp_550, #tag, key=value",
  },
  { name: "status", label: "State", kind: "choice", options: ["", ...STATES] },
  { name: "outcome", label: "Outcome", kind: "choice", options: ["", ...OUTCOMES] },
  {
    name: "span",
    label: "Accepted in",
    kind: "choice",
    options: [["", "any time"], ...SPANS],
  },
  {
    name: "held_by",
    label: "Held",
    kind: "choice",
    options: HELD.some(([word]) => word === held) ? HELD : [...HELD, [held, `held by ${held.replace(":", " ")}`]],
    extra: true,
  },
  { name: "account", label: "Account", kind: "choice", options: ["", ...accounts], extra: true },
  { name: "batch", label: "Batch", extra: true },
  { name: "tag", label: "Tag", extra: true },
  { name: "error_code", label: "Error code", placeholder: "smtp_550", extra: true },
  { name: "since", label: "Since", kind: "time", extra: true },
  { name: "until", label: "Until", kind: "time", extra: true },
];
/** Parameters that an address may have besides the fields. */
const OTHERS = ["waiting", "recipient", "subject", "metadata"];
const NAMES = [...filters([], "").map(({ name }) => name), ...OTHERS];

/** What is asked of the server. */
function asked(filter) {
  const { span, since, until, ...rest } = filter;
  return {
    ...rest,
    since: span ? new Date(Math.floor(Date.now() / 60_000) * 60_000 - Number(span) * HOUR_MS).toISOString() : fromField(since),
    until: fromField(until),
  };
}
/** What is written into the address: times that are the same everywhere, and spans as they were chosen. */
const written = (filter) => ({ ...filter, since: fromField(filter.since), until: fromField(filter.until) });
/** What the address asks for, as the fields hold it. */
const held = (query) =>
  Object.fromEntries(
    NAMES.map((name) => [name, ["since", "until"].includes(name) ? toField(query[name] ?? "") : (query[name] ?? "")]),
  );

/** The time that matters in a state, and what it is called. */
const MOMENTS = {
  scheduled: ["Due", "due_at"],
  ready: ["Due", "due_at"],
  in_doubt: ["Due", "due_at"],
  sent: ["Sent", "sent_at"],
  captured: ["Captured", "sent_at"],
  failed: ["Failed", "failed_at"],
};

const stateOf = (one) =>
  html`<${Badge} status=${one.status} />${isHeld(one) && html` <${Badge} status="held" />`}${one.outcome &&
    html` <${Badge} status=${one.outcome} />`}${one.refused_count > 0 &&
    html` <span class="part">${count(one.refused_count)} of ${count(one.recipient_count)} failed</span>`}`;

/** A box for each row that something can be done with. */
const picking = (picked, pick) => ({
  head: "Select",
  kind: "pick",
  cell: (one) => html`<input type="checkbox" aria-label=${`Select ${one.subject || one.id}`} checked=${picked.has(one.uid)}
    onChange=${(event) => pick(one.uid, event.target.checked)} />`,
});

const columns = (status) => {
  const [head, field] = MOMENTS[status] ?? ["Accepted", "created_at"];
  return [
    { head: "State", kind: "state", cell: stateOf },
    {
      head: "Message",
      kind: "subject",
      cell: (one) => {
        const notes = [one.id !== one.uid && one.id, one.reason, ...holders(one)].filter(Boolean).join(" · ");
        return html`<a href=${link(`messages/${one.uid}`)} title=${one.subject}>${one.subject || "(no subject)"}</a>
          ${notes && html`<span class="muted small" title=${notes}>${notes}</span>`}`;
      },
    },
    {
      head: "To",
      kind: "to",
      cell: (one) => html`<span title=${one.to}>${one.to}</span>${one.recipient_count > 1 &&
        html` <span class="muted small">and ${count(one.recipient_count - 1)} more</span>`}`,
    },
    { head: "Account", kind: "account", cell: (one) => html`<span title=${one.batch ?? ""}>${one.account}</span>` },
    { head: "Tries", kind: "num tries", cell: (one) => one.attempt },
    { head, kind: "moment", cell: (one) => html`<${Moment} at=${one[field] ?? one.created_at} />` },
  ];
};

const CHIPS = {
  recipient: "to",
  domain: "at",
  text: "words",
  error_code: "error",
  message_id: "Message-ID",
  external_id: "external id",
};

/** What a search was taken for. */
const Chips = ({ terms }) =>
  html`<p class="chips" role="status">${terms.map(({ name, value }) =>
    html`<span class="chip"><span class="muted">${CHIPS[name] ?? name}</span> ${value}</span> `)}</p>`;

const LIVE_MS = 4_000;

export default function Messages({ query }) {
  const [filter, setFilter] = useState(() => held(query));
  const [turn, setTurn] = useState(0);
  const [found, setFound] = useState({});
  const [picked, setPicked] = useState(new Set());
  const pick = (uid, isPicked) =>
    setPicked((before) => new Set(isPicked ? [...before, uid] : [...before].filter((other) => other !== uid)));
  const again = () => setTurn((n) => n + 1);
  const accounts = useLoad((signal) => get("/v1/accounts", {}, signal));
  const known = new Set([...(accounts.data?.data ?? []).map(({ id }) => id), query.account].filter(Boolean));
  const set = (next) => {
    setFilter(next);
    // What is not shown any more is not meant any more.
    setPicked(new Set());
    refine("messages", written(next));
  };
  const question = asked(filter);
  const act = async () => {
    if (!(await bulk(picked.size ? { ids: [...picked] } : { filter: question }))) return;
    setPicked(new Set());
    again();
  };
  const isAsked = NAMES.some((name) => filter[name]);
  const total = useLoad(
    (signal) => get("/v1/messages", { ...question, limit: 1, count: true }, signal),
    [JSON.stringify(question), turn],
    15_000,
  );
  const empty = isAsked
    ? html`<${Empty} title="No message fits"><p>Take a filter away to see more.</p><//>`
    : html`<${Empty} title="No messages yet"><p><a href=${link("send")}>Send one</a></p><//>`;
  const { messages, or_more: more } = total.data?.count ?? {};
  return html`
    <div class="title">
      <h1>Messages</h1>
      ${messages !== undefined && html`<span class="muted" role="status">${count(messages)}${more ? " or more" : ""}</span>`}
      <span class="grow"></span>
      ${
        may("send") &&
        html`${picked.size > 0
          ? html`<${Button} kind="primary" onClick=${act}>Act on ${count(picked.size)} selected…<//>
            <button type="button" class="plain" onClick=${() => setPicked(new Set())}>Select none</button>`
          : html`<${Button} onClick=${act}>Act on all of these…<//>`}
          <a class="button" href=${link("send")}><${Icon} name="send" />Send a mail</a>`
      }
      <${Button} icon="again" label="Read again" onClick=${again} />
    </div>
    <${Filters} label="Filter messages" fields=${filters(known, filter.held_by)} value=${filter} set=${set}
      also=${OTHERS} />
    ${found.understood?.length > 0 && html`<${Chips} terms=${found.understood} />`}
    <${Listing} addressed live=${LIVE_MS} className="messages" caption="Messages" path="/v1/messages" query=${question}
      turn=${turn} rowKey=${(one) => one.uid} columns=${may("send") ? [picking(picked, pick), ...columns(filter.status)] : columns(filter.status)} empty=${empty} seen=${setFound} />
  `;
}
