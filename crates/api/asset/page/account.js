// One account: whether it works, what it has used, and what went by it.

import { html } from "../vendor/preact.js";
import { get, may, patch, post, url } from "../api.js";
import { accountBody, accountFields } from "../part/account_fields.js";
import { Badge, Switched } from "../part/badge.js";
import { Button } from "../part/button.js";
import { inWords } from "../part/controls.js";
import { edit } from "../part/dialog.js";
import { Hook } from "../part/hook.js";
import { Icon } from "../part/icon.js";
import { LastHours } from "../part/last_hour.js";
import { Loaded, useLoad } from "../part/load.js";
import { Past } from "../part/past.js";
import { showSteps } from "../part/steps.js";
import { Facts } from "../part/table.js";
import { Moment, When, count } from "../part/time.js";
import { toast } from "../part/toast.js";
import { link } from "../route.js";

const LOOK_MS = 5_000;

export default function Account({ params }) {
  const path = url`/v1/accounts/${params.id}`;
  const account = useLoad((signal) => get(path, {}, signal), [params.id], LOOK_MS);
  return html`<p class="crumb"><a href=${link("accounts")}><${Icon} name="back" />Accounts</a></p>
    <${Loaded} from=${account}>${(one) => html`<${Shown} one=${one} path=${path} changed=${account.reload} />`}<//>`;
}

function Shown({ one, path, changed }) {
  const test = async () => showSteps(one.id, await post(`${path}/test`));
  const mailTo = () =>
    edit({
      title: "Send a test mail",
      action: "Send",
      fields: [
        { name: "to", label: "To", required: true },
        { name: "from", label: "From", hint: "The return path or user name when empty." },
      ],
      save: async (body) => void setTimeout(showSteps, 0, one.id, await post(`${path}/test`, body)),
    });
  const modify = async () => {
    const save = (body) => patch(path, accountBody(body, one));
    const form = { title: `Change ${one.id}`, fields: accountFields(one), value: one, save, expert: true, trial: test };
    if (await edit(form)) changed();
  };
  const turn = async () => {
    await post(`${path}/${one.suspended ? "activate" : "suspend"}`);
    toast(one.suspended ? "Its mail goes on" : "Its mail is held");
    changed();
  };
  const limit = (name, used, most) => [
    name,
    most > 0
      ? html`${count(used)} of ${count(most)}<progress value=${used ?? 0} max=${most}
        aria-label=${`${name}: ${used ?? 0} of ${most}`}></progress>`
      : null,
  ];
  const open = one.circuit?.state === "open";
  return html`
    <div class="title">
      <h1>${one.id}</h1><${Switched} on=${!one.suspended} />
        ${open && html`<${Badge} status="circuit open" tone="bad" />`}
    </div>
    <div class="acts start">
      ${
        may("manage") &&
        html`
        <${Button} kind="primary" onClick=${test}>Test<//>
        <${Button} icon="send" onClick=${mailTo}>Send a test mail<//>
        <${Button} onClick=${modify}>Edit<//>
        <${Button} onClick=${turn}>${one.suspended ? "Activate" : "Suspend"}<//>`
      }
      <a class="button" href=${link("messages", { account: one.id })}>Its messages</a>
      ${may("admin") && html`<a class="button" href=${link("audit", { tenant: one.tenant, target: one.id })}>Who changed it</a>`}
      ${one.kind === "sandbox" && html`<a class="button" href=${link("inbox", { account: one.id })}>Its inbox</a>`}
    </div>
    ${open &&
      html`<p class="reason bad">It is left alone since it was at fault: ${one.circuit.reason || one.circuit.code}.
        ${" "}It is tried again <${When} at=${one.circuit.until} past="soon" />; a test shows whether it works by
        ${" "}now.</p>`}
    <${Facts} pairs=${[
      ["Kind", one.kind],
      ["Host", one.host && `${one.host}:${one.port ?? ""}`],
      ["TLS", ["smtp", "lmtp"].includes(one.kind) ? one.tls : null],
      ["User name", one.username],
      ["Password", ["smtp", "lmtp"].includes(one.kind) ? (one.password_set ? "set" : "none") : null],
      ["Region", one.region],
      ["Endpoint", one.endpoint],
      ["Return path", one.return_path],
      ["Proxy", one.proxy],
      ["Source address", one.source_address],
      ["Delivery reports", one.dsn],
      ["Fallback", one.fallback],
      ["In doubt", one.on_doubt],
      ["Connections, per node", String(one.max_connections)],
      limit("Used this minute", one.used?.minute, one.limits.per_minute),
      limit("Used this hour", one.used?.hour, one.limits.per_hour),
      limit("Used today", one.used?.day, one.limits.per_day),
      ["Warm-up", one.warm_up && html`${one.warm_up.per_day.join(", ")} a day, from <${When} at=${one.warm_up.from} />`],
      ["Tries after", one.retry.delays_s.map(inWords).join(", ")],
      ["Changed", html`<${When} at=${one.updated_at} />`],
    ]} />
    ${one.kind !== "sandbox" && html`<${Hook} path=${path} />`}
    <${LastHours} account=${one.id} />
    <section class="card"><h2>Last 24 hours, by hour</h2><${Past} label="Last 24 hours, by hour" hours=${24} account=${one.id} /></section>
    <${Standing} account=${one.id} />
  `;
}

const STANDS = [
  ["waiting", { waiting: true }],
  ["in doubt", { status: "in_doubt" }],
  ["failed", { status: "failed" }],
  ["bounced", { outcome: "bounced" }],
];
const ERRORS = 5;

/** How its mail stands, each figure with its messages, and why the latest failed. */
function Standing({ account }) {
  const now = useLoad(
    async (signal) => {
      const asked = STANDS.map(([, filter]) => get("/v1/messages", { ...filter, account, limit: ERRORS, count: true }, signal));
      return Promise.all(asked);
    },
    [account],
    15_000,
  );
  if (!now.data) return null;
  const failed = now.data[2].data;
  return html`<section class="card"><h2>Its mail now</h2>
    <ul class="counts">${STANDS.map(([name, filter], place) => html`<li><a href=${link("messages", { ...filter, account })}>${name}
      ${" "}<strong>${count(now.data[place].count?.messages ?? 0)}${now.data[place].count?.or_more ? "+" : ""}</strong></a></li>`)}</ul>
    ${failed.length > 0 && html`<h3>Latest failures</h3><ul class="findings">${failed.map((message) => html`<li class="check">
      <a href=${link(`messages/${message.uid}`)}>${message.subject || message.id}</a> <span class="muted">${message.reason}</span>
      <${Moment} at=${message.failed_at} /></li>`)}</ul>`}
  </section>`;
}
