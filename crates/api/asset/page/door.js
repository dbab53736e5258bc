// What stands before signing in as a person: a passkey, or name, password and code; an invitation; and why a provider's
// sign-in did not work. `#/sign-in`, `#/invitation/TEXT`, `#/refused/WORD`.

import { html, useEffect, useState } from "../vendor/preact.js";
import { acceptInvitation, get, signInPasskey, signInPerson } from "../api.js";
import { Button, Copy } from "../part/button.js";
import { Form } from "../part/form.js";
import { canUsePasskeys, createPasskey, signWithPasskey } from "../part/passkey.js";

/** What the words mean that a provider's sign-in ends with. */
const REFUSALS = {
  expired: "The sign-in took too long, or began in another browser. Try again.",
  unavailable: "Your provider cannot be reached now, or does not answer as it should. Try again in a minute.",
  refused: "Your provider did not sign you in. Try again, or ask whoever runs it.",
  no_role: "Your provider knows you, and gives you no role or tenant here. Ask an admin.",
  no_user: "Your provider knows you, and nobody here has made you a user. Ask an admin.",
  disabled: "You may not sign in here any more. Ask an admin.",
  last_admin:
    "Your provider gives you less than before, and you are the last who may do everything. Make another admin with the admin key first.",
};

const home = (then) => {
  history.replaceState(null, "", "#/");
  then();
};

/** A button that asks the device; what went wrong stands under it. */
function PasskeyButton({ kind, use, children }) {
  const [fault, setFault] = useState(null);
  const press = () => {
    setFault(null);
    return use().catch(setFault);
  };
  return html`<p><${Button} kind=${kind} onClick=${press}>${children}<//></p>
    ${fault && html`<p class="error" role="alert">${fault.message}</p>`}`;
}

function Person({ done }) {
  const [provider, setProvider] = useState(null);
  useEffect(() => {
    get("/v1/session/ways").then((ways) => setProvider(ways.provider), () => {});
  }, []);
  const fields = [
    { name: "user", label: "Name", focus: true, wide: true },
    { name: "password", label: "Password", kind: "secret", wide: true },
    { name: "code", label: "Code", wide: true, hint: "What your authenticator app shows, or a recovery code." },
  ];
  const submit = async ({ user = "", password = "", code = "" }) => {
    const who = await signInPerson({ user, password, code });
    home(() => done(who));
  };
  const byPasskey = async () => {
    const who = await signInPasskey(signWithPasskey);
    home(() => done(who));
  };
  return html`
    ${provider && html`<p><a class="button primary" href="/v1/session/oidc">Sign in with ${provider}</a></p>`}
    ${canUsePasskeys() && html`<${PasskeyButton} use=${byPasskey}>Sign in with a passkey<//>`}
    <${Form} passing fields=${fields} action="Sign in" onSubmit=${submit} />
    <p class="small"><a href="#/">Sign in with a key</a></p>
  `;
}

function Invitation({ invitation, done }) {
  const [offered, setOffered] = useState(null);
  const [kept, setKept] = useState(null);
  const [fault, setFault] = useState(null);
  useEffect(() => {
    acceptInvitation({ invitation }).then(setOffered, setFault);
  }, []);
  if (fault) return html`<p class="error" role="alert">${fault.message}</p>`;
  if (!offered) return html`<p class="muted">Opening the invitation…</p>`;
  if (kept)
    return html`
      <h2>Recovery codes</h2>
      <p>Each signs you in once where your authenticator app is lost. They are shown only now.</p>
      <p class="secret"><code>${kept.recovery_codes.join(" ")}</code>
        <${Copy} text=${kept.recovery_codes.join("\n")} /></p>
      <div class="acts"><button type="button" class="primary" onClick=${() => home(() => done(kept.session))}>
        I have kept them</button></div>`;
  const fields = [
    { name: "password", label: "New password", kind: "secret", wide: true, focus: true, hint: "At least 12 characters." },
    { name: "code", label: "Code", wide: true, hint: "What the app shows now." },
  ];
  const submit = async ({ password = "", code = "" }) =>
    setKept(await acceptInvitation({ enrollment: offered.enrollment, password, code }));
  const byPasskey = async () => {
    const passkey = await createPasskey(offered.passkey, "First passkey");
    const { session } = await acceptInvitation({ enrollment: offered.enrollment, passkey });
    home(() => done(session));
  };
  return html`
    <p>Welcome, <strong>${offered.user}</strong>.</p>
    ${canUsePasskeys() &&
      html`<p>With a passkey, the finger, face or PIN of your device signs you in, and nothing has to be typed.</p>
        <${PasskeyButton} kind="primary" use=${byPasskey}>Use a passkey<//>`}
    <p>${canUsePasskeys() ? "Or add" : "Add"} this secret to an authenticator app, and choose a password.</p>
    <p class="secret"><code>${offered.secret}</code><${Copy} text=${offered.secret} /></p>
    <p class="small"><a href=${offered.otpauth_url}>Open in the app of this device</a></p>
    <${Form} passing fields=${fields} action="Begin" onSubmit=${submit} />
  `;
}

export default function Door({ done }) {
  const [, place, ...rest] = location.hash.slice(1).split("/");
  const word = rest.join("/");
  return html`<main class="signin" id="main">
    <h1>Postway</h1>
    ${place === "refused" &&
      html`<p class="error" role="alert">${REFUSALS[word] ?? "The sign-in did not work. Try again."}</p>`}
    ${place === "invitation"
      ? html`<${Invitation} invitation=${word} done=${done} />`
      : html`<${Person} done=${done} />`}
  </main>`;
}
