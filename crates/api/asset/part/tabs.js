// Tabs as the ARIA practices describe them: one stop for Tab, arrows between them.

import { html, useRef, useState } from "../vendor/preact.js";
import { here, remember } from "../route.js";

let count = 0;

const slug = (name) => name.toLowerCase().match(/[a-z]+/)[0];

/**
 * `tabs` are `{name, body()}`; what is falsy among them is left out. Only the body that is open is made. Which one is open
 * is part of the address, under the name `place`.
 */
export function Tabs({ label, tabs, first = 0, place: parameter }) {
  const [open, choose] = useState(() => {
    const named = parameter && here().query[parameter];
    const at = named ? tabs.filter(Boolean).findIndex(({ name }) => slug(name) === named) : -1;
    return at < 0 ? first : at;
  });
  const setOpen = (next) => {
    choose(next);
    if (parameter) remember({ [parameter]: next === first ? "" : slug(shown[next].name) });
  };
  const id = useRef(null);
  id.current ??= `tabs${++count}`;
  const shown = tabs.filter(Boolean);
  const at = Math.min(open, shown.length - 1);
  const move = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1, Home: -at, End: shown.length - 1 - at }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const next = (at + step + shown.length) % shown.length;
    setOpen(next);
    event.currentTarget.children[next].focus();
  };
  return html`
    <div class="tabs" role="tablist" aria-label=${label} onKeyDown=${move}>
      ${shown.map(
        (
          { name },
          place,
        ) => html`<button type="button" role="tab" id=${`${id.current}-${place}`} aria-selected=${String(place === at)}
          aria-controls=${place === at ? `${id.current}-panel` : null} tabindex=${place === at ? 0 : -1}
            onClick=${() => setOpen(place)}>
          ${name}
        </button>`,
      )}
    </div>
    <div class="panel" role="tabpanel" id=${`${id.current}-panel`} aria-labelledby=${`${id.current}-${at}`}
      tabindex="0" key=${at}>
      ${shown[at].body()}
    </div>
  `;
}
