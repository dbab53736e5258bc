// A page about things of one kind: a list of them, forms to make and change one, and what else can be done with each.
//
// What the key may not do is not offered: making, changing and removing need `manage`, unless `scope` says otherwise.

import { html, useState } from "../vendor/preact.js";
import { may, patch, post, remove } from "../api.js";
import { Button } from "./button.js";
import { confirm, edit } from "./dialog.js";
import { Empty } from "./load.js";
import { Listing } from "./table.js";
import { toast } from "./toast.js";

/**
 * `what` is its name ("account"), `path` its list, `at(row)` the path of one. `fields(row)` make and change it; `create`
 * and `change` take the place of POST and PATCH; `fixed` means that there is no change here. `acts` are
 * `{name, when(row), run(row), kind}`; after `run` the list is read anew. `removal(row)` is what a deletion means:
 * `{text, path, typed, done}`, where `path` takes the place of `at(row)`, `typed` is to be typed first, and `done`
 * follows; or only the text; or false for what stays. `trial(row)` tests what was just saved.
 */
export function Resource({
  title,
  what,
  path,
  at,
  columns,
  fields,
  preset,
  scope = "manage",
  versioned,
  create,
  change,
  created,
  acts = [],
  removal,
  empty,
  tools,
  intro,
  fixed,
  trial,
  ...list
}) {
  const [turn, setTurn] = useState(0);
  const again = () => setTurn((n) => n + 1);
  const manages = may(scope);
  const tried = async (row) => {
    try {
      await trial(row);
    } catch (error) {
      toast(error.message, "bad");
    }
    again();
  };
  const make = async () => {
    const made = await edit({
      title: `New ${what}`,
      action: "Create",
      fields: fields(null),
      preset,
      expert: true,
      trial: trial && tried,
      save: async (body) => (create ?? ((body) => post(path, body)))(body),
    });
    if (!made) return;
    toast(`The ${what} is made`);
    again();
    await created?.(made);
  };
  const modify = async (row) => {
    const save = async (body) => {
      const whole = versioned ? { ...body, version: row.version } : body;
      return Object.keys(body).length ? (change ?? ((row, body) => patch(at(row), body)))(row, whole) : row;
    };
    if (!(await edit({ title: `Change ${what}`, fields: fields(row), value: row, save, expert: true, trial: trial && tried }))) return;
    toast("Saved");
    again();
  };
  const means = (row) => {
    const meant = removal(row);
    return typeof meant === "string" ? { text: meant } : meant;
  };
  const drop = async (row) => {
    const { text, path = at(row), typed, done } = means(row);
    if (!(await confirm({ title: `Delete this ${what}?`, text, typed, action: "Delete", kind: "danger" }))) return;
    await remove(path);
    toast(`The ${what} is deleted`);
    again();
    done?.();
  };
  const run = (act) => async (row) => {
    await act.run(row);
    again();
  };
  const offered = [
    ...(fields && !fixed && manages ? [{ name: "Edit", run: modify }] : []),
    ...acts.filter((act) => may(act.scope ?? scope)).map((act) => ({ ...act, run: run(act) })),
    ...(removal && manages ? [{ name: "Delete", kind: "danger", when: means, run: drop }] : []),
  ];
  const shownActs = (row) => offered.filter(({ when }) => !when || when(row));
  const acting = {
    head: "Actions",
    kind: "doing",
    cell: (row) =>
      html`<div class="acts">
        ${shownActs(row).map((act) =>
          html`<${Button} kind=${act.kind} onClick=${() => act.run(row)}>${act.name}<//>`)}</div>`,
  };
  return html`
    <div class="title">
      <h1>${title}</h1><span class="grow"></span>
      ${tools?.(again)}
      ${fields && manages && html`<${Button} kind="primary" icon="plus" onClick=${make}>New ${what}<//>`}
    </div>
    ${intro}
    <${Listing} addressed caption=${title} path=${path} turn=${turn} columns=${offered.length ? [...columns, acting] : columns}
      ...${list}
      empty=${html`<${Empty} title=${`No ${title.toLowerCase()} yet`}><p>${empty}</p><//>`} />
  `;
}

/** The page of a `Resource` that needs nothing else. */
export const resource = (about) => () => html`<${Resource} ...${about} />`;

/** Switching something off and on: two acts. */
export const switching = (at, isOn, scope) => [
  { name: "Suspend", scope, when: isOn, run: (row) => post(`${at(row)}/suspend`) },
  { name: "Activate", scope, when: (row) => !isOn(row), run: (row) => post(`${at(row)}/activate`) },
];
