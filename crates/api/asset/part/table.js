// Tables, and lists that come in pages. A page is asked for by its cursor, so the millionth row is as near as the
// first.

import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { get } from "../api.js";
import { Icon } from "./icon.js";
import { Fault, Loading, useLoad } from "./load.js";
import { absolute, count } from "./time.js";
import { go, here } from "../route.js";

/** `columns` are `{head, cell(row), kind}`; `kind` is `num`, `wide` or `doing`, whose head only screen readers read. */
export const Table = ({ caption, columns, rows, rowKey = (row) => row.id, busy, className = "", rowClass }) => html`
  <div class=${`scroll ${className}`} role="region" aria-label=${caption} tabindex="0">
    <table aria-busy=${busy ? "true" : null}>
      <caption class="visually-hidden">${caption}</caption>
      <thead>
        <tr>
          ${columns.map(
            ({ head, kind }) => html`<th scope="col" class=${kind ?? ""}>
              ${["doing", "pick"].includes(kind) ? html`<span class="visually-hidden">${head}</span>` : head}
            </th>`,
          )}
        </tr>
      </thead>
      <tbody>
        ${rows.map(
          (row) => html`<tr key=${rowKey(row)} class=${rowClass?.(row) ?? null}>
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

/**
 * Rows that stay where they are while the list behind them goes on. `last` is what was read last, `key` what it answers: a
 * new question takes all of it. What is not in the list any more is `left`.
 */
function useLive(isLive, key, last, rowKey) {
  const shown = useRef({});
  if (!isLive) return { data: last, news: 0 };
  if (shown.current.key !== key || shown.current.taken === undefined) {
    // What was read before the question changed is not its answer.
    if (shown.current.key !== key && shown.current.last === last) return { data: last, news: 0 };
    shown.current = { key, taken: last, last };
  }
  shown.current.last = last;
  const { taken } = shown.current;
  const now = new Map(last.data.map((row) => [rowKey(row), row]));
  const known = new Set(taken.data.map(rowKey));
  const fresh = last.data.filter((row) => !known.has(rowKey(row)));
  // An empty list has no row that could be pushed away.
  if (!taken.data.length && fresh.length) {
    shown.current.taken = last;
    return { data: last, news: 0 };
  }
  const oldest = last.next_cursor ? rowKey(last.data.at(-1)) : "";
  const left = new Set([...known].filter((one) => !now.has(one) && one > oldest));
  return { data: { ...taken, data: taken.data.map((row) => now.get(rowKey(row)) ?? row) }, news: fresh.length, left };
}

/** The cursors of the pages before a page, as far as this tab has walked them. */
const walked = new Map();

/**
 * The pages of a list. `empty` is shown where there is nothing; `turn` reads the page anew when it changes. A list that is
 * `addressed` is what its view is about: which page of it is shown is part of the address, so that Back and a colleague
 * find it. One that is `live` is read again at that interval, in milliseconds: rows change in their place, and what is new is
 * announced above them.
 */
export function Listing({ path, query = {}, empty, turn = 0, every, read = get, addressed, seen, live, ...table }) {
  const at = addressed ? here() : { query: {} };
  const [shows, setShows] = useState(0);
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
  const { data: last, error, loading, reload } = useLoad(
    (signal) => found(read, path, { ...query, cursor }, signal),
    [path, asked, cursor, turn, shows],
    live ?? every,
  );
  const { data, news, left } = useLive(live && last, `${asked} ${cursor} ${turn} ${shows}`, last, table.rowKey);
  useEffect(() => last && seen?.(last, cursor), [last]);
  const number = Number(cursor && at.query.page) || cursors.length + 1;
  const turnTo = (next, page) => {
    const to = next.at(-1);
    if (to) walked.set(to, next);
    if (addressed) return go(at.key, { ...here().query, cursor: to, page: to && page });
    setCursors(next);
    head.current?.scrollIntoView({ block: "start" });
  };
  if (!data || (error && !every && !live)) return error ? html`<${Fault} error=${error} retry=${reload} />` : html`<${Loading} />`;
  const more = data.next_cursor;
  const isWalked = cursors.length === number - 1;
  return html`
    <div ref=${head}></div>
    ${error && html`<${Fault} error=${error} retry=${reload} />`}
    ${news > 0 && html`<p class="news" role="status"><button type="button" onClick=${() => setShows(shows + 1)}>
      ${news >= data.data.length && news >= 50 ? `${count(news)} or more` : count(news)} new: show</button></p>`}
    ${data.data.length ? html`<${Table} rows=${data.data} busy=${loading && !live} ...${table}
      rowClass=${(row) => (left?.has(table.rowKey(row)) ? "left" : null)} />` : more
      ? html`<p class="muted" role="status">Nothing so far${data.searched_since &&
        ` in what was accepted since ${absolute(data.searched_since)}`}. Next looks further.</p>` : cursor
        ? html`<p class="muted">Nothing more.</p>` : empty}
    ${data.data.length > 0 && data.searched_since && html`<p class="muted" role="status">
      Searched what was accepted since ${absolute(data.searched_since)}. Next looks further.</p>`}
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
