// Goes through the provider's pages as a person would: follows redirects, keeps cookies, fills in forms and sends them.
const cookies = new Map();
const typed = { login: process.env.LOGIN, password: "any", user_code: process.env.USER_CODE };
let url = process.env.START;
let options = {};
for (let page = 0; page < 20; page++) {
  const cookie = [...cookies].map((pair) => pair.join("=")).join("; ");
  const answer = await fetch(url, { ...options, redirect: "manual", headers: { ...options.headers, cookie } });
  for (const line of answer.headers.getSetCookie()) {
    const [, name, value] = /^([^=]*)=([^;]*)/.exec(line);
    cookies.set(name, value);
  }
  const next = answer.headers.get("location");
  if (next) {
    [url, options] = [new URL(next, url).href, {}];
    if (!url.startsWith("http://localhost:")) continue;
    // Back to the program that asked for consent.
    const back = await fetch(url.replace("localhost", "127.0.0.1"));
    console.log(back.status, await back.text());
    break;
  }
  const text = await answer.text();
  const form = /<form[^>]*action="([^"]*)"[^>]*>([\s\S]*?)<\/form>/.exec(text);
  if (!form) {
    console.log(answer.status, /<h1>([^<]*)/.exec(text)?.[1]);
    break;
  }
  const body = new URLSearchParams();
  for (const [input] of form[2].matchAll(/<input[^>]*>/g)) {
    const attribute = (name) => new RegExp(`${name}="([^"]*)"`).exec(input)?.[1];
    const name = attribute("name");
    if (name) body.set(name, typed[name] ?? attribute("value") ?? "");
  }
  url = new URL(form[1].replaceAll("&amp;", "&"), url).href;
  options = { method: "POST", body: body.toString(), headers: { "content-type": "application/x-www-form-urlencoded" } };
}
