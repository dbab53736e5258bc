// What was typed and not saved. Nobody loses it without having been asked: not by Escape, not by a link, not by closing
// the tab.

import { html, useEffect, useLayoutEffect, useRef, useState } from "../vendor/preact.js";

const unsaved = new Set();
let question = () => Promise.resolve(true);

addEventListener("beforeunload", (event) => unsaved.size > 0 && event.preventDefault());

/** Says of a form whether it holds something unsaved, for as long as it is shown. */
export function useUnsaved(isChanged) {
  const me = useRef({}).current;
  // At once: Escape right after the last letter asks, too.
  useLayoutEffect(() => void (isChanged ? unsaved.add(me) : unsaved.delete(me)), [isChanged]);
  useEffect(() => () => unsaved.delete(me), []);
  return () => unsaved.delete(me);
}

/** Whether one may go: nothing is unsaved, or it may be lost. `stay` is called before anybody is asked. */
export async function mayLeave(stay = () => {}) {
  if (!unsaved.size) return true;
  stay();
  const goes = await question();
  if (goes) unsaved.clear();
  return goes;
}

/** Where the question shows; once, in the shell, in front of all other dialogs. */
export function LeaveQuestion() {
  const [answer, setAnswer] = useState(null);
  const box = useRef(null);
  const from = useRef(null);
  question = () =>
    new Promise((done) => {
      from.current = document.activeElement;
      setAnswer(() => done);
    });
  useLayoutEffect(() => {
    if (!answer) return;
    box.current.showModal();
    box.current.querySelector("button").focus();
  }, [answer]);
  if (!answer) return null;
  const say = (goes) => {
    box.current.close();
    setAnswer(null);
    answer(goes);
    if (!goes) from.current?.focus();
  };
  return html`<dialog ref=${box} class="leave" aria-labelledby="leave-title"
    onCancel=${(event) => (event.preventDefault(), event.stopPropagation(), say(false))}>
    <h2 id="leave-title">What you typed is not saved</h2>
    <div class="acts">
      <button type="button" onClick=${() => say(false)}>Go on editing</button>
      <button type="button" class="danger" onClick=${() => say(true)}>Throw it away</button>
    </div>
  </dialog>`;
}
