// Finding messages. The filters are part of the address, so what is found can be linked to.

import { html, useState } from "../vendor/preact.js";
import { get, may, url } from "../api.js";
import { Badge, holders, isHeld } from "../part/badge.js";
import { bulk } from "../part/bulk.js";
import { Button } from "../part/button.js";
import { Filters } from "../part/filters.js";
import { Icon } from "../part/icon.js";
import { Empty, useLoad } from "../part/load.js";
import { Listing, under } from "../part/table.js";
import { Moment, count, fromField, toField } from "../part/time.js";
import { link, refine } from "../route.js";

const STATES = [
  ..."accepted validating ready scheduled sending sent captured".split(" "),
  ..."failed invalid in_doubt suppressed cancelled expired".split(" "),
];

const filters = (accounts) => [
  { name: "id", label: "Id or uid" },
  { name: "recipient", label: "Recipient", placeholder: "ada@example.net" },
  { name: "subject", label: "Subject contains" },
  { name: "status", label: "State", kind: "choice", options: ["", ...STATES] },
  { name: "account", label: "Account", kind: "choice", options: ["", ...accounts], extra: true },
  { name: "batch", label: "Batch", extra: true },
  { name: "tag", label: "Tag", extra: true },
  { name: "error_code", label: "Error code", placeholder: "smtp_550", extra: true },
  { name: "since", label: "Since", kind: "time", extra: true },
  { name: "until", label: "Until", kind: "time", extra: true },
];
const NAMES = filters([]).map(({ name }) => name);

const columns = [
  {
    head: "State",
    cell: (one) =>
      html`<${Badge} status=${one.status} />${isHeld(one) && html` <${Badge} status="held" />`}${one.outcome &&
        html` <${Badge} status=${one.outcome} />`}`,
  },
  {
    head: "Message",
    kind: "wide",
    cell: (one) => html`<a href=${link(`messages/${one.uid}`)}>${one.subject || "(no subject)"}</a>
      ${under([one.id, one.reason, ...holders(one)].filter(Boolean).join(" · "))}`,
  },
  {
    head: "To",
    cell: (one) => html`<span class="break">${one.to}</span>${one.recipient_count > 1 &&
      under(`and ${count(one.recipient_count - 1)} more`)}`,
  },
  { head: "Account", cell: (one) => one.account },
  { head: "Batch", cell: (one) => one.batch ?? "" },
  { head: "Tries", kind: "num", cell: (one) => one.attempt },
  { head: "Accepted", cell: (one) => html`<${Moment} at=${one.created_at} />` },
];

/** What is asked of the server, and written into the address: times that are the same everywhere. */
const asked = (held) => ({ ...held, since: fromField(held.since), until: fromField(held.until) });

/** What the address asks for, as the fields hold it. */
const held = (query) =>
  Object.fromEntries(
    NAMES.map((name) => [name, ["since", "until"].includes(name) ? toField(query[name] ?? "") : (query[name] ?? "")]),
  );

/** An id names one message at most; everything else is a filter of the list. */
async function read(path, { id, ...query }, signal) {
  if (!id) return get(path, query, signal);
  try {
    return { data: [await get(url`/v1/messages/${id}`, {}, signal)] };
  } catch (error) {
    if (error.status === 404) return { data: [] };
    throw error;
  }
}

export default function Messages({ query }) {
  const [filter, setFilter] = useState(() => held(query));
  const [turn, setTurn] = useState(0);
  const again = () => setTurn(turn + 1);
  const accounts = useLoad((signal) => get("/v1/accounts", {}, signal));
  const known = new Set([...(accounts.data?.data ?? []).map(({ id }) => id), query.account].filter(Boolean));
  const set = (next) => {
    setFilter(next);
    refine("messages", asked(next));
  };
  const empty = NAMES.some((name) => filter[name])
    ? html`<${Empty} title="No message fits"><p>Take a filter away to see more.</p><//>`
    : html`<${Empty} title="No messages yet"><p><a href=${link("send")}>Send one</a></p><//>`;
  return html`
    <div class="title">
      <h1>Messages</h1>
      <span class="grow"></span>
      ${
        may("send") &&
        html`<${Button} disabled=${Boolean(filter.id)} onClick=${async () => (await bulk(asked(filter))) && again()}>
            Act on all of these…
          <//>
          <a class="button" href=${link("send")}><${Icon} name="send" />Send a mail</a>`
      }
      <${Button} icon="again" label="Read again" onClick=${again} />
    </div>
    <${Filters} label="Filter messages" fields=${filters(known)} value=${filter} set=${set} />
    <${Listing} addressed caption="Messages" path="/v1/messages" query=${asked(filter)} read=${read} turn=${turn}
      rowKey=${(one) => one.uid} columns=${columns} empty=${empty} />
  `;
}
