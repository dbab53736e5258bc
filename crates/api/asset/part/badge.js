// How something stands, as a word in a colour. The word is enough without the colour.

import { html } from "../vendor/preact.js";

const TONES = {
  good: "sent delivered acknowledged alive active routed closed verified ok pec_delivered success serving finished",
  warn: `captured scheduled in_doubt suspended waiting validating delayed held behind auto_replied no_match unverified expired
    pec_timeout unproven_report`,
  bad: `failed invalid dead bounced complained open bounce complaint recipient_failed pec_failed hard_bounce revoked
    off away stopped`,
  info: "ready sending accepted pending calling received routing starting elsewhere running",
};
const TONE = new Map(Object.entries(TONES).flatMap(([tone, words]) => words.split(/\s+/).map((word) => [word, tone])));

/** `status` is a word of the API; `tone` where the word alone does not tell. */
export const Badge = ({ status, tone }) =>
  html`<span class=${`badge ${(tone || TONE.get(status)) ?? ""}`}>${String(status).replaceAll("_", " ")}</span>`;

/** Whether a message stays where it is until something or somebody lets it go. */
export const isHeld = ({ status, held_by, due_at }) => held_by.length > 0 || (status === "in_doubt" && !due_at);

/** What holds it, in words: `held_by` has `tenant`, `batch:CODE`, `account:ID`, `limit:ID` and `circuit:ID`. */
export function holders({ status, held_by, due_at }) {
  const words = held_by.map((holder) => {
    const [, kind, name] = holder.match(/^([^:]*):?(.*)$/s);
    return (HOLDERS[kind] ?? (() => holder))(name);
  });
  return status === "in_doubt" && !due_at ? [...words, "it is held until somebody says what became of it"] : words;
}

const HOLDERS = {
  tenant: () => "its tenant is suspended",
  batch: (code) => `the batch ${code} is suspended`,
  account: (id) => `the account ${id} is suspended`,
  limit: (id) => `the account ${id} has used up its limit`,
  circuit: (id) => `the account ${id} is paused after errors`,
};

export const Switched = ({ on, words = ["active", "suspended"] }) => html`<${Badge} status=${words[on ? 0 : 1]} />`;
