// Short words on what was just done, read out by screen readers, gone after a while. Errors stay longer.

import { html, useEffect, useState } from "../vendor/preact.js";

const SHOWN_MS = { good: 4_000, bad: 12_000 };
let add = () => {};
let count = 0;

/** Says something in the corner. */
export const toast = (text, tone = "good") => add({ key: ++count, text, tone });

/** Where toasts show; once, in the shell. */
export function Toasts() {
  const [shown, setShown] = useState([]);
  const drop = (key) => setShown((all) => all.filter((one) => one.key !== key));
  useEffect(() => {
    add = (one) => {
      setShown((all) => [...all.slice(-3), one]);
      setTimeout(() => drop(one.key), SHOWN_MS[one.tone]);
    };
  }, []);
  return html`<div class="toasts" role="status" aria-live="polite">
    ${shown.map(
      (one) => html`<div class=${`toast ${one.tone}`} key=${one.key}>
        <span>${one.text}</span>
        <button type="button" class="plain" aria-label="Dismiss" onClick=${() => drop(one.key)}>×</button>
      </div>`,
    )}
  </div>`;
}
