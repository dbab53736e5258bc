// Keyboard shortcuts for frequent users: `/` to search, `j` and `k` along a list, `g` and a letter to go somewhere, `?` for all
// of them. None of them counts while something is typed, or in front of the page.

import { html } from "../vendor/preact.js";
import { go } from "../route.js";
import { ask } from "./dialog.js";

const PLACES = { o: "", m: "messages", i: "inbox", d: "dead-letters", a: "accounts", b: "batches", w: "webhooks", s: "send" };
const SHEET = [
  ["/", "search messages"],
  ["j, k", "the next and the last row of a list"],
  ["Enter", "open the row"],
  ["g o", "overview"],
  ["g m", "messages"],
  ["g i", "sandbox inbox"],
  ["g d", "dead letters"],
  ["g a", "accounts"],
  ["g b", "batches"],
  ["g w", "webhooks"],
  ["g s", "send a mail"],
  ["?", "this sheet"],
];
const TOGETHER_MS = 1_500;
let went = 0;

const sheet = () =>
  ask(
    "Keys",
    (close) => html`<dl class="keys">
      ${SHEET.map(([key, means]) => html`<div><dt><kbd>${key}</kbd></dt><dd>${means}</dd></div>`)}</dl>
      <div class="acts"><button type="button" class="primary" onClick=${() => close()}>Close</button></div>`,
  );

function search() {
  const field = document.querySelector("main input[type=search]");
  if (field) field.focus();
  else go("messages");
}

function along(step) {
  const rows = [...document.querySelectorAll("main tbody tr a:first-of-type")];
  const at = rows.findIndex((row) => row.closest("tr").contains(document.activeElement));
  rows[Math.max(0, Math.min(rows.length - 1, at < 0 ? 0 : at + step))]?.focus();
}

/** Does what a key is for; whether it was for anything. */
function act(key) {
  if (Date.now() - went < TOGETHER_MS && key in PLACES) {
    went = 0;
    go(PLACES[key]);
    return true;
  }
  went = key === "g" ? Date.now() : 0;
  const acts = { "/": search, "?": sheet, j: () => along(1), k: () => along(-1) };
  acts[key]?.();
  return key in acts;
}

/** What the shell listens with. */
export function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (event.target.closest("input, textarea, select, [contenteditable], dialog") || document.querySelector("dialog[open]")) return;
  if (act(event.key)) event.preventDefault();
}
