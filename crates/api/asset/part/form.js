// Forms from a list of fields. What the server says about a field stands under that field; the rest stands above.
//
// A field is `{name, label, kind, hint, options, when(value), required, rows}`. Its name may lead inwards:
// `limits.per_day`. Kinds: text, number, area, check, choice, list (one a line), json, secret (sent only if filled
// in), time, preset (an option `[word, words, {name: value}]` fills in other fields), and those of controls.js. A form with
// `expert` has a second side: the same as JSON.

import { html, useRef, useState } from "../vendor/preact.js";
import { KINDS } from "./controls.js";
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
  if (KINDS[kind]) return KINDS[kind].shown(value);
  if (kind === "check") return Boolean(value);
  if (value === null || value === undefined) return "";
  if (kind === "list") return value.join("\n");
  if (kind === "json") return JSON.stringify(value, null, 2);
  if (kind === "time") return toField(value);
  return String(value);
}

/** What a control holds as a value of the API; null where it is empty. */
function read(kind, held) {
  if (KINDS[kind]) return KINDS[kind].read(held);
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
    if (kind === "preset") continue;
    try {
      const value = read(kind, held[name]);
      const unchanged = before ? held[name] === shown(kind, at(before, name)) : isEmpty(value);
      if (!unchanged && !(kind === "secret" && value === null)) put(body, name, value);
    } catch (error) {
      wrong[name] = KINDS[kind] ? error.message : "is not valid JSON";
    }
  }
  return { body, wrong };
}

/** All that a form holds, as a body; what is empty or wrong is left out. */
function whole(fields, held) {
  const body = {};
  for (const { name, kind } of fields) {
    try {
      const value = kind === "preset" ? null : read(kind, held[name]);
      if (!isEmpty(value)) put(body, name, value);
    } catch {
      // It is said when the form is sent.
    }
  }
  return body;
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
  expert,
  second,
}) {
  const start = () =>
    Object.fromEntries(fields.map(({ name, kind }) => [name, shown(kind, at(value ?? preset, name))]));
  const [held, setHeld] = useState(start);
  const [faults, setFaults] = useState({});
  const [busy, setBusy] = useState(false);
  const [json, setJson] = useState(null);
  const form = useRef(null);
  const id = useRef(null);
  id.current ??= `form${++forms}`;
  const [began, setBegan] = useState(held);
  const saved = useUnsaved(!passing && (json !== null || JSON.stringify(held) !== JSON.stringify(began)));
  const visible = fields.filter(({ when }) => !when || when(held));
  const set = (name, to) => {
    const { kind, options } = fields.find((field) => field.name === name);
    const [, , fills = {}] = kind === "preset" ? (options.find(([word]) => word === to) ?? []) : [];
    const filled = Object.entries(fills).map(([name, value]) => [name, shown(fields.find((field) => field.name === name)?.kind, value)]);
    const next = { ...held, [name]: to, ...Object.fromEntries(filled) };
    setHeld(next);
    onChange?.(next);
  };
  const refuse = (wrong) => {
    setFaults(wrong);
    setTimeout(() => form.current?.querySelector("[aria-invalid=true], [role=alert]")?.focus());
  };
  const submit = async (event) => {
    event.preventDefault();
    const isSecond = event.submitter?.value === "second";
    let { body, wrong } = json === null ? changes(visible, held, value) : { body: {}, wrong: {} };
    if (json !== null) {
      try {
        body = JSON.parse(json);
      } catch (error) {
        wrong = { "": `This is not valid JSON: ${error.message}` };
      }
    }
    if (Object.keys(wrong).length) return refuse(wrong);
    setBusy(true);
    setFaults({});
    try {
      await onSubmit(body, isSecond);
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
    ${json !== null && html`<${Field} id=${`${id.current}-json`} name="json" label="All of it as JSON" kind="area" code rows=${16} wide
      value=${json} onInput=${setJson} />`}
    <div class="fields" hidden=${json !== null}>
      ${visible.map(
        (
          field,
        ) => html`<${Field} ...${field} hint=${typeof field.hint === "function" ? field.hint(held) : field.hint} key=${field.name} id=${`${id.current}-${field.name}`} value=${held[field.name]}
        fault=${faults[field.name]} onInput=${(to) => set(field.name, to)} />`,
      )}
    </div>
    <div class="acts">
      ${expert && html`<button type="button" class="plain" aria-pressed=${String(json !== null)}
        onClick=${() => setJson(json === null ? JSON.stringify(whole(visible, held), null, 2) : null)}>
        ${json === null ? "As JSON" : "Back to the form"}</button><span class="grow"></span>`}
      ${onCancel && html`<button type="button" onClick=${onCancel}>${keep}</button>`}
      ${second && html`<button type="submit" value="second" disabled=${busy}>${second}</button>`}
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
  load,
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
  if (KINDS[kind]?.isGroup) {
    return html`<div class="field wide">
      <span class="label" id=${`${id}-label`}>${label}${required && html`<span class="required"> required</span>`}</span>
      ${KINDS[kind].draw({ id, options, value, onInput, about, invalid: fault ? "true" : null })}${notes}
    </div>`;
  }
  control.preset = control.choice;
  if (KINDS[kind]) control[kind] = () => (KINDS[kind].draw ?? control.text)({ load, options, value, common, input });
  const area = () =>
    html`<textarea rows=${rows} spellcheck="false" class=${kind === "json" || code ? "code" : ""} ...${common}
      value=${value} onInput=${input}></textarea>`;
  const isWide = wide ?? !(kind in control && kind !== "list");
  return html`<div class=${`field ${isWide ? "wide" : ""} ${extra ? "extra" : ""}`}>
    <label for=${id}>${label}${required && html`<span class="required"> required</span>`}</label>
    ${(control[kind] ?? area)()}${notes}
  </div>`;
}
