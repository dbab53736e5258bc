// One webhook and its deliveries, call by call.

import { html, useState } from "../vendor/preact.js";
import { get, may, patch, post, remove, url } from "../api.js";
import { Badge, Switched } from "../part/badge.js";
import { Button } from "../part/button.js";
import { LOOK_MS, SOON, answered, quietUntil, useFailing } from "../part/conduct.js";
import { ask, confirm, edit, secretOnce } from "../part/dialog.js";
import { Field } from "../part/form.js";
import { Icon } from "../part/icon.js";
import { LastHour, ofDeliveries } from "../part/last_hour.js";
import { Loaded, useLoad } from "../part/load.js";
import { Facts, Listing, under } from "../part/table.js";
import { Moment, When, count } from "../part/time.js";
import { toast } from "../part/toast.js";
import { webhookFields } from "../part/webhook_fields.js";
import { go, link } from "../route.js";

const STATES = ["", "pending", "calling", "waiting", "acknowledged", "dead"];
/** As far back as there is anything. */
const ALWAYS = "1970-01-01T00:00:00Z";

export default function Webhook({ params }) {
  const path = url`/v1/webhooks/${params.id}`;
  const webhook = useLoad((signal) => get(path, {}, signal), [params.id], LOOK_MS);
  return html`<p class="crumb"><a href=${link("webhooks")}><${Icon} name="back" />Webhooks</a></p>
    <${Loaded} from=${webhook}>${(one) => html`<${Shown} one=${one} path=${path} changed=${webhook.reload} />`}<//>`;
}

function Shown({ one, path, changed }) {
  const failing = useFailing(one);
  const quiet = quietUntil(one);
  const test = async () => {
    const { ok, status, latency_ms, answer } = await post(`${path}/test`);
    await ask(
      ok ? "It answered well" : "It did not acknowledge",
      () => html`<p>${status ? `HTTP ${status}, ` : ""}${latency_ms} ms</p><pre class="source">${answer}</pre>`,
    );
  };
  const modify = async () => {
    const save = (body) => patch(path, { ...body, version: one.version });
    if (await edit({ title: "Change webhook", fields: webhookFields(), value: one, save })) changed();
  };
  const rotate = async () => {
    const text = "Calls are signed with both secrets for a while, so that the receiver can change over.";
    if (!(await confirm({ title: "Make a new secret?", text, action: "Make it" }))) return;
    const { secret } = await post(`${path}/rotate`);
    await secretOnce("The new secret", "It is shown this once.", secret);
  };
  const drop = async () => {
    if (
      !(await confirm({
        title: "Delete this webhook?",
        text: "Its pending notifications are dropped.",
        action: "Delete",
        kind: "danger",
      }))
    )
      return;
    await remove(path);
    go("webhooks");
  };
  return html`
    <div class="title">
      <h1>${one.url ?? one.id}</h1><${Switched} on=${one.active} words=${["active", "off"]} />
      ${failing && html`<${Badge} status="calls fail" tone="bad" />`}
      ${!failing && quiet && html`<${Badge} status="left alone" tone="warn" />`}
    </div>
    ${
      may("manage") &&
      one.id !== "client_sync" &&
      html`<div class="acts start">
      <${Button} kind="primary" onClick=${test}>Test<//><${Button} onClick=${modify}>Edit<//>
        <${Button} onClick=${rotate}>New secret<//>
      <${Button} kind="danger" onClick=${drop}>Delete<//>
    </div>`
    }
    ${one.disabled_reason &&
      html`<p class="reason bad">It is switched off: ${one.disabled_reason}. Edit it to switch it on again.</p>`}
    ${
      failing &&
      html`<p class="reason bad">Calls to it fail: ${answered(failing)}. Missed notifications
        ${" "}are repeated, the next <${When} at=${quiet ?? failing.next_at} past=${SOON} />.</p>`
    }
    <${Facts} pairs=${[
      ["Id", html`<code class="break">${one.id}</code>`],
      ["Kind", one.kind],
      ["In whose words", one.form],
      ["Events", one.events.join(", ")],
      ["What it is for", one.description],
      ["Left alone, as it asked", quiet && html`<${When} at=${quiet} />`],
      ["Changed", html`<${When} at=${one.updated_at} />`],
    ]} />
    <${LastHour} path=${`${path}/deliveries`} at=${(one) => one.created_at} figures=${ofDeliveries} />
    <${Deliveries} path=${path} />
  `;
}

function Deliveries({ path }) {
  const [status, setStatus] = useState("");
  const [turn, setTurn] = useState(0);
  const resend = async (row) => {
    await post(`${path}/deliveries/${row.message}/${row.sequence}/resend`);
    toast("The delivery is repeated");
    setTurn(turn + 1);
  };
  const resendDead = async () => {
    const text = "All deliveries that were given up are repeated, in order for each message.";
    if (!(await confirm({ title: "Resend what died?", text, action: "Resend" }))) return;
    let repeated = 0;
    let cursor = null;
    do {
      const part = await post(`${path}/resend`, { since: ALWAYS, cursor });
      repeated += part.resent;
      cursor = part.next_cursor;
    } while (cursor);
    toast(repeated === 0 ? "Nothing is dead" : `${count(repeated)} deliveries are repeated`);
    setTurn(turn + 1);
  };
  const look = ({ last_call: call }) =>
    ask(
      "The latest call",
      () => html`
    <p><${When} at=${call.at} />, ${call.latency_ms} ms${call.status && `, HTTP ${call.status}`}</p>
    <h3>Sent</h3><pre class="source">${call.request}</pre><h3>Answered</h3><pre class="source">${call.answer}</pre>`,
    );
  return html`
    <div class="title"><h2>Deliveries</h2><span class="grow"></span>
      <${Field} id="delivery-status" name="status" label="State" kind="choice" options=${STATES} value=${status}
        onInput=${setStatus} />
      ${may("manage") && html`<${Button} onClick=${resendDead}>Resend what died<//>`}
      <${Button} icon="again" label="Read again" onClick=${() => setTurn(turn + 1)} />
    </div>
    <${Listing} caption="Deliveries" path=${`${path}/deliveries`} query=${{ status }} turn=${turn}
      rowKey=${(row) => `${row.message} ${row.sequence}`}
      empty=${html`<p class="muted">Nothing yet.</p>`} columns=${[
        { head: "Event", cell: (row) => row.event },
        {
          head: "Message",
          cell: (row) => html`<a class="break" href=${link(`messages/${row.message}`)}>${row.subject || row.id || row.message}</a>
            ${under(row.subject && row.id !== row.message && row.id)}`,
        },
        { head: "When", cell: (row) => html`<${Moment} at=${row.last_call?.at ?? row.created_at} />` },
        {
          head: "State",
          cell: (row) => html`<${Badge} status=${row.status} />
            ${row.next_at && under(html`next <${When} at=${row.next_at} past="soon" />`)}`,
        },
        { head: "Calls", kind: "num", cell: (row) => row.tries },
        {
          head: "Latest answer",
          cell: (row) =>
            row.last_call &&
            html`<button type="button" onClick=${() => look(row)}>${row.last_call.status ?? "no answer"}</button>
              ${" "}<span class="muted small">${count(row.last_call.latency_ms)} ms</span>`,
        },
        {
          head: "Actions",
          kind: "doing",
          cell: (row) =>
            may("manage") &&
            ["acknowledged", "dead"].includes(row.status) &&
            html`<${Button} onClick=${() => resend(row)}>Resend<//>`,
        },
      ]} />
  `;
}
