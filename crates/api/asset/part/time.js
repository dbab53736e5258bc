// Times, spans and numbers as people read them.

import { html, useEffect, useState } from "../vendor/preact.js";

const NUMBER = new Intl.NumberFormat("en");
const ABSOLUTE = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });
const STEPS = [
  [1, "s"],
  [60, "min"],
  [3_600, "h"],
  [86_400, "d"],
];

export const count = (number) => NUMBER.format(number ?? 0);

/** Seconds in their largest fitting unit: `45 s`, `3 min`, `2.5 h`. */
export function span(seconds) {
  if (seconds == null) return "–";
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  const [length, unit] = STEPS.findLast(([length]) => seconds >= length);
  const amount = seconds / length;
  return `${amount < 10 && unit !== "s" ? Number(amount.toFixed(1)) : Math.round(amount)} ${unit}`;
}

export function bytes(number) {
  const units = ["B", "KiB", "MiB", "GiB"];
  const step = number < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(number) / 10));
  return `${Number((number / 1024 ** step).toFixed(1))} ${units[step]}`;
}

export const absolute = (at) => ABSOLUTE.format(new Date(at));

function relative(at) {
  const seconds = (Date.parse(at) - Date.now()) / 1000;
  if (Math.abs(seconds) < 2) return "now";
  return seconds > 0 ? `in ${span(seconds)}` : `${span(-seconds)} ago`;
}

const MINUTE_MS = 60_000;
const tickers = new Set();
setInterval(() => tickers.forEach((tick) => tick()), 5_000);

/** A time, told from now on; the exact one is its title. `past` is said in its place once it has come. */
export function Ago({ at, past }) {
  const [, tick] = useState(0);
  useEffect(() => {
    const young = () => Math.abs(Date.now() - Date.parse(at)) < 60 * MINUTE_MS && tick((n) => n + 1);
    tickers.add(young);
    return () => tickers.delete(young);
  }, [at]);
  return at ? html`<time datetime=${at} title=${absolute(at)}>
    ${past && Date.parse(at) < Date.now() ? past : relative(at)}</time>` : "–";
}
