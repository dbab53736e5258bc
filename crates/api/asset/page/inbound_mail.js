// One mail that came in: what was found in it, what was sent because of it, and what it looks like.

import { html } from "../vendor/preact.js";
import { get, may, post, url } from "../api.js";
import { Badge } from "../part/badge.js";
import { Button } from "../part/button.js";
import { Icon } from "../part/icon.js";
import { Loaded, useLoad } from "../part/load.js";
import { Mail } from "../part/mail.js";
import { Facts, Table } from "../part/table.js";
import { When, bytes } from "../part/time.js";
import { Timeline } from "../part/timeline.js";
import { toast } from "../part/toast.js";
import { link } from "../route.js";

export default function InboundMail({ params }) {
  const path = url`/v1/inbound/${params.id}`;
  const mail = useLoad((signal) => get(path, {}, signal), [params.id], 5_000);
  return html`<p class="crumb"><a href=${link("inbound")}><${Icon} name="back" />Inbound mail</a></p>
    <${Loaded} from=${mail}>${(one) => html`<${Shown} one=${one} path=${path} changed=${mail.reload} />`}<//>`;
}

const UID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** The messages that a result names, wherever in it. */
function about(result) {
  const found = new Set();
  const look = (value, name) => {
    if (typeof value === "string" && ["message", "uid", "postway_id"].includes(name) && UID.test(value)) found.add(value);
    if (value && typeof value === "object") for (const [inner, part] of Object.entries(value)) look(part, Array.isArray(value) ? name : inner);
  };
  look(result, "");
  return [...found];
}

/** A message by its subject, once it is known. */
function Named({ uid }) {
  const message = useLoad((signal) => get(url`/v1/messages/${uid}`, {}, signal), [uid]);
  const one = message.data;
  return html`<a class="break" href=${link(`messages/${uid}`)}>${one ? one.subject || one.id : `message ${uid}`}</a>
    ${one && html` <${Badge} status=${one.outcome ?? one.status} /> <span class="muted">${one.to}</span>`}`;
}

function Shown({ one, path, changed }) {
  const act = (what, done) => async () => {
    await post(`${path}/${what}`);
    toast(done);
    changed();
  };
  return html`
    <div class="title"><h1>${one.subject || "(no subject)"}</h1><${Badge} status=${one.status} />
      ${one.kind && html`<${Badge} status=${one.kind} />`}</div>
    <div class="acts start">
      ${
        may("manage") &&
        html`<${Button} icon="again" onClick=${act("replay", "It is processed again")}>Replay<//>
        ${!one.resolved_at && one.follow_up &&
          html`<${Button} kind="primary" onClick=${act("resolve", "No more reminders of it")}>Resolve<//>`}`
      }
      <a class="button" href=${`${path}/raw`} download=${`${one.id}.eml`}><${Icon} name="down" />Download EML</a>
    </div>
    ${one.error && html`<p class="reason bad">${one.error}</p>`}
    <${Facts} pairs=${[
      ["From", one.from],
      ["To", one.to],
      ["Mailbox", html`<a href=${link(`mailboxes/${encodeURIComponent(one.mailbox)}`)}>${one.mailbox}</a>, ${one.folder}`],
      ["Arrived", one.arrived_at && html`<${When} at=${one.arrived_at} />`],
      ["Settled", one.settled_at && html`<${When} at=${one.settled_at} />`],
      ["Next look", one.due_at && html`<${When} at=${one.due_at} />`],
      ["Tries", String(one.tries)],
      ["Reminders", one.follow_up && `${one.reminders}, by the rule ${one.follow_up}`],
      ["Resolved", one.resolved_at && html`<${When} at=${one.resolved_at} />`],
      ["Tags", one.tags.join(", ")],
      ["Size", bytes(one.size)],
      ["Message-ID", one.message_id && html`<code class="break">${one.message_id}</code>`],
    ]} />
    ${
      one.messages.length > 0 &&
      html`<section class="card"><h2>Sent because of it</h2><${Table} caption="Sent because of it"
        rows=${one.messages} rowKey=${(row) => row.uid} columns=${[
        { head: "Message", cell: (row) => html`<${Named} uid=${row.uid} />` },
        { head: "Rule", cell: (row) => row.rule },
        { head: "State", cell: (row) => html`<${Badge} status=${row.status ?? "removed"} />` },
      ]} /></section>`
    }
    ${about(one.result).length > 0 && html`<section class="card"><h2>What it is about</h2><ul>${about(one.result).map((uid) =>
      html`<li><${Named} uid=${uid} /></li>`)}</ul></section>`}
    ${one.result && html`<section class="card"><h2>What was found</h2><pre class="source">
      ${JSON.stringify(one.result, null, 2)}</pre></section>`}
    ${one.events.length > 0 &&
      html`<section class="card"><h2>What happened</h2><${Timeline} events=${one.events} /></section>`}
    <section class="card"><h2>The mail</h2><${Mail} path=${path} /></section>
  `;
}
