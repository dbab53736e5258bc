// Passkeys: what the server asks a device, and what the device answers, each in the other's form.

const bytes = (text) => Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (one) => one.charCodeAt(0));
const text = (buffer) =>
  btoa(String.fromCharCode(...new Uint8Array(buffer)))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");

/** Whether passkeys can be used here: browsers offer them to pages with a host name, over TLS or on this machine. */
export const canUsePasskeys = () =>
  Boolean(window.PublicKeyCredential) && isSecureContext && !/^[\d.]+$|^\[/.test(location.hostname);

/** What the device says, or a sentence in the place of the browser's own. */
async function asked(answer) {
  try {
    return await answer;
  } catch (cause) {
    if (cause.name === "InvalidStateError") throw new Error("This device has a passkey of yours already.");
    throw new Error("The device gave no passkey. Try again, or sign in another way.");
  }
}

/** Makes a passkey; what the server wants to know of it. */
export async function createPasskey(challenge, name) {
  const made = await asked(
    navigator.credentials.create({
      publicKey: {
        challenge: bytes(challenge.challenge),
        rp: { name: "Postway" },
        user: { id: bytes(challenge.user_handle), name: challenge.user, displayName: challenge.user },
        pubKeyCredParams: challenge.algorithms.map((alg) => ({ type: "public-key", alg })),
        excludeCredentials: challenge.known.map((id) => ({ type: "public-key", id: bytes(id) })),
        authenticatorSelection: { residentKey: "required", userVerification: "required" },
        timeout: challenge.timeout_ms,
      },
    }),
  );
  const { response } = made;
  return {
    name,
    id: text(made.rawId),
    client_data: text(response.clientDataJSON),
    authenticator_data: text(response.getAuthenticatorData()),
    public_key: text(response.getPublicKey()),
    algorithm: response.getPublicKeyAlgorithm(),
  };
}

/** Signs a challenge with a passkey that the person chooses. */
export async function signWithPasskey(challenge) {
  const signed = await asked(
    navigator.credentials.get({
      publicKey: {
        challenge: bytes(challenge.challenge),
        userVerification: "required",
        timeout: challenge.timeout_ms,
      },
    }),
  );
  const { response } = signed;
  return {
    id: text(signed.rawId),
    user_handle: text(response.userHandle),
    client_data: text(response.clientDataJSON),
    authenticator_data: text(response.authenticatorData),
    signature: text(response.signature),
  };
}
