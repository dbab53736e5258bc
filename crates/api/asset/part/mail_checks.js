// What mail programs make of a mail, found without asking anybody: size, links, images, html that many of them drop, and the
// header fields that receivers look for.

import { html } from "../vendor/preact.js";
import { text } from "../api.js";
import { Badge } from "./badge.js";
import { inert } from "./frame.js";
import { Loaded, useLoad } from "./load.js";
import { bytes, count } from "./time.js";

/** Gmail shows no more html than this, and hides the rest behind a link. */
const CLIPPED_BYTES = 102 * 1024;
/** Gmail drops a style sheet that is longer. */
const SHEET_BYTES = 16 * 1024;
const SUBJECT_CHARS = 78;
const SHOWN_MAX = 100;
/** Elements that nearly no mail program shows. */
const DROPPED = ['script:not([type="text/css"])', "form", "iframe", "object", "embed", "video", "audio", "link[rel=stylesheet]"];
/** Styles that Outlook and others ignore. */
const IGNORED = [
  ["display: flex or grid", /display\s*:\s*(inline-)?(flex|grid)/i],
  ["position", /position\s*:\s*(absolute|fixed|sticky)/i],
  ["variables", /var\(--/i],
  ["background images", /background(-image)?\s*:[^;]*url\(/i],
];

const size = (words) => new TextEncoder().encode(words).length;

/** Whether a link shows one address and leads to another. */
function misleads(link) {
  const shown = link.textContent.trim().match(/^(?:https?:\/\/)?([\w-]+(?:\.[\w-]+)+)/i)?.[1];
  if (!shown || !/^https?:/i.test(link.getAttribute("href"))) return false;
  const host = new URL(link.href).hostname;
  return host !== shown.toLowerCase() && !host.endsWith(`.${shown.toLowerCase()}`);
}

function ofHtml(source) {
  const parsed = new DOMParser().parseFromString(inert(source), "text/html");
  const found = [];
  const say = (ok, what, more) => found.push({ ok, what, more });
  const own = size(source.replace(/data:[^"')\s]+/g, ""));
  say(own <= CLIPPED_BYTES, `${bytes(own)} of html`, own > CLIPPED_BYTES ? `Gmail shows ${bytes(CLIPPED_BYTES)} and clips the rest` : "Gmail clips at 102 KiB");
  const links = [...parsed.querySelectorAll("a[href]")];
  const dead = links.filter((link) => /^(#|javascript:|$)/i.test(link.getAttribute("href").trim()));
  if (dead.length) say(false, `${count(dead.length)} links lead nowhere`, "an empty address or #");
  const plain = links.filter((link) => /^http:/i.test(link.getAttribute("href")));
  if (plain.length) say(false, `${count(plain.length)} links without TLS`, "http:// warns in many browsers");
  const lying = links.filter(misleads);
  if (lying.length) say(false, `${count(lying.length)} links show another address than they lead to`, "taken for phishing");
  const images = [...parsed.querySelectorAll("img")];
  const silent = images.filter((image) => !image.hasAttribute("alt"));
  say(!silent.length, images.length ? `${count(images.length)} images` : "No images", silent.length ? `${count(silent.length)} without alt: most readers see nothing at first` : null);
  for (const name of DROPPED) {
    const there = parsed.querySelectorAll(name).length;
    if (there) say(false, `${count(there)} × <${name.match(/^\w+/)[0]}>`, "mail programs drop it");
  }
  const sheets = [...parsed.querySelectorAll('script[type="text/css"]')].map((style) => style.textContent);
  if (sheets.some((sheet) => size(sheet) > SHEET_BYTES)) say(false, "A long style sheet", "Gmail drops those over 16 KiB");
  const styles = [...sheets, ...[...parsed.querySelectorAll("[data-style]")].map((one) => one.dataset.style)].join("\n");
  for (const [what, pattern] of IGNORED) if (pattern.test(styles)) say(false, `Uses ${what}`, "Outlook and others ignore it");
  return { found, links };
}

function ofHeaders(headers) {
  const first = (name) => headers.find((one) => one.name.toLowerCase() === name)?.value;
  const subject = first("subject") ?? "";
  const signed = Boolean(first("dkim-signature"));
  const leaves = Boolean(first("list-unsubscribe"));
  return [
    { ok: subject.length > 0 && subject.length <= SUBJECT_CHARS, what: `A subject of ${count(subject.length)} characters`, more: subject.length > SUBJECT_CHARS ? "phones show some 40" : null },
    { ok: signed, what: signed ? "Signed with DKIM" : "Not signed with DKIM", more: signed ? null : "make a signing key for the domain of its From" },
    { ok: leaves, what: leaves ? "Can be unsubscribed from" : "No List-Unsubscribe", more: leaves ? null : "needed for newsletters, not for single mails" },
  ];
}

const Found = ({ found }) => html`<ul class="findings">${found.map(({ ok, what, more }) =>
  html`<li class="check"><${Badge} status=${ok ? "ok" : "look"} tone=${ok ? "good" : "warn"} /><strong>${what}</strong>${more && html`<span class="muted">${more}</span>`}</li>`)}</ul>`;

const Links = ({ links }) => links.length > 0 && html`<h3>Links</h3><ul class="findings links">${links.slice(0, SHOWN_MAX).map((link) =>
  html`<li><code class="break">${link.getAttribute("href")}</code> <span class="muted">${link.textContent.trim() || "(no text)"}</span></li>`)}
  ${links.length > SHOWN_MAX && html`<li class="muted">and ${count(links.length - SHOWN_MAX)} more</li>`}</ul>`;

function OfHtml({ path, headers }) {
  const source = useLoad((signal) => text(`${path}/preview`, signal), [path]);
  return html`<${Loaded} from=${source}>${(words) => {
    const { found, links } = ofHtml(words);
    return html`<${Found} found=${[...found, ...ofHeaders(headers)]} /><${Links} links=${links} />`;
  }}<//>`;
}

/** The tab of a mail at `path`. */
export const Checks = ({ path, mail }) =>
  mail.has_html ? html`<${OfHtml} path=${path} headers=${mail.headers} />` : html`<${Found} found=${ofHeaders(mail.headers)} />`;
