// Questions in front of the page, in the browser's own <dialog>: it holds the focus, Escape closes it, and the focus
// goes back to where it was. What was typed into one is not thrown away unasked.

import { html, useLayoutEffect, useRef, useState } from "../vendor/preact.js";
import { Form } from "./form.js";
import { Copy } from "./button.js";
import { mayLeave } from "./unsaved.js";

let show = () => {};

/** Shows `body(close, dismiss)` under a title; `dismiss` asks first whether what was typed may be
 * lost. What `close` was given, or undefined where it was dismissed. */
export const ask = (title, body) => new Promise((done) => show({ title, body, done }));

/** Whether somebody really wants this. What cannot be had back is confirmed by typing its name, `typed`. */
export const confirm = ({ title, text, action, kind = "primary", typed }) =>
  ask(title, (close) =>
    typed
      ? html`
    <p>${text}</p>
    <${Form} passing fields=${[{ name: "typed", label: html`Type <code>${typed}</code> to confirm`, wide: true }]}
      action=${action} kind=${kind} keep="Keep as it is" onCancel=${() => close(false)}
      onSubmit=${async (given) => {
        if (given.typed !== typed) throw { details: [{ field: "typed", message: `this is not ${typed}` }] };
        close(true);
      }} />
  `
      : html`
    <p>${text}</p>
    <div class="acts">
      <button type="button" onClick=${() => close(false)}>Keep as it is</button>
      <button type="button" class=${kind} onClick=${() => close(true)}>${action}</button>
    </div>
  `);

/**
 * A form in front of the page. `save(changes)` may refuse; what it returned, or undefined where it was dismissed. `trial`
 * follows where it is to be saved and tested.
 */
export const edit = ({ title, fields, value, preset, action = "Save", save, note, expert, trial }) =>
  ask(
    title,
    (close, dismiss) => html`
    ${note && html`<p class="muted">${note}</p>`}
    <${Form} fields=${fields} value=${value} preset=${preset} action=${action} onCancel=${dismiss} expert=${expert}
      second=${trial && `${action} and test`}
      onSubmit=${async (changes, isTried) => {
        const saved = (await save(changes)) ?? true;
        close(saved);
        if (isTried) setTimeout(trial, 0, saved);
      }} />
  `,
  );

/** Something that is shown this once. */
export const secretOnce = (title, text, secret) =>
  ask(
    title,
    (close) => html`
    <p>${text}</p>
    <p class="secret"><code>${secret}</code><${Copy} text=${secret} /></p>
    <div class="acts"><button type="button" class="primary" onClick=${() => close(true)}>I have kept it</button></div>
  `,
  );

/** Where dialogs show; once, in the shell. One that asks another is replaced by it. */
export function Dialogs() {
  const [shown, setShown] = useState(null);
  const box = useRef(null);
  const from = useRef(null);
  const close = (answer) => {
    box.current.close();
    setShown(null);
    shown.done(answer);
    // A row that is gone has nothing to go back to.
    setTimeout(() => (from.current?.isConnected ? from.current : document.getElementById("main"))?.focus());
  };
  const dismiss = async () => (await mayLeave()) && close();
  show = (next) => {
    if (!shown) from.current = document.activeElement;
    shown?.done(undefined);
    setShown(next);
  };
  // Before anything is painted: a reader who sees the form, or leaves the page, finds the dialog open.
  useLayoutEffect(() => {
    if (!shown) return;
    if (!box.current.open) box.current.showModal();
    box.current.querySelector("form :is(input, select, textarea), .acts button")?.focus();
    const left = () => close();
    addEventListener("pageleave", left);
    return () => removeEventListener("pageleave", left);
  }, [shown]);
  if (!shown) return null;
  return html`<dialog ref=${box} aria-labelledby="dialog-title"
    onCancel=${(event) => (event.preventDefault(), dismiss())}>
    <div class="head">
      <h2 id="dialog-title">${shown.title}</h2>
      <button type="button" class="plain" aria-label="Close" onClick=${dismiss}>×</button>
    </div>
    ${shown.body(close, dismiss)}
  </dialog>`;
}
