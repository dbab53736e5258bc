// A mail as its readers see it. The html is a stranger's: it comes from the server under a policy of its own, in a
// frame in which no script runs and from which nothing is fetched.

import { html, useState } from "../vendor/preact.js";
import { get, text } from "../api.js";
import { Icon } from "./icon.js";
import { Loaded, useLoad } from "./load.js";
import { Checks } from "./mail_checks.js";
import { Tabs } from "./tabs.js";
import { bytes } from "./time.js";

/** The first value of a header field. */
export const header = (content, name) => content.headers.find((one) => one.name.toLowerCase() === name)?.value;

/** Tabs of a mail at `path`, such as /v1/messages/ID; `more` are further tabs. */
export function Mail({ path, label = "Mail", more = [] }) {
  const content = useLoad((signal) => get(`${path}/content`, {}, signal), [path]);
  if (content.error && content.data === undefined) {
    const why = { name: "Content", body: () => html`<p class="muted">${content.error.message}</p>` };
    return html`<${Tabs} place="tab" label=${label} tabs=${[why, ...more]} />`;
  }
  return html`<${Loaded} from=${content}>
    ${(mail) => html`${mail.omitted.length > 0 && html`<${Omitted} limits=${mail.omitted} />`}
      <${Tabs} place="tab" label=${label} tabs=${tabs(path, mail, more)} />`}<//>`;
}

const tabs = (path, mail, more) => [
  mail.has_html && {
    name: "Preview",
    body: () => html`<${Preview} path=${path} />`,
  },
  { name: "Text", body: () => html`<pre class="mailtext">${mail.text ?? "It has no text."}</pre>` },
  mail.attachments.length > 0 && {
    name: `Attachments (${mail.attachments.length})`,
    body: () => html`<${Files} path=${path} files=${mail.attachments} />`,
  },
  {
    name: "Headers",
    body: () =>
      html`<dl class="headers">
        ${mail.headers.map(({ name, value }) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`,
  },
  { name: "Checks", body: () => html`<${Checks} path=${path} mail=${mail} />` },
  { name: "Source", body: () => html`<${Source} path=${path} />` },
  ...more,
];

const WIDTHS = [
  ["", "As wide as there is room"],
  ["768", "Tablet"],
  ["390", "Phone"],
];

/** The mail as it looks, at the width of a device. */
function Preview({ path }) {
  const [width, setWidth] = useState("");
  return html`<div class="widths" role="group" aria-label="Width">${WIDTHS.map(([pixels, words]) =>
    html`<button type="button" class="small" aria-pressed=${String(pixels === width)} onClick=${() => setWidth(pixels)}>${words}</button>`)}</div>
    <iframe class=${`mail w${width}`} title="The mail as it looks" sandbox="" referrerpolicy="no-referrer"
      src=${`${path}/preview`}></iframe>`;
}

/** The sentence above a mail that has more than is shown. */
const Omitted = ({ limits }) => html`<p class="muted" role="note">
  This mail has more than is shown here. Left out: ${limits.join("; ")}. Download its source for all of it.</p>`;

const Files = ({ path, files }) => html`<ul class="files">
  ${files.map(
    (file) => html`<li>
      <a href=${`${path}/attachments/${file.index}`} download><${Icon} name="file" />
        ${file.filename ?? `attachment ${file.index + 1}`}</a>
      <span class="muted">${file.content_type}, ${bytes(file.size)}</span>
    </li>`,
  )}
</ul>`;

const SHOWN_CHARS_MAX = 200_000;

function Source({ path }) {
  const source = useLoad((signal) => text(`${path}/raw`, signal), [path]);
  return html`<${Loaded} from=${source}>
    ${(raw) => html`<pre class="source">${raw.slice(0, SHOWN_CHARS_MAX)}</pre>
      ${raw.length > SHOWN_CHARS_MAX &&
        html`<p class="muted">Only the beginning is shown; download it for the rest.</p>`}`}
  <//>`;
}
