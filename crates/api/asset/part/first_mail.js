// What a newcomer sees: how to send the first mail, and a button that does it.

import { html } from "../vendor/preact.js";
import { currentTenant, get, may, post, session } from "../api.js";
import { go, link } from "../route.js";
import { Button, Copy } from "./button.js";
import { useLoad } from "./load.js";

const MAIL = {
  from: "Postway <hello@example.com>",
  to: ["you@example.net"],
  subject: "It works",
  text: "This mail went all the way: accepted, stored, and captured by the sandbox.",
};
const HTML = `<div style="font-family: sans-serif; max-width: 480px; margin: 24px auto; color: #1b2330">
<h1 style="font-size: 20px">It works</h1>
<p>This mail went all the way: accepted, stored, and captured by the sandbox.</p>
<p style="color: #566072">Change the account to a real relay, and it goes out.</p></div>`;

const command = () => `curl ${location.origin}/v1/messages \\
  -H "Authorization: Bearer $POSTWAY_KEY" \\${session().admin && currentTenant() !== "default"
    ? `\n  -H "X-Tenant: ${currentTenant()}" \\` : ""}
  -H "Content-Type: application/json" \\
  -d '{"from": "${MAIL.from}",
       "to": ["${MAIL.to}"],
       "subject": "${MAIL.subject}", "text": "Hello."}'`;

/** Sends a mail to the sandbox and shows it there. */
export async function sendTest(account) {
  await post("/v1/messages", { ...MAIL, html: HTML, account, tags: ["test"] });
  go("inbox");
}

export function FirstMail() {
  const accounts = useLoad((signal) => get("/v1/accounts", {}, signal));
  const sandbox = accounts.data?.data.find((account) => account.kind === "sandbox");
  return html`<section class="card first">
    <h2>Send your first mail</h2>
    <p>Nothing has been sent yet. Put your key in the place of <code>$POSTWAY_KEY</code> and run this:</p>
    <div class="command"><pre tabindex="0">${command()}</pre><${Copy} text=${command()}
      label="Copy the command" /></div>
    ${sandbox &&
      html`<p>The account <code>${sandbox.id}</code> captures mail instead of sending it: look at it in
        ${" "}the <a href=${link("inbox")}>sandbox inbox</a>.</p>`}
    <div class="acts start">
      ${sandbox && may("send") &&
        html`<${Button} kind="primary" icon="send" onClick=${() => sendTest(sandbox.id)}>Send a test mail<//>`}
      ${may("manage") && html`<a class="button" href=${link("accounts")}>Add a relay</a>`}
      <a class="button" href="/docs">API reference</a>
    </div>
  </section>`;
}
