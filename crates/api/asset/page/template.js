// One template: its sources, and beside them what they make. To save is to make the next version; the old ones stay.

import { html, useEffect, useState } from "../vendor/preact.js";
import { get, may, post, put, url } from "../api.js";
import { Badge } from "../part/badge.js";
import { Button } from "../part/button.js";
import { edit } from "../part/dialog.js";
import { Field } from "../part/form.js";
import { Frame } from "../part/frame.js";
import { Icon } from "../part/icon.js";
import { Loaded, useLoad } from "../part/load.js";
import { Listing } from "../part/table.js";
import { Tabs } from "../part/tabs.js";
import { Moment } from "../part/time.js";
import { toast } from "../part/toast.js";
import { useUnsaved } from "../part/unsaved.js";
import { link } from "../route.js";

const TYPED_MS = 350;
const SOURCES = [
  ["subject", "Subject", {}],
  ["html", "HTML", { kind: "area", rows: 14, code: true }],
  ["mjml", "MJML, in the place of HTML", { kind: "area", rows: 14, code: true }],
  ["text", "Text", { kind: "area", rows: 6, hint: "Made from the HTML when empty." }],
  ["layout", "Layout", { hint: "The template whose block content this one fills; none when empty." }],
  ["description", "What it is for", {}],
  ["sample", "Sample variables (JSON)", { kind: "json", rows: 6 }],
];

export default function Template({ params, query }) {
  const path = url`/v1/templates/${params.name}`;
  const template = useLoad((signal) => get(path, { version: query.version }, signal), [params.name, query.version]);
  return html`<p class="crumb"><a href=${link("templates")}><${Icon} name="back" />Templates</a></p>
    <${Loaded} from=${template}>
      ${(one) => html`<${Editor} one=${one} path=${path} saved=${template.reload} key=${one.version} />`}<//>`;
}

/** The body of a template from what the fields hold; throws where the sample is no JSON. */
function bodyOf({ inline_css, ...held }) {
  const filled = Object.entries(held).filter(([, text]) => text.trim());
  const body = Object.fromEntries(filled.map(([name, text]) => [name, name === "sample" ? JSON.parse(text) : text]));
  return inline_css ? { ...body, inline_css } : body;
}

/** The name of a template without its language. */
const baseOf = (one) => (one.locale ? one.name.slice(0, -one.locale.length - 1) : one.name);

/** The languages in which the template exists, this one marked. */
function Languages({ one }) {
  const base = baseOf(one);
  const found = useLoad((signal) => get("/v1/templates", { limit: 500 }, signal), [base]);
  const rows = (found.data?.data ?? []).filter((row) => row.name === base || (row.locale && baseOf(row) === base));
  if (rows.length < 2) return null;
  return html`<nav class="acts" aria-label="Languages">
    ${rows.map(
      (row) => html`<a href=${link(`templates/${encodeURIComponent(row.name)}`)}
        aria-current=${row.name === one.name ? "page" : null}>${row.locale ?? "no language"}</a>`,
    )}</nav>`;
}

/** Sends the stored version to some addresses, and nobody else. */
const sendTest = (one, path) =>
  edit({
    title: "Send a test",
    note: `Version ${one.version} with its sample variables, to these addresses alone. The subject begins with [Test].`,
    fields: [
      { name: "to", label: "To", kind: "list", required: true, hint: "At most ten addresses, one a line." },
      { name: "from", label: "From", hint: "The tenant's sender when empty." },
      { name: "account", label: "Account", hint: "Chosen as for any mail when empty." },
    ],
    action: "Send",
    save: async (body) => {
      const { uid } = await post(`${path}/test`, { ...body, version: one.version });
      toast("The test is on its way");
      location.hash = link(`messages/${uid}`);
    },
  });

function Editor({ one, path, saved }) {
  const [held, setHeld] = useState(() =>
    Object.fromEntries(
      SOURCES.map(([name]) => [
        name,
        name === "sample" ? (one.sample ? JSON.stringify(one.sample, null, 2) : "") : (one[name] ?? ""),
      ]).concat([["inline_css", one.inline_css]]),
    ),
  );
  const [began] = useState(held);
  const saves = useUnsaved(may("manage") && JSON.stringify(held) !== JSON.stringify(began));
  const [made, setMade] = useState(null);
  const [faults, setFaults] = useState({});
  const [latest, setLatest] = useState(one.version);
  useEffect(() => {
    const stop = new AbortController();
    const timer = setTimeout(async () => {
      try {
        setMade(await post("/v1/templates/preview", { ...bodyOf(held), ...(one.locale ? { locale: one.locale } : {}) }, { signal: stop.signal }));
        setFaults({});
      } catch (error) {
        if (stop.signal.aborted) return;
        const told = Object.fromEntries(
          (error.details ?? []).map(({ field, message }) => [field.split(/[.[]/)[0], message]),
        );
        setFaults(
          error instanceof SyntaxError
            ? { sample: "is not valid JSON" }
            : Object.keys(told).length
              ? told
              : { "": error.message },
        );
      }
    }, TYPED_MS);
    return () => (stop.abort(), clearTimeout(timer));
  }, [held]);
  const save = async () => {
    const { version } = await put(path, { ...bodyOf(held), version: latest });
    saves();
    toast(`Saved as version ${version}`);
    location.hash = link(`templates/${encodeURIComponent(one.name)}`);
    saved();
  };
  const isStale = Object.keys(faults).length > 0;
  const other = Object.entries(faults).filter(([name]) => !SOURCES.some(([field]) => field === name));
  return html`
    <div class="title">
      <h1>${one.name}</h1><${Badge} status=${`version ${one.version}`} /><span class="grow"></span>
      ${may("send") && html`<${Button} icon="send" onClick=${() => sendTest(one, path)}>Send a test<//>`}
      ${may("manage") && html`<${Button} kind="primary" onClick=${save}>Save as next version<//>`}
    </div>
    <${Languages} one=${one} />
    <div class="split">
      <section class="card fields" aria-label="Sources">
        ${SOURCES.filter(([name]) => name !== "mjml" || held.mjml || !held.html).map(
          ([
            name,
            label,
            more,
          ]) => html`<${Field} id=${`source-${name}`} name=${name} label=${label} wide value=${held[name]}
            fault=${faults[name]}
            onInput=${(text) => setHeld({ ...held, [name]: text })} ...${more} />`,
        )}
        <${Field} id="source-inline_css" name="inline_css" kind="check" label="Inline CSS" value=${held.inline_css}
          hint="Writes the rules of style sheets into the elements."
          onInput=${(checked) => setHeld({ ...held, inline_css: checked })} />
      </section>
      <section class="card" aria-label="What it makes">
        ${other.map(([name, message]) => html`<p class="error" role="status">${name && `${name}: `}${message}</p>`)}
        ${
          made &&
          html`<div class=${isStale ? "stale" : ""}>
          ${isStale && html`<p class="muted small">This is what it made before the mistake.</p>`}
          <h2>${made.subject}</h2>
          ${made.warnings.map((warning) => html`<p class="error">${warning.field}: ${warning.message}</p>`)}
          <${Tabs} label="Parts" tabs=${[
            made.html && { name: "HTML", body: () => html`<${Frame} title="What it makes" source=${made.html} />` },
            made.text && { name: "Text", body: () => html`<pre class="mailtext">${made.text}</pre>` },
          ]} /></div>`
        }
      </section>
    </div>
    <h2>Versions</h2>
    <${Versions} one=${one} path=${path} found=${setLatest} />
  `;
}

function Versions({ one, path, found }) {
  const read = async (...asked) => {
    const page = await get(...asked);
    if (!asked[1].cursor) found(page.data[0].version);
    return page;
  };
  return html`<${Listing} caption="Versions" path=${`${path}/versions`} read=${read} rowKey=${(row) => row.version}
    columns=${[
    {
      head: "Version",
      cell: (row) =>
        html`<a href=${link(`templates/${encodeURIComponent(one.name)}`, { version: row.version })}
          aria-current=${row.version === one.version ? "true" : null}>${row.version}</a>`,
    },
    { head: "Subject", kind: "wide", cell: (row) => row.subject },
    { head: "Made", cell: (row) => html`<${Moment} at=${row.created_at} />` },
  ]} />`;
}
