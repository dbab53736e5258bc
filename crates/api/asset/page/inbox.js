// What the sandbox captured, as a mail client shows it: so that a developer sees the mail in its first minute.

import { html, useEffect, useState } from "../vendor/preact.js";
import { get, may, url } from "../api.js";
import { Button } from "../part/button.js";
import { sendTest } from "../part/first_mail.js";
import { Field } from "../part/form.js";
import { Icon } from "../part/icon.js";
import { Empty, Loaded, useLoad } from "../part/load.js";
import { Mail, header } from "../part/mail.js";
import { Moment, absolute, count } from "../part/time.js";
import { link, refine } from "../route.js";

const LOOK_MS = 2_000;
const PAGE = 50;

export default function Inbox({ query }) {
  const accounts = useLoad(async (signal) =>
    (await get("/v1/accounts", {}, signal)).data.filter(({ kind }) => kind === "sandbox"),
  );
  return html`<${Loaded} from=${accounts}>
    ${(found) =>
      found.length
        ? html`<${Box} accounts=${found} start=${query} />`
        : html`<div class="title"><h1>Sandbox inbox</h1></div><${Empty} title="There is no sandbox account">
          <p>An account of the kind <code>sandbox</code> captures mail instead of sending it.</p>
          <p><a href=${link("accounts")}>Make one</a></p><//>`}
  <//>`;
}

function Box({ accounts, start }) {
  const [account, setAccount] = useState(start.account ?? accounts[0].id);
  const [open, setOpen] = useState(start.mail);
  const [limit, setLimit] = useState(PAGE);
  const mails = useLoad(
    (signal) => get("/v1/messages", { account, limit }, signal),
    [account, limit],
    LOOK_MS,
  );
  const choose = (uid) => {
    setOpen(uid);
    refine("inbox", { account, mail: uid });
  };
  // Where the tenant is one for tests, what was captured counts as sent.
  const list = (mails.data?.data ?? []).filter(({ status }) => status === "captured" || status === "sent");
  return html`
    <div class="title">
      <h1>Sandbox inbox</h1><span class="grow"></span>
      ${accounts.length > 1 &&
        html`<${Field} id="inbox-account" name="account" label="Account" kind="choice"
          options=${accounts.map(({ id }) => id)} value=${account} onInput=${setAccount} />`}
      ${may("send") && html`<${Button} icon="send" onClick=${() => sendTest(account)}>Send a test mail<//>`}
    </div>
    <${Loaded} from=${mails}>
      ${() =>
        list.length === 0
          ? html`<${Empty} title="Nothing captured yet"><p>Mail sent by the account <code>
            ${account}</code> shows here within seconds.</p><//>`
          : html`<div class=${`client ${open ? "reading" : ""}`}>
              <ul class="mails" aria-label="Captured mail">
                ${list.map(
                  (one) => html`<li key=${one.uid}>
                    <button type="button" aria-current=${one.uid === open ? "true" : null}
                      onClick=${() => choose(one.uid)}>
                      <span class="subject">${one.subject || "(no subject)"}</span>
                      <span class="muted small" title=${one.to}>to ${one.to}${one.recipient_count > 1 &&
                        ` +${count(one.recipient_count - 1)}`}</span><span class="muted small">
                        <${Moment} at=${one.sent_at ?? one.created_at} /></span>
                    </button>
                  </li>`,
                )}
                ${mails.data.next_cursor && limit < 500 &&
                  html`<li><button type="button" class="more"
                    onClick=${() => setLimit(Math.min(limit * 2, 500))}>Older mail</button></li>`}
              </ul>
              ${open ? html`<${Reading} uid=${open} key=${open} close=${() => choose("")} />`
                : html`<p class="muted choose">Choose a mail.</p>`}
            </div>`}
    <//>
  `;
}

function Reading({ uid, close }) {
  const path = url`/v1/messages/${uid}`;
  const content = useLoad((signal) => get(`${path}/content`, {}, signal), [uid]);
  useEffect(() => document.querySelector(".reading article h2")?.focus(), []);
  return html`<article>
    <button type="button" class="plain close" onClick=${close}><${Icon} name="back" />All mail</button>
    <${Loaded} from=${content}>
      ${(mail) => html`
        <h2 tabindex="-1">${header(mail, "subject") ?? "(no subject)"}</h2>
        <dl class="headers">
          ${["from", "to", "cc", "date"].map((name) => {
            const value = header(mail, name);
            return (
              value &&
              html`<div><dt>${name}</dt><dd>
                ${name === "date" && Date.parse(value) ? absolute(value) : value}</dd></div>`
            );
          })}
        </dl>
      `}
    <//>
    <p class="small"><a href=${link(`messages/${uid}`)}>Its history</a> · <a href=${`${path}/raw`}
      download=${`${uid}.eml`}>Download EML</a></p>
    <${Mail} path=${path} />
  </article>`;
}
