// Messages whose retries ran out. Replaying puts them back in the queue with all their tries.

import { html } from "../vendor/preact.js";
import { get, may, post } from "../api.js";
import { Button } from "../part/button.js";
import { ask, confirm } from "../part/dialog.js";
import { resource } from "../part/resource.js";
import { under } from "../part/table.js";
import { Moment, count } from "../part/time.js";
import { toast } from "../part/toast.js";
import { link } from "../route.js";

const PAGE = 500;
const REPLAYED_MAX = 10_000;

const columns = [
  {
    head: "Message",
    kind: "wide",
    cell: (row) => html`<a href=${link(`messages/${row.uid}`)}>${row.subject || "(no subject)"}</a>${under(row.id)}`,
  },
  { head: "Why", kind: "wide", cell: (row) => html`<code>${row.error?.code}</code> ${row.reason}` },
  {
    head: "Account",
    cell: (row) => html`<a href=${link(`accounts/${encodeURIComponent(row.account)}`)}>${row.account}</a>`,
  },
  { head: "Tries", kind: "num", cell: (row) => row.attempt },
  { head: "Failed", cell: (row) => html`<${Moment} at=${row.failed_at} />` },
];

/** Replayed ones leave the list, so the newest page is read until it has nothing new. */
async function replayAll() {
  const tried = new Set();
  let replayed = 0;
  for (let cursor; tried.size < REPLAYED_MAX;) {
    const page = await get("/v1/dead-letters", { limit: PAGE, cursor });
    const ids = page.data.map(({ uid }) => uid).filter((uid) => !tried.has(uid));
    if (ids.length) replayed += (await post("/v1/dead-letters/replay", { ids })).replayed;
    ids.forEach((uid) => tried.add(uid));
    cursor = page.next_cursor;
    if (!cursor) break;
  }
  return { replayed, left: tried.size - replayed };
}

const all = (again) => async () => {
  const text = `All of this tenant's, up to ${count(REPLAYED_MAX)}, are sent again. Is what made them fail put right?`;
  if (!(await confirm({ title: "Replay all dead letters?", text, action: "Replay all" }))) return;
  const { replayed, left } = await replayAll();
  again();
  await ask(
    "Replayed",
    () => html`<p role="status">${count(replayed)} are in the queue again, ${count(left)} were left as they were.</p>`,
  );
};

const one = async (row) => {
  await post(`/v1/messages/${row.uid}/retry`);
  toast("In the queue again");
};

export default resource({
  title: "Dead letters",
  path: "/v1/dead-letters",
  rowKey: (row) => row.uid,
  columns,
  tools: (again) => may("send") && html`<${Button} icon="again" onClick=${all(again)}>Replay all<//>`,
  acts: [{ name: "Replay", scope: "send", run: one }],
  empty: "A message whose tries ran out is kept here until somebody decides.",
});
