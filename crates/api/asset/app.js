// The page's frame: signing in, the menu, and the page that the address names. Each page is a file of its own, read
// when it is first looked at.

import { html, render, useEffect, useErrorBoundary, useRef, useState } from "./vendor/preact.js";
import { chooseTenant, currentTenant, get, hasTenants, may, onEnd, restore, session, signIn, signOut, url } from "./api.js";
import { Dialogs, edit } from "./part/dialog.js";
import { Form } from "./part/form.js";
import { Icon } from "./part/icon.js";
import { pressed } from "./part/keyboard.js";
import { Fault, Loading, useLoad } from "./part/load.js";
import { localZone, setZone, zone } from "./part/time.js";
import { Toasts } from "./part/toast.js";
import { MENU, ROUTES, go, here, link, refine } from "./route.js";
import { LeaveQuestion, mayLeave } from "./part/unsaved.js";

const THEME = "postway_theme";
const root = document.documentElement;
if (localStorage.getItem(THEME)) root.dataset.theme = localStorage.getItem(THEME);
const isDark = () =>
  (root.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";

function ThemeToggle() {
  const [dark, setDark] = useState(isDark());
  const toggle = () => {
    root.dataset.theme = dark ? "light" : "dark";
    localStorage.setItem(THEME, root.dataset.theme);
    setDark(!dark);
    dispatchEvent(new Event("themechange"));
  };
  const label = dark ? "Light colours" : "Dark colours";
  return html`<button type="button" class="plain" aria-label=${label} title=${label} onClick=${toggle}>
    <${Icon} name=${dark ? "sun" : "moon"} /></button>`;
}

function SignIn({ done }) {
  const fields = [
    {
      name: "key",
      label: "Key",
      focus: true,
      kind: "secret",
      wide: true,
      hint: html`A tenant's key, or the admin key. The server printed the admin key at its first start; it is also in
        ${" "}<code>data/admin.key</code>.`,
    },
  ];
  const submit = async ({ key = "" }) => {
    try {
      done(await signIn(key));
    } catch (error) {
      throw error.status === 401 ? new Error("This key opens nothing. Is it complete, and not revoked?") : error;
    }
  };
  return html`<main class="signin" id="main">
    <h1>Postway</h1>
    <p class="muted">A durable email gateway</p>
    <${Form} passing fields=${fields} action="Sign in" onSubmit=${submit} />
    <p class="small"><a href="#/sign-in">Sign in with a name</a> · <a href="/docs">API reference</a></p>
  </main>`;
}

/** Whether the address is one of the door's: it is read when it is first needed. */
const isAtDoor = () => /^#\/(sign-in|invitation|refused)(\/|$)/.test(location.hash);

function Door({ done }) {
  const [module, setModule] = useState(null);
  const [broken, setBroken] = useState(null);
  useEffect(() => void import("./page/door.js").then(setModule, setBroken), []);
  if (broken) return html`<main><${Fault} error=${broken} retry=${() => location.reload()} /></main>`;
  return module ? html`<${module.default} done=${done} key=${location.hash} />` : html`<main><${Loading} /></main>`;
}

const TENANTS_MAX = 2_000;

/** Those that fit into a menu. Where there are more, `next_cursor` is left. */
async function listTenants(signal) {
  // Who is no admin of everything may not list tenants, and is told its own.
  if (!session().admin) return { data: (session().tenants ?? []).map((id) => ({ id })), next_cursor: session().tenants ? null : "more" };
  const page = { data: [] };
  do {
    const next = await get("/v1/tenants", { limit: 500, cursor: page.next_cursor }, signal);
    page.data.push(...next.data);
    page.next_cursor = next.next_cursor;
  } while (page.next_cursor && page.data.length < TENANTS_MAX);
  return page;
}

/** The id of a tenant that the menu has no room for. */
const askTenant = () =>
  edit({
    title: "Look at another tenant",
    fields: [{ name: "id", label: "Id", required: true }],
    action: "Look",
    save: async ({ id = "" }) => (session().admin ? (await get(url`/v1/tenants/${id}`)).id : id),
  });

function TenantSwitch({ changed }) {
  const tenants = useLoad(listTenants);
  useEffect(() => {
    addEventListener("tenantschange", tenants.reload);
    return () => removeEventListener("tenantschange", tenants.reload);
  }, []);
  const known = tenants.data?.data ?? [{ id: currentTenant() }];
  const options = known.some(({ id }) => id === currentTenant()) ? known : [{ id: currentTenant() }, ...known];
  const choose = async (event) => {
    const id = event.target.value || (await askTenant());
    event.target.value = currentTenant();
    if (!id || !(await mayLeave())) return;
    chooseTenant(id);
    changed();
  };
  return html`<label class="tenant"><span class="small muted">Tenant</span>
    <select value=${currentTenant()} onChange=${choose}>
      ${options.map(({ id, name }) =>
        html`<option value=${id} selected=${id === currentTenant()}>
          ${name && name !== id ? `${name} (${id})` : id}</option>`)}
      ${tenants.data?.next_cursor && html`<option value="">Another…</option>`}
    </select>
  </label>`;
}

function Menu({ at, open }) {
  const section = at.route?.path.split("/")[0];
  const shown = MENU.map(([name, paths]) => [
    name,
    paths.map((path) => ROUTES.find((route) => route.path === path)).filter(({ scope }) => may(scope)),
  ]);
  return html`<nav id="menu" class=${open ? "open" : ""} aria-label="Pages">
    ${shown
      .filter(([, routes]) => routes.length)
      .map(
        ([name, routes]) => html`<div class="group">
          ${name && html`<h2>${name}</h2>`}
          <ul>${routes.map(({ path, title }) =>
            html`<li><a href=${link(path)} aria-current=${section === path ? "page" : null}>${title}</a></li>`)}</ul>
        </div>`,
      )}
    <p class="small muted">Postway ${session().version} · <a href="/docs">API</a></p>
  </nav>`;
}

/** In which zone times are, and the other choice. */
function Foot() {
  const other = zone() === "UTC" ? localZone : "UTC";
  const turn = () => {
    setZone(other);
    dispatchEvent(new Event("hashchange"));
  };
  return html`<footer class="small muted"><kbd>?</kbd> for keys · times in ${zone()}${localZone !== "UTC" &&
    html` <button type="button" class="small" onClick=${turn}>Show in ${other}</button>`}</footer>`;
}

/** Whether a route takes all mail: it has no conditions, and an account that exists. */
const takesAll = ({ active, match, accounts }) =>
  active && Object.values(match).every((one) => one.length === 0) && accounts.some(({ missing }) => !missing);

/** Shows a notice while the tenant's mail is captured because no account was chosen. */
function CaptureNotice() {
  const tenant = useLoad(async (signal) => {
    const path = session().admin ? url`/v1/tenants/${currentTenant()}` : "/v1/tenant";
    const { test, default_account: id } = await get(path, {}, signal);
    if (test || !id) return null;
    const { kind } = await get(url`/v1/accounts/${id}`, {}, signal);
    if (kind !== "sandbox") return null;
    const routes = (await get("/v1/routes", {}, signal)).data;
    return routes.some(takesAll) ? null : { id, isRouted: routes.some(({ active }) => active) };
  });
  return tenant.data && html`<aside class="capture" aria-label="Captured mail"><${Icon} name="warn" />${tenant.data.isRouted
      ? "Mail of this tenant that no route takes" : "Mail of this tenant"} is captured by the
    account <code>${tenant.data.id}</code> and not sent. ${may("manage") &&
      html`<a href=${link("accounts")}>Add a relay</a> and make it the default to send, or mark the tenant as
      one for tests in <a href=${link("settings")}>its settings</a>.`}</aside>`;
}

const loaded = new Map();

/** The page that the address names. Its heading gets the focus when one comes from another page. */
function Page({ at, first }) {
  const [fault, forget] = useErrorBoundary((error) => console.error(error));
  const [module, setModule] = useState(() => loaded.get(at.route?.file));
  const [broken, setBroken] = useState(null);
  const main = useRef(null);
  useEffect(() => {
    if (!at.route || module) return;
    import(`./page/${at.route.file}.js`).then(
      (found) => (loaded.set(at.route.file, found), setModule(found)),
      setBroken,
    );
  }, []);
  useEffect(() => {
    document.title = `${at.route?.title ?? "Not found"} · Postway`;
    if (!module || first) return;
    scrollTo(0, 0);
    main.current.focus({ preventScroll: true });
  }, [module]);
  const body = () => {
    if (!at.route) return html`<h1>There is no such page</h1><p><a href=${link("")}>To the overview</a></p>`;
    if (at.tenant && at.tenant !== currentTenant()) return html`<${OfAnotherTenant} tenant=${at.tenant} />`;
    if (!may(at.route.scope)) return html`<${NotForThisKey} />`;
    if (fault || broken)
      return html`<${Fault} error=${fault ?? broken} retry=${() => (forget(), location.reload())} />`;
    return module ? html`<${module.default} ...${at} />` : html`<${Loading} />`;
  };
  return html`<main id="main" ref=${main} tabindex="-1">${body()}</main>`;
}

const NotForThisKey = () => html`
  <h1>Not with this key</h1>
  <p>The key that signed in may <strong>
    ${session().scopes.join(" and ") || "do nothing"}</strong>, and this page needs more.</p>
  ${may("send") && html`<p><a href=${link("send")}>Send a mail</a></p>`}
`;

const OfAnotherTenant = ({ tenant }) => html`
  <h1>Another tenant's page</h1>
  <p>This address is about the tenant <code>${tenant}</code>, and the key that signed in is of
    ${" "}<code>${session().tenant}</code>. Sign in with a key of ${tenant} to see it.</p>
  <p><a href=${link("")}>To the overview</a></p>
`;

/** Where one is. An address that names no tenant is given the one that is looked at. */
function arrive() {
  const at = here();
  if (!hasTenants()) return at;
  if (at.tenant && at.tenant !== currentTenant()) chooseTenant(at.tenant);
  if (!at.tenant) refine(at.key, at.query);
  return at;
}

function Shell({ left }) {
  const [at, setAt] = useState(arrive);
  const [open, setOpen] = useState(false);
  const [visit, setVisit] = useState(0);
  useEffect(() => {
    const moved = async (event) => {
      // Whoever stays finds the address as it was.
      const stay = () => history.replaceState(null, "", event.oldURL);
      if (!(await mayLeave(stay))) return;
      if (event.newURL && event.newURL !== location.href) history.replaceState(null, "", event.newURL);
      dispatchEvent(new Event("pageleave"));
      setAt(arrive());
      setOpen(false);
      setVisit((n) => n + 1);
    };
    const key = (event) => (event.key === "Escape" ? setOpen(false) : pressed(event));
    addEventListener("hashchange", moved);
    addEventListener("keydown", key);
    return () => (removeEventListener("hashchange", moved), removeEventListener("keydown", key));
  }, []);
  const leave = async () => {
    await signOut();
    left();
  };
  const changedTenant = () => go("");
  return html`
    <a class="skip" href="#main"
      onClick=${(event) => (event.preventDefault(), document.getElementById("main").focus())}>To the content</a>
    <header class="top">
      <button type="button" class="plain menu" aria-expanded=${String(open)} aria-controls="menu"
        onClick=${() => setOpen(!open)}>
        <${Icon} name=${open ? "close" : "menu"} /><span class="visually-hidden">Menu</span>
      </button>
      <a class="brand" href=${link("")}><img src=${new URL("favicon.svg", import.meta.url).href} alt="" width="20" height="20" />Postway</a>
      <span class="grow"></span>
      ${session().user && html`<span class="muted folds">${session().user}</span>`}
      ${hasTenants() ? html`<${TenantSwitch} changed=${changedTenant} />`
        : html`<span class="muted">${session().tenant}</span>`}
      <${ThemeToggle} />
      <button type="button" class="plain" onClick=${leave}><${Icon} name="out" />
        <span class="folds">Sign out</span></button>
    </header>
    <div class="body">
      <${Menu} at=${at} open=${open} />
      <div class="content">
        ${may("read") && html`<${CaptureNotice} key=${`notice ${visit}`} />`}
        <${Page} at=${at} first=${visit === 0} key=${`${visit} ${at.key}`} />
        <${Foot} />
      </div>
    </div>
    <${Dialogs} />
    <${LeaveQuestion} />
    <${Toasts} />
  `;
}

function App() {
  const [who, setWho] = useState(undefined);
  const [error, setError] = useState(null);
  const [atDoor, setAtDoor] = useState(isAtDoor());
  useEffect(() => {
    const moved = () => setAtDoor(isAtDoor());
    addEventListener("hashchange", moved);
    onEnd(() => setWho(null));
    restore().then(setWho, setError);
    return () => removeEventListener("hashchange", moved);
  }, []);
  const enter = (session) => (setAtDoor(false), setWho(session));
  if (error) return html`<main><${Fault} error=${error} retry=${() => location.reload()} /></main>`;
  if (who === undefined) return html`<main><${Loading} /></main>`;
  // An invitation is accepted also where somebody is signed in already.
  if (atDoor && (!who || location.hash.startsWith("#/invitation/"))) return html`<${Door} done=${enter} />`;
  return who ? html`<${Shell} left=${() => setWho(null)} />` : html`<${SignIn} done=${setWho} />`;
}

render(html`<${App} />`, document.getElementById("app"));
