// The fields of an account. Its kind decides which of them are shown.

import { accounts } from "./controls.js";

const smtp = (held) => ["smtp", "lmtp"].includes(held.kind);
const ses = (held) => held.kind === "ses";
const keyed = (held) => ["sendgrid", "mailgun", "postmark", "resend", "http"].includes(held.kind);
const tokened = (held) => ["graph", "gmail"].includes(held.kind);
const provider = (held) => keyed(held) || tokened(held);
const smtpOrTokened = (held) => smtp(held) || tokened(held);
const real = (held) => held.kind !== "sandbox";

/** What the relays that people have want, and where their passwords come from. */
const relay = (host, more = {}) => ({ kind: "smtp", host, port: 587, tls: "starttls", ...more });
const RELAYS = [
  ["", "Something else"],
  ["microsoft", "Microsoft 365", relay("smtp.office365.com")],
  ["gmail", "Gmail, Google Workspace", relay("smtp.gmail.com")],
  ["ses", "Amazon SES, by SMTP", relay("email-smtp.eu-west-1.amazonaws.com")],
  ["mailgun", "Mailgun, by SMTP", relay("smtp.mailgun.org")],
  ["postmark", "Postmark, by SMTP", relay("smtp.postmarkapp.com")],
  ["brevo", "Brevo", relay("smtp-relay.brevo.com")],
  ["implicit", "Any relay with TLS from the start (465)", relay("", { port: 465, tls: "implicit" })],
];
const PASSWORDS = {
  microsoft: "Authenticated SMTP must be on for the mailbox. Where basic authentication is off, use OAuth 2 below.",
  gmail: "An app password of the Google account, which needs two-step verification; 16 letters.",
  ses: "The SMTP credentials of the region, not the access key. Change the region in the host.",
  mailgun: "The login and password of the domain's SMTP settings; smtp.eu.mailgun.org for the EU.",
  postmark: "The server's API token, as user name and as password.",
  brevo: "The login and an SMTP key of the account's SMTP settings.",
};

export const PRESET = { kind: "smtp", tls: "starttls", limits: { behavior: "defer" } };

/** The fields of a new account, or of one that is there, whose id and kind stay as they are. */
export const accountFields = (row) =>
  [
    !row && { name: "id", label: "Id", required: true, hint: "How messages name it, such as relay-1." },
    {
      name: "kind",
      label: "Kind",
      kind: "choice",
      options: [
        ["smtp", "SMTP relay"],
        ["lmtp", "LMTP: a server with mailboxes"],
        ["ses", "Amazon SES"],
        ["sendgrid", "SendGrid"],
        ["mailgun", "Mailgun"],
        ["postmark", "Postmark"],
        ["resend", "Resend"],
        ["graph", "Microsoft Graph"],
        ["gmail", "Gmail API"],
        ["http", "A service of your own (JSON over HTTP)"],
        ["sandbox", "Sandbox: captures, does not send"],
      ],
    },
    !row && { name: "relay", label: "Filled in for", kind: "preset", options: RELAYS, when: (held) => held.kind === "smtp" },
    { name: "host", label: "Host", when: smtp, required: true },
    { name: "port", label: "Port", kind: "number", when: smtp, hint: "587, or 465 with implicit TLS; 24 for LMTP." },
    {
      name: "tls",
      label: "TLS",
      kind: "choice",
      options: ["starttls", "implicit", "opportunistic", "none"],
      when: smtp,
    },
    {
      name: "username",
      label: "User name",
      when: smtpOrTokened,
      hint: "Graph and Gmail: the mailbox that sends.",
    },
    {
      name: "password",
      label: "Password",
      kind: "secret",
      when: smtp,
      hint: row?.password_set
        ? "One is set; fill in to replace it."
        : (held) => `${PASSWORDS[held.relay] ?? ""} Encrypted at rest, never shown again.`,
    },
    {
      name: "oauth",
      label: "OAuth 2, in the place of a password (JSON)",
      kind: "json",
      rows: 3,
      when: (held) => held.kind === "smtp" || tokened(held),
      placeholder: '{"preset": "microsoft", "grant": "client_credentials", "client_id": "…"}',
    },
    { name: "allow_plaintext_auth", label: "The password may cross without TLS", kind: "check", when: smtp },
    { name: "region", label: "Region", when: ses },
    { name: "access_key_id", label: "Access key id", when: ses },
    {
      name: "secret_access_key",
      label: "Secret access key",
      kind: "secret",
      when: ses,
      hint: row?.secret_access_key_set ? "One is set; fill in to replace it." : undefined,
    },
    { name: "configuration_set", label: "Configuration set", when: ses },
    { name: "endpoint", label: "Endpoint", when: ses, hint: "In the place of the region's own." },
    {
      name: "api_key",
      label: "API key",
      kind: "secret",
      when: keyed,
      hint: row?.api_key_set ? "One is set; fill in to replace it." : "Encrypted at rest, never shown again.",
    },
    { name: "domain", label: "Sending domain", when: (held) => held.kind === "mailgun" },
    { name: "message_stream", label: "Message stream", when: (held) => held.kind === "postmark" },
    { name: "base_url", label: "Address", when: provider, hint: "In the place of the provider's own." },
    { name: "max_connections", label: "Connections at once, per node", kind: "number", when: real },
    {
      name: "return_path",
      label: "Return path",
      when: real,
      hint: "The envelope sender, when it is not the mail's From.",
    },
    {
      name: "fallback",
      label: "Fallback account",
      kind: "known",
      options: [["", "none"]],
      load: async () => (await accounts()).filter((id) => id !== row?.id),
      when: real,
      hint: "Sends in its place while it is at fault or its day is used up.",
    },
    { name: "limits.per_minute", label: "Per minute", kind: "number", hint: "0: no limit." },
    { name: "limits.per_hour", label: "Per hour", kind: "number" },
    { name: "limits.per_day", label: "Per day", kind: "number" },
    {
      name: "limits.behavior",
      label: "Beyond a limit",
      kind: "choice",
      options: [
        ["defer", "wait"],
        ["reject", "fail"],
      ],
    },
    {
      name: "on_doubt",
      label: "Mail that may have left or not",
      kind: "choice",
      options: [
        ["", "as the tenant says"],
        ["resend", "send again: perhaps twice"],
        ["hold", "hold: never twice"],
      ],
    },
    {
      name: "warm_up.per_day",
      label: "Warm-up: mails on each of the first days",
      kind: "list",
      rows: 2,
      also: ["warm_up"],
      when: real,
      hint: "One number a line: 50, 100, 500.",
    },
    {
      name: "retry.delays_s",
      label: "Between tries",
      kind: "durations",
      also: ["retry"],
      when: real,
      hint: "Such as 1 min, 10 min, 1 h, 4 h, 1 d.",
    },
    {
      name: "destinations",
      label: "Limits of receiving domains (JSON)",
      kind: "json",
      rows: 2,
      when: real,
      placeholder: '{"example.com": {"connections": 2, "per_second": 5}}',
    },
    {
      name: "proxy",
      label: "Proxy",
      when: real,
      placeholder: "socks5://user@host:1080",
      hint: "All its connections go through it; http://host:port is an HTTP proxy.",
    },
    {
      name: "proxy_password",
      label: "Password of the proxy",
      kind: "secret",
      when: (held) => real(held) && /\/\/[^/]+@/.test(held.proxy ?? ""),
      hint: row?.proxy_password_set ? "One is set; fill in to replace it." : "Encrypted at rest, never shown again.",
    },
    {
      name: "source_address",
      label: "Source address",
      when: real,
      hint: "The address of the server that its connections leave from; takes the admin key.",
    },
    {
      name: "dsn",
      label: "Delivery reports to ask relays for",
      when: smtp,
      placeholder: "NOTIFY=SUCCESS,FAILURE RET=HDRS",
    },
    { name: "ca_pem", label: "Further certificate authorities (PEM)", kind: "area", when: smtp },
    { name: "pec", label: "Certified mail (PEC)", kind: "check", when: smtp },
  ].filter(Boolean);

/** Lists of numbers come out of a form as texts. What a form does not show of a plan stays as it is in `row`. */
export function accountBody(body, row) {
  const numbers = (list) => list.map((item) => (Number.isFinite(Number(item)) ? Number(item) : item));
  if (body.retry)
    body.retry = body.retry.delays_s.length ? { ...row?.retry, delays_s: numbers(body.retry.delays_s) } : null;
  if (body.warm_up)
    body.warm_up = body.warm_up.per_day.length ? { ...row?.warm_up, per_day: numbers(body.warm_up.per_day) } : null;
  return body;
}
