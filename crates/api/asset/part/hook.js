// Where an account's provider reports what happened to its mail: made, replaced, and what it reported.

import { html, useState } from "../vendor/preact.js";
import { get, may, post, put, remove } from "../api.js";
import { Badge } from "./badge.js";
import { Button } from "./button.js";
import { confirm, edit, secretOnce } from "./dialog.js";
import { Loaded, useLoad } from "./load.js";
import { Facts, Listing } from "./table.js";
import { When } from "./time.js";
import { toast } from "./toast.js";
import { link } from "../route.js";

const PROVIDERS = ["", "ses", "sendgrid", "mailgun", "postmark", "resend", "http"];

const fields = () => [
  { name: "provider", label: "Provider", kind: "choice", options: PROVIDERS, hint: "The account's own when empty." },
  { name: "topics", label: "SES: the ARNs of its topics", wide: true, hint: "Separated by commas." },
  { name: "public_key", label: "SendGrid: the verification key", wide: true },
  { name: "username", label: "Postmark: the user name" },
  { name: "secret", label: "Mailgun, Resend: the signing key", hint: "For Postmark and http one is made when empty." },
];

const bodyOf = ({ topics, ...given }) => ({
  ...Object.fromEntries(Object.entries(given).filter(([, value]) => value)),
  ...(topics && { topics: String(topics).split(",").map((topic) => topic.trim()).filter(Boolean) }),
});

const absolute = (path) => new URL(path, location.origin).href;

/** What is shown once: the URL for the provider, and perhaps a password. */
async function hand({ url, secret }) {
  await secretOnce("Give this URL to the provider", "It is shown this once.", absolute(url));
  if (secret) await secretOnce("And this secret", "It is shown this once.", secret);
}

/** An account without a hook answers 404, which is no error here. */
const read = async (path, signal) => {
  try {
    return { hook: await get(`${path}/hook`, {}, signal) };
  } catch (error) {
    if (error.status === 404) return { hook: null };
    throw error;
  }
};

export function Hook({ path }) {
  const found = useLoad((signal) => read(path, signal), [path]);
  return html`<${Loaded} from=${found}>${({ hook }) => html`<${Shown} hook=${hook} path=${path} changed=${found.reload} />`}<//>`;
}

function Shown({ hook, path, changed }) {
  const save = async (given) => {
    const made = await put(`${path}/hook`, bodyOf(given));
    if (made.url) setTimeout(hand, 0, made);
  };
  const set = async () => {
    const value = hook && { ...hook, topics: hook.topics.join(", ") };
    if (await edit({ title: hook ? "Change the hook" : "Make a hook", fields: fields(), value, save })) changed();
  };
  const rotate = async () => {
    const text = "The earlier URL stops at once. The provider repeats what it could not report meanwhile.";
    if (!(await confirm({ title: "Make a new URL?", text, action: "Make it" }))) return;
    await hand(await post(`${path}/hook/rotate`));
    changed();
  };
  const drop = async () => {
    const text = "Its provider can report nothing any more.";
    if (!(await confirm({ title: "Delete the hook?", text, action: "Delete", kind: "danger" }))) return;
    await remove(`${path}/hook`);
    toast("The hook is deleted");
    changed();
  };
  return html`
    <div class="title"><h2>What its provider reports</h2></div>
    ${!hook && html`<p class="muted">It has no hook: a provider can report bounces and complaints to one.</p>`}
    ${
      may("manage") &&
      html`<div class="acts start">
        <${Button} onClick=${set}>${hook ? "Edit the hook" : "Make a hook"}<//>
        ${hook && html`<${Button} onClick=${rotate}>New URL<//><${Button} kind="danger" onClick=${drop}>Delete the hook<//>`}
      </div>`
    }
    ${
      hook &&
      html`<${Facts} pairs=${[
        ["Provider", hook.provider],
        ["Topics", hook.topics.join(", ")],
        ["User name", hook.username],
        ["Secret", hook.secret_set ? "set" : null],
        ["Changed", html`<${When} at=${hook.updated_at} />`],
      ]} /><${Events} path=${path} />`
    }
  `;
}

function Events({ path }) {
  const [turn, setTurn] = useState(0);
  return html`
    <div class="title"><h3>Reported events</h3><span class="grow"></span>
      <${Button} icon="again" label="Read reported events again" onClick=${() => setTurn(turn + 1)} /></div>
    <${Listing} caption="Reported events" path=${`${path}/hook/events`} turn=${turn}
      empty=${html`<p class="muted">Nothing yet.</p>`} columns=${[
        { head: "Came", cell: (row) => html`<${When} at=${row.created_at} />` },
        { head: "Says", cell: (row) => row.kind },
        { head: "State", cell: (row) => html`<${Badge} status=${row.status} />` },
        {
          head: "Message",
          cell: (row) => row.message && html`<a class="break" href=${link(`messages/${row.message}`)}>${row.message}</a>`,
        },
        { head: "Why not", cell: (row) => row.reason },
      ]} />
  `;
}
