// A row of fields that narrow a list. What is typed counts after a moment, without a button.

import { html, useEffect, useState } from "../vendor/preact.js";
import { Field } from "./form.js";

const TYPED_MS = 300;

/** `fields` as in a form, `value` what is asked, by name. Those that are `extra` are folded away on a narrow screen. */
export function Filters({ label, fields, value, set }) {
  const [held, setHeld] = useState(value);
  const [all, setAll] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => held !== value && set(held), TYPED_MS);
    return () => clearTimeout(timer);
  }, [held]);
  const now = (next) => {
    setHeld(next);
    set(next);
  };
  const clear = () => now(Object.fromEntries(fields.map(({ name }) => [name, ""])));
  const submit = (event) => {
    event.preventDefault();
    set(held);
  };
  return html`<form class=${all ? "filters all" : "filters"} role="search" aria-label=${label} onSubmit=${submit}>
    ${fields.map(
      (field) => html`<${Field} ...${field} key=${field.name} id=${`filter-${field.name}`} wide=${false}
        value=${held[field.name]} onInput=${(to) => setHeld({ ...held, [field.name]: to })} />`,
    )}
    ${
      fields.some(({ extra }) => extra) &&
      html`<button type="button" class="toggle" aria-expanded=${String(all)} onClick=${() => setAll(!all)}>
        ${all ? "Fewer filters" : "More filters"}
      </button>`
    }
    ${fields.some(({ name }) => held[name]) &&
      html`<button type="button" class="plain" onClick=${clear}>Clear</button>`}
  </form>`;
}
