// One action on many messages, which the server does: first a dry run, then confirmed, then followed. Closing the dialog
// stops nothing; the page of bulk actions shows what is running.

import { html, useEffect, useState } from "../vendor/preact.js";
import { get, may, post, url } from "../api.js";
import { link } from "../route.js";
import { Badge } from "./badge.js";
import { Button } from "./button.js";
import { ask } from "./dialog.js";
import { Field } from "./form.js";
import { useLoad } from "./load.js";
import { count, fromField } from "./time.js";

const ACTIONS = () => [
  ["", "Choose what to do"],
  ["cancel", "Cancel what has not left yet"],
  ["retry", "Retry what failed, and send now what waits"],
  ["reschedule", "Give scheduled mail another time"],
  ["resolve", "Decide what became of mail in doubt"],
  ...(may("manage") ? [["suppress", "Suppress the recipients"]] : []),
];
const OUTCOMES = [
  ["", "Choose an outcome"],
  ["sent", "It was sent: the receivers have it"],
  ["failed", "It failed: they do not have it"],
  ["resend", "Send it again: they may get it twice"],
];
const DOES = { cancel: "Cancel", retry: "Retry", reschedule: "Reschedule", resolve: "Resolve", suppress: "Suppress" };
/** What cannot be taken back is confirmed by typing how much of it there is. */
const LASTS = ["cancel", "resolve"];
/** Whoever goes on choosing is asked about once, a moment later. */
const PLAN_MS = 250;
const FOLLOW_MS = 1_000;

/** Asks what to do with the messages of a filter, or with selected ones, and has it done. Whether anything was begun. */
export const bulk = ({ filter, ids }) =>
  ask(ids ? `Act on ${count(ids.length)} selected` : "Act on all of these",
    (close, dismiss) => html`<${Bulk} filter=${filter} ids=${ids} close=${close} dismiss=${dismiss} />`);

const given = (filter) => Object.fromEntries(Object.entries(filter ?? {}).filter(([, value]) => value));

function Bulk({ filter, ids, close, dismiss }) {
  const [action, setAction] = useState("");
  const [outcome, setOutcome] = useState("");
  const [at, setAt] = useState("");
  const [note, setNote] = useState("");
  const [typed, setTyped] = useState("");
  const [plan, setPlan] = useState(null);
  const [error, setError] = useState(null);
  const [begun, setBegun] = useState(null);
  const conditions = given(filter);
  const needs = { resolve: outcome, reschedule: fromField(at) };
  const isReady = Boolean(action && (!(action in needs) || needs[action]));
  const body = {
    action,
    ...(ids ? { ids } : { filter: conditions }),
    ...(action === "resolve" && { outcome }),
    ...(action === "reschedule" && { send_at: fromField(at) }),
    ...(action === "suppress" && note && { note }),
  };
  const asked = isReady ? JSON.stringify({ ...body, note: undefined }) : "";
  useEffect(() => {
    setPlan(null);
    setError(null);
    setTyped("");
    if (!asked) return;
    const stop = new AbortController();
    const look = () =>
      post("/v1/bulk-actions", JSON.parse(asked), { query: { dry_run: true }, signal: stop.signal })
        .then(setPlan, (fault) => stop.signal.aborted || setError(fault));
    const timer = setTimeout(look, PLAN_MS);
    return () => (clearTimeout(timer), stop.abort());
  }, [asked]);
  if (begun) return html`<${Progress} id=${begun.id} close=${close} />`;
  const start = async () => {
    try {
      setBegun(await post("/v1/bulk-actions", plan.or_more ? { ...body, at_most: 4_294_967_295 } : { ...body, at_most: plan.matching }));
    } catch (fault) {
      setError(fault);
    }
  };
  const names = Object.entries(conditions);
  const isTyped = LASTS.includes(action) || (!ids && !names.length);
  const isSure = !isTyped || typed.replaceAll(/\D/g, "") === String(plan?.changed);
  return html`
    ${!ids && html`<p>${names.length ? html`Filter: ${names.map(([name, value]) => html`<code>${name}=${value}</code> `)}`
      : "No filter is set: this is about every message of the tenant."}</p>`}
    <form class="fields" onSubmit=${(event) => event.preventDefault()}>
      <${Field} id="bulk-action" name="action" label="Action" kind="choice" wide value=${action} onInput=${setAction}
        options=${ACTIONS()} />
      ${action === "resolve" && html`<${Field} id="bulk-outcome" name="outcome" label="What became of it" kind="choice" wide
        value=${outcome} onInput=${setOutcome} options=${OUTCOMES} />`}
      ${action === "reschedule" && html`<${Field} id="bulk-at" name="send_at" label="Not before" kind="time" value=${at}
        onInput=${setAt} />`}
      ${action === "suppress" && html`<${Field} id="bulk-note" name="note" label="Note" value=${note} onInput=${setNote}
        hint=${conditions.outcome ? `Only recipients whose mail ${conditions.outcome}.` : "All recipients of these messages."} />`}
    </form>
    <div role="status" class="plan">${error ? "" : !isReady ? "" : plan ? html`<${Plan} plan=${plan} action=${action} />`
      : html`<p>Counting…</p>`}</div>
    ${error && html`<p class="error" role="alert">${error.message}${error.details?.map(({ message }) => html` ${message}.`)}</p>`}
    ${plan?.changed > 0 && isTyped &&
      html`<${Field} id="bulk-typed" name="typed" label=${html`Type <code>${plan.changed}</code> to confirm`} value=${typed}
        onInput=${setTyped} />`}
    <div class="acts">
      <button type="button" onClick=${dismiss}>Keep as it is</button>
      <${Button} kind=${LASTS.includes(action) ? "danger" : "primary"} disabled=${!plan?.changed || !isSure} onClick=${start}>
        ${DOES[action] ?? "Do it"} ${!plan ? "" : count(plan.changed)}
      <//>
    </div>
  `;
}

const Plan = ({ plan, action }) => html`
  <p><strong>${count(plan.changed)}${plan.or_more ? " or more" : ""}</strong> of ${count(plan.matching)}
    ${" "}${plan.matching === 1 ? "message" : "messages"}${plan.skipped > 0 && html`; ${count(plan.skipped)} stay as they are, because
    ${" "}${DOES[action].toLowerCase()} does not fit their state`}.</p>
  ${plan.by_status.length > 0 && html`<ul class="counts">${[...plan.by_status].sort((one, other) => Number(other.changed) - Number(one.changed)).map(({ status, changed, messages }) =>
    html`<li><${Badge} status=${status} /> ${count(messages)}${!changed && html` <span class="muted small">left</span>`}</li>`)}</ul>`}
`;

/** How far it is, until it has ended. */
function Progress({ id, close }) {
  const now = useLoad((signal) => get(url`/v1/bulk-actions/${id}`, {}, signal), [], FOLLOW_MS);
  const one = now.data;
  if (!one) return html`<p role="status">Begun…</p>`;
  const stop = async () => {
    await post(url`/v1/bulk-actions/${id}/stop`);
    now.reload();
  };
  const isOver = one.state !== "running";
  return html`
    <p role="status">${isOver
      ? html`<strong>${count(one.changed)}</strong> done, ${count(one.skipped)} left as they were${one.state === "stopped" && "; stopped"}.`
      : html`${count(one.changed + one.skipped)} of ${count(one.expected)}${one.expected_or_more ? " or more" : ""} done`}</p>
    <progress value=${isOver ? 1 : one.changed + one.skipped} max=${isOver ? 1 : Math.max(one.expected, 1)} aria-label="Progress"></progress>
    ${!isOver && html`<p class="muted small">The server goes on if you close this.
      ${" "}<a href=${link("bulk-actions")}>All bulk actions</a></p>`}
    <div class="acts">
      ${!isOver && html`<${Button} kind="danger" onClick=${stop}>Stop here<//>`}
      <button type="button" class="primary" onClick=${() => close(true)}>${isOver ? "Done" : "Close"}</button>
    </div>
  `;
}
