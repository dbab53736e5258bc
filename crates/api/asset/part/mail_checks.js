// What mail programs make of a mail, found without asking anybody: size, links, images, html that many of them drop, and the
// header fields that receivers look for.

import { html } from "../vendor/preact.js";
import { get, text } from "../api.js";
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

const many = (number, what) => `${count(number)} ${what}${number === 1 ? "" : "s"}`;
const size = (words) => new TextEncoder().encode(words).length;

/** Whether a link shows one address and leads to another. */
function misleads(link) {
  const shown = link.textContent.trim().match(/^(?:https?:\/\/)?([\w-]+(?:\.[\w-]+)+)/i)?.[1];
  if (!shown || !/^https?:/i.test(link.getAttribute("href"))) return false;
  const host = new URL(link.href).hostname;
  return host !== shown.toLowerCase() && !host.endsWith(`.${shown.toLowerCase()}`);
}

function ofHtml(source, hasText) {
  const parsed = new DOMParser().parseFromString(inert(source), "text/html");
  const found = [];
  const say = (ok, what, more) => found.push({ ok, what, more });
  const own = size(source.replace(/data:[^"')\s]+/g, ""));
  say(own <= CLIPPED_BYTES, `${bytes(own)} of html`, own > CLIPPED_BYTES ? `Gmail shows ${bytes(CLIPPED_BYTES)} and clips the rest` : "Gmail clips at 102 KiB");
  const links = [...parsed.querySelectorAll("a[href]")];
  const dead = links.filter((link) => /^(#|javascript:|$)/i.test(link.getAttribute("href").trim()));
  if (dead.length) say(false, `${many(dead.length, "link")} to nowhere`, "an empty address or #");
  const plain = links.filter((link) => /^http:/i.test(link.getAttribute("href")));
  if (plain.length) say(false, `${many(plain.length, "link")} without TLS`, "http:// warns in many browsers");
  const lying = links.filter(misleads);
  if (lying.length) say(false, `${many(lying.length, "link")} with the address of another place`, "taken for phishing");
  const images = [...parsed.querySelectorAll("img")];
  const silent = images.filter((image) => !image.hasAttribute("alt"));
  say(!silent.length, images.length ? many(images.length, "image") : "No images", silent.length ? `${count(silent.length)} without alt: most readers see nothing at first` : null);
  for (const name of DROPPED) {
    const there = parsed.querySelectorAll(name).length;
    if (there) say(false, `${count(there)} × <${name.match(/^\w+/)[0]}>`, "mail programs drop it");
  }
  const sheets = [...parsed.querySelectorAll('script[type="text/css"]')].map((style) => style.textContent);
  if (sheets.some((sheet) => size(sheet) > SHEET_BYTES)) say(false, "A long style sheet", "Gmail drops those over 16 KiB");
  const styles = [...sheets, ...[...parsed.querySelectorAll("[data-style]")].map((one) => one.dataset.style)].join("\n");
  for (const [what, pattern] of IGNORED) if (pattern.test(styles)) say(false, `Uses ${what}`, "Outlook and others ignore it");
  return { found: [...found, ...ofBody(parsed, links, hasText)], links };
}

/** Words that filters of every kind count, in subjects. */
const LOUD = /\b(free|act now|winner|congratulations|risk[- ]free|100 ?%|guarantee|urgent|click here|cash|viagra|crypto)\b|[!?$€£]{2,}/gi;
/** Services that hide where a link leads: many lists have them. */
const SHORTENERS = ["bit.ly", "t.co", "goo.gl", "tinyurl.com", "ow.ly", "is.gd", "buff.ly", "rb.gy", "cutt.ly"];
const HIDDEN = /display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*[01]px/i;
/** Fewer characters of text for each image look like a mail that is one picture. */
const TEXT_FOR_IMAGE = 40;

/** What spam filters weigh in a body, as far as it can be seen without asking anybody. */
function ofBody(parsed, links, hasText) {
  const found = [];
  const say = (ok, what, more) => found.push({ ok, what, more });
  if (hasText !== undefined)
    say(hasText, hasText ? "A text beside the html" : "No text beside the html", hasText ? null : "filters count it against a mail, and some readers see nothing");
  const images = parsed.querySelectorAll("img").length;
  const words = parsed.body.textContent.replace(/\s+/g, " ").trim().length;
  if (images && words < images * TEXT_FOR_IMAGE)
    say(false, `${many(words, "character")} of text for ${many(images, "image")}`, "looks like a mail that is a picture");
  const short = links.filter((link) => SHORTENERS.some((host) => link.hostname === host || link.hostname.endsWith(`.${host}`)));
  if (short.length) say(false, `${many(short.length, "link")} by a shortener`, "their domains are on block lists again and again");
  const bare = links.filter((link) => /^\d{1,3}(\.\d{1,3}){3}$/.test(link.hostname));
  if (bare.length) say(false, `${many(bare.length, "link")} to an IP address`, "nearly only spam has them");
  const hidden = [...parsed.querySelectorAll("[data-style]")].filter((one) => HIDDEN.test(one.dataset.style) && one.textContent.trim().length > 200);
  if (hidden.length) say(false, many(hidden.length, "long hidden text"), "a short preview text is usual; more is counted as hiding");
  return found;
}

function ofHeaders(headers) {
  const first = (name) => headers.find((one) => one.name.toLowerCase() === name)?.value;
  const subject = first("subject") ?? "";
  const signed = Boolean(first("dkim-signature"));
  const leaves = Boolean(first("list-unsubscribe"));
  return [
    { ok: subject.length > 0 && subject.length <= SUBJECT_CHARS, what: `A subject of ${count(subject.length)} characters`, more: subject.length > SUBJECT_CHARS ? "phones show some 40" : null },
    ...ofSubject(subject),
    ...ofFrom(first("from") ?? "", first("reply-to")),
    { ok: signed, what: signed ? "Signed with DKIM" : "Not signed with DKIM", more: signed ? null : "make a signing key for the domain of its From" },
    { ok: leaves, what: leaves ? "Can be unsubscribed from" : "No List-Unsubscribe", more: leaves ? null : "needed for newsletters, not for single mails" },
  ];
}

function ofSubject(subject) {
  const loud = [...new Set((subject.match(LOUD) ?? []).map((word) => word.toLowerCase()))];
  const letters = subject.replace(/[^\p{L}]/gu, "");
  const isShouted = letters.length > 8 && letters === letters.toUpperCase() && letters !== letters.toLowerCase();
  return [
    loud.length > 0 && { ok: false, what: `A loud subject: ${loud.join(", ")}`, more: "filters count such words" },
    isShouted && { ok: false, what: "A subject in capitals", more: "filters count it" },
  ].filter(Boolean);
}

const domainOf = (field) => field?.match(/@([\w.-]+)>?\s*$/)?.[1]?.toLowerCase();
const FREE = ["gmail.com", "googlemail.com", "yahoo.com", "outlook.com", "hotmail.com", "aol.com", "icloud.com", "gmx.de", "web.de"];

/** A sender whose domain is not one's own fails DMARC; answers to another domain are weighed. */
function ofFrom(from, replyTo) {
  const [domain, answers] = [domainOf(from), domainOf(replyTo)];
  return [
    FREE.includes(domain) && { ok: false, what: `From an address at ${domain}`, more: "only its own servers pass its DMARC" },
    answers && domain && answers !== domain && { ok: false, what: `Answers go to ${answers}`, more: `and not to ${domain}` },
  ].filter(Boolean);
}

/** What DNS said of the sender's domain when it was last checked. */
function OfDomain({ headers }) {
  const from = headers.find((one) => one.name.toLowerCase() === "from")?.value;
  const domains = useLoad((signal) => get("/v1/domains", { limit: 500 }, signal), []);
  const one = domains.data?.data.find(({ domain }) => domain === domainOf(from));
  if (!one) return null;
  const checks = one.findings.filter(({ check }) => /^(spf$|dkim|dmarc$)/.test(check));
  return html`<${Found} found=${checks.map(({ check, state, advice }) =>
    ({ ok: ["ok", "absent"].includes(state), what: `${check.replace(/^\w+/, (name) => name.toUpperCase())} of ${one.domain}: ${state}`, more: advice }))} />`;
}

const Found = ({ found }) => html`<ul class="findings">${found.map(({ ok, what, more }) =>
  html`<li class="check"><${Badge} status=${ok ? "ok" : "look"} tone=${ok ? "good" : "warn"} /><strong>${what}</strong>${more && html`<span class="muted">${more}</span>`}</li>`)}</ul>`;

const Links = ({ links }) => links.length > 0 && html`<h3>Links</h3><ul class="findings links">${links.slice(0, SHOWN_MAX).map((link) =>
  html`<li><code class="break">${link.getAttribute("href")}</code> <span class="muted">${link.textContent.trim() || "(no text)"}</span></li>`)}
  ${links.length > SHOWN_MAX && html`<li class="muted">and ${count(links.length - SHOWN_MAX)} more</li>`}</ul>`;

function OfHtml({ path, headers, hasText }) {
  const source = useLoad((signal) => text(`${path}/preview`, signal), [path]);
  return html`<${Loaded} from=${source}>${(words) => {
    const { found, links } = ofHtml(words, hasText);
    return html`<${Found} found=${[...found, ...ofHeaders(headers)]} /><${OfDomain} headers=${headers} /><${Links} links=${links} />`;
  }}<//>`;
}

/** Whether the html has a text beside it, as far as the header says. */
function hasText(headers) {
  const type = headers.find((one) => one.name.toLowerCase() === "content-type")?.value ?? "";
  if (/^\s*text\/html/i.test(type)) return false;
  return /^\s*multipart\/alternative/i.test(type) || undefined;
}

/** The tab of a mail at `path`. */
export const Checks = ({ path, mail }) =>
  mail.has_html ? html`<${OfHtml} path=${path} headers=${mail.headers} hasText=${hasText(mail.headers)} />`
    : html`<${Found} found=${ofHeaders(mail.headers)} /><${OfDomain} headers=${mail.headers} />`;
