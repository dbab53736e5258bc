// Rules row by row: what must hold, and what is done then. What a row does not know of stays as it is; the expert's tab
// shows all of it.

import { html, useEffect, useState } from "../vendor/preact.js";
import { get } from "../api.js";
import { Icon } from "./icon.js";

const TEXTS = ["from", "to", "cc", "subject"];
const FIELDS = [
  ["from", "From"],
  ["to", "To"],
  ["cc", "Cc"],
  ["subject", "Subject"],
  ["header", "Header"],
  ["size", "Size"],
  ["has_attachment", "Attachment"],
];
const WAYS = [
  ["contains", "contains"],
  ["equals", "is"],
  ["regex", "matches the pattern"],
];
const DEEDS = [
  ["forward", "Forward"],
  ["tag", "Tag"],
  ["move", "Move to the folder"],
  ["webhook", "Call the webhooks"],
  ["mark_seen", "Mark as read"],
  ["stop", "Ask no further rules"],
];
const FORMS = [
  ["compose", "as a new mail"],
  ["redirect", "as it is"],
  ["attachment", "as an attachment"],
];

const Choice = ({ label, value, options, set }) => html`<select aria-label=${label} value=${value}
  onChange=${(event) => set(event.target.value)}>${options.map(([word, words]) =>
    html`<option value=${word} selected=${word === value}>${words}</option>`)}</select>`;
const Text = ({ label, value, set, type = "text", placeholder }) => html`<input type=${type} aria-label=${label}
  placeholder=${placeholder ?? label} spellcheck="false" value=${value ?? ""} onInput=${(event) => set(event.target.value)} />`;

const wayOf = (one) => WAYS.map(([way]) => way).find((way) => way in one) ?? "contains";

/** A way to compare, and what with. */
function Way({ one, set, label }) {
  const way = wayOf(one);
  return html`<${Choice} label=${`How ${label} is compared`} value=${way} options=${WAYS} set=${(next) => set({ [next]: one[way] ?? "" })} />
    <${Text} label=${`What ${label} is compared with`} placeholder=${way === "regex" ? "order (?<order>[0-9]+)" : "text"}
      value=${one[way]} set=${(text) => set({ [way]: text })} />`;
}

const number = (text) => (text === "" ? undefined : Number(text));
const empty = {
  header: { field: "header", name: "", value: { contains: "" } },
  size: { field: "size", min: 0 },
  has_attachment: { field: "has_attachment", value: true },
};

function Condition({ one, set }) {
  const field = html`<${Choice} label="What is looked at" value=${one.field} options=${FIELDS}
    set=${(next) => set(empty[next] ?? { field: next, [wayOf(one)]: TEXTS.includes(one.field) ? one[wayOf(one)] : "" })} />`;
  if (one.field === "header")
    return html`${field}<${Text} label="Name of the header" placeholder="X-Priority" value=${one.name} set=${(name) => set({ ...one, name })} />
      <${Way} label="its value" one=${one.value ?? {}} set=${(value) => set({ ...one, value })} />`;
  if (one.field === "size")
    return html`${field}<${Text} type="number" label="Least bytes" value=${one.min} set=${(text) => set({ ...one, min: number(text) })} />
      <${Text} type="number" label="Most bytes" value=${one.max} set=${(text) => set({ ...one, max: number(text) })} />`;
  if (one.field === "has_attachment")
    return html`${field}<${Choice} label="Whether there is one" value=${String(one.value)} options=${[["true", "there is one"], ["false", "there is none"]]}
      set=${(text) => set({ ...one, value: text === "true" })} />`;
  return html`${field}<${Way} label="it" one=${one} set=${(way) => set({ field: one.field, ...way })} />`;
}

/** The addresses of one field, and the contacts that the server knows. */
function Deed({ one, set }) {
  const [contacts, setContacts] = useState([]);
  useEffect(() => void get("/v1/contacts").then(({ data }) => setContacts(data.map(({ name }) => name)), () => {}), []);
  const deed = html`<${Choice} label="What is done" value=${one.do} options=${DEEDS}
    set=${(next) => set({ do: next, ...(next === "forward" && { to: [] }), ...(next === "tag" && { tag: "" }), ...(next === "move" && { folder: "" }) })} />`;
  if (one.do === "tag") return html`${deed}<${Text} label="Tag" value=${one.tag} set=${(tag) => set({ ...one, tag })} />`;
  if (one.do === "move") return html`${deed}<${Text} label="Folder" value=${one.folder} set=${(folder) => set({ ...one, folder })} />`;
  if (one.do !== "forward") return deed;
  const { to, contact, ...rest } = one;
  const isContact = contact !== undefined;
  return html`${deed}
    <${Choice} label="To whom" value=${isContact ? "contact" : "to"} options=${[["to", "to the addresses"], ["contact", "to the contact"]]}
      set=${(next) => set(next === "contact" ? { ...rest, contact: "" } : { ...rest, to: [] })} />
    ${isContact ? html`<${Text} label="Contact" placeholder=${contacts[0] ?? "{order}"} value=${contact} set=${(name) => set({ ...rest, contact: name })} />`
      : html`<${Text} label="Addresses" placeholder="orders@example.com, …" value=${[to ?? []].flat().join(", ")}
        set=${(text) => set({ ...rest, to: text.split(",").map((item) => item.trim()) })} />`}
    <${Choice} label="In which form" value=${one.as ?? "compose"} options=${FORMS} set=${(as) => set({ ...one, as })} />`;
}

/** A list of rows that can be added, moved and taken away. */
function Rows({ id, value, onInput, about, invalid, first, Row, what }) {
  let rows;
  try {
    rows = JSON.parse(value);
  } catch {
    rows = [];
  }
  const tell = (next) => onInput(JSON.stringify(next));
  const set = (place, one) => tell(rows.map((row, n) => (n === place ? one : row)));
  const up = (place) => tell(rows.map((row, n) => (n === place - 1 ? rows[place] : n === place ? rows[place - 1] : row)));
  return html`<div id=${id} role="group" class="rows" aria-labelledby=${`${id}-label`} aria-describedby=${about} aria-invalid=${invalid}>
    ${rows.map((one, n) => html`<div class="row" role="group" aria-label=${`${what} ${n + 1}`}>
      <${Row} one=${one} set=${(next) => set(n, next)} />
      <span class="grow"></span>
      <button type="button" class="small" disabled=${n === 0} onClick=${() => up(n)}>Up</button>
      <button type="button" class="small" aria-label=${`Remove ${what.toLowerCase()} ${n + 1}`}
        onClick=${() => tell(rows.filter((_, other) => other !== n))}><${Icon} name="close" /></button>
    </div>`)}
    <button type="button" onClick=${() => tell([...rows, first])}><${Icon} name="plus" />${`Add ${what === "Action" ? "an action" : "a condition"}`}</button>
  </div>`;
}

export const Conditions = (field) => html`<${Rows} ...${field} what="Condition" Row=${Condition} first=${{ field: "subject", contains: "" }} />`;
export const Deeds = (field) => html`<${Rows} ...${field} what="Action" Row=${Deed} first=${{ do: "forward", to: [] }} />`;
