// Small drawings, all strokes of the text's colour. They say nothing by themselves: a word stands beside each of them,
// or the button that has only one has a label.

import { html } from "../vendor/preact.js";

const PATHS = {
  menu: "M4 6h16M4 12h16M4 18h16",
  close: "M6 6l12 12M18 6L6 18",
  sun: `M12 8a4 4 0 100 8 4 4 0 000-8zM12 2v2M12 20v2M4.9 4.9l1.4 1.4M17.7 17.7l1.4 1.4M2 12h2M20 12h2M4.9 19.1l1.4-1.4
    M17.7 6.3l1.4-1.4`,
  moon: "M20 14.5A8 8 0 119.5 4a6.5 6.5 0 0010.500 10.500z",
  out: "M10 4H5v16h5M14 8l4 4-4 4M18 12H9",
  copy: "M9 9h11v11H9zM15 9V4H4v11h5",
  check: "M5 13l4 4L19 7",
  warn: "M12 4l9 16H3zM12 10v4M12 17v.5",
  plus: "M12 5v14M5 12h14",
  next: "M9 5l7 7-7 7",
  back: "M15 5l-7 7 7 7",
  again: "M20 11a8 8 0 10-2 6M20 4v7h-7",
  file: "M6 3h8l4 4v14H6zM14 3v4h4",
  down: "M12 4v11M7 11l5 5 5-5M5 20h14",
  send: "M4 12l16-8-6 16-3-7z",
};

export const Icon = ({ name }) => html`
  <svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false"><path d=${PATHS[name]} /></svg>
`;
