// Controls for what is more than a text: choices of several, durations in words, and choices that the server knows. Each
// says how a value of the API stands in it and what is read from it; what it holds is a text, as in any other field.

import { html, useEffect, useState } from "../vendor/preact.js";
import { get } from "../api.js";
import { Conditions, Deeds } from "./rule_rows.js";

const UNITS = { s: 1, sec: 1, second: 1, min: 60, minute: 60, h: 3_600, hour: 3_600, d: 86_400, day: 86_400, w: 604_800, week: 604_800 };
const STEPS = [
  [86_400, "d"],
  [3_600, "h"],
  [60, "min"],
  [1, "s"],
];

/** Seconds as `1 h 30 min`. */
export function inWords(seconds) {
  if (!Number.isFinite(seconds)) return "";
  if (seconds === 0) return "0 s";
  const words = [];
  let left = seconds;
  for (const [length, unit] of STEPS) {
    const amount = Math.floor(left / length);
    if (amount) words.push(`${amount} ${unit}`);
    left -= amount * length;
  }
  return words.join(" ");
}

/** The seconds of `1 h 30 min`, `90 s` or `90`. Throws what to write. */
export function seconds(text) {
  const words = text.trim().toLowerCase();
  if (/^\d+$/.test(words)) return Number(words);
  const parts = [...words.matchAll(/(\d+(?:\.\d+)?)\s*([a-z]+)/g)];
  const isAll = parts.length > 0 && words.replace(/(\d+(?:\.\d+)?)\s*([a-z]+)/g, "").trim() === "";
  const lengths = parts.map(([, amount, unit]) => Number(amount) * (UNITS[unit] ?? UNITS[unit.replace(/s$/, "")] ?? NaN));
  const sum = Math.round(lengths.reduce((sum, length) => sum + length, 0));
  if (!isAll || Number.isNaN(sum)) throw new Error("write it like 30 min, 4 h or 7 d");
  return sum;
}

const listed = (text) => text.split(/[\n,]/).map((item) => item.trim()).filter(Boolean);

/** Boxes for a list of words; `*` stands for all of them. */
function Checks({ id, options, value, onInput, about, invalid }) {
  const held = new Set(listed(value));
  const isAll = held.has("*");
  const set = (word, on) => {
    const next = new Set(held);
    if (on) next.add(word);
    else next.delete(word);
    onInput([...next].join("\n"));
  };
  const box = (word, words, checked, disabled) => html`<div class="field check">
    <input type="checkbox" id=${`${id}-${word}`} checked=${checked} disabled=${disabled}
      onChange=${(event) => set(word, event.target.checked)} />
    <label for=${`${id}-${word}`}>${words}</label></div>`;
  // A word that this page does not know is kept, and can be taken away.
  const known = options.map((option) => [option].flat()[0]);
  const others = [...held].filter((word) => !known.includes(word));
  return html`<div id=${id} role="group" class="checks" aria-labelledby=${`${id}-label`} aria-describedby=${about}
    aria-invalid=${invalid}>
    ${[...options, ...others].map((option) => {
      const [word, words = word] = [option].flat();
      return box(word, words, word === "*" ? isAll : isAll || held.has(word), word !== "*" && isAll);
    })}</div>`;
}

/** A choice of what the server has: `load` gives its words. */
function Known({ load, options = [], value, common, input }) {
  const [found, setFound] = useState([]);
  useEffect(() => {
    let here = true;
    load().then((words) => here && setFound(words), () => {});
    return () => (here = false);
  }, []);
  const all = [...options, ...found];
  const known = all.some((option) => [option].flat()[0] === value);
  return html`<select ...${common} value=${value} onChange=${input}>
    ${(known ? all : [...all, value]).map((option) => {
      const [word, words = word || "none"] = [option].flat();
      return html`<option value=${word} selected=${word === value}>${words}</option>`;
    })}
  </select>`;
}

/** The accounts, the mailboxes and the rest that a field may name. */
const names = (path) => async () => (await get(path)).data.map(({ id }) => id);
export const accounts = names("/v1/accounts");
export const mailboxes = names("/v1/mailboxes");

/** How a value of each kind stands in its control, is read from it, and is drawn. */
export const KINDS = {
  checks: {
    shown: (value) => (value ?? []).join("\n"),
    read: listed,
    draw: (field) => html`<${Checks} ...${field} />`,
    isGroup: true,
  },
  duration: {
    shown: (value) => (value == null ? "" : inWords(value)),
    read: (text) => (text.trim() ? seconds(text) : null),
  },
  durations: {
    shown: (value) => (value ?? []).map(inWords).join(", "),
    read: (text) => listed(text).map(seconds),
  },
  known: {
    shown: (value) => value ?? "",
    read: (text) => text || null,
    draw: (field) => html`<${Known} ...${field} />`,
  },
  conditions: {
    shown: (value) => JSON.stringify(value ?? []),
    read: JSON.parse,
    draw: (field) => html`<${Conditions} ...${field} />`,
    isGroup: true,
  },
  deeds: {
    shown: (value) => JSON.stringify(value ?? []),
    read: JSON.parse,
    draw: (field) => html`<${Deeds} ...${field} />`,
    isGroup: true,
  },
};
