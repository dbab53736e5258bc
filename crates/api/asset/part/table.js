// Tables, and lists that come in pages. A page is asked for by its cursor, so the millionth row is as near as the
// first.

import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { get } from "../api.js";
import { Icon } from "./icon.js";
import { Fault, Loading, useLoad } from "./load.js";
import { go, here } from "../route.js";

/** `columns` are `{head, cell(row), kind}`; `kind` is `num`, `wide` or `doing`, whose head only screen readers read. */
export const Table = ({ caption, columns, rows, rowKey = (row) => row.id, busy }) => html`
  <div class="scroll" role="region" aria-label=${caption} tabindex="0">
    <table aria-busy=${busy ? "true" : null}>
      <caption class="visually-hidden">${caption}</caption>
      <thead>
        <tr>
          ${columns.map(
            ({ head, kind }) => html`<th scope="col" class=${kind ?? ""}>
              ${kind === "doing" ? html`<span class="visually-hidden">${head}</span>` : head}
            </th>`,
          )}
        </tr>
      </thead>
      <tbody>
        ${rows.map(
          (row) => html`<tr key=${rowKey(row)}>
            ${columns.map(({ head, kind, cell }) =>
              html`<td class=${kind ?? ""} data-head=${head}><div>${cell(row)}</div></td>`)}
          </tr>`,
        )}
      </tbody>
    </table>
  </div>
`;

/** How often the server is asked to look further for one page. */
const LOOKS_MAX = 50;

/** The first page that has something: for one page the server looks at some thousands, and then says where to go on. */
async function found(read, path, query, signal) {
  let page = await read(path, query, signal);
  for (let looks = 1; !page.data.length && page.next_cursor && looks < LOOKS_MAX; looks++)
    page = await read(path, { ...query, cursor: page.next_cursor }, signal);
  return page;
}

/** The cursors of the pages before a page, as far as this tab has walked them. */
const walked = new Map();

/**
 * The pages of a list. `empty` is shown where there is nothing; `turn` reads the page anew when it changes. A list that is
 * `addressed` is what its view is about: which page of it is shown is part of the address, so that Back and a colleague
 * find it.
 */
export function Listing({ path, query = {}, empty, turn = 0, every, read = get, addressed, seen, ...table }) {
  const at = addressed ? here() : { query: {} };
  const [cursors, setCursors] = useState(() => (at.query.cursor ? (walked.get(at.query.cursor) ?? [at.query.cursor]) : []));
  const asked = JSON.stringify(query);
  const first = useRef(asked);
  const head = useRef(null);
  useEffect(() => {
    if (first.current === asked) return;
    first.current = asked;
    setCursors([]);
  }, [path, asked]);
  const cursor = cursors.at(-1);
  const { data, error, loading, reload } = useLoad(
    (signal) => found(read, path, { ...query, cursor }, signal),
    [path, asked, cursor, turn],
    every,
  );
  useEffect(() => data && seen?.(data, cursor), [data]);
  const number = Number(cursor && at.query.page) || cursors.length + 1;
  const turnTo = (next, page) => {
    const to = next.at(-1);
    if (to) walked.set(to, next);
    if (addressed) return go(at.key, { ...here().query, cursor: to, page: to && page });
    setCursors(next);
    head.current?.scrollIntoView({ block: "start" });
  };
  if (!data || (error && !every)) return error ? html`<${Fault} error=${error} retry=${reload} />` : html`<${Loading} />`;
  const more = data.next_cursor;
  const isWalked = cursors.length === number - 1;
  return html`
    <div ref=${head}></div>
    ${error && html`<${Fault} error=${error} retry=${reload} />`}
    ${data.data.length ? html`<${Table} rows=${data.data} busy=${loading} ...${table} />` : more
      ? html`<p class="muted">Nothing so far. Next looks further.</p>` : cursor
        ? html`<p class="muted">Nothing more.</p>` : empty}
    ${
      (more || cursor) &&
      html`<nav class="pages" aria-label=${`Pages of ${table.caption.toLowerCase()}`}>
      <button type="button" disabled=${!cursor || loading} onClick=${() => turnTo(cursors.slice(0, -1), number - 1)}>
        <${Icon} name="back" />${isWalked ? "Previous" : "First page"}
      </button>
      <span class="muted">page ${number}</span>
      <button type="button" disabled=${!more || loading} onClick=${() => turnTo([...cursors, more], number + 1)}>
        Next<${Icon} name="next" />
      </button>
    </nav>`
    }
  `;
}

/** A second, smaller line in a cell. */
export const under = (text) => text && html`<br /><span class="muted small">${text}</span>`;

/** Names and values, one below the other. Pairs without a value are left out. */
export const Facts = ({ pairs }) => html`
  <dl class="facts">
    ${pairs
      .filter(([, value]) => value !== null && value !== undefined && value !== "")
      .map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}
  </dl>
`;
