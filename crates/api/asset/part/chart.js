// Lines over time, drawn by uPlot, which is read when the first chart shows. The numbers are there for who cannot see
// them.

import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { absolute, count, tick } from "./time.js";

const HEIGHT = 220;
let library;

function uplot() {
  library ??= new Promise((done, failed) => {
    const style = Object.assign(document.createElement("link"), {
      rel: "stylesheet",
      href: new URL("../vendor/uplot.css", import.meta.url).href,
    });
    const script = Object.assign(document.createElement("script"), {
      src: new URL("../vendor/uplot.js", import.meta.url).href,
    });
    script.onload = () => done(window.uPlot);
    script.onerror = () => failed(new Error("the chart library could not be read"));
    document.head.append(style, script);
  });
  return library;
}

const clock = (_, ticks) => ticks.map((at) => tick(at * 1000));

/** A colour of the theme as a canvas takes it: a variable has to be worn by an element to become one. */
function colours(place) {
  return (name) => {
    place.style.color = `var(--${name})`;
    const worn = getComputedStyle(place).color;
    place.style.color = "";
    return worn;
  };
}

function options(width, lines, colour) {
  const axis = {
    stroke: colour("muted"),
    grid: { stroke: colour("line"), width: 1 },
    ticks: { stroke: colour("line"), width: 1 },
  };
  const series = lines.map(({ name, tone }) => ({
    label: name,
    stroke: colour(tone),
    fill: colour(tone).replace(/^rgb\((.*)\)$/, "rgba($1, .08)"),
    width: 2,
    points: { show: false },
    value: (_, value) => (value == null ? "–" : count(value)),
  }));
  return {
    width,
    height: HEIGHT,
    series: [{ value: (_, at) => (at == null ? "–" : absolute(at * 1000)) }, ...series],
    axes: [
      { ...axis, values: clock },
      { ...axis, size: 56, values: (_, ticks) => ticks.map((tick) => (Number.isInteger(tick) ? count(tick) : "")) },
    ],
    scales: { y: { range: (_, low, high) => [0, Math.max(high, 4) * 1.05] } },
    legend: { live: true },
    cursor: { drag: { x: false, y: false } },
  };
}

/** `times` in ms, `lines` as `{name, tone, values}`. */
export function Chart({ label, times, lines }) {
  const place = useRef(null);
  const plot = useRef(null);
  const [ready, setReady] = useState(Boolean(window.uPlot));
  const [theme, setTheme] = useState(0);
  const data = [times.map((at) => at / 1000), ...lines.map((line) => line.values)];
  useEffect(() => {
    uplot().then(
      () => setReady(true),
      () => setReady(false),
    );
    const repaint = () => setTheme((n) => n + 1);
    const system = matchMedia("(prefers-color-scheme: dark)");
    addEventListener("themechange", repaint);
    system.addEventListener("change", repaint);
    return () => (removeEventListener("themechange", repaint), system.removeEventListener("change", repaint));
  }, []);
  useEffect(() => {
    if (!ready) return;
    const width = () => place.current.clientWidth;
    plot.current = new window.uPlot(options(width(), lines, colours(place.current)), data, place.current);
    const resized = new ResizeObserver(() => plot.current.setSize({ width: width(), height: HEIGHT }));
    resized.observe(place.current);
    return () => (resized.disconnect(), plot.current.destroy(), (plot.current = null));
  }, [ready, theme, lines.map((line) => line.name).join()]);
  useEffect(() => plot.current?.setData(data), [JSON.stringify(data)]);
  const sums = lines
    .map(({ name, values }) => `${count(values.reduce((sum, value) => sum + value, 0))} ${name}`)
    .join(", ");
  return html`<figure class="chart">
    <div ref=${place} role="img" aria-label=${`${label}: ${sums}`}></div>
    <figcaption class="muted small">${label}: ${sums}</figcaption>
  </figure>`;
}
