// What the sandbox captured, as a mail client shows it: so that a developer sees the mail in its first minute.

import { html, useEffect, useState } from "../vendor/preact.js";
import { get, may, post, url } from "../api.js";
import { Button } from "../part/button.js";
import { confirm, edit } from "../part/dialog.js";
import { sendTest } from "../part/first_mail.js";
import { Field } from "../part/form.js";
import { Icon } from "../part/icon.js";
import { Empty, Loaded, useLoad } from "../part/load.js";
import { Mail, header } from "../part/mail.js";
import { Moment, absolute, count } from "../part/time.js";
import { toast } from "../part/toast.js";
import { link, refine } from "../route.js";

const LOOK_MS = 2_000;
const PAGE = 50;
const TYPED_MS = 300;

export default function Inbox({ query }) {
  const accounts = useLoad((signal) => get("/v1/accounts", {}, signal));
  return html`<${Loaded} from=${accounts}>
    ${({ data }) => {
      const found = data.filter(({ kind }) => kind === "sandbox");
      const others = data.filter(({ kind }) => kind !== "sandbox").map(({ id }) => id);
      return found.length
        ? html`<${Box} accounts=${found} others=${others} start=${query} />`
        : html`<div class="title"><h1>Sandbox inbox</h1></div><${Empty} title="There is no sandbox account">
          <p>An account of the kind <code>sandbox</code> captures mail instead of sending it.</p>
          <p><a href=${link("accounts")}>Make one</a></p><//>`;
    }}
  <//>`;
}

function Box({ accounts, others, start }) {
  const isAlone = others.length === 0;
  const [account, setAccount] = useState(start.account ?? accounts[0].id);
  const [open, setOpen] = useState(start.mail);
  const [limit, setLimit] = useState(PAGE);
  const [words, setWords] = useState(start.q ?? "");
  const [q, setQ] = useState(words);
  useEffect(() => {
    const timer = setTimeout(() => (setQ(words), refine("inbox", { account, mail: open, q: words })), TYPED_MS);
    return () => clearTimeout(timer);
  }, [words]);
  const mails = useLoad(
    (signal) => get("/v1/messages", { account, limit, q }, signal),
    [account, limit, q],
    LOOK_MS,
  );
  const choose = (uid) => {
    setOpen(uid);
    refine("inbox", { account, mail: uid, q });
  };
  /** Up and down go along the list, and open what they come to. */
  const along = (event) => {
    const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key];
    if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
    const at = list.findIndex(({ uid }) => uid === open);
    const next = list[Math.max(0, Math.min(list.length - 1, at < 0 ? 0 : at + step))];
    event.preventDefault();
    choose(next.uid);
    event.currentTarget.querySelectorAll("li > button")[list.indexOf(next)]?.focus();
  };
  const empty = async () => {
    const sure = await confirm({
      title: "Empty the inbox?",
      text: "All mail of this tenant that has ended is removed, with its history. Mail that waits stays.",
      action: "Empty it",
      kind: "danger",
    });
    if (!sure) return;
    for (let more = true; more; ) more = (await post("/v1/cleanup", undefined, { query: { older_than_seconds: 0 } })).deleted > 0;
    setOpen("");
    mails.reload();
  };
  // Where the tenant is one for tests, what was captured counts as sent.
  const list = (mails.data?.data ?? []).filter(({ status }) => status === "captured" || status === "sent");
  return html`
    <div class="title">
      <h1>Sandbox inbox</h1><span class="grow"></span>
      ${accounts.length > 1 &&
        html`<${Field} id="inbox-account" name="account" label="Account" kind="choice"
          options=${accounts.map(({ id }) => id)} value=${account} onInput=${setAccount} />`}
      <${Field} id="inbox-search" name="q" label="Search" kind="search" value=${words} onInput=${setWords}
        placeholder="address, words of the subject" />
      ${isAlone && may("manage") && list.length > 0 && html`<${Button} onClick=${empty}>Empty<//>`}
      ${may("send") && html`<${Button} icon="send" onClick=${() => sendTest(account)}>Send a test mail<//>`}
    </div>
    <${Loaded} from=${mails}>
      ${() =>
        list.length === 0
          ? q ? html`<${Empty} title="No mail fits"><p>Nothing captured by <code>${account}</code> has “${q}”.</p><//>`
          : html`<${Empty} title="Nothing captured yet"><p>Mail sent by the account <code>
            ${account}</code> shows here within seconds.</p><//>`
          : html`<div class=${`client ${open ? "reading" : ""}`}>
              <ul class="mails" aria-label="Captured mail" onKeyDown=${along}>
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
              ${open ? html`<${Reading} uid=${open} key=${open} others=${others} close=${() => choose("")} />`
                : html`<p class="muted choose">Choose a mail.</p>`}
            </div>`}
    <//>
  `;
}

/** Sends it once more, by an account that sends. */
async function release(path, others) {
  const { id, account, ...mail } = await get(`${path}/payload`);
  const fields = [
    { name: "account", label: "By the account", kind: "choice", options: others, required: true },
    { name: "to", label: "To", required: true, wide: true, hint: "Only there: nobody else who was to get it does." },
  ];
  const save = ({ account = others[0], to }) => {
    const { cc, bcc, ...rest } = mail;
    return post("/v1/messages", { ...rest, account, to: to ?? "" });
  };
  const sent = await edit({ title: "Release it", note: "A new message is made of it, and really sent.", fields, preset: { account: others[0], to: [mail.to ?? []].flat().map((one) => one.address ?? one).join(", ") }, action: "Send it", save });
  if (sent) toast(html`Accepted: <a href=${link(`messages/${sent.uid}`)}>its history</a>`);
}

function Reading({ uid, others, close }) {
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
      download=${`${uid}.eml`}>Download EML</a>${others.length > 0 && may("send") && html` · <button type="button" class="link"
        onClick=${() => release(path, others).catch((error) => toast(error.message, "bad"))}>Release to…</button>`}</p>
    <${Mail} path=${path} />
  </article>`;
}
