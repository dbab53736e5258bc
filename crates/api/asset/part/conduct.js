// Whether a webhook accepts its calls: what is shown beside "active" if they fail.

import { html } from "../vendor/preact.js";
import { get, url } from "../api.js";
import { Badge } from "./badge.js";
import { useLoad } from "./load.js";
import { under } from "./table.js";
import { When } from "./time.js";

/** How often it is asked. */
export const LOOK_MS = 10_000;
const ANSWER_MAX = 120;
/** What is due already waits for a webhook that failed often: it is left alone for so long. */
export const SOON = "within a minute";

/** The newest of a webhook's calls that failed and is to be made again; undefined where there is none. */
export const useFailing = ({ id, active }) =>
  useLoad(
    async (signal) => {
      if (!active) return undefined;
      return (await get(url`/v1/webhooks/${id}/deliveries`, { status: "waiting", limit: 1 }, signal)).data[0];
    },
    [id, active],
    LOOK_MS,
  ).data;

/** How its latest call went, in a few words. */
export function answered({ last_call: call }) {
  if (call?.status) return `HTTP ${call.status}`;
  const words = call?.answer || "no answer";
  return words.length > ANSWER_MAX ? `${words.slice(0, ANSWER_MAX)}…` : words;
}

/** When the webhook is called again, where it asked to be left alone until then. */
export const quietUntil = ({ quiet_until: until }) => (Date.parse(until) > Date.now() ? until : null);

/** `behind` is whether it has calls due that were not made yet. */
export function Conduct({ webhook, behind }) {
  const failing = useFailing(webhook);
  const quiet = quietUntil(webhook);
  if (failing)
    return html` <${Badge} status="calls fail" tone="bad" />
      ${under(html`${answered(failing)}; tried again <${When} at=${quiet ?? failing.next_at} past=${SOON} />`)}`;
  if (quiet)
    return html` <${Badge} status="left alone" tone="warn" />${under(html`called again <${When} at=${quiet} />`)}`;
  return webhook.active && behind && html` <${Badge} status="behind" />`;
}
