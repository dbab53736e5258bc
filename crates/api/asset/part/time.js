// Times, spans and numbers as people read them. A time is shown as the clock shows it, in the reader's zone or in UTC;
// how long ago that was is its title, or stands beside it.

import { html, useEffect, useState } from "../vendor/preact.js";

const NUMBER = new Intl.NumberFormat("en");
const STEPS = [
  [1, "s"],
  [60, "min"],
  [3_600, "h"],
  [86_400, "d"],
];

const ZONE = "postway_zone";
export const localZone = Intl.DateTimeFormat().resolvedOptions().timeZone;
/** The zone that times are shown in. */
export const zone = () => (localStorage.getItem(ZONE) === "UTC" ? "UTC" : localZone);
export const setZone = (name) => localStorage.setItem(ZONE, name);

const made = new Map();
/** Formats in the zone of now, each made once. */
function format(at, options) {
  const key = zone() + JSON.stringify(options);
  if (!made.has(key)) made.set(key, new Intl.DateTimeFormat("en-GB", { ...options, timeZone: zone() }));
  return made.get(key).format(at instanceof Date ? at : new Date(at));
}

const TIME = { hour: "2-digit", minute: "2-digit", second: "2-digit" };
const DAY = { day: "numeric", month: "short" };
const date = (at) => format(at, { year: "numeric", month: "2-digit", day: "2-digit" });
const isToday = (at) => date(at) === date(new Date());
const year = (at) => format(at, { year: "numeric" });

/** When today began. */
export function startOfDay() {
  const now = new Date();
  if (zone() === "UTC") return now.setUTCHours(0, 0, 0, 0);
  return now.setHours(0, 0, 0, 0);
}

/** `16 Nov`. */
export const day = (at) => format(at, DAY);

/** `10:57:57` of today, `16 Nov 10:57` of this year, else with its year. */
export function short(at) {
  if (isToday(at)) return format(at, TIME);
  if (year(at) !== year(new Date())) return format(at, { ...DAY, year: "numeric" });
  return `${format(at, DAY)} ${format(at, { hour: "2-digit", minute: "2-digit" })}`;
}

/** `Tue 17 Nov, 07:12:05`, and the year where it is another. */
const long = (at) =>
  format(at, { weekday: "short", ...DAY, ...(year(at) === year(new Date()) ? {} : { year: "numeric" }), ...TIME });

/** All of it, with the zone. */
export const absolute = (at) => format(at, { weekday: "short", ...DAY, year: "numeric", ...TIME, timeZoneName: "short" });

/** To the millisecond: `10:57:57.959`. */
export const precise = (at) => format(at, { ...TIME, fractionalSecondDigits: 3 });

/** Hours on an axis, and the day where one begins. */
export const tick = (at) => {
  const clock = format(at, { hour: "2-digit", minute: "2-digit" });
  return clock === "00:00" ? format(at, DAY) : clock;
};

const OFFSET = /(?:Z|[+-]\d\d:?\d\d)$/;
/** A time of the API, or one as a field holds it, as a field holds it. */
export function toField(at) {
  if (!at) return "";
  if (!OFFSET.test(at)) return at.slice(0, 16);
  const shift = zone() === "UTC" ? 0 : new Date(at).getTimezoneOffset() * 60_000;
  return new Date(Date.parse(at) - shift).toISOString().slice(0, 16);
}
/** What a field holds as a time of the API; nothing where it is none yet. */
export function fromField(text) {
  const at = Date.parse(OFFSET.test(text) || zone() !== "UTC" ? text : `${text}Z`);
  return Number.isNaN(at) ? "" : new Date(at).toISOString();
}

export const count = (number) => NUMBER.format(number ?? 0);

/** Seconds in their largest fitting unit: `45 s`, `3 min`, `2.5 h`. */
export function span(seconds) {
  if (seconds == null) return "–";
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  const [length, unit] = STEPS.findLast(([length]) => seconds >= length);
  const amount = seconds / length;
  return `${amount < 10 && unit !== "s" ? Number(amount.toFixed(1)) : Math.round(amount)} ${unit}`;
}

/** How much later one thing happened than another: `+11.3 s`. */
export function step(from, to) {
  const seconds = (Date.parse(to) - Date.parse(from)) / 1000;
  if (seconds < 0) return `−${span(-seconds)}`;
  return `+${seconds >= 1 && seconds < 60 ? `${seconds.toFixed(1)} s` : span(seconds)}`;
}

export function bytes(number) {
  const units = ["B", "KiB", "MiB", "GiB"];
  const step = number < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(number) / 10));
  return `${Number((number / 1024 ** step).toFixed(1))} ${units[step]}`;
}

/** A share in percent: `0.3 %`; nothing of nothing. */
export function share(part, whole) {
  if (!whole) return "–";
  const percent = (100 * part) / whole;
  return `${percent > 0 && percent < 10 ? Number(percent.toFixed(percent < 0.1 ? 2 : 1)) : Math.round(percent)} %`;
}

function relative(at) {
  const seconds = (Date.parse(at) - Date.now()) / 1000;
  if (Math.abs(seconds) < 2) return "now";
  return seconds > 0 ? `in ${span(seconds)}` : `${span(-seconds)} ago`;
}

const HOUR_MS = 3_600_000;
const tickers = new Set();
setInterval(() => tickers.forEach((tick) => tick()), 5_000);

/** Draws again now and then while a time is near enough that its text changes. */
function useTicks(at) {
  const [, tick] = useState(0);
  useEffect(() => {
    const young = () => Math.abs(Date.now() - Date.parse(at)) < HOUR_MS && tick((n) => n + 1);
    tickers.add(young);
    return () => tickers.delete(young);
  }, [at]);
}

/** A time in a list: short, and how long ago in its title. */
export function Moment({ at }) {
  useTicks(at);
  return at ? html`<time datetime=${at} title=${`${absolute(at)}, ${relative(at)}`}>${short(at)}</time>` : "–";
}

/** A time by itself, with how long ago beside it. `past` is said in the place of both once it has come. */
export function When({ at, past }) {
  useTicks(at);
  if (!at) return "–";
  const words = past && Date.parse(at) < Date.now() ? past : `${isToday(at) ? short(at) : long(at)} (${relative(at)})`;
  return html`<time datetime=${at} title=${absolute(at)}>${words}</time>`;
}
