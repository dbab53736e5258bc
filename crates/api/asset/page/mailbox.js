// One mailbox: whether it is read, how far behind it is, what came in the last hour, and what uses it.

import { html } from "../vendor/preact.js";
import { get, may, post, url } from "../api.js";
import { Badge, Switched } from "../part/badge.js";
import { Button } from "../part/button.js";
import { inWords } from "../part/controls.js";
import { Icon } from "../part/icon.js";
import { LastHour, ofInbound } from "../part/last_hour.js";
import { Loaded, useLoad } from "../part/load.js";
import { showSteps } from "../part/steps.js";
import { Facts } from "../part/table.js";
import { When, count } from "../part/time.js";
import { toast } from "../part/toast.js";
import { link } from "../route.js";

const LOOK_MS = 5_000;
/** What can be left to do, with the inbound mail that it is about. */
const STANDS = [
  ["dead", { status: "dead" }],
  ["waiting", { status: "waiting" }],
  ["nothing matched", { status: "no_match" }],
  ["bounces", { kind: "bounce" }],
  ["complaints", { kind: "complaint" }],
];

export default function Mailbox({ params }) {
  const path = url`/v1/mailboxes/${params.id}`;
  const mailbox = useLoad((signal) => get(path, {}, signal), [params.id], LOOK_MS);
  return html`<p class="crumb"><a href=${link("mailboxes")}><${Icon} name="back" />Mailboxes</a></p>
    <${Loaded} from=${mailbox}>${(one) => html`<${Shown} one=${one} path=${path} changed=${mailbox.reload} />`}<//>`;
}

function Shown({ one, path, changed }) {
  const rules = useLoad((signal) => get("/v1/rules", { limit: 500 }, signal), []);
  const using = (rules.data?.data ?? []).filter((rule) => rule.mailbox === one.id);
  const turn = async () => {
    await post(`${path}/${one.active ? "suspend" : "activate"}`);
    toast(one.active ? "It is not read any more" : "It is read again");
    changed();
  };
  const isReception = one.addresses.length > 0;
  return html`
    <div class="title"><h1>${one.id}</h1><${Switched} on=${one.active} />
      ${one.error && html`<${Badge} status="failed" />`}</div>
    <div class="acts start">
      ${may("manage") && html`<${Button} kind="primary" onClick=${async () => showSteps(one.id, await post(`${path}/test`))}>Test<//>
        <${Button} onClick=${turn}>${one.active ? "Suspend" : "Activate"}<//>`}
      <a class="button" href=${link("inbound", { mailbox: one.id })}>Its mail</a>
    </div>
    ${one.error && html`<p class="reason bad">It cannot be read: ${one.error}, since <${When} at=${one.error_since} />.</p>`}
    <${Facts} pairs=${[
      ["What it is for", one.description],
      ["Does", one.roles.join(", ")],
      ["Addresses", isReception && one.addresses.join(", ")],
      ["Server", !isReception && `${one.host}:${one.port}, TLS ${one.tls}`],
      ["User name", !isReception && one.username],
      ["Folder", !isReception && one.folder],
      ["Read", one.last_scanned_at && html`<${When} at=${one.last_scanned_at} />`],
      ["Behind", one.lag == null ? null : `${count(one.lag)} mails`],
      ["Between looks", !isReception && inWords(one.poll_seconds)],
      ["Rules", using.length > 0 && using.map((rule, place) => html`${place > 0 && ", "}<a href=${link("rules")}>${rule.name || rule.id}</a>`)],
      ["Changed", html`<${When} at=${one.updated_at} />`],
    ].map(([name, value]) => [name, value || null])} />
    <${LastHour} path="/v1/inbound" query=${{ mailbox: one.id }} at=${(mail) => mail.created_at} figures=${ofInbound} />
    <section class="card"><h2>Its mail</h2><ul class="counts">${STANDS.map(([name, filter]) =>
      html`<li><a href=${link("inbound", { ...filter, mailbox: one.id })}>${name}</a></li>`)}</ul></section>
  `;
}
