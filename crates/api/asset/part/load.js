// Reading from the server: what is shown until it is there, and when it does not come.

import { html, useEffect, useState } from "../vendor/preact.js";
import { Icon } from "./icon.js";

/** How long until what could not be read is tried again, where the data would have said. */
const RETRY_MS = 5_000;

/**
 * Reads with `load(signal)`, anew when `deps` change. `every` repeats it while the page is visible: milliseconds, or
 * what gives them for the data that came.
 */
export function useLoad(load, deps = [], every = 0) {
  const [state, setState] = useState({ loading: true });
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const stop = new AbortController();
    let timer;
    let pause = typeof every === "function" ? RETRY_MS : every;
    const read = async () => {
      try {
        const data = await load(stop.signal);
        if (typeof every === "function") pause = every(data);
        if (!stop.signal.aborted) setState({ data, loading: false });
      } catch (error) {
        if (!stop.signal.aborted) setState((last) => ({ ...last, error, loading: false }));
      }
      if (pause && !stop.signal.aborted) timer = setTimeout(again, pause);
    };
    const again = () => (document.hidden ? (timer = setTimeout(again, pause)) : read());
    setState((last) => ({ ...last, loading: true }));
    read();
    return () => (stop.abort(), clearTimeout(timer));
  }, [...deps, turn]);
  return { ...state, reload: () => setTurn((n) => n + 1) };
}

export const Fault = ({ error, retry }) => html`
  <div class="fault" role="alert">
    <${Icon} name="warn" />
    <div>
      <strong>${error.status === 404 ? "Not found" : "This could not be read"}</strong>
      <p>${error.message}</p>
      ${error.requestId && html`<p class="muted small">request ${error.requestId}</p>`}
    </div>
    ${retry && html`<button type="button" onClick=${retry}>Try again</button>`}
  </div>
`;

export const Loading = () => html`<p class="loading" role="status">Loading…</p>`;

/** Its child is a function of the data, called once there is some. */
export function Loaded({ from, children }) {
  if (from.data === undefined)
    return from.error ? html`<${Fault} error=${from.error} retry=${from.reload} />` : html`<${Loading} />`;
  return html`${from.error && html`<${Fault} error=${from.error} retry=${from.reload} />`}${children(from.data)}`;
}

export const Empty = ({ title, children }) => html`<div class="empty"><h2>${title}</h2>${children}</div>`;
