// Buttons that do something on the server: not twice at once, and a failure is shown.

import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { Icon } from "./icon.js";
import { toast } from "./toast.js";

/** `onClick` may take its time. `kind` is `primary`, `danger` or nothing. */
export function Button({ onClick, kind = "", icon, label, disabled, children, ...rest }) {
  const [busy, setBusy] = useState(false);
  const here = useRef(true);
  useEffect(() => () => (here.current = false), []);
  const press = async (event) => {
    if (busy) return;
    setBusy(true);
    try {
      await onClick(event);
    } catch (error) {
      toast(error.message, "bad");
    } finally {
      if (here.current) setBusy(false);
    }
  };
  // A disabled button would lose the focus, and closing the dialog that it opened would not return to it.
  return html`<button type="button" class=${kind} disabled=${disabled} aria-disabled=${busy ? "true" : null} aria-busy=${busy ? "true" : null}
    aria-label=${label} title=${label} onClick=${press} ...${rest}>
    ${icon && html`<${Icon} name=${icon} />`}${children}
  </button>`;
}

/** Puts a text on the clipboard. */
export function Copy({ text, label = "Copy", children }) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    // A browser has no clipboard for pages that came without TLS from elsewhere.
    if (!navigator.clipboard) throw new Error("The browser copies only on https or localhost: select the text instead.");
    await navigator.clipboard.writeText(text);
    setDone(true);
    setTimeout(() => setDone(false), 1_500);
  };
  return html`<${Button} kind="small" icon=${done ? "check" : "copy"} label=${done ? "Copied" : label} onClick=${copy}>
    ${children}
  <//>`;
}
