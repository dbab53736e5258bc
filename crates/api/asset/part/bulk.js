// One action on every message that a filter finds: first counted, then confirmed, then done with the progress shown.
// It is the same calls that act on one message, some at a time.

import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { get, post, url } from "../api.js";
import { ask } from "./dialog.js";
import { Field } from "./form.js";
import { count } from "./time.js";
import { link } from "../route.js";

/** The states that an action fits. */
const FITS = {
  cancel: ["accepted", "validating", "ready", "scheduled"],
  retry: ["failed", "scheduled"],
};
const FOUND_MAX = 10_000;
const PAGE = 500;
const TOGETHER = 8;
const TOLD_MAX = 50;

/** Every message of the filter that the action fits, up to a bound, and whether there are more. */
async function find(action, { id, status, ...filter }, told, signal) {
  const found = [];
  for (const state of FITS[action].filter((state) => !status || state === status)) {
    let cursor;
    do {
      const page = await get("/v1/messages", { ...filter, status: state, limit: PAGE, cursor }, signal);
      found.push(...page.data);
      told(Math.min(found.length, FOUND_MAX));
      // One beyond the bound tells that there are more.
      if (found.length > FOUND_MAX) return { found: found.slice(0, FOUND_MAX), more: true };
      cursor = page.next_cursor;
    } while (cursor);
  }
  return { found, more: false };
}

async function act(action, messages, told, signal) {
  const left = [...messages];
  const refused = [];
  let done = 0;
  const worker = async () => {
    for (let message = left.shift(); message && !signal.aborted; message = left.shift()) {
      try {
        await post(url`/v1/messages/${message.uid}/${action}`);
      } catch (error) {
        refused.push({ message, why: error.message });
      }
      told(++done);
    }
  };
  await Promise.all(Array.from({ length: TOGETHER }, worker));
  return { done: done - refused.length, refused };
}

/** Asks what to do with what the filter finds, and does it. Whether anything was done. */
export const bulk = (filter) =>
  ask("Act on all of these", (close) => html`<${Bulk} filter=${filter} close=${close} />`);

function Bulk({ filter, close }) {
  const [action, setAction] = useState("");
  const [typed, setTyped] = useState("");
  const [counted, setCounted] = useState(0);
  const [list, setList] = useState(null);
  const [error, setError] = useState(null);
  const [progress, setProgress] = useState(null);
  const [result, setResult] = useState(null);
  const stop = useRef(new AbortController());
  useEffect(() => () => stop.current.abort(), []);
  useEffect(() => {
    const other = new AbortController();
    setList(null);
    setCounted(0);
    setTyped("");
    if (!action) return;
    find(action, filter, setCounted, other.signal).then(setList, (fault) => other.signal.aborted || setError(fault));
    return () => other.abort();
  }, [action]);
  const start = async () => {
    setProgress(0);
    setResult(await act(action, list.found, setProgress, stop.current.signal));
  };
  if (error) return html`<p class="error" role="alert">${error.message}</p>`;
  if (result) return html`<${Result} action=${action} result=${result} close=${close} />`;
  if (progress !== null) {
    return html`<p role="status">${count(progress)} of ${count(list.found.length)} done</p>
      <progress value=${progress} max=${list.found.length} aria-label="Progress"></progress>
      <div class="acts"><button type="button" onClick=${() => stop.current.abort()}>Stop here</button></div>`;
  }
  const number = list?.found.length;
  const chosen = Object.entries(filter).filter(([, value]) => value);
  const isSure = chosen.length > 0 || typed.replaceAll(/\D/g, "") === String(number);
  return html`
    <p>${chosen.length ? html`Filter: ${chosen.map(([name, value]) => html`<code>${name}=${value}</code> `)}`
      : "No filter is set: this is about every message of the tenant."}</p>
    <${Field} id="bulk-action" name="action" label="Action" kind="choice" value=${action} onInput=${setAction}
      options=${[
        ["", "Choose what to do"],
        ["cancel", "Cancel what has not left yet"],
        ["retry", "Retry what failed, and send now what waits"],
      ]} />
    <p role="status">
      ${!action ? "" : list === null ? `Counting… ${count(counted)}`
        : list.more ? html`<strong>The first ${count(number)}</strong> of more: do it again afterwards for the others.`
          : html`<strong>${count(number)}</strong> ${number === 1 ? "message fits" : "messages fit"}.`}
    </p>
    ${action && number > 0 && !chosen.length &&
      html`<${Field} id="bulk-typed" name="typed" label=${html`Type <code>${number}</code> to confirm`} value=${typed}
        onInput=${setTyped} />`}
    <div class="acts">
      <button type="button" onClick=${() => close(false)}>Keep as it is</button>
      <button type="button" class=${action === "cancel" ? "danger" : "primary"} disabled=${!number || !isSure}
        onClick=${start}>
        ${{ cancel: "Cancel", retry: "Retry" }[action] ?? "Do it"} ${!action ? "" : list ? count(number) : "…"}
      </button>
    </div>
  `;
}

const Result = ({ action, result: { done, refused }, close }) => html`
  <p role="status"><strong>
    ${count(done)}</strong> ${action === "cancel" ? "cancelled"
      : "in the queue again"}, ${count(refused.length)} left as they were.</p>
  ${
    refused.length > 0 &&
    html`<ul class="results">
    ${refused.slice(0, TOLD_MAX).map(({ message, why }) =>
      html`<li><a href=${link(`messages/${message.uid}`)}>${message.id}</a>: ${why}</li>`)}
    ${refused.length > TOLD_MAX && html`<li>and ${count(refused.length - TOLD_MAX)} more</li>`}
  </ul>`
  }
  <div class="acts"><button type="button" class="primary" onClick=${() => close(true)}>Done</button></div>
`;
