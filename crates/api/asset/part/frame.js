// Html that the server rendered but did not serve, in a frame that can do nothing: no script runs in it, and the
// page's own policy, which such a frame inherits, fetches nothing from elsewhere. That policy also ignores written
// styles, so they are taken out of the text and put on afterwards by hand, which it allows.

import { html, useRef } from "../vendor/preact.js";

/** Renamed before they are parsed, as a parser reports each style that the policy forbids. */
export const inert = (source) =>
  source
    .replace(/<style\b/gi, '<script type="text/css"')
    .replace(/<\/style\b/gi, "</script")
    .replace(/(<[a-z][^>]*?\s)style(\s*=)/gi, "$1data-style$2");

function take(source) {
  const parsed = new DOMParser().parseFromString(inert(source), "text/html");
  const sheets = [...parsed.querySelectorAll('script[type="text/css"]')].map((style) => style.textContent);
  parsed.querySelectorAll("script").forEach((script) => script.remove());
  return { text: `<!doctype html>${parsed.documentElement.outerHTML}`, sheets };
}

export function Frame({ title, source }) {
  const frame = useRef(null);
  const { text, sheets } = take(source);
  const dress = () => {
    const inside = frame.current.contentDocument;
    for (const element of inside.querySelectorAll("[data-style]")) element.style.cssText = element.dataset.style;
    inside.adoptedStyleSheets = sheets.map((text) => {
      const sheet = new frame.current.contentWindow.CSSStyleSheet();
      sheet.replaceSync(text);
      return sheet;
    });
  };
  return html`<iframe class="mail" ref=${frame} title=${title} sandbox="allow-same-origin" srcdoc=${text}
    onLoad=${dress}></iframe>`;
}
