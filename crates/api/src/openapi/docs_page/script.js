// What the documentation can do in a browser: it is searched, its examples name this server and can be copied, and each
// call can be tried against it. Without scripts the page is the same text.
//
// A call is made with the key that is typed, which stays in this page, or as who signed in at `/`. A call that changes
// something does so really, and says so.

const key = { text: "" };
const make = (name, fields = {}, ...children) => {
  const element = Object.assign(document.createElement(name), fields);
  element.append(...children);
  return element;
};

const articles = [...document.querySelectorAll("article")];
const links = new Map([...document.querySelectorAll("nav a")].map((link) => [link.hash.slice(1), link.parentElement]));

/** Shows the calls that have every word, anywhere in their text. */
function search(text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  let found = 0;
  for (const article of articles) {
    article.words ??= article.textContent.toLowerCase();
    const fits = words.every((word) => article.words.includes(word));
    article.hidden = !fits;
    found += fits;
    const link = links.get(article.id);
    if (link) link.hidden = !fits;
  }
  for (const part of document.querySelectorAll("main > section"))
    part.hidden = words.length > 0 && !part.querySelector("article:not([hidden])");
  status.textContent = words.length ? `${found} fit` : "";
}

const status = make("p", { className: "found" });
status.setAttribute("role", "status");
const field = make("input", { type: "search", id: "search", placeholder: "message, suppress, 409 …", autocomplete: "off" });
field.addEventListener("input", () => search(field.value));
addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.target.closest("input, textarea")) return;
  event.preventDefault();
  field.focus();
});
const label = make("label", { htmlFor: "search", textContent: "Search" });
document.querySelector("nav").prepend(make("p", {}, make("a", { href: "/", textContent: "To the page" })), label, field, status);

for (const example of document.querySelectorAll("pre")) {
  example.textContent = example.textContent.replaceAll("http://127.0.0.1:8520", location.origin);
  if (!navigator.clipboard) continue;
  const copy = make("button", { type: "button", className: "copy", textContent: "Copy" });
  copy.addEventListener("click", async () => {
    await navigator.clipboard.writeText(example.textContent);
    copy.textContent = "Copied";
    setTimeout(() => (copy.textContent = "Copy"), 1_500);
  });
  example.before(copy);
}

/** The cookie of the page is enough for whoever signed in there; what changes something carries its token. */
async function headers(changes) {
  const named = {};
  if (key.text) named.Authorization = `Bearer ${key.text}`;
  else if (changes) {
    const session = await fetch("/v1/session");
    if (session.ok) named["X-CSRF-Token"] = (await session.json()).csrf_token;
  }
  return named;
}

const SHOWN_CHARS = 20_000;
let fields = 0;

function input(form, name, where, about) {
  const id = `try-${++fields}`;
  const control = make(where === "body" ? "textarea" : "input", { id, name, spellcheck: false, autocomplete: "off" });
  form.append(make("label", { htmlFor: id, textContent: about ?? name }), control);
  return control;
}

/** A form that makes the call of this article. */
function trial(article) {
  const { method, path, body } = article.dataset;
  const changes = method !== "get";
  const form = make("form", { className: "try" });
  const given = [...article.querySelectorAll("table.parameters tr[data-name]")].map((row) => {
    const { name, in: where } = row.dataset;
    return { name, where, control: input(form, name, where) };
  });
  const text = body === undefined ? null : input(form, "body", "body", "Body");
  if (text) {
    text.value = body;
    text.rows = Math.min(14, body.split("\n").length + 1);
  }
  const secret = input(form, "key", "key", "Key (or sign in at /)");
  secret.type = "password";
  secret.value = key.text;
  const answer = make("pre", { className: "answer", tabIndex: 0 });
  answer.setAttribute("aria-live", "polite");
  form.append(make("button", { type: "submit", textContent: changes ? `Really ${method.toUpperCase()} it` : "Get it" }), answer);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    key.text = secret.value.trim();
    const of = (place) => given.filter(({ where, control }) => where === place && control.value !== "");
    const filled = given.filter(({ where }) => where === "path")
      .reduce((path, { name, control }) => path.replace(`{${name}}`, encodeURIComponent(control.value)), path);
    const query = new URLSearchParams(of("query").map(({ name, control }) => [name, control.value]));
    answer.textContent = "…";
    try {
      const named = { ...(await headers(changes)), ...Object.fromEntries(of("header").map(({ name, control }) => [name, control.value])) };
      if (text) named["Content-Type"] = article.dataset.type;
      const response = await fetch(`${filled}${query.size ? `?${query}` : ""}`, { method: method.toUpperCase(), headers: named, body: text?.value });
      const said = await response.text();
      let shown = said;
      try {
        shown = JSON.stringify(JSON.parse(said), null, 2);
      } catch {
        // It is no JSON, and shown as it is.
      }
      answer.textContent = `${response.status} ${response.statusText}\n${shown.slice(0, SHOWN_CHARS)}`;
    } catch (error) {
      answer.textContent = `The server cannot be reached: ${error.message}`;
    }
  });
  return form;
}

for (const article of articles.filter(({ dataset }) => dataset.path)) {
  const more = make("details", {}, make("summary", { textContent: "Try it" }));
  more.addEventListener("toggle", () => more.open && more.childElementCount === 1 && more.append(trial(article)));
  article.append(more);
}
