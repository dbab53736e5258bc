// A row of fields that narrow a list. What is typed counts after a moment, without a button.

import { html, useEffect, useState } from "../vendor/preact.js";
import { Field } from "./form.js";

const TYPED_MS = 300;

/**
 * `fields` as in a form, `value` what is asked, by name; `also` names what an address may ask without a field. Those that
 * are `extra` are folded away while none of them is used.
 */
export function Filters({ label, fields, value, set, also = [] }) {
  const [held, setHeld] = useState(value);
  const [all, setAll] = useState(() => fields.some(({ name, extra }) => extra && value[name]));
  useEffect(() => {
    const timer = setTimeout(() => held !== value && set(held), TYPED_MS);
    return () => clearTimeout(timer);
  }, [held]);
  const now = (next) => {
    setHeld(next);
    set(next);
  };
  const names = [...fields.map(({ name }) => name), ...also];
  const clear = () => now(Object.fromEntries(names.map((name) => [name, ""])));
  const submit = (event) => {
    event.preventDefault();
    set(held);
  };
  return html`<form class=${all ? "filters all" : "filters"} role="search" aria-label=${label} onSubmit=${submit}>
    ${fields.map(
      (field) => html`<${Field} ...${field} key=${field.name} id=${`filter-${field.name}`} wide=${field.kind === "search"}
        value=${held[field.name]} onInput=${(to) => setHeld({ ...held, [field.name]: to })} />`,
    )}
    ${
      fields.some(({ extra }) => extra) &&
      html`<button type="button" class="toggle" aria-expanded=${String(all)} onClick=${() => setAll(!all)}>
        ${all ? "Fewer filters" : "More filters"}
      </button>`
    }
    ${also.filter((name) => held[name]).map((name) =>
      html`<span class="chip"><span class="muted">${name}</span> ${held[name]}</span>`)}
    ${names.some((name) => held[name]) &&
      html`<button type="button" class="plain" onClick=${clear}>Clear</button>`}
  </form>`;
}
