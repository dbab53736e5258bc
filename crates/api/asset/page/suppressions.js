// Addresses that get no mail.

import { html, useState } from "../vendor/preact.js";
import { get, may, send, url } from "../api.js";
import { Badge } from "../part/badge.js";
import { Button } from "../part/button.js";
import { ask } from "../part/dialog.js";
import { Filters } from "../part/filters.js";
import { Icon } from "../part/icon.js";
import { Resource } from "../part/resource.js";
import { spellings } from "../part/spelling.js";
import { Moment, count } from "../part/time.js";
import { link, refine } from "../route.js";

const REASONS = [
  ["manual", "by hand"],
  ["hard_bounce", "hard bounce"],
  ["complaint", "complaint"],
];

const UID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/;

/** A note, with a link to the message that it names. */
const Note = ({ text }) => {
  const uid = text?.match(UID)?.[0];
  if (!uid) return text;
  const [before, after] = text.split(uid);
  return html`${before}<a href=${link(`messages/${uid}`)} title=${uid}>the message</a>${after}`;
};

const columns = [
  { head: "Address", cell: (row) => html`<span class="break">${spellings(row.address, row.address_unicode)}</span>` },
  { head: "Reason", cell: (row) => html`<${Badge} status=${row.reason} />` },
  { head: "Note", kind: "wide", cell: (row) => html`<${Note} text=${row.note} />` },
  { head: "Since", cell: (row) => html`<${Moment} at=${row.created_at} />` },
  { head: "Until", cell: (row) => (row.expires_at ? html`<${Moment} at=${row.expires_at} />` : "for ever") },
];

const fields = (row) =>
  [
    !row && { name: "addresses", label: "Addresses", kind: "list", rows: 5, hint: "One a line.", required: true },
    { name: "reason", label: "Reason", kind: "choice", options: REASONS },
    { name: "expires_at", label: "Until", kind: "time", hint: "For ever when empty." },
    { name: "note", label: "Note", wide: true },
  ].filter(Boolean);

async function upload(file, close) {
  const format = /\.(jsonl|ndjson)$/i.test(file.name) ? "jsonl" : "csv";
  const answer = await send("POST", "/v1/suppressions/import", {
    body: file,
    type: format === "csv" ? "text/csv" : "application/x-ndjson",
    query: { format },
  });
  close(await answer.json());
}

const importing = (again) => async () => {
  const result = await ask(
    "Import addresses",
    (close) => html`
    <p>A CSV file with the columns <code>address,reason,note,expires_at</code>, as an export has them, or JSON lines.</p>
    <div class="field"><label for="import-file">File</label><input id="import-file" type="file"
      accept=".csv,.jsonl,.ndjson,text/csv" /></div>
    <div class="acts"><${Button} kind="primary" onClick=${async () => {
      const [file] = document.getElementById("import-file").files;
      if (!file) throw new Error("Choose a file first.");
      await upload(file, close);
    }}>Import<//></div>
  `,
  );
  if (!result) return;
  again();
  await ask(
    "Imported",
    () => html`<p>${count(result.imported)} addresses get no mail from now on.</p>
      <p>${count(result.rejected)} lines were left out.</p>
    <ul class="results">${result.errors.map((one) => html`<li>line ${one.line}: ${one.message}</li>`)}</ul>`,
  );
};

const FILTERS = [{ name: "address", label: "Address", kind: "search", wide: true, placeholder: "one whole address" }];

/** The list, or one address of it: whether it is there is asked by its name. */
const reading = (address) => async (path, query, signal) => {
  if (!address) return get(path, query, signal);
  // Half an address is no address yet.
  if (!/^[^@\s]+@[^@\s]+$/.test(address)) return { data: [] };
  try {
    return { data: [await get(url`/v1/suppressions/${address}`, {}, signal)] };
  } catch (error) {
    if ([400, 404, 422].includes(error.status)) return { data: [] };
    throw error;
  }
};

const LIST = {
  title: "Suppressions",
  what: "suppression",
  path: "/v1/suppressions",
  at: (row) => url`/v1/suppressions/${row.address}`,
  rowKey: (row) => row.address,
  columns,
  fields,
  preset: { reason: "manual" },
  tools: (again) =>
    html`${may("manage") && html`<${Button} onClick=${importing(again)}>Import<//>`}<a class="button"
      href="/v1/suppressions/export" download="suppressions.csv"><${Icon} name="down" />Export</a>`,
  removal: (row) => `${row.address} gets mail again.`,
  empty: "Addresses that bounced for good or complained come here by themselves.",
};

export default function Suppressions({ query }) {
  const [asked, setAsked] = useState({ address: query.address ?? "" });
  const set = (next) => {
    setAsked(next);
    refine("suppressions", next);
  };
  const address = asked.address.trim();
  return html`<${Resource} ...${LIST} key=${address} read=${reading(address)}
    empty=${address ? "Nothing keeps mail from this address." : LIST.empty}
    intro=${html`<${Filters} label="Find an address" fields=${FILTERS} value=${asked} set=${set} />`} />`;
}
