// An OAuth 2 server: tokens for a machine, for a person who consents, and introspection for whoever checks them. Refresh tokens are
// rotated, and one that comes back a second time ends the consent.
import { createServer } from "node:http";
import Provider from "oidc-provider";

const http = createServer();
await new Promise((listening) => http.listen(0, "127.0.0.1", listening));
const { port } = http.address();
const none = { redirect_uris: [], response_types: [] };
const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [
    { ...none, client_id: "machine", client_secret: "machine-secret", grant_types: ["client_credentials"],
      token_endpoint_auth_method: "client_secret_basic" },
    { client_id: "person", client_secret: "person-secret", application_type: "native",
      grant_types: ["authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:device_code"],
      redirect_uris: ["http://localhost/", "http://localhost/v1/session/oidc/callback"], response_types: ["code"], token_endpoint_auth_method: "client_secret_post" },
    { ...none, client_id: "imap", client_secret: "imap-secret", grant_types: [],
      token_endpoint_auth_method: "client_secret_basic" },
  ],
  scopes: ["openid", "offline_access", "mail"],
  features: {
    clientCredentials: { enabled: true }, deviceFlow: { enabled: true }, introspection: { enabled: true },
    devInteractions: { enabled: true }, backchannelLogout: { enabled: true },
  },
  // It would not call a gateway on this machine.
  fetch: (url, { dispatcher, ...options }) => fetch(url, options),
  ttl: { AccessToken: 3600, ClientCredentials: 3600, RefreshToken: 86400, DeviceCode: 600, AuthorizationCode: 60,
    Grant: 86400, Interaction: 600, Session: 600 },
  rotateRefreshToken: true,
  issueRefreshToken: async () => true,
  // What people may do elsewhere is in their ID token.
  claims: { openid: ["sub", "groups", "mail_tenants"] },
  conformIdTokenClaims: false,
  findAccount: async (_, id) => ({
    accountId: id, claims: async () => ({ sub: id, groups: ["staff", "mail-ops"], mail_tenants: ["default"] }),
  }),
  pkce: { required: () => true },
});
const serve = provider.callback();
http.on("request", async (request, answer) => {
  if (!["/withdraw", "/sign-out"].includes(request.url)) return serve(request, answer);
  let said = "";
  for await (const piece of request) said += piece;
  if (request.url === "/withdraw") {
    // One access token ends, and its consent does not: revocation as RFC 7009 has it would end both here.
    await (await provider.AccessToken.find(said))?.destroy();
    return answer.end("withdrawn");
  }
  // What it does when a person is signed out, without the person's browser.
  const [login, address] = said.split(" ");
  const client = await provider.Client.find("person");
  client.backchannelLogoutUri = address;
  await client.backchannelLogout(login, "a-session").then(() => answer.end("signed out"), (fault) => answer.end(String(fault)));
});
console.log(`listening on ${port}`);
// Nobody reads what comes after it: a closed pipe would end the server.
console.log = console.info = console.warn = () => {};
