// A client in one small file: JSON in, JSON out, and a repeat where the gateway could not be reached.
//
// POSTWAY_URL says where the gateway is, POSTWAY_API_KEY has a key of a tenant. Node 18 or newer, no packages.

export const url = process.env.POSTWAY_URL ?? "http://127.0.0.1:8520";
export const headers = {
  authorization: `Bearer ${process.env.POSTWAY_API_KEY}`,
  "content-type": "application/json",
};

/** The gateway said no: `code` is a word, `details` names every field at fault. */
export class Refused extends Error {
  constructor(status, error) {
    super(`${status} ${error.code}: ${error.message}`);
    Object.assign(this, { status, code: error.code, details: error.details });
  }
}

/** One call. A mail that has an `id` may be handed over again and again: it is sent once. */
export async function call(method, path, body, tries = 5) {
  for (let attempt = 0; attempt < tries; attempt++) {
    let wait = 2 ** attempt;
    try {
      const signal = AbortSignal.timeout(60_000);
      const answer = await fetch(url + path, { method, headers, signal, body: body && JSON.stringify(body) });
      const text = await answer.text();
      if (answer.ok) return text ? JSON.parse(text) : undefined;
      if (answer.status !== 429 && answer.status !== 503) throw new Refused(answer.status, JSON.parse(text).error);
      wait = Number(answer.headers.get("retry-after")) || wait;
    } catch (error) {
      if (error instanceof Refused) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, wait * 1000));
  }
  throw new Error(`${url} cannot be reached`);
}
