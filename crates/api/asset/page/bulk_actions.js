// Bulk actions: what the server does with many messages, how far it is, and what it has done.

import { html } from "../vendor/preact.js";
import { post, url } from "../api.js";
import { Badge } from "../part/badge.js";
import { Resource } from "../part/resource.js";
import { Moment, count, short } from "../part/time.js";
import { toast } from "../part/toast.js";
import { link } from "../route.js";

const WORDS = { cancel: "cancel", retry: "retry", reschedule: "reschedule", resolve: "resolve", suppress: "suppress recipients" };
const LIVE_MS = 2_000;

const what = (one) => {
  const more = [one.outcome, one.send_at && short(one.send_at), one.note].filter(Boolean).join(", ");
  return html`<strong>${WORDS[one.action] ?? one.action}</strong>${more && `: ${more}`}`;
};

/** The messages it is for, as a link to those that match now. */
const which = (one) => {
  if (!one.filter) return `${count(one.selected)} selected`;
  const names = Object.entries(one.filter);
  return html`<a href=${link("messages", one.filter)}>${names.length
    ? names.map(([name, value]) => html`<code>${name}=${value}</code> `) : "all messages"}</a>`;
};

const progress = (one) => {
  const met = one.changed + one.skipped;
  const words = `${count(one.changed)} done, ${count(one.skipped)} left`;
  if (one.state !== "running") return words;
  return html`${words} of ${count(one.expected)}${one.expected_or_more ? "+" : ""}
    <progress value=${met} max=${Math.max(one.expected, 1)} aria-label="Progress"></progress>`;
};

export default () => html`<${Resource}
  title="Bulk actions"
  what="bulk action"
  path="/v1/bulk-actions"
  live=${LIVE_MS}
  rowKey=${({ id }) => id}
  at=${({ id }) => url`/v1/bulk-actions/${id}`}
  columns=${[
    { head: "State", cell: (one) => html`<${Badge} status=${one.state} tone=${one.state === "stopped" && "warn"} />` },
    { head: "What", cell: what },
    { head: "Which messages", kind: "wide", cell: which },
    { head: "Progress", cell: progress },
    { head: "By", cell: (one) => one.actor },
    { head: "Since", cell: (one) => html`<${Moment} at=${one.created_at} />` },
    { head: "Ended", cell: (one) => one.ended_at && html`<${Moment} at=${one.ended_at} />` },
  ]}
  acts=${[
    {
      name: "Stop",
      scope: "send",
      kind: "danger",
      when: (one) => one.state === "running",
      run: async (one) => {
        const stopped = await post(url`/v1/bulk-actions/${one.id}/stop`);
        toast(`Stopped after ${count(stopped.changed + stopped.skipped)}`);
      },
    },
  ]}
  empty=${html`Find messages, and choose <em>Act on all of these</em>.`}
/>`;
