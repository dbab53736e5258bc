// Forms from a list of fields. What the server says about a field stands under that field; the rest stands above.
//
// A field is `{name, label, kind, hint, options, when(value), required, rows}`. Its name may lead inwards:
// `limits.per_day`. Kinds: text, number, area, check, choice, list (one a line), json, secret (sent only if filled
// in), time.

import { html, useRef, useState } from "../vendor/preact.js";
import { fromField, toField } from "./time.js";
import { useUnsaved } from "./unsaved.js";

const at = (value, name) => name.split(".").reduce((inner, part) => inner?.[part], value);

function put(target, name, value) {
  const parts = name.split(".");
  const last = parts.pop();
  const inner = parts.reduce((inner, part) => (inner[part] ??= {}), target);
  inner[last] = value;
}

/** A value of the API as it stands in a control. */
function shown(kind, value) {
  if (kind === "check") return Boolean(value);
  if (value === null || value === undefined) return "";
  if (kind === "list") return value.join("\n");
  if (kind === "json") return JSON.stringify(value, null, 2);
  if (kind === "time") return toField(value);
  return String(value);
}

/** What a control holds as a value of the API; null where it is empty. */
function read(kind, held) {
  if (kind === "check") return held;
  const text = kind === "area" || kind === "secret" ? held : held.trim();
  if (kind === "list")
    return text
      .split(/[\n,]/)
      .map((item) => item.trim())
      .filter(Boolean);
  if (text === "") return null;
  if (kind === "number") return Number(text);
  if (kind === "json") return JSON.parse(text);
  if (kind === "time") return fromField(text);
  return text;
}

const isEmpty = (value) => value === null || (Array.isArray(value) && value.length === 0);

/** What differs from `before`: for a new thing what is filled in, for an old one also what was emptied. */
function changes(fields, held, before) {
  const body = {};
  const wrong = {};
  for (const { name, kind } of fields) {
    try {
      const value = read(kind, held[name]);
      const unchanged = before ? held[name] === shown(kind, at(before, name)) : isEmpty(value);
      if (!unchanged && !(kind === "secret" && value === null)) put(body, name, value);
    } catch {
      wrong[name] = "is not valid JSON";
    }
  }
  return { body, wrong };
}

/** Which field a fault of the server is about: the field itself, or what it is in (`to[0]`, `limits`). */
function owner(fields, fault) {
  const fits = (name) => fault === name || fault.startsWith(`${name}[`) || fault.startsWith(`${name}.`);
  return fields.find(({ name, also = [] }) => [name, ...also].some(fits))?.name;
}

let forms = 0;

/**
 * `value` is what is edited, absent for something new; `preset` what a new one starts with. `action` and `keep` are the
 * words of its buttons, `kind` that of the first. What is typed into one that is `passing` need not be kept.
 */
export function Form({
  fields,
  value,
  preset = {},
  action,
  kind = "primary",
  keep = "Cancel",
  onSubmit,
  onCancel,
  onChange,
  passing,
}) {
  const start = () =>
    Object.fromEntries(fields.map(({ name, kind }) => [name, shown(kind, at(value ?? preset, name))]));
  const [held, setHeld] = useState(start);
  const [faults, setFaults] = useState({});
  const [busy, setBusy] = useState(false);
  const form = useRef(null);
  const id = useRef(null);
  id.current ??= `form${++forms}`;
  const [began, setBegan] = useState(held);
  const saved = useUnsaved(!passing && JSON.stringify(held) !== JSON.stringify(began));
  const visible = fields.filter(({ when }) => !when || when(held));
  const set = (name, to) => {
    const next = { ...held, [name]: to };
    setHeld(next);
    onChange?.(next);
  };
  const refuse = (wrong) => {
    setFaults(wrong);
    setTimeout(() => form.current?.querySelector("[aria-invalid=true], [role=alert]")?.focus());
  };
  const submit = async (event) => {
    event.preventDefault();
    const { body, wrong } = changes(visible, held, value);
    if (Object.keys(wrong).length) return refuse(wrong);
    setBusy(true);
    setFaults({});
    try {
      await onSubmit(body);
      saved();
      setBegan(held);
    } catch (error) {
      const told = {};
      for (const { field, message } of error.details ?? []) {
        const name = owner(visible, field);
        const words = name === field ? message : `${field}: ${message}`;
        if (name) told[name] = told[name] ? `${told[name]}; ${words}` : words;
        else told[""] = told[""] ? `${told[""]}; ${words}` : words;
      }
      if (!Object.keys(told).length) told[""] = error.message;
      refuse(told);
    } finally {
      setBusy(false);
    }
  };
  return html`<form ref=${form} onSubmit=${submit} novalidate>
    ${faults[""] && html`<p class="error" role="alert" tabindex="-1">${faults[""]}</p>`}
    <div class="fields">
      ${visible.map(
        (
          field,
        ) => html`<${Field} ...${field} key=${field.name} id=${`${id.current}-${field.name}`} value=${held[field.name]}
        fault=${faults[field.name]} onInput=${(to) => set(field.name, to)} />`,
      )}
    </div>
    <div class="acts">
      ${onCancel && html`<button type="button" onClick=${onCancel}>${keep}</button>`}
      <button type="submit" class=${kind} disabled=${busy} aria-busy=${busy ? "true" : null}>${action}</button>
    </div>
  </form>`;
}

/** One labelled control with its hint and what is wrong with it. */
export function Field({
  id,
  name,
  label,
  kind = "text",
  hint,
  options,
  required,
  rows = 4,
  value,
  fault,
  onInput,
  placeholder,
  wide,
  focus,
  code,
  extra,
}) {
  const about = [hint && `${id}-hint`, fault && `${id}-fault`].filter(Boolean).join(" ") || null;
  const common = {
    id,
    name,
    required,
    placeholder,
    autofocus: focus,
    "aria-describedby": about,
    "aria-invalid": fault ? "true" : null,
  };
  const input = (event) => onInput(event.target.value);
  const notes = html`
    ${hint && html`<span class="hint" id=${`${id}-hint`}>${hint}</span>`}
    ${fault && html`<span class="error" id=${`${id}-fault`}>${fault}</span>`}
  `;
  if (kind === "check") {
    return html`<div class="field check">
      <input type="checkbox" ...${common} checked=${value} onChange=${(event) => onInput(event.target.checked)} />
      <label for=${id}>${label}</label>${notes}
    </div>`;
  }
  const control = {
    choice: () => html`<select ...${common} value=${value} onChange=${input}>
      ${options.map((option) => {
        const [word, shownAs = word || "any"] = [option].flat();
        return html`<option value=${word} selected=${word === value}>${shownAs}</option>`;
      })}
    </select>`,
    secret: () =>
      html`<input type="password" autocomplete="new-password" ...${common} value=${value} onInput=${input} />`,
    number: () => html`<input type="number" inputmode="numeric" ...${common} value=${value} onInput=${input} />`,
    time: () => html`<input type="datetime-local" ...${common} value=${value} onInput=${input} />`,
    search: () => html`<input type="search" spellcheck="false" autocomplete="off" ...${common} value=${value}
      onInput=${input} />`,
    text: () => html`<input type="text" spellcheck="false" ...${common} value=${value} onInput=${input} />`,
  };
  const area = () =>
    html`<textarea rows=${rows} spellcheck="false" class=${kind === "json" || code ? "code" : ""} ...${common}
      value=${value} onInput=${input}></textarea>`;
  const isWide = wide ?? !(kind in control && kind !== "list");
  return html`<div class=${`field ${isWide ? "wide" : ""} ${extra ? "extra" : ""}`}>
    <label for=${id}>${label}${required && html`<span class="required"> required</span>`}</label>
    ${(control[kind] ?? area)()}${notes}
  </div>`;
}
