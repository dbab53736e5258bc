// What can be done with a message, as far as its state and the key allow.

import { html } from "../vendor/preact.js";
import { get, may, post } from "../api.js";
import { go } from "../route.js";
import { Button } from "./button.js";
import { ask, confirm, edit } from "./dialog.js";
import { Icon } from "./icon.js";
import { toast } from "./toast.js";

const CANCELS = ["accepted", "validating", "ready", "scheduled"];
const RETRIES = ["failed", "scheduled"];

const OUTCOMES = [
  ["sent", "It was sent", "The receiver has it."],
  ["failed", "It failed", "The receiver does not have it, and it is not sent again."],
  ["resend", "Send it again", "The receiver may get it twice."],
];

const resolution = () =>
  ask(
    "What is its outcome?",
    (close) => html`
    <p>The mail went out and the relay's last answer was lost. Look into the relay's log, or ask the receiver.</p>
    <ul class="choices">
      ${OUTCOMES.map(([outcome, name, means]) =>
        html`<li><button type="button" onClick=${() => close(outcome)}>${name}</button><span class="muted">
          ${means}</span></li>`)}
    </ul>
  `,
  );

export function Actions({ one, path, changed }) {
  const cancel = async () => {
    const sure = await confirm({
      title: "Cancel this message?",
      text: "It is not sent. This cannot be undone.",
      action: "Cancel the message",
      kind: "danger",
    });
    if (!sure) return;
    await post(`${path}/cancel`);
    toast("Cancelled");
    changed();
  };
  const retry = async () => {
    await post(`${path}/retry`);
    toast("In the queue again");
    changed();
  };
  const reschedule = async () => {
    const fields = [{ name: "send_at", label: "Not before", kind: "time", required: true }];
    const save = (body) => post(`${path}/reschedule`, body);
    if (!(await edit({ title: "Another time", fields, preset: { send_at: one.due_at }, action: "Reschedule", save }))) return;
    toast("It waits for its new time");
    changed();
  };
  const resolve = async () => {
    const outcome = await resolution();
    if (!outcome) return;
    await post(`${path}/resolve`, { outcome });
    toast("Settled");
    changed();
  };
  const again = async () => {
    const { id, ...payload } = await get(`${path}/payload`);
    const sure = await confirm({
      title: "Send it again?",
      text: "A new message is made of the request that brought this one. Its recipients get it once more.",
      action: "Send again",
    });
    if (!sure) return;
    const { uid } = await post("/v1/messages", payload);
    toast("Accepted as a new message");
    go(`messages/${uid}`);
  };
  return html`<div class="acts start">
    ${
      may("send") &&
      html`
      ${RETRIES.includes(one.status) &&
        html`<${Button} kind="primary" icon="again" onClick=${retry}>
          ${one.status === "failed" ? "Retry" : "Send now"}<//>`}
      ${one.status === "scheduled" && !one.attempt && html`<${Button} onClick=${reschedule}>Another time<//>`}
      ${one.status === "in_doubt" && html`<${Button} kind="primary" onClick=${resolve}>Resolve<//>`}
      ${CANCELS.includes(one.status) && html`<${Button} kind="danger" onClick=${cancel}>Cancel<//>`}
      ${!one.sensitive && html`<${Button} icon="send" onClick=${again}>Send again<//>`}
    `
    }
    ${!one.sensitive && one.eml_file_path &&
      html`<a class="button" href=${`${path}/raw`} download=${`${one.uid}.eml`}>
        <${Icon} name="down" />Download EML</a>`}
  </div>`;
}
