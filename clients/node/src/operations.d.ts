// Every body and call of the API. Made by clients/make of the OpenAPI document. Do not edit.

/** An account. */
export interface Account {
  /** Its id. */
  id: string;
  /** The tenant it belongs to. */
  tenant: string;
  /** `smtp`, `lmtp`, `ses`, a provider (`sendgrid`, `mailgun`, `postmark`, `resend`, `graph`, `gmail`), `http` or `sandbox`. */
  kind: "smtp" | "lmtp" | "ses" | "sendgrid" | "mailgun" | "postmark" | "resend" | "graph" | "gmail" | "http" | "sandbox";
  /** The relay's host name or address. */
  host?: string | null;
  /** The relay's port. */
  port?: number | null;
  /** `starttls`, `implicit`, `none` or `opportunistic`. */
  tls: "starttls" | "implicit" | "none" | "opportunistic";
  /** The user name. */
  username?: string | null;
  /** Whether a password is set; it is never shown. */
  password_set: boolean;
  oauth?: OAuth | null;
  /** Whether the password may cross a connection without TLS. */
  allow_plaintext_auth: boolean;
  /** More certificate authorities to trust. */
  ca_pem?: string | null;
  /** SES: the AWS region. */
  region?: string | null;
  /** SES: the public half of the key. */
  access_key_id?: string | null;
  /** SES: whether the secret half is set; it is never shown. */
  secret_access_key_set: boolean;
  /** SES: the configuration set that every mail names. */
  configuration_set?: string | null;
  /** SES: the endpoint to call instead of the region's own. */
  endpoint?: string | null;
  /** Providers: whether an API key is set; it is never shown. */
  api_key_set: boolean;
  /** Providers: the address to call instead of the provider's own; the URL of an `http` account. */
  base_url?: string | null;
  /** Mailgun: the sending domain. */
  domain?: string | null;
  /** Postmark: the message stream. */
  message_stream?: string | null;
  /** The most connections at once, per node. */
  max_connections: number;
  /** The envelope sender, if it is not the mail's From. */
  return_path?: string | null;
  /** The account that takes over while this one's circuit is open or its daily limit is used up. */
  fallback?: string | null;
  /** Whether it sends certified mail (PEC). */
  pec: boolean;
  /** What to do with mail in doubt that does not say; null if the tenant decides. */
  on_doubt?: "resend" | "hold" | null;
  /** The proxy that its connections go through, without its password. */
  proxy?: string | null;
  /** Whether a password of the proxy is set; it is never shown. */
  proxy_password_set: boolean;
  /** The address of the server that its connections leave from. */
  source_address?: string | null;
  /** The reports that it asks relays for, about mail whose sender has no wishes. */
  dsn?: string | null;
  /** How much it may send; 0 means no limit. */
  limits: Limits;
  warm_up?: WarmUp | null;
  /** Limits per receiving domain and node, if they differ from the built-in ones; `*` applies to all other domains. */
  destinations: Record<string, DestinationLimit>;
  /** When to retry. */
  retry: Retry;
  /** Whether it is suspended. */
  suspended: boolean;
  circuit?: Circuit | null;
  used?: Used | null;
  /** Increases with each change. */
  version: number;
  /** When it was created. */
  created_at: string;
  /** When it was last changed. */
  updated_at: string;
}

/** A tenant's accounts. */
export interface AccountList {
  /** The accounts, by id. */
  data: Array<Account>;
  /** Pass this as `cursor` to read the next page; null on the last page. */
  next_cursor?: string | null;
}

/** An account to create or change. Unknown fields are refused. */
export interface AccountRequest {
  /** The id, unique in your tenant; required on creation, and fixed then. */
  id?: string | null;
  /** `smtp` (default), `lmtp`, `ses`, `sendgrid`, `mailgun`, `postmark`, `resend`, `graph`, `gmail`, `http`, or `sandbox`, which captures mail instead of sending it. */
  kind?: "smtp" | "lmtp" | "ses" | "sendgrid" | "mailgun" | "postmark" | "resend" | "graph" | "gmail" | "http" | "sandbox";
  /** The relay's host name or address. Private ones require the admin key. */
  host?: string | null;
  /** The relay's port. */
  port?: number | null;
  /** `starttls` (default), `implicit`, `none` or `opportunistic`. */
  tls?: "starttls" | "implicit" | "none" | "opportunistic" | null;
  /** The user name; the sending mailbox for Graph or Gmail. */
  username?: string | null;
  /** The password: encrypted at rest, never shown again. `null` removes it. */
  password?: string | null;
  /** Instead of a password, how the account obtains the tokens it signs in with (XOAUTH2, OAUTHBEARER). `null` removes it. */
  oauth?: OAuthRequest | null;
  /** Whether the password may cross a connection without TLS. */
  allow_plaintext_auth?: boolean | null;
  /** More certificate authorities to trust, in PEM form. */
  ca_pem?: string | null;
  /** SES: the AWS region. */
  region?: string | null;
  /** SES: the public half of the key. Without one the server's own AWS key is used, if the admin key created the account. */
  access_key_id?: string | null;
  /** SES: the secret half: encrypted at rest, never shown again. `null` removes it. */
  secret_access_key?: string | null;
  /** SES: the configuration set that every mail names. */
  configuration_set?: string | null;
  /** SES: scheme, host and port to call instead of the region's own endpoint. */
  endpoint?: string | null;
  /** SendGrid, Mailgun, Postmark, Resend, and optionally `http`: the key of the API. Encrypted at rest, never shown again. */
  api_key?: string | null;
  /** Providers: scheme, host and port to call instead of the provider's own; for `http` the complete URL to post to. */
  base_url?: string | null;
  /** Mailgun: the sending domain. */
  domain?: string | null;
  /** Postmark: the message stream; `outbound` when absent. */
  message_stream?: string | null;
  /** The most connections at once, per node, 1 to 500. */
  max_connections?: number | null;
  /** The envelope sender, if it is not the mail's From. */
  return_path?: string | null;
  /** The account that takes over while this one's circuit is open or its daily limit is used up. */
  fallback?: string | null;
  /** Whether it sends certified mail (PEC). */
  pec?: boolean | null;
  /** What to do with mail in doubt that does not say: `resend`, or `hold`, which never sends twice. The tenant's setting applies when absent. */
  on_doubt?: "resend" | "hold" | null;
  /** A proxy that all its connections go through: `socks5://user@host:port` or `http://user@host:port`. */
  proxy?: string | null;
  /** The proxy's password: encrypted at rest, never shown again. `null` removes it. */
  proxy_password?: string | null;
  /** The address of the server that its connections leave from; only the admin key sets it. Every node needs that address. */
  source_address?: string | null;
  /** The reports that it asks relays for, about mail whose sender has no wishes, as parameters of SMTP (RFC 3461): `NOTIFY` with `NEVER` or a list of `SUCCESS`, `FAILURE` and `DELAY`, and optionally `RET` with `FULL` or `HDRS`. For `smtp` and `lmtp`. */
  dsn?: string | null;
  /** How much it may send; 0 means no limit. `PATCH` keeps absent limits. */
  limits?: LimitsRequest | null;
  /** How its daily limit grows while it is new. */
  warm_up?: WarmUpRequest | null;
  /** Limits per receiving domain and node; `*` applies to every domain that is not named. */
  destinations?: Record<string, DestinationRequest> | null;
  /** When to retry. */
  retry?: RetryRequest | null;
  /** With `PATCH` and `PUT`: change only if the account still has this version. */
  version?: number;
  /** Shown only; it may be sent back as it was. */
  tenant?: string;
  /** Shown only; it may be sent back as it was. */
  password_set?: boolean;
  /** Shown only; it may be sent back as it was. */
  secret_access_key_set?: boolean;
  /** Shown only; it may be sent back as it was. */
  api_key_set?: boolean;
  /** Shown only; it may be sent back as it was. */
  proxy_password_set?: boolean;
  /** Shown only; it may be sent back as it was. */
  suspended?: boolean;
  /** Shown only; it may be sent back as it was. */
  circuit?: Circuit | null;
  /** Shown only; it may be sent back as it was. */
  used?: Used | null;
  /** Shown only; it may be sent back as it was. */
  created_at?: string;
  /** Shown only; it may be sent back as it was. */
  updated_at?: string;
}

/** The result of a test. */
export interface AccountTest {
  /** Whether every step succeeded. */
  ok: boolean;
  /** The steps in order, up to the first that failed. */
  steps: Array<AccountTestStep>;
  /** The test mail's uid, if one was sent. */
  message?: string | null;
}

/** The test mail to send. */
export interface AccountTestRequest {
  /** The recipient; no mail is sent when absent. */
  to?: string | null;
  /** The sender; the account's return path or user name when absent. */
  from?: string | null;
}

/** One step of a test. */
export interface AccountTestStep {
  /** `connect`, `tls`, `auth` or `send`. */
  step: "connect" | "tls" | "auth" | "send";
  /** Whether the step succeeded. */
  ok: boolean;
  /** What happened. */
  detail: string;
  /** How long it took. */
  duration_ms: number;
}

/** An alternative form of the content. */
export interface AlternativeRequest {
  /** `text/calendar` (`; method=REQUEST` unless the calendar has its METHOD), `text/x-amp-html` or `text/watch-html`. */
  content_type: string;
  /** The content, as text. */
  content: string;
  /** Whether a calendar is attached as `invite.ics` as well. */
  attach?: boolean | null;
}

/** Where copies of what was sent go. */
export interface Archive {
  /** The address that gets each copy. */
  to?: string | null;
  /** The author of these mails; null for the tenant's `default_from`. */
  from?: string | null;
  /** Whether copies are stored. */
  storage: boolean;
  /** Whether stored copies are encrypted with the gateway's secret key. */
  encrypt: boolean;
  /** How many days stored copies are kept; null for ever. */
  days?: number | null;
}

/** Where copies of what was sent go: an address, storage, or both. */
export interface ArchiveRequest {
  /** The address that gets each copy, as a mail of its own with the original attached. */
  to?: string | null;
  /** The author of these mails; the tenant's `default_from` when absent. */
  from?: string | null;
  /** Whether copies are stored beside the blobs, by date. */
  storage?: boolean | null;
  /** Whether stored copies are encrypted with the gateway's secret key. */
  encrypt?: boolean | null;
  /** How many days stored copies are kept; for ever when absent. */
  days?: number | null;
}

/** A stored copy of a sent message. */
export interface ArchivedCopy {
  /** The uid of the message, which may have been removed since. */
  id: string;
  /** The name of the object in the blob storage. */
  object: string;
  /** Its size in bytes, as it is stored. */
  size: number;
  /** Its SHA-256, as it is stored. */
  sha256: string;
  /** Whether it is encrypted with the gateway's secret key. */
  encrypted: boolean;
  /** When it was stored. */
  archived_at: string;
  /** When it is deleted; null if never. */
  expires_at?: string | null;
}

/** Stored copies. */
export interface ArchivedCopyList {
  /** How many copies wait to be made, counted up to 10,000; null if the tenant has no archive. */
  waiting?: number | null;
  /** Since when the oldest of them waits. */
  waiting_since?: string | null;
  /** Those of the latest messages first. */
  data: Array<ArchivedCopy>;
  /** Pass this as `cursor` to read the next page; null on the last page. */
  next_cursor?: string | null;
}

/** A file: its bytes, or their location (`content`, `url`, `endpoint` or `path`, or all in one as `storage_path`). */
export interface Attachment {
  /** The file's name. */
  filename: string;
  /** The media type. */
  content_type?: string | null;
  /** The bytes in base64. */
  content?: string | null;
  /** The URL to fetch it from, `http://` or `https://`; not from private networks. */
  url?: string | null;
  /** The reference that your tenant's `attachment_endpoint` is asked for, with POST. */
  endpoint?: string | null;
  /** A file on the server's disk, in a folder that its operator allows. */
  path?: string | null;
  /** The expected SHA-256 digest, in hexadecimal. */
  sha256?: string | null;
  /** The expected MD5 digest, in hexadecimal, for clients without a better one. */
  content_md5?: string | null;
  /** The older form of all of these: `base64:…`, `https://…`, `/path`, or a reference for the endpoint. */
  storage_path?: string | null;
  /** The kind of `storage_path`, if its form does not say: `base64`, `http_url`, `filesystem` or `endpoint`. */
  fetch_mode?: "base64" | "http_url" | "filesystem" | "endpoint" | null;
  /** The id by which the HTML refers to it (`cid:…`). */
  content_id?: string | null;
  /** Whether the HTML displays it. */
  inline?: boolean | null;
}

/** An attempt to send. */
export interface Attempt {
  /** The relay's three-digit code. */
  smtp_code?: number | null;
  /** The relay's enhanced code. */
  enhanced_code?: string | null;
  /** The relay's text. */
  reply?: string | null;
  /** The number, from 1. */
  number: number;
  /** When it began. */
  started_at: string;
  /** How long it took. */
  duration_ms: number;
  /** The account. */
  account: string;
  /** The server. */
  remote?: string | null;
  /** How it ended. */
  outcome: string;
  /** The relay's own id of the mail. */
  provider_message_id?: string | null;
}

/** A management call. */
export interface AuditEntry {
  /** The entry's id. */
  id: string;
  /** When. */
  at: string;
  /** Who: `admin`, `user:` and a name, or `key:` and the id of a key. */
  actor: string;
  /** The tenant concerned. */
  tenant?: string | null;
  /** What was done. */
  action: string;
  /** The resource concerned. */
  target: string;
  /** The id of the request. */
  request_id?: string | null;
  /** Further data, and as `client` the address that the request came from; never a secret. */
  detail?: Record<string, unknown> | null;
}

/** Where the chain begins and ends. */
export interface AuditHead {
  /** The last position; 0 before the first line. */
  position: number;
  /** The digest of the last line: keep it elsewhere, and a chain that was rewritten shows. */
  digest: string;
  /** The last position that retention has removed; 0 if it has removed none. */
  trimmed: number;
}

/** A line of the audit log, with what is digested. */
export interface AuditLine {
  /** The position: each line has the next one. */
  position: number;
  /** The entry's id. */
  id: string;
  /** When. */
  at: string;
  /** Who: `admin`, `user:` and a name, or `key:` and the id of a key. */
  actor: string;
  /** The tenant concerned. */
  tenant?: string | null;
  /** What was done. */
  action: string;
  /** The resource concerned. */
  target: string;
  /** The id of the request. */
  request_id?: string | null;
  /** Further data; never a secret. */
  detail?: Record<string, unknown> | null;
  /** Random bytes that are digested with the target, in hexadecimal; null once the target was erased. */
  salt?: string | null;
  /** SHA-256 of salt and target, in hexadecimal. */
  target_digest: string;
  /** The digest of the line before; zeros for the first line. */
  previous: string;
  /** The digest of this line. */
  digest: string;
}

/** Lines of the audit log. */
export interface AuditLineList {
  /** The lines, in their order. */
  data: Array<AuditLine>;
  /** Pass this as `after` to read what follows. */
  position: number;
  /** Where the chain begins and ends. */
  head: AuditHead;
}

/** A page of the audit log. */
export interface AuditList {
  /** The entries, newest first. */
  data: Array<AuditEntry>;
  /** Pass this as `cursor` to read the next page; null on the last page. */
  next_cursor?: string | null;
}

/** A batch. */
export interface Batch {
  /** The code. */
  code: string;
  /** Whether its mail is suspended. */
  suspended: boolean;
  /** When it was suspended. */
  suspended_since?: string | null;
  /** How many of its messages wait to be sent, counted up to 10,000: that value means "at least". */
  waiting: number;
}

/** The result for one message of a batch: a `status`, or an `error`. */
export interface BatchItem {
  /** Your id of the message, or its uid. */
  id?: string | null;
  /** The message's own id. */
  uid?: string | null;
  /** The message's status. */
  status?: string | null;
  /** True if the message was accepted before, by its id or key; absent if it is new. */
  repeated?: boolean | null;
  error?: ErrorBody | null;
}

/** A page of batches. */
export interface BatchList {
  /** The batches, by code. */
  data: Array<Batch>;
  /** Pass this as `cursor` to read the next page; null on the last page. */
  next_cursor?: string | null;
}

/** A batch and its progress. */
export interface BatchProgress {
  /** The code. */
  code: string;
  /** Whether its mail is suspended. */
  suspended: boolean;
  /** When it was suspended. */
  suspended_since?: string | null;
  /** How many of its messages wait to be sent, counted up to 10,000: that value means "at least". */
  waiting: number;
  /** How many of its messages are in each status; a status without messages is absent. */
  by_status: Record<string, unknown>;
  /** Whether all messages were counted: of a larger batch 10,000 are. */
  counted_all: boolean;
}

/** Many mails at once. */
export interface BatchRequest {
  /** Fields for every message that does not set them, except `id`; `headers` and `metadata` are merged. */
  defaults?: MessageRequest | null;
  /** 1 to 1,000 messages, each as for `POST /v1/messages` with the defaults applied. */
  messages: Array<MessageRequest>;
}

/** The result of a batch. */
export interface BatchResult {
  /** How many messages are durable. */
  accepted: number;
  /** How many were refused. */
  rejected: number;
  /** One answer per message, in their order. */
  results: Array<BatchItem>;
}

/** A bounce. */
export interface Bounce {
  /** `hard` if the address itself is bad, which suppresses it; `soft` otherwise. */
  type?: "hard" | "soft" | null;
  /** The code of the bounce. */
  code?: string | null;
  /** The reason, in a word or more. */
  reason?: string | null;
  /** When it arrived. */
  at?: string | null;
  /** When every notification of it was acknowledged or given up. */
  reported_at?: string | null;
}

/** One action on many messages, done by the server step by step. */
export interface BulkAction {
  /** The id. */
  id: string;
  /** `running`, `finished` or `stopped`. */
  state: "running" | "finished" | "stopped";
  /** `cancel`, `retry`, `reschedule`, `resolve` or `suppress`. */
  action: string;
  /** The decision on messages in doubt: `sent`, `failed` or `resend`. */
  outcome?: string | null;
  /** The new time of rescheduled messages. */
  send_at?: string | null;
  /** The note of the suppressions. */
  note?: string | null;
  /** The filter, in the words of `GET /v1/messages`; null if messages were selected one by one. */
  filter?: Record<string, unknown> | null;
  /** The number of messages that were selected one by one. */
  selected: number;
  /** The number of messages that matched at the beginning. */
  expected: number;
  /** Whether there may have been more: counting ends at 100,000. */
  expected_or_more: boolean;
  /** The number of messages that it was done to so far. */
  changed: number;
  /** The number of messages that stayed as they are, because their state does not admit the action. */
  skipped: number;
  /** Who asked for it: `admin`, or `key:` and the id of a key. */
  actor: string;
  /** When it was asked for. Messages accepted later are not touched. */
  created_at: string;
  /** When it got on last. */
  updated_at: string;
  /** When it was finished or stopped. */
  ended_at?: string | null;
}

/** A page of bulk actions. */
export interface BulkActionList {
  /** The latest first. */
  data: Array<BulkAction>;
  /** Pass this as `cursor` to read the next page; null on the last page. */
  next_cursor?: string | null;
}

/** A bulk action to begin. Give `filter` or `ids`; unknown fields are refused. */
export interface BulkActionRequest {
  /** `cancel`: do not send to the recipients that have not got it yet. `retry`: send now, with all retries. `reschedule`: give another time. `resolve`: decide about messages in doubt. `suppress`: send their recipients no more mail. */
  action: "cancel" | "retry" | "reschedule" | "resolve" | "suppress";
  /** For `resolve`, required: `sent`, `failed` or `resend`. */
  outcome?: "sent" | "failed" | "resend" | null;
  /** For `reschedule`, required: not before this time, at most 366 days ahead. */
  send_at?: string | null;
  /** For `suppress`: a note, at most 500 characters. */
  note?: string | null;
  /** The messages, in the words of `GET /v1/messages`: `status`, `outcome`, `held_by`, `q` and the others. With `outcome`, `suppress` applies only to the recipients that have it. */
  filter?: Record<string, unknown> | null;
  /** The messages one by one: ids or uids, at most 1,000. */
  ids?: Array<string> | null;
  /** Refuses the action if more messages match. Required with the filter `{}`, which means all messages. */
  at_most?: number | null;
}

/** A call. */
export interface Call {
  /** When it began. */
  at: string;
  /** How long it took. */
  latency_ms: number;
  /** The HTTP status, if an answer came. */
  status?: number | null;
  /** The request, shortened. */
  request: string;
  /** The answer, shortened, or what went wrong. */
  answer: string;
}

/** An account's circuit. */
export interface Circuit {
  /** `closed`: the account is used. `open`: its mail waits until the account is tried again. */
  state: "closed" | "open";
  /** The failure's code. */
  code?: string | null;
  /** The text of the failure. */
  reason?: string | null;
  /** When the circuit opened. */
  since?: string | null;
  /** When the account is tried again. */
  until?: string | null;
}

/** The result of a clean-up. */
export interface Cleanup {
  /** Messages that were removed. */
  deleted: number;
  /** Whether there may be more: call again. */
  more: boolean;
}

/** A name and its addresses. */
export interface Contact {
  /** Its id. */
  id: string;
  /** The name that rules look up. */
  name: string;
  /** The addresses; an empty list means that the name is known and has no address. */
  addresses: Array<string>;
  /** Increases with each change. */
  version: number;
  /** When it was created. */
  created_at: string;
  /** When it was last changed. */
  updated_at: string;
}

/** A page of contacts. */
export interface ContactList {
  /** By id. */
  data: Array<Contact>;
  /** Pass this as `cursor` to read the next page; null on the last page. */
  next_cursor?: string | null;
}

/** A contact to create or change. Unknown fields are refused. */
export interface ContactRequest {
  /** The id, unique in your tenant; on creation only. Generated when absent. */
  id?: string | null;
  /** The name that rules look up, at most 200 characters; required on creation. */
  name?: string | null;
  /** The addresses, at most 100: a list or a single one. */
  addresses?: string | Array<string> | null;
  /** With `PATCH`: change only if the contact still has this version. */
  version?: number | null;
  /** Shown only; it may be sent back as it was. */
  created_at?: string;
  /** Shown only; it may be sent back as it was. */
  updated_at?: string;
}

/** Limits of composed mail. */
export interface ContentLimits {
  /** The longest subject, in characters. */
  subject_chars?: number | null;
  /** The largest HTML part, in bytes. */
  html_bytes?: number | null;
  /** The largest message, in bytes. */
  message_bytes?: number | null;
  /** Whether every composed message must have html. */
  html_required: boolean;
  /** Whether a message with html and no text gets a text derived from the html. */
  auto_text: boolean;
}

/** Limits of composed mail. */
export interface ContentRequest {
  /** The longest subject, in characters; 150 when absent. */
  subject_chars?: number | null;
  /** The largest HTML part, in bytes; 524,288 when absent. */
  html_bytes?: number | null;
  /** The largest message, in bytes; the gateway's own limit when absent. */
  message_bytes?: number | null;
  /** Whether every composed message must have html. */
  html_required?: boolean | null;
  /** Whether a message with html and no text gets a text derived from the html, unless its own `auto_text` is `false`. */
  auto_text?: boolean | null;
}

/** How much mail a tenant may hand over in a day of UTC. */
export interface DailyQuota {
  /** Messages. */
  messages?: number | null;
  /** Bytes of mail. */
  bytes?: number | null;
  /** Recipients. */
  recipients?: number | null;
}

/** How much mail a tenant may hand over in a day of UTC. */
export interface DailyQuotaRequest {
  /** Messages. */
  messages?: number | null;
  /** Bytes of mail. */
  bytes?: number | null;
  /** Recipients. */
  recipients?: number | null;
}

/** A notification of a webhook, delivered or not. */
export interface Delivery {
  /** The message. */
  message: string;
  /** The message's own id, or its uid if it has none; null if it was removed. */
  id?: string | null;
  /** The message's subject; null if it was removed or must not be shown. */
  subject?: string | null;
  /** The event's position in the message's history. */
  sequence: number;
  /** The event. */
  event: string;
  /** `pending`, `calling`, `waiting`, `acknowledged` or `dead`. */
  status: "pending" | "calling" | "waiting" | "acknowledged" | "dead";
  /** The number of calls so far. */
  tries: number;
  /** When the notification was created. */
  created_at: string;
  /** When the next call is due. */
  next_at?: string | null;
  /** When it was acknowledged or given up. */
  settled_at?: string | null;
  last_call?: Call | null;
}

/** A page of a webhook's deliveries. */
export interface DeliveryList {
  /** The notifications, those of the newest messages first. */
  data: Array<Delivery>;
  /** Pass this as `cursor` to read the next page; null on the last page. It may follow a page with fewer items than requested, or none. */
  next_cursor?: string | null;
}

/** How much one receiving domain is sent. 0: no limit. */
export interface DestinationLimit {
  /** The most simultaneous mails. */
  connections: number;
  /** The most mails begun in any second. */
  per_second: number;
}

/** How much one receiving domain is sent. 0: no limit. */
export interface DestinationRequest {
  /** The most simultaneous mails. */
  connections?: number;
  /** The most mails begun in any second. */
  per_second?: number;
}

/** What both sides said in the last attempt that failed. */
export interface Dialogue {
  /** The number of the attempt. */
  attempt: number;
  /** The lines: `C:` is ours, `S:` the relay's, `--` a remark. Credentials and the mail itself are not in it, and the addresses of a sensitive message are hidden. */
  lines: Array<string>;
}

/** An address that sent mail in the domain's name. */
export interface DmarcSource {
  /** The address; null for those that are summed up. */
  address?: string | null;
  /** Whether any of its messages passed. If none did, it is not one of your senders, or not set up. */
  is_known: boolean;
  /** Messages. */
  total: number;
  /** Those that passed. */
  passed: number;
  /** Those with a valid signature of the author's domain. */
  dkim_passed: number;
  /** Those whose sender SPF allowed, in the author's domain. */
  spf_passed: number;
  /** Those that receivers put aside or refused. */
  held_back: number;
  /** The first day with it. */
  first_day: string;
  /** The last day with it. */
  last_day: string;
}

/** What DMARC reports count. */
export interface DmarcSummary {
  /** Messages. */
  total: number;
  /** Those that passed: DKIM or SPF, in the author's domain. */
  passed: number;
  /** Those that failed. */
  failed: number;
  /** Those with a valid signature of the author's domain. */
  dkim_passed: number;
  /** Those whose sender SPF allowed, in the author's domain. */
  spf_passed: number;
  /** Those that receivers put aside. */
  quarantined: number;
  /** Those that receivers refused. */
  rejected: number;
  /** Those counted by reports of which nobody knows from whom they came. */
  unproven: number;
  /** The latest first. */
  days: Array<DomainReportDay>;
  /** Who sent them: first the sources of which no message passed, then the others, each by size. */
  sources: Array<DmarcSource>;
  /** Whether there are more sources than are listed; the largest are. */
  has_more_sources: boolean;
}

/** One finding about a domain. */
export interface DnsFinding {
  /** What was checked: `spf`, `spf lookups`, `dkim` and the selector, `dmarc`, `mx`, `mta-sts`, `tls-rpt`. */
  check: string;
  /** `ok`, `warn`, `absent` (and not needed), `unknown` (no answer), `missing` or `wrong`. */
  state: "ok" | "absent" | "warn" | "unknown" | "missing" | "wrong";
  /** What DNS has. */
  found?: string | null;
  /** What to do, or what to know. */
  advice?: string | null;
  record?: DnsRecord | null;
}

/** A DNS record to publish. */
export interface DnsRecord {
  /** Its name. */
  name: string;
  /** Its type. */
  type: string;
  /** Its value. */
  value: string;
}

/** A domain that mail is sent from, or that bounces come back to. */
export interface Domain {
  /** The domain; one outside ASCII as A-labels (`xn--…`). */
  domain: string;
  /** The domain in Unicode, if that differs. */
  domain_unicode?: string | null;
  /** Whether a key signs for it. */
  signs: boolean;
  /** Whether bounces come back to it. */
  takes_bounces: boolean;
  /** The worst finding of the last check, or `unchecked`. */
  state: string;
  /** Since when every check found nothing missing or wrong; null if the last one did. */
  right_since?: string | null;
  /** When it was checked. */
  checked_at?: string | null;
  /** When the latest DMARC or TLS report about it came. */
  reported_at?: string | null;
  /** What the last check found. */
  findings: Array<DnsFinding>;
}

/** A tenant's domains. */
export interface DomainList {
  /** By name. */
  data: Array<Domain>;
  /** Pass this as `cursor` to read the next page; null on the last page. */
  next_cursor?: string | null;
}

/** A report about a domain. */
export interface DomainReport {
  /** `dmarc` or `tls`. */
  kind: "dmarc" | "tls";
  /** Who reports, as the report says. */
  organisation: string;
  /** The reporter's id of it. */
  report_id: string;
  /** The domain in the `From` of the mail that brought it. */
  sender?: string | null;
  /** Whether that mail is from there: `passed`, `failed`, whose figures do not count, or `unknown`, because no server that the mailbox trusts says so. */
  authentication: "unknown" | "passed" | "failed";
  /** The beginning of the time that it is about. */
  began_at: string;
  /** The end of that time. */
  ended_at: string;
  /** The policy that the reporter found: `none`, `quarantine` or `reject`; of a TLS report `sts`, `tlsa` or `no-policy-found`. */
  policy?: string | null;
  /** How many messages, or sessions, it counts. */
  total: number;
  /** How many of them failed. */
  failed: number;
  /** The inbound mail that brought it. */
  inbound: string;
  /** When it was read. */
  received_at: string;
}

/** The messages, or sessions, of one day. */
export interface DomainReportDay {
  /** The day, in UTC. */
  day: string;
  /** How many passed. */
  passed: number;
  /** How many failed. */
  failed: number;
}

/** Reports about a domain. */
export interface DomainReportList {
  /** The latest first. */
  data: Array<DomainReport>;
  /** Pass this as `cursor` to read the next page; null on the last page. */
  next_cursor?: string | null;
}

/** What the reports about a domain sum up to. */
export interface DomainReportSummary {
  /** The domain. */
  domain: string;
  /** The first day of the sums. */
  since: string;
  /** Mail in the domain's name, as DMARC reports count it. */
  dmarc: DmarcSummary;
  /** Sessions with the domain's servers, as TLS reports count them. */
  tls: TlsSummary;
}

/** A domain that needs attention. */
export interface DomainUnsound {
  domain: string;
  /** The checks that found something missing or wrong. */
  checks: Array<string>;
  /** Whether a record does harm, or only lacks. */
  wrong: boolean;
}

/** The address to erase. */
export interface EraseRequest {
  /** The address. */
  address: string;
}

/** The result of an erasure. */
export interface Erasure {
  /** Messages to this address only, which were removed. */
  removed: number;
  /** Messages to others as well, from which the address, the subject and the bodies were removed. */
  redacted: number;
  /** Messages that have not ended and were left: call again once they have. */
  waiting: number;
  /** Whether there may be more messages that have ended: call again. */
  more: boolean;
}

/** What went wrong. */
export interface ErrorBody {
  /** A stable code: `malformed_request`, `unauthorized`, `forbidden`, `sensitive`, `not_found`, `method_not_allowed`, `request_timeout`, `conflict`, `gone`, `payload_too_large`, `unsupported_media_type`, `validation_error`, `too_many_requests`, `unavailable`, `internal`. */
  code: string;
  /** A sentence for people. */
  message: string;
  /** The request's id, as in `X-Request-Id`; absent for one item of a batch. */
  request_id?: string | null;
  /** The fields that failed their checks. */
  details: Array<FieldError>;
}

/** An event of a message's history. */
export interface Event {
  /** The position, from 1. */
  seq: number;
  /** When it happened. */
  at: string;
  /** What happened. */
  type: string;
  /** Further data; an empty object if absent. */
  data: Record<string, unknown>;
}

/** A message's history. */
export interface EventList {
  /** The events, in order. */
  data: Array<Event>;
  /** Pass this as `cursor` to read the next page; null on the last page. */
  next_cursor?: string | null;
}

/** Why a message is where it is. */
export interface Explanation {
  /** The message's status. */
  status: "accepted" | "validating" | "ready" | "scheduled" | "sending" | "sent" | "failed" | "invalid" | "in_doubt" | "suppressed" | "cancelled" | "expired" | "captured";
  /** What happens to it now, or why it ended, if it waits for no gate. */
  reason?: string | null;
  /** What it waits for; empty if nothing blocks it. */
  gates: Array<Gate>;
  /** When it will be sent, if that is known. */
  next_at?: string | null;
  route?: MessageRoute | null;
  acted?: OperatorAct | null;
}

/** A failure. */
export interface Failure {
  /** A stable code, such as `smtp_550` or `connect_timeout`. */
  code?: string | null;
  /** The category of the failure. */
  category?: string | null;
  /** The category in the coarse terms that gateways share: `TRANSIENT_ERROR`, `PERMANENT_ERROR`, `CONFIGURATION_ERROR`, `QUOTA_ERROR` or `TIMEOUT_ERROR`. */
  provider_category?: string | null;
  /** The code as the provider wrote it. */
  original_code?: string | null;
  /** The phase of the conversation in which it happened. */
  phase?: string | null;
  /** The relay's three-digit code. */
  smtp_code?: number | null;
  /** The relay's enhanced code. */
  enhanced_code?: string | null;
  /** The text of the relay or the system. */
  message?: string | null;
}

/** A failure code and its frequency. */
export interface FailureReason {
  /** The failure's code. */
  code: string;
  /** The number of messages. */
  count: number;
}

/** The entries that follow. */
export interface Feed {
  /** The entries, oldest first. */
  data: Array<FeedEntry>;
  /** Pass this as `after` to continue; it is always present. */
  next_cursor: string;
}

/** An event of a message. */
export interface FeedEntry {
  /** Pass this as `after` to read what follows. */
  cursor: string;
  /** The event's position in the message's history; null if the message was removed. */
  sequence?: number | null;
  /** When it happened; null if the message was removed. */
  at?: string | null;
  /** The event's name, as webhooks use it. */
  type: string;
  /** The event's name, as the message's history uses it. */
  event: string;
  message?: NamedMessage | null;
  /** The inbound mail, for `email.received`: its id in `/v1/inbound`. */
  inbound?: string | null;
  /** Further data; an empty object if absent. */
  data: Record<string, unknown>;
}

/** What is wrong with one field. */
export interface FieldError {
  /** The path of the field, such as `to[0]` or `attachments[1].content`; empty for the complete body. */
  field: string;
  /** What is wrong, and what to do about it. */
  message: string;
  /** For a message or a template: `INVALID_PAYLOAD`, `OUTBOX_NOT_FOUND`, `RECIPIENT_NOT_FOUND`, `INVALID_EMAIL` or `INVALID_TEMPLATE`. */
  code?: string | null;
  /** The check that found the fault: `INTEGRITY`, `OUTBOX`, `RECIPIENT` or `TEMPLATE`. */
  check?: string | null;
}

/** Reminders of forwarded mail. */
export interface FollowUpRequest {
  /** Hours between two reminders, at most 2,160. */
  every_hours: number;
  /** The most reminders, up to 100. */
  times_max?: number;
}

/** One thing that a message waits for. */
export interface Gate {
  /** `tenant`, `batch`, `account`, `limit`, `circuit`, `destination`, `schedule`, `retry`, `doubt`, `clock`, `node` or `turn`. */
  gate: string;
  /** The reason, as a sentence. */
  reason: string;
  /** When it ends; null if someone must act. */
  until?: string | null;
}

/** The health of the server. */
export interface Health {
  /** `ok`. */
  status: string;
  /** Problems that an operator should look at although mail is accepted: `storage_apart`: nodes do not share `storage.url`; `database_not_durable`: the database is configured to lose commits when it crashes; `isolated`: this node's heartbeat fails and it sends nothing; `secret_key_wrong`: stored passwords do not open with the server's secret key. */
  warnings?: Array<string>;
}

/** The result of an import. */
export interface ImportResult {
  /** How many addresses are suppressed from now on. */
  imported: number;
  /** How many lines were skipped. */
  rejected: number;
  /** The first 1,000 skipped lines. */
  errors: Array<WrongLine>;
}

/** An inbound mail, with what it contained and what was done. */
export interface Inbound {
  /** Its id. */
  id: string;
  /** The mailbox. */
  mailbox: string;
  /** `received`, `routing`, `routed`, `no_match`, `gone`, `waiting` or `dead`. */
  status: "received" | "routing" | "routed" | "no_match" | "gone" | "waiting" | "dead";
  /** The kind: `bounce`, `delay`, `success`, `complaint`, `pec`, `auto_reply`, `domain_report` or `ordinary`; null before it was processed. */
  kind?: "bounce" | "delay" | "success" | "complaint" | "pec" | "auto_reply" | "domain_report" | "ordinary" | null;
  /** The author. */
  from?: string | null;
  /** The recipient. */
  to?: string | null;
  /** The subject. */
  subject?: string | null;
  /** The Message-ID, without brackets. */
  message_id?: string | null;
  /** The size in bytes. */
  size: number;
  /** When it was sent, according to its Date. */
  date?: string | null;
  /** When its server received it. */
  arrived_at?: string | null;
  /** When it was registered here. */
  created_at: string;
  /** When it was settled. */
  settled_at?: string | null;
  /** When it is processed next: another try, or a reminder. */
  due_at?: string | null;
  /** Tries used; starts again once it is settled. */
  tries: number;
  /** How often it was processed in all. */
  attempts: number;
  /** What went wrong, or why nothing matched. */
  error?: string | null;
  /** The labels. */
  tags: Array<string>;
  /** The rule that sends reminders. */
  follow_up?: string | null;
  /** Reminders so far. */
  reminders: number;
  /** When it was resolved. */
  resolved_at?: string | null;
  /** The folder it was in. */
  folder: string;
  /** The folder's UIDVALIDITY at that time. */
  uid_validity: number;
  /** The UID in the folder. */
  imap_uid: number;
  /** The SHA-256 digest of its bytes; null if they were not read. */
  digest?: string | null;
  /** What it contained, and what was done with it. */
  result?: Record<string, unknown> | null;
  /** The messages that were sent because of it. */
  messages: Array<SentOn>;
  /** The events that subscribers got about it. */
  events: Array<Event>;
}

/** A page of inbound mail. */
export interface InboundList {
  /** The mails, newest first. */
  data: Array<InboundSummary>;
  /** Pass this as `cursor` to read the next page; null on the last page. */
  next_cursor?: string | null;
}

/** The mail to replay. A mail must match every condition. Unknown fields are refused. */
export interface InboundReplayRequest {
  /** The status: `no_match`, `dead` or `routed`. Required. */
  status: "no_match" | "dead" | "routed";
  /** Only mail of this mailbox. */
  mailbox?: string | null;
  /** Only mail of this kind: `bounce`, `delay`, `success`, `complaint`, `pec`, `auto_reply`, `domain_report` or `ordinary`. */
  kind?: "bounce" | "delay" | "success" | "complaint" | "pec" | "auto_reply" | "domain_report" | "ordinary" | null;
  /** Only mail registered at this time or later: RFC 3339 or Unix seconds. */
  since?: string | null;
  /** Only mail registered before this time. */
  until?: string | null;
  /** Only mail settled before this time: pass the `at` of the first answer to continue while `more` is true. */
  settled_before?: string | null;
  /** The most mails, the newest first: 1 to 1,000. */
  limit?: number | null;
}

/** The result of a replay. */
export interface InboundReplayed {
  /** How many mails are processed again. */
  replayed: number;
  /** Whether there may be more: repeat the call with `settled_before`. */
  more: boolean;
  /** The time of the call. */
  at: string;
}

/** An inbound mail, as in lists. */
export interface InboundSummary {
  /** Its id. */
  id: string;
  /** The mailbox. */
  mailbox: string;
  /** `received`, `routing`, `routed`, `no_match`, `gone`, `waiting` or `dead`. */
  status: "received" | "routing" | "routed" | "no_match" | "gone" | "waiting" | "dead";
  /** The kind: `bounce`, `delay`, `success`, `complaint`, `pec`, `auto_reply`, `domain_report` or `ordinary`; null before it was processed. */
  kind?: "bounce" | "delay" | "success" | "complaint" | "pec" | "auto_reply" | "domain_report" | "ordinary" | null;
  /** The author. */
  from?: string | null;
  /** The recipient. */
  to?: string | null;
  /** The subject. */
  subject?: string | null;
  /** The Message-ID, without brackets. */
  message_id?: string | null;
  /** The size in bytes. */
  size: number;
  /** When it was sent, according to its Date. */
  date?: string | null;
  /** When its server received it. */
  arrived_at?: string | null;
  /** When it was registered here. */
  created_at: string;
  /** When it was settled. */
  settled_at?: string | null;
  /** When it is processed next: another try, or a reminder. */
  due_at?: string | null;
  /** Tries used; starts again once it is settled. */
  tries: number;
  /** How often it was processed in all. */
  attempts: number;
  /** What went wrong, or why nothing matched. */
  error?: string | null;
  /** The labels. */
  tags: Array<string>;
  /** The rule that sends reminders. */
  follow_up?: string | null;
  /** Reminders so far. */
  reminders: number;
  /** When it was resolved. */
  resolved_at?: string | null;
  /** The folder it was in. */
  folder: string;
  /** The folder's UIDVALIDITY at that time. */
  uid_validity: number;
  /** The UID in the folder. */
  imap_uid: number;
  /** The SHA-256 digest of its bytes; null if they were not read. */
  digest?: string | null;
}

/** An invitation, shown only once. */
export interface Invitation {
  /** The user's name. */
  user: string;
  /** The text to pass on to the person. */
  invitation: string;
  /** The page to open, behind the address of this server. */
  path: string;
  /** When it expires. */
  expires_at: string;
}

/** An API key, without the key itself. */
export interface Key {
  /** The id: the public part of the key. */
  id: string;
  /** The first characters of the key. */
  prefix: string;
  /** The display name. */
  name: string;
  /** What it may do: `send`, `read`, `manage`, `read:content`. */
  scopes: Array<"send" | "read" | "manage" | "read:content">;
  /** The networks it may be used from; any when empty. */
  allow_ips: Array<string>;
  /** The senders its mail may have: addresses, domains, patterns; those of its tenant when empty. */
  allowed_senders: Array<string>;
  /** The recipients its mail may have; any when empty. */
  allowed_recipients: Array<string>;
  /** Who made it: `admin`, or `user:` and a name; absent for keys of older versions. */
  created_by?: string | null;
  /** When it was created. */
  created_at: string;
  /** When it expires. */
  expires_at?: string | null;
  /** When it was last used, to the minute. */
  last_used_at?: string | null;
  /** When it was revoked. */
  revoked_at?: string | null;
}

/** A tenant's keys. */
export interface KeyList {
  /** The keys, the oldest first, including revoked ones. */
  data: Array<Key>;
  /** Pass this as `cursor` to read the next page; null on the last page. */
  next_cursor?: string | null;
}

/** A key to create. Unknown fields are refused. */
export interface KeyRequest {
  /** The display name. */
  name?: string | null;
  /** What it may do: `send` (hand over, cancel, retry), `read`, `manage` (accounts, batches, suppressions, templates, recipients, signing keys), and `read:content` (bodies, where the tenant guards them). The first three when absent. */
  scopes?: Array<"send" | "read" | "manage" | "read:content">;
  /** When it expires: RFC 3339 or Unix seconds. */
  expires_at?: string | null;
  /** The addresses and networks it may be used from; any when absent. */
  allow_ips?: Array<string> | null;
  /** The senders its mail may have, besides the restrictions of its tenant: addresses, domains, and patterns such as `*.example.com` or `news-*@example.com`, at most 200. */
  allowed_senders?: Array<string> | null;
  /** The recipients its mail may have, for test systems; any when absent. */
  allowed_recipients?: Array<string> | null;
}

/** A recipient of the directory. */
export interface KnownRecipient {
  /** Its id. */
  id: string;
  /** Your own id of the recipient, unique among those not deleted. */
  external_id?: string | null;
  /** The display name. */
  name?: string | null;
  /** The address; a domain outside ASCII as A-labels (`xn--…`). */
  address: string;
  /** The address in Unicode, if that differs. */
  address_unicode?: string | null;
  /** The language of its mail; null means the tenant's. */
  locale?: string | null;
  /** The personal number, masked except for its end; it is never shown completely. */
  personal_number?: string | null;
  /** Increases with each change. */
  version: number;
  /** When it was created. */
  created_at: string;
  /** When it was last changed. */
  updated_at: string;
  /** When it was deleted. */
  deleted_at?: string | null;
}

/** What to do with attachments too large to mail. */
export interface LargeFiles {
  /** `reject` the message, `warn` in its history and send it, or `rewrite` it with a link in the file's place. */
  policy: string;
  /** The largest file that is not too large, in bytes; null: only the complete message is limited. */
  above_bytes?: number | null;
  /** How many days a link works, at most 3,650; 30 when null. */
  link_days?: number | null;
}

/** How much an account may send in any window of that length. 0: no limit. */
export interface Limits {
  /** In any 60 seconds. */
  per_minute: number;
  /** In any 60 minutes. */
  per_hour: number;
  /** In any 24 hours. */
  per_day: number;
  /** What happens to mail beyond the limit: `defer` or `reject`. */
  behavior: "defer" | "reject";
}

/** How much an account may send in any window of that length. 0 and null: no limit. */
export interface LimitsRequest {
  /** In any 60 seconds. */
  per_minute?: number | null;
  /** In any 60 minutes. */
  per_hour?: number | null;
  /** In any 24 hours. */
  per_day?: number | null;
  /** What happens to mail beyond the limit: `defer` (default) or `reject`. */
  behavior?: "defer" | "reject" | null;
}

/** A mail as a reader sees it. */
export interface MailContent {
  /** Its header fields in order, decoded. */
  headers: Array<MailHeader>;
  /** Its text, or the text of its html. */
  text?: string | null;
  /** Whether it has html; see `preview`. */
  has_html: boolean;
  /** The attachments, in order. */
  attachments: Array<MailFile>;
  /** What is left out because the mail has more of it than is read, such as `parts beyond 1,000`. Empty if the mail is shown completely; `raw` always has all of it. */
  omitted: Array<string>;
}

/** A file in a mail. */
export interface MailFile {
  /** The file's position, from 0. */
  index: number;
  filename?: string | null;
  content_type: string;
  /** The size in bytes. */
  size: number;
  /** The id by which the html refers to it. */
  content_id?: string | null;
}

/** A header field. */
export interface MailHeader {
  name: string;
  value: string;
}

/** Something that blocks mail. */
export interface MailHolder {
  /** Its name as in messages: `tenant`, `batch:CODE`, `account:ID`, `limit:ID` or `circuit:ID`. `GET /v1/messages` accepts it as `held_by`. */
  held_by: string;
  /** How many messages it blocks. Counting stops at 2,000, which then means "at least". */
  messages: number;
  /** When it began. */
  since?: string | null;
  /** When it ends by itself, or is tried again; null if someone must act. */
  until?: string | null;
  /** The reason, if one is known. */
  reason?: string | null;
}

/** A mailbox. */
export interface Mailbox {
  /** Its id. */
  id: string;
  /** The tenant it belongs to. */
  tenant: string;
  /** The IMAP server. */
  host: string;
  /** Its port. */
  port: number;
  /** `implicit`, `starttls` or `none`. */
  tls: "implicit" | "starttls" | "none";
  /** More certificate authorities to trust. */
  ca_pem?: string | null;
  /** The user name. */
  username: string;
  /** `password` or `xoauth2`. */
  auth: "password" | "xoauth2";
  /** Whether a password is set; it is never shown. */
  password_set: boolean;
  /** Whether a token is set; it is never shown. */
  token_set: boolean;
  oauth?: OAuth | null;
  /** The folder that is watched. */
  folder: string;
  /** What its mail is processed for: `forward`, `bounces`, `pec`, `events`, `domain_reports`. */
  roles: Array<"forward" | "bounces" | "pec" | "events" | "domain_reports">;
  /** Whether it is watched at all. */
  active: boolean;
  /** The purpose. */
  description?: string | null;
  /** Seconds between two scans when the server does not announce new mail by itself. */
  poll_seconds: number;
  /** Where watching began. */
  start: "now" | "beginning" | Record<string, unknown>;
  /** The proxy to connect through, without its password. */
  proxy?: string | null;
  /** Whether reports in it may be about any tenant's messages. */
  all_tenants: boolean;
  /** How often a mail that cannot be processed is tried before it is dead. */
  attempts_max: number;
  /** What to do with forwarded mail in doubt if the rule does not say; null if the account decides. */
  on_doubt?: "resend" | "hold" | null;
  /** The largest mail that is read, in bytes. */
  mail_bytes_max: number;
  /** The addresses whose mail the reception gives it; empty for a watched folder. */
  addresses: Array<string>;
  /** The name of the mail server whose `Authentication-Results` are believed. */
  authserv_id?: string | null;
  /** When it was last read to its end without a failure; null before the first time. */
  last_scanned_at?: string | null;
  /** How many UIDs it is behind: `uid_next` − 1 − `last_seen_uid`. */
  lag?: number | null;
  /** The failure of the last scan; null if it succeeded. */
  error?: string | null;
  /** When the failure first occurred. */
  error_since?: string | null;
  /** The folder's UIDVALIDITY. If it changes, the folder is read again, and known mail is skipped. */
  uid_validity?: number | null;
  /** The last UID that was read. */
  last_seen_uid?: number | null;
  /** The UID that the next mail will get, as the server last said. */
  uid_next?: number | null;
  /** Increases with each change. */
  version: number;
  /** When it was created. */
  created_at: string;
  /** When it was last changed. */
  updated_at: string;
}

/** A mailbox that needs attention. */
export interface MailboxBehind {
  mailbox: string;
  lag?: number | null;
  error?: string | null;
}

/** A tenant's mailboxes. */
export interface MailboxList {
  /** The mailboxes, by id. */
  data: Array<Mailbox>;
  /** Pass this as `cursor` to read the next page; null on the last page. */
  next_cursor?: string | null;
}

/** A mailbox to create or change. Unknown fields are refused. */
export interface MailboxRequest {
  /** The id, unique in your tenant; on creation only. Generated when absent. */
  id?: string | null;
  /** The IMAP server. Private ones require the admin key. */
  host?: string | null;
  /** The port; 993, or 143 if `tls` is not `implicit`, when absent. */
  port?: number | null;
  /** `implicit` (default), `starttls` or `none`. */
  tls?: "implicit" | "starttls" | "none" | null;
  /** More certificate authorities to trust, in PEM form. */
  ca_pem?: string | null;
  /** The user name. */
  username?: string | null;
  /** The password: encrypted at rest, never shown again. */
  password?: string | null;
  /** Instead of a password, an OAuth 2 bearer token (XOAUTH2): encrypted at rest, never shown again. */
  token?: string | null;
  /** Instead of either, how it obtains the tokens it signs in with (XOAUTH2, OAUTHBEARER). `null` removes it. */
  oauth?: OAuthRequest | null;
  /** `password` or `xoauth2`; follows from which of the two is given. */
  auth?: "password" | "xoauth2" | null;
  /** The folder that is watched. */
  folder?: string | null;
  /** What its mail is processed for: `forward` (rules; the default), `bounces`, `pec`, `events` (every ordinary mail is reported as `email.received`), `domain_reports` (DMARC and TLS reports about your domains). A list or a single one. */
  roles?: "forward" | "bounces" | "pec" | "events" | "domain_reports" | Array<"forward" | "bounces" | "pec" | "events" | "domain_reports"> | null;
  /** Another name for `roles`; only one of them may be given. */
  role?: "forward" | "bounces" | "pec" | "events" | "domain_reports" | Array<"forward" | "bounces" | "pec" | "events" | "domain_reports"> | null;
  /** Whether it is watched at all. */
  active?: boolean | null;
  /** The purpose, at most 500 characters. */
  description?: string | null;
  /** Seconds between two scans when the server does not announce new mail by itself, 5 to 86,400. */
  poll_seconds?: number | null;
  /** Where watching begins: `"now"` (default), `"beginning"`, `{"newest": 100}`, `{"since": "2026-01-31T00:00:00Z"}` or `{"after_uid": 4711}`, where another program left off. */
  start?: "now" | "beginning" | Record<string, unknown> | null;
  /** A proxy to connect through: `socks5://user@host:port` or `http://user@host:port`. */
  proxy?: string | null;
  /** The proxy's password: encrypted at rest, never shown again. */
  proxy_password?: string | null;
  /** Whether reports in it may be about any tenant's messages. For the admin key. */
  all_tenants?: boolean | null;
  /** How often a mail that cannot be processed is tried before it is dead, 1 to 20. */
  attempts_max?: number | null;
  /** What to do with forwarded mail in doubt if the rule does not say: `resend`, or `hold`, which never sends twice. The account's setting applies when absent. */
  on_doubt?: "resend" | "hold" | null;
  /** The largest mail that is read, in bytes: 65,536 to 67,108,864. */
  mail_bytes_max?: number | null;
  /** Instead of a folder, the addresses whose mail the reception gives it: `desk@example.com` (with any `+detail`), `*@example.com`, or `@bounces.example.com` for the envelope senders that Postway signed. For the admin key. */
  addresses?: Array<string> | null;
  /** The name of the mail server in its `Authentication-Results`, so that they are believed. Without it, none are. */
  authserv_id?: string | null;
  /** With `PATCH`: change only if the mailbox still has this version. */
  version?: number | null;
  /** Shown only; it may be sent back as it was. */
  tenant?: string;
  /** Shown only; it may be sent back as it was. */
  password_set?: boolean;
  /** Shown only; it may be sent back as it was. */
  token_set?: boolean;
  /** Shown only; it may be sent back as it was. */
  last_scanned_at?: string | null;
  /** Shown only; it may be sent back as it was. */
  lag?: number | null;
  /** Shown only; it may be sent back as it was. */
  error?: string | null;
  /** Shown only; it may be sent back as it was. */
  error_since?: string | null;
  /** Shown only; it may be sent back as it was. */
  uid_validity?: number | null;
  /** Shown only; it may be sent back as it was. */
  last_seen_uid?: number | null;
  /** Shown only; it may be sent back as it was. */
  uid_next?: number | null;
  /** Shown only; it may be sent back as it was. */
  created_at?: string;
  /** Shown only; it may be sent back as it was. */
  updated_at?: string;
}

/** The result of a mailbox test. */
export interface MailboxTest {
  /** Whether every step succeeded. */
  ok: boolean;
  /** The steps in order, up to the first that failed. */
  steps: Array<MailboxTestStep>;
  /** How long it took. */
  duration_ms: number;
}

/** One step of a mailbox test. */
export interface MailboxTestStep {
  /** `settings`, `connect`, `tls`, `login`, `folder` or `mail`. */
  step: "settings" | "connect" | "tls" | "login" | "folder" | "mail";
  /** Whether the step succeeded. */
  ok: boolean;
  /** What happened, or what to do. */
  detail: string;
}

/** A message with its parts. */
export interface Message {
  /** Your id of the message, or its uid. */
  id: string;
  /** The message's own id, a UUID v7. */
  uid: string;
  /** The tenant it belongs to. */
  tenant: string;
  /** The account that sends it. */
  account: string;
  /** `accepted`, `validating`, `ready`, `scheduled`, `sending`, `sent`, `failed`, `invalid`, `in_doubt`, `suppressed`, `cancelled` or `expired`. */
  status: "accepted" | "validating" | "ready" | "scheduled" | "sending" | "sent" | "failed" | "invalid" | "in_doubt" | "suppressed" | "cancelled" | "expired" | "captured";
  /** What blocks it besides its own schedule: suspensions (`tenant`, `batch:CODE`, `account:ID`), a used-up limit (`limit:ID`) and an open circuit (`circuit:ID`) of its account. `/explain` says why, and until when. */
  held_by: Array<string>;
  /** 0 (immediate) to 3 (low). */
  priority: number;
  /** The batch it belongs to. */
  batch?: string | null;
  /** Whether its content is hidden: `subject` and `metadata` are not shown, and the bodies are removed once it is sent. */
  sensitive: boolean;
  /** The subject; `[hidden]` if the message is sensitive. */
  subject: string;
  /** The first recipient. */
  to?: string | null;
  /** How many recipients it has. */
  recipient_count: number;
  /** How many of several recipients were permanently refused. */
  refused_count: number;
  /** When it was accepted. */
  created_at: string;
  /** When it last changed. */
  updated_at: string;
  /** When it is due. */
  due_at?: string | null;
  /** When it expires unsent. */
  expires_at?: string | null;
  /** When the relay accepted it. */
  sent_at?: string | null;
  /** When it failed. */
  failed_at?: string | null;
  /** When it had ended and every notification was acknowledged or given up. */
  reported_at?: string | null;
  /** The number of the latest attempt; 0 before the first. */
  attempt: number;
  /** Increases with each change. */
  version: number;
  /** Whether it failed because its retries were exhausted. */
  exhausted: boolean;
  /** The id of the request that created it. */
  request_id?: string | null;
  /** Its Message-ID, without brackets. */
  message_id: string;
  /** The relay's own id of the mail. */
  provider_message_id?: string | null;
  /** Why it is where it is, as a sentence. */
  reason?: string | null;
  error?: Failure | null;
  /** The outcome after it was sent: the worst one known of its recipients. */
  outcome?: string | null;
  bounce?: Bounce | null;
  /** What to do if the relay's final answer is lost: `resend` or `hold`. */
  on_doubt: "resend" | "hold";
  /** Your reference. */
  external_id?: string | null;
  /** Your labels. */
  tags: Array<string>;
  /** Your own JSON object; null if the message is sensitive. */
  metadata?: Record<string, unknown> | null;
  /** The entry of your recipient directory that it is for. */
  recipient_id?: string | null;
  /** The location of the submitted request: `inline` in the database, the name of an object, or null if it was removed. */
  payload_file_path?: string | null;
  /** The location of the mail: `inline` in the database, the name of an object, or null before it is composed and once it was removed. */
  eml_file_path?: string | null;
  route?: MessageRoute | null;
  /** The recipients. */
  recipients: Array<Recipient>;
  /** The attempts. */
  attempts: Array<Attempt>;
  dialogue?: Dialogue | null;
  /** The events, in order. */
  events: Array<Event>;
  /** The notifications, in order. */
  notifications: Array<Notification>;
}

/** How many messages match. */
export interface MessageCount {
  /** The number of messages. */
  messages: number;
  /** Whether there may be more: counting stops at 100,000, and earlier if too many messages would have to be examined. */
  or_more: boolean;
}

/** A page of messages. */
export interface MessageList {
  /** The messages, newest first. */
  data: Array<MessageSummary>;
  /** Pass this as `cursor` to read the next page; null on the last page. It may follow a page with fewer messages than requested, or none. */
  next_cursor?: string | null;
  /** Only where a page is not full and not the last: the search has seen all messages accepted since this time, and continues with those before it. */
  searched_since?: string | null;
  count?: MessageCount | null;
  /** How `q` was interpreted, if it was given. */
  understood?: Array<UnderstoodTerm> | null;
}

/** A mail to send. Unknown fields are refused. */
export interface MessageRequest {
  /** Your own id of the message, unique in your tenant: 1 to 128 of `A-Z a-z 0-9 . _ : @ -`. The `uid` when absent. */
  id?: string | null;
  /** The account that sends it; your tenant's default when absent. */
  account?: string | null;
  /** The sender, with or without a name; required unless the tenant has a `default_from`. */
  from?: string | null;
  /** The recipients: a list or a single one. At most 1,000 together with `cc` and `bcc`, and at least one among the three. */
  to?: string | Array<string> | null;
  /** The recipients of copies: a list or a single one. */
  cc?: string | Array<string> | null;
  /** The recipients whom the others do not see: a list or a single one. */
  bcc?: string | Array<string> | null;
  /** The addresses for replies: a list of at most 25, or a single one. */
  reply_to?: string | Array<string> | null;
  /** The envelope sender, if it is not `from`. */
  return_path?: string | null;
  /** The subject. */
  subject?: string | null;
  /** The plain text. This, `html` or both are required, unless a `template` renders them. */
  text?: string | null;
  /** The HTML. */
  html?: string | null;
  /** Derives a missing plain text from the HTML. The tenant's `content.auto_text` applies when absent. */
  auto_text?: boolean | null;
  /** Alternative forms of the content, at most one of each kind: an invitation, an AMP mail. */
  alternatives?: Array<AlternativeRequest> | null;
  /** Further headers. Those that Postway writes itself are refused. */
  headers?: Record<string, string> | null;
  /** The attached files. */
  attachments?: Array<Attachment> | null;
  /** The template that renders subject and texts, instead of `subject`, `text` and `html`. */
  template?: TemplateUse | null;
  /** The language of the template: `de`, `de-AT`, `zh-Hant`. The recipient's when absent, else the tenant's. A template that lacks it is used in the closest language that it has: `de` for `de-AT`, the tenant's, or the one without a language. */
  locale?: string | null;
  /** Writes the rules of the HTML's `<style>` into the elements that they select. The template's setting applies when absent. */
  inline_css?: boolean | null;
  /** The entry of your recipient directory that it is for; its address is the one in `to`. */
  recipient?: RecipientUse | null;
  /** How a reader unsubscribes (`List-Unsubscribe`). */
  unsubscribe?: Unsubscribe | null;
  /** Whether the mail declares that a program sent it (`Auto-Submitted`). The tenant's setting applies when absent. */
  auto_submitted?: boolean | null;
  /** Hides subject and bodies from every reader, and removes the bodies once the mail is sent. */
  sensitive?: boolean | null;
  /** 0 to 3, or `immediate`, `high`, `normal` (2, when absent), `low`. */
  priority?: number | "immediate" | "high" | "normal" | "low" | null;
  /** The code of the batch it belongs to. A code that begins with a stream's id and a colon belongs to that stream. */
  batch?: string | null;
  /** The stream it belongs to, which must exist; short for a `batch` of that name. */
  stream?: string | null;
  /** The earliest time to send it: RFC 3339 or Unix seconds. */
  send_at?: string | null;
  /** The latest time to send it: RFC 3339 or Unix seconds. */
  expires_at?: string | null;
  /** Labels for searching. */
  tags?: Array<string> | null;
  /** Your own JSON object, returned with the message: at most 16 KiB, nested at most 32 levels deep. */
  metadata?: Record<string, unknown> | null;
  /** What to do if the relay's final answer is lost: `resend` (default, may deliver twice) or `hold`. */
  on_doubt?: "resend" | "hold" | null;
  /** The reports to ask the relay for, if it offers DSN, as parameters of SMTP (RFC 3461): `NOTIFY` with `NEVER` or a list of `SUCCESS`, `FAILURE` and `DELAY`, and optionally `RET` with `FULL` or `HDRS`. The account's setting applies when absent. */
  dsn?: string | null;
  /** A newer message with the same key cancels this one if it has not been sent yet. */
  collapse_key?: string | null;
  /** A reference of your own. */
  external_id?: string | null;
  /** The message's place in a trace (W3C Trace Context), instead of the header of that name. What cannot be read is ignored. */
  traceparent?: string | null;
}

/** How routes chose a message's account. */
export interface MessageRoute {
  /** The route that decided; null if those that matched were passed over. */
  id?: string | null;
  /** The account it chose. */
  account?: string | null;
  /** How many accounts it chose from. */
  accounts?: number;
  /** The conditions that it has, all of which held: `sender_domain`, `tag`, `batch`, `stream`, `priority`, `recipient_domain`. */
  because?: Array<"sender_domain" | "tag" | "batch" | "stream" | "priority" | "recipient_domain">;
  /** The accounts that would have been chosen but could not send, each with the reason: `circuit:bulk-2`. */
  left_out?: Array<string>;
  /** Why the chosen account could not send either: `suspended`, `circuit` or `limit`. */
  waits_for?: "suspended" | "circuit" | "limit" | null;
  /** The routes that matched and were passed over because their accounts were gone. */
  passed_over?: Array<string>;
}

/** A message, as in lists. */
export interface MessageSummary {
  /** Your id of the message, or its uid. */
  id: string;
  /** The message's own id, a UUID v7. */
  uid: string;
  /** The tenant it belongs to. */
  tenant: string;
  /** The account that sends it. */
  account: string;
  /** `accepted`, `validating`, `ready`, `scheduled`, `sending`, `sent`, `failed`, `invalid`, `in_doubt`, `suppressed`, `cancelled` or `expired`. */
  status: "accepted" | "validating" | "ready" | "scheduled" | "sending" | "sent" | "failed" | "invalid" | "in_doubt" | "suppressed" | "cancelled" | "expired" | "captured";
  /** What blocks it besides its own schedule: suspensions (`tenant`, `batch:CODE`, `account:ID`), a used-up limit (`limit:ID`) and an open circuit (`circuit:ID`) of its account. `/explain` says why, and until when. */
  held_by: Array<string>;
  /** 0 (immediate) to 3 (low). */
  priority: number;
  /** The batch it belongs to. */
  batch?: string | null;
  /** Whether its content is hidden: `subject` and `metadata` are not shown, and the bodies are removed once it is sent. */
  sensitive: boolean;
  /** The subject; `[hidden]` if the message is sensitive. */
  subject: string;
  /** The first recipient. */
  to?: string | null;
  /** How many recipients it has. */
  recipient_count: number;
  /** How many of several recipients were permanently refused. */
  refused_count: number;
  /** When it was accepted. */
  created_at: string;
  /** When it last changed. */
  updated_at: string;
  /** When it is due. */
  due_at?: string | null;
  /** When it expires unsent. */
  expires_at?: string | null;
  /** When the relay accepted it. */
  sent_at?: string | null;
  /** When it failed. */
  failed_at?: string | null;
  /** When it had ended and every notification was acknowledged or given up. */
  reported_at?: string | null;
  /** The number of the latest attempt; 0 before the first. */
  attempt: number;
  /** Increases with each change. */
  version: number;
  /** Whether it failed because its retries were exhausted. */
  exhausted: boolean;
  /** The id of the request that created it. */
  request_id?: string | null;
  /** Its Message-ID, without brackets. */
  message_id: string;
  /** The relay's own id of the mail. */
  provider_message_id?: string | null;
  /** Why it is where it is, as a sentence. */
  reason?: string | null;
  error?: Failure | null;
  /** The outcome after it was sent: the worst one known of its recipients. */
  outcome?: string | null;
  bounce?: Bounce | null;
  /** What to do if the relay's final answer is lost: `resend` or `hold`. */
  on_doubt: "resend" | "hold";
  /** Your reference. */
  external_id?: string | null;
  /** Your labels. */
  tags: Array<string>;
  /** Your own JSON object; null if the message is sensitive. */
  metadata?: Record<string, unknown> | null;
}

/** The counts of one minute. */
export interface Minute {
  /** When it began. */
  at: string;
  accepted: number;
  sent: number;
  failed: number;
}

/** A message by its ids. */
export interface NamedMessage {
  /** Your id of the message, or its uid; null if it was removed. */
  id?: string | null;
  /** The message's own id. */
  uid: string;
}

/** A key that was just created. */
export interface NewKeyView {
  /** The id: the public part of the key. */
  id: string;
  /** The first characters of the key. */
  prefix: string;
  /** The display name. */
  name: string;
  /** What it may do: `send`, `read`, `manage`, `read:content`. */
  scopes: Array<"send" | "read" | "manage" | "read:content">;
  /** The networks it may be used from; any when empty. */
  allow_ips: Array<string>;
  /** The senders its mail may have: addresses, domains, patterns; those of its tenant when empty. */
  allowed_senders: Array<string>;
  /** The recipients its mail may have; any when empty. */
  allowed_recipients: Array<string>;
  /** Who made it: `admin`, or `user:` and a name; absent for keys of older versions. */
  created_by?: string | null;
  /** When it was created. */
  created_at: string;
  /** When it expires. */
  expires_at?: string | null;
  /** When it was last used, to the minute. */
  last_used_at?: string | null;
  /** When it was revoked. */
  revoked_at?: string | null;
  /** The key itself, shown only once. */
  key: string;
}

/** A node. */
export interface Node {
  /** The id of this incarnation. */
  id: string;
  /** The host and process. */
  name: string;
  /** The address it listens on. */
  address: string;
  /** The version of the program. */
  version: string;
  /** `alive`, or `dead` when its heartbeat has not moved for ten seconds. Its work is then taken over, and it is removed from the list. */
  status: "alive" | "dead";
  /** Whether this node is answering. */
  is_self: boolean;
  /** Whether it stores bodies over 128 KiB in a place that the answering node cannot read: `storage.url` is a folder that they do not share, and such mail waits for the node that accepted it. */
  storage_apart: boolean;
  /** When it started, by its own clock. */
  started_at: string;
  /** Its last heartbeat, by its own clock. */
  last_beat_at: string;
}

/** A list of nodes. */
export interface NodeList {
  /** The nodes, the oldest first. */
  data: Array<Node>;
  /** Pass this as `cursor` to read the next page; null on the last page. */
  next_cursor?: string | null;
}

/** An event due to a subscriber, sent or not. */
export interface Notification {
  /** The subscriber: the id of a webhook, or `client_sync`. */
  subscriber: string;
  /** The event. */
  event: string;
  /** The event's position in the message's history. */
  sequence: number;
  /** `pending`, `calling`, `waiting`, `acknowledged` or `dead`. */
  status: "pending" | "calling" | "waiting" | "acknowledged" | "dead";
  /** The number of calls so far. */
  tries: number;
  /** When the next call is due. */
  next_at?: string | null;
  /** The HTTP status of the latest answer. */
  last_status?: number | null;
  /** When it was acknowledged or given up. */
  settled_at?: string | null;
}

/** A grant, without its secrets. */
export interface OAuth {
  /** `microsoft` or `google`. */
  preset?: "microsoft" | "google" | null;
  /** `client_credentials`, `refresh_token` or `service_account`. */
  grant: "client_credentials" | "refresh_token" | "service_account";
  /** The token endpoint. */
  token_url?: string | null;
  /** The client's id. */
  client_id: string;
  /** The requested scopes. */
  scope?: string | null;
  /** Microsoft: the directory. */
  directory?: string | null;
  /** `service_account`: the user it acts for. */
  subject?: string | null;
  /** Whether a client secret is set; it is never shown. */
  client_secret_set: boolean;
  /** Whether a refresh token is set; it is never shown. */
  refresh_token_set: boolean;
  /** Whether a private key is set; it is never shown. */
  private_key_set: boolean;
}

/** A grant to create or change. Absent fields keep their values. */
export interface OAuthRequest {
  /** `microsoft` or `google`: fills in `token_url` and `scope`. */
  preset?: "microsoft" | "google" | null;
  /** `client_credentials`, `refresh_token` or `service_account`; required for a new grant. */
  grant?: "client_credentials" | "refresh_token" | "service_account";
  /** The token endpoint, under https. Changing it requires the secrets again. */
  token_url?: string | null;
  /** The client's id; the address of a service account. */
  client_id?: string;
  /** The requested scopes, separated by spaces. */
  scope?: string | null;
  /** Microsoft: the id or the domain of your directory. */
  directory?: string | null;
  /** `service_account`: the user it acts for; `username` when absent. */
  subject?: string | null;
  /** The client's secret: encrypted at rest, never shown again. `null` removes it. */
  client_secret?: string | null;
  /** The refresh token of a user's consent: encrypted at rest, never shown again; `postway accounts authorize` obtains it. */
  refresh_token?: string | null;
  /** The key of a service account, in PEM form: encrypted at rest, never shown again. */
  private_key?: string | null;
}

/** An account with an open circuit. */
export interface OpenCircuit {
  account: string;
  code: string;
  reason: string;
  /** When it is tried again. */
  open_until: string;
}

/** What an operator last did to a message. */
export interface OperatorAct {
  /** Who: `admin`, `user:` and a name, or `key:` and an id; absent where an older version did not note it. */
  actor?: string | null;
  /** When. */
  at: string;
  /** What happened to the message. */
  type: string;
}

/** An outbox source. */
export interface OutboxSource {
  /** Its name. */
  name: string;
  /** The tenant whose mail it contains. */
  tenant: string;
  /** `generic`, or `accounts`. */
  kind: string;
  /** The database's URL, without its password; for the admin key. */
  database?: string | null;
  /** Its state on the answering node: `starting`, `serving`, `elsewhere` (another node serves it), `away` or `stopped`. */
  status: string;
  /** The node that serves it. */
  holder?: string | null;
  /** Waiting rows, counted up to 10,000; unknown while the source is away. */
  waiting?: number | null;
  /** The age of the oldest waiting row, by the source's clock. */
  lag_seconds?: number | null;
  /** Rows that the answering node has accepted since it started. */
  accepted: number;
  /** Rows that it has refused. */
  invalid: number;
  /** When it last took rows. */
  last_taken_at?: string | null;
  /** What is wrong; for the admin key. */
  error?: string | null;
}

/** A list of sources. */
export interface OutboxSourceList {
  /** The sources, by tenant and name. */
  data: Array<OutboxSource>;
  /** Pass this as `cursor` to read the next page; null on the last page. */
  next_cursor?: string | null;
}

/** The overview of a tenant's mail. */
export interface Overview {
  /** How many messages are in each status; every status is present. */
  by_status: Record<string, unknown>;
  /** How many messages wait because their tenant, batch or account is suspended, or because of a used-up limit or an open circuit of their account; counted up to 100,000: that value means "at least". */
  held: number;
  /** How many messages `in_doubt` wait for your decision (`/resolve`); the others are sent again automatically. Of the newest 10,000. */
  in_doubt_held: number;
  /** How long the oldest message that nothing blocks has been due: whether the queue keeps up. */
  oldest_due_seconds: number;
  /** How long the oldest blocked message (see `held`) has been due. */
  oldest_held_seconds: number;
  /** Messages per second over the last minute: `accepted`, `sent`, `failed`. */
  rates: Record<string, unknown>;
  /** When this was read. */
  at: string;
  /** How long messages waited until they were sent, of the latest ones. */
  time_in_queue: TimeInQueue;
  /** Why messages failed in the last day, of the latest ones; the most frequent first. */
  failures: Array<FailureReason>;
  /** What blocks mail now, the largest first; at most 20. */
  holders: Array<MailHolder>;
  /** Accounts with an open circuit. */
  circuits: Array<OpenCircuit>;
  /** Domains whose DNS lacks something or has something wrong, as the last check found. */
  domains: Array<DomainUnsound>;
  /** Mailboxes that are behind, or cannot be read. */
  mailboxes: Array<MailboxBehind>;
  /** Webhooks with calls due, and those deactivated because of their answers. */
  subscribers: Array<SubscriberBehind>;
  quota?: QuotaUse | null;
  /** The nodes, for the admin key. */
  nodes: Array<Node>;
  /** The last hour, minute by minute, the oldest first. */
  last_hour: Array<Minute>;
}

/** A receipt of certified mail. */
export interface PecReceipt {
  /** The kind of receipt, as the PEC rules name it: `accettazione`, `avvenuta-consegna`, … */
  kind: string;
  /** The recipient it is about; null if it is about the complete message. */
  address?: string | null;
  /** When it happened, according to the receipt. */
  at: string;
  /** `verified`, `unverified` or `absent`. */
  signature: "verified" | "unverified" | "absent";
  /** The inbound mail that contained it: `GET /v1/inbound/{id}/raw` has its bytes. */
  inbound: string;
  /** The size of the receipt's bytes. */
  size: number;
  /** The SHA-256 digest of the receipt's bytes. */
  sha256: string;
  /** Further data of the receipt. */
  detail: Record<string, unknown>;
}

/** A page of a message's receipts. */
export interface PecReceiptList {
  /** The receipts, in the order of their arrival. */
  data: Array<PecReceipt>;
  /** Pass this as `cursor` to read the next page; null on the last page. */
  next_cursor?: string | null;
}

/** A mail as a template would render it. */
export interface Preview {
  /** The name, which ends with the language if one was chosen; null if the template is not stored. */
  name?: string | null;
  /** The version; null if the template is not stored. */
  version?: number | null;
  /** The language that was chosen; null if the template has none for this request. */
  locale?: string | null;
  /** The subject. */
  subject: string;
  /** The html part. */
  html?: string | null;
  /** The text part, as given or derived from the html. */
  text?: string | null;
  /** Why such a message would be refused; empty if it would not. */
  warnings: Array<FieldError>;
}

/** The values to render with. Unknown fields are refused. */
export interface PreviewRequest {
  /** The variables; the template's `sample` when absent. At most 1 MiB of JSON and 50,000 values. */
  variables?: Record<string, unknown> | null;
  /** The version; the latest when absent. */
  version?: number | null;
  /** The language; the tenant's when absent. */
  locale?: string | null;
}

/** The hook of an account, without its token and its secret. */
export interface ProviderHook {
  /** The account. */
  account: string;
  /** The provider that calls it. */
  provider: "ses" | "sendgrid" | "mailgun" | "postmark" | "resend" | "http";
  /** SES: the ARNs of the topics that may report. */
  topics: Array<string>;
  /** SES: the emulator of SNS that it accepts instead of Amazon. */
  sns_endpoint?: string | null;
  /** SendGrid: the verification key. */
  public_key?: string | null;
  /** Postmark: the user name. */
  username?: string | null;
  /** Whether it has a secret that proves calls. */
  secret_set: boolean;
  /** The version, which increases with each change. */
  version: number;
  /** When it was created. */
  created_at: string;
  /** When it was changed last. */
  updated_at: string;
}

/** The settings of a hook. Unknown fields are refused. */
export interface ProviderHookRequest {
  /** The provider; by default the account's own. An SMTP account must name it. */
  provider?: "ses" | "sendgrid" | "mailgun" | "postmark" | "resend" | "http" | null;
  /** SES: the ARNs of the SNS topics that may report. */
  topics?: Array<string> | null;
  /** SES: an emulator of SNS, such as LocalStack, whose certificates are accepted instead of Amazon's. */
  sns_endpoint?: string | null;
  /** SendGrid: the verification key of the signed event webhook. */
  public_key?: string | null;
  /** Postmark: the user name; `postway` when absent. */
  username?: string | null;
  /** Mailgun: the HTTP webhook signing key. Resend: the signing secret. Postmark and `http`: made here when absent. */
  secret?: string | null;
  /** Change it only if this is its version. */
  version?: number | null;
  /** Shown only; it may be sent back as it was. */
  account?: string;
  /** Shown only; it may be sent back as it was. */
  secret_set?: boolean;
  /** Shown only; it may be sent back as it was. */
  created_at?: string;
  /** Shown only; it may be sent back as it was. */
  updated_at?: string;
}

/** A hook with what is shown only once. */
export interface ProviderHookWithToken {
  /** The account. */
  account: string;
  /** The provider that calls it. */
  provider: "ses" | "sendgrid" | "mailgun" | "postmark" | "resend" | "http";
  /** SES: the ARNs of the topics that may report. */
  topics: Array<string>;
  /** SES: the emulator of SNS that it accepts instead of Amazon. */
  sns_endpoint?: string | null;
  /** SendGrid: the verification key. */
  public_key?: string | null;
  /** Postmark: the user name. */
  username?: string | null;
  /** Whether it has a secret that proves calls. */
  secret_set: boolean;
  /** The version, which increases with each change. */
  version: number;
  /** When it was created. */
  created_at: string;
  /** When it was changed last. */
  updated_at: string;
  /** The URL to give to the provider; a path alone if the server has no `public_url`. It is a secret. */
  url: string;
  /** The password or signing secret that was made for the provider. */
  secret?: string | null;
}

/** A bound of a daily quota. */
export interface QuotaBound {
  used: number;
  of: number;
}

/** How much of a daily quota is used. What nodes have reserved for themselves counts, up to a hundredth each. */
export interface QuotaUse {
  messages?: QuotaBound | null;
  bytes?: QuotaBound | null;
  recipients?: QuotaBound | null;
  /** 100 or 80 if that part of a bound is used, in per cent, otherwise 0. */
  warning_percent: number;
  /** When the next day begins. */
  renewed_at: string;
}

/** The answer for a message that is durable. */
export interface Receipt {
  /** Your id of the message, or its uid. */
  id: string;
  /** The message's own id. */
  uid: string;
  /** The message's status. */
  status: "accepted" | "validating" | "ready" | "scheduled" | "sending" | "sent" | "failed" | "invalid" | "in_doubt" | "suppressed" | "cancelled" | "expired" | "captured" | "valid";
}

/** A recipient. */
export interface Recipient {
  /** The relay's three-digit code. */
  smtp_code?: number | null;
  /** The relay's enhanced code. */
  enhanced_code?: string | null;
  /** The relay's text. */
  reply?: string | null;
  /** The address; a domain outside ASCII as A-labels (`xn--…`). */
  address: string;
  /** The address in Unicode, if that differs. */
  address_unicode?: string | null;
  /** `to`, `cc` or `bcc`. */
  kind: "to" | "cc" | "bcc";
  /** `pending`, `sent`, `failed`, `in_doubt`, `suppressed`, `cancelled` or `expired`. */
  status: "pending" | "sent" | "failed" | "in_doubt" | "suppressed" | "cancelled" | "expired" | "captured";
  /** The outcome after it was sent. */
  outcome?: string | null;
  bounce?: Bounce | null;
}

/** A page of recipients. */
export interface RecipientList {
  /** The recipients by id, the oldest first. */
  data: Array<KnownRecipient>;
  /** Pass this as `cursor` to read the next page; null on the last page. */
  next_cursor?: string | null;
}

/** A recipient to create or change. Unknown fields are refused. */
export interface RecipientRequest {
  /** Your own id of the recipient, at most 256 bytes. */
  external_id?: string | null;
  /** The display name. */
  name?: string | null;
  /** The address; required on creation. */
  address?: string;
  /** Another name for `address`; only one of them may be given. */
  email?: string;
  /** The language of its mail, such as `de-AT`; the tenant's when absent. A message may name another. */
  locale?: string | null;
  /** A personal number, 4 to 64 characters: encrypted at rest, shown masked, found with `?personal_number=`. */
  personal_number?: string | null;
  /** With `PATCH`: change only if the recipient still has this version. */
  version?: number | null;
  /** Shown only; it may be sent back as it was. */
  id?: string;
  /** Shown only; it may be sent back as it was. */
  address_unicode?: string | null;
  /** Shown only; it may be sent back as it was. */
  created_at?: string;
  /** Shown only; it may be sent back as it was. */
  updated_at?: string;
  /** Shown only; it may be sent back as it was. */
  deleted_at?: string | null;
}

/** A recipient of your directory; at least one of the ids is required. */
export interface RecipientUse {
  /** Its id. */
  id?: string | null;
  /** Your own id of the recipient. */
  external_id?: string | null;
  /** The display name. */
  name?: string | null;
  /** The address, which must be the one in `to`. */
  email?: string | null;
}

/** An endpoint of the tenant's own. */
export interface Remote {
  /** The URL. */
  url: string;
  /** A path below it. */
  path?: string | null;
  /** How to authenticate there. */
  auth: RemoteAuth;
}

/** How to authenticate at an endpoint. */
export interface RemoteAuth {
  /** `none`, `bearer` or `basic`. */
  type: "none" | "bearer" | "basic";
  /** The user name, with `basic`. */
  username?: string | null;
  /** Whether a token or password is set; it is never shown. */
  has_secret: boolean;
}

/** How to authenticate at an endpoint. Secrets are encrypted at rest and never shown again. */
export interface RemoteAuthRequest {
  /** `none` (default), `bearer` with a `token`, or `basic` with `username` and `password`. */
  type?: "none" | "bearer" | "basic" | null;
  /** For `bearer`. */
  token?: string | null;
  /** For `basic`. */
  username?: string | null;
  /** For `basic`. */
  password?: string | null;
  /** Whether a token or password is set; it may come back as it was shown, and changes nothing. */
  has_secret?: boolean | null;
}

/** An endpoint of the tenant's own. With `PATCH`, absent fields keep their values. */
export interface RemoteRequest {
  /** The URL, `http://` or `https://`; required unless one is set already. */
  url?: string | null;
  /** A path below it. */
  path?: string | null;
  /** How to authenticate there. */
  auth?: RemoteAuthRequest | null;
}

/** The result for one message: a `status`, or an `error`. */
export interface ReplayItem {
  /** The id as you sent it. */
  id: string;
  /** The message's status. */
  status?: string | null;
  error?: ErrorBody | null;
}

/** The messages to put back in the queue. */
export interface ReplayRequest {
  /** Ids or uids, at most 1,000. */
  ids: Array<string>;
}

/** The result of a replay. */
export interface ReplayResult {
  /** How many messages are in the queue again. */
  replayed: number;
  /** How many are not. */
  rejected: number;
  /** One answer per id, in order. */
  results: Array<ReplayItem>;
}

/** A relay's reply. */
export interface Reply {
  /** The relay's three-digit code. */
  smtp_code?: number | null;
  /** The relay's enhanced code. */
  enhanced_code?: string | null;
  /** The relay's text. */
  reply?: string | null;
}

/** An event that a provider reported. */
export interface ReportedEvent {
  /** Its id; a message's event has it as `provider_event`. */
  id: string;
  /** The provider. */
  provider: "ses" | "sendgrid" | "mailgun" | "postmark" | "resend" | "http";
  /** `waiting` and `leased` while its message is searched for; then `applied`, `ignored` (it says nothing that is recorded), `unmatched` (no message of this account within an hour) or `dead`. */
  status: "waiting" | "leased" | "applied" | "ignored" | "unmatched" | "dead";
  /** What it says, in the word of a message's event. */
  kind?: string | null;
  /** The message that it is about. */
  message?: string | null;
  /** Why it was not applied. */
  reason?: string | null;
  /** How often its message was searched for in vain. */
  tries: number;
  /** When it is tried again. */
  due_at?: string | null;
  /** When it came. */
  created_at: string;
  /** When it was settled. */
  settled_at?: string | null;
  /** The event as the provider wrote it; null if it is longer than 16 KiB. */
  event: Record<string, unknown>;
}

/** Events that a provider reported. */
export interface ReportedEventList {
  /** The events, the newest first. */
  data: Array<ReportedEvent>;
  /** Pass this as `cursor` to read the next page; null on the last page. */
  next_cursor?: string | null;
}

/** Another time for a waiting message. */
export interface RescheduleRequest {
  /** Not before this time, RFC 3339 or Unix seconds, at most 366 days ahead. */
  send_at: string;
}

/** The deliveries to repeat. */
export interface ResendDeliveriesRequest {
  /** Notifications created since this time, RFC 3339 or Unix seconds. */
  since: string;
  /** And before this time; until now when absent. */
  until?: string | null;
  /** `dead` (default): those that were given up. `all`: also those that were acknowledged. */
  which?: "dead" | "all" | null;
  /** Where to continue: the `next_cursor` of the previous answer. */
  cursor?: string | null;
}

/** The result of repeating deliveries. */
export interface ResentDeliveries {
  /** How many notifications are due again, without those that were due already. */
  resent: number;
  /** Present if there may be more: repeat the call with this as `cursor`. */
  next_cursor?: string | null;
}

/** An operator's decision on a message in doubt. */
export interface ResolveRequest {
  /** `sent`: it arrived. `failed`: it did not, and is not sent again. `resend`: send it again, perhaps a second time. */
  outcome: "sent" | "failed" | "resend";
}

/** Delays between attempts. */
export interface Retry {
  /** Seconds to wait after the first, second, … transient failure. */
  delays_s: Array<number>;
  /** The random variation of each delay: 0.25 means up to a quarter shorter or longer. */
  jitter: number;
}

/** Delays between attempts. */
export interface RetryRequest {
  /** Seconds to wait after the first, second, … transient failure. */
  delays_s: Array<number>;
  /** The random variation of each delay: 0.25 means up to a quarter shorter or longer. */
  jitter?: number;
}

/** The result of a rotation. */
export interface Rotation {
  /** Accounts whose secret was re-encrypted. */
  accounts: number;
  /** Tenants whose secrets were re-encrypted. */
  tenants: number;
  /** Recipients whose personal number was re-encrypted. */
  recipients: number;
  /** DKIM keys that were re-encrypted. */
  dkim_keys: number;
  /** Webhooks whose secrets were re-encrypted. */
  webhooks: number;
  /** Mailboxes whose secrets were re-encrypted. */
  mailboxes: number;
  /** Hooks of accounts whose secret was re-encrypted. */
  hooks: number;
  /** Accounts and mailboxes whose tokens were re-encrypted. */
  tokens: number;
  /** Users whose authenticator secret was re-encrypted. */
  users: number;
  /** What neither key opens: its secret must be set again. */
  unreadable: Array<string>;
  /** What was changed at the same moment: repeat the call. */
  busy: Array<string>;
}

/** A rule that chooses the account of a message that names none. */
export interface Route {
  /** The id. */
  id: string;
  /** The position; the first route that matches decides. */
  position: number;
  /** Whether it is active. */
  active: boolean;
  /** The purpose. */
  description?: string | null;
  /** Its conditions. */
  match: RouteMatch;
  /** The accounts it chooses from. */
  accounts: Array<RouteAccount>;
  /** Increases with each change. */
  version: number;
  /** When it was created. */
  created_at: string;
  /** When it was last changed. */
  updated_at: string;
}

/** An account of a route. */
export interface RouteAccount {
  /** The account. */
  account: string;
  /** How much of the mail it gets, compared with the other accounts of the route. */
  weight: number;
  /** Whether there is no such account: the others get its mail, or else the next route that matches. */
  missing: boolean;
}

/** An account of a route. */
export interface RouteAccountRequest {
  /** The account. */
  account: string;
  /** How much of the mail it gets, compared with the other accounts; 0 leaves it out. */
  weight?: number;
  /** Shown by `GET`, and ignored here. */
  missing?: boolean;
}

/** A tenant's routes. */
export interface RouteList {
  /** In the order in which they apply. */
  data: Array<Route>;
  /** Pass this as `cursor` to read the next page; null on the last page. */
  next_cursor?: string | null;
}

/** The conditions of a route. An empty list matches all mail; any other, if one of its entries does. */
export interface RouteMatch {
  /** The domain of `from`; `*.example.com` stands for the subdomains of a domain. */
  sender_domains: Array<string>;
  /** A tag. */
  tags: Array<string>;
  /** The batch. */
  batches: Array<string>;
  /** The stream. */
  streams: Array<string>;
  /** The priority, 0 (immediate) to 3 (low). */
  priorities: Array<number>;
  /** The domains of the recipients: the route matches if each recipient's does. */
  recipient_domains: Array<string>;
}

/** The conditions of a route. An empty or absent list matches all mail; any other, if one of its entries does. */
export interface RouteMatchRequest {
  /** The domain of `from`: `example.com`, or `*.example.com` for its subdomains. */
  sender_domains?: Array<string> | null;
  /** A tag. */
  tags?: Array<string> | null;
  /** The batch. */
  batches?: Array<string> | null;
  /** The stream, also as the beginning of a batch. */
  streams?: Array<string> | null;
  /** The priority: 0 to 3, or its name. */
  priorities?: Array<number | "immediate" | "high" | "normal" | "low"> | null;
  /** The domains of the recipients, as for `sender_domains`: the route matches if each recipient's does. */
  recipient_domains?: Array<string> | null;
}

/** The routes in their new order. */
export interface RouteOrderRequest {
  /** The ids of all routes of your tenant, each once. */
  ids: Array<string>;
}

/** A route to create or change. Unknown fields are refused. */
export interface RouteRequest {
  /** The id, unique in your tenant; made up when absent, and fixed then. */
  id?: string | null;
  /** The position; after all other routes when absent. The first route that matches decides. */
  position?: number;
  /** Whether it is active. */
  active?: boolean;
  /** The purpose, at most 1,000 characters; `null` removes it. */
  description?: string | null;
  /** Its conditions, which must all hold; all mail matches a route without any. */
  match?: RouteMatchRequest | null;
  /** The accounts it chooses from, 1 to 20; required on creation. */
  accounts?: Array<RouteAccountRequest> | null;
  /** With `PATCH`: change only if the route still has this version. */
  version?: number;
  /** Shown only; it may be sent back as it was. */
  created_at?: string;
  /** Shown only; it may be sent back as it was. */
  updated_at?: string;
}

/** Which account a message would be sent by. */
export interface RouteTrial {
  /** The route that decides; null if none matches, and then the default account sends. */
  route?: string | null;
  /** The accounts among which it chooses. One that cannot send now is left out as long as another can. */
  accounts: Array<TriedAccount>;
  /** Every active route up to the one that decides, in order. */
  steps: Array<TriedRoute>;
}

/** What routes compare of a message. Unknown fields are refused. */
export interface RouteTrialRequest {
  /** The author. */
  from?: string | null;
  /** All recipients. */
  to?: string | Array<string> | null;
  /** The tags. */
  tags?: Array<string> | null;
  /** The batch. */
  batch?: string | null;
  /** The stream, if there is no batch. */
  stream?: string | null;
  /** The priority: 0 to 3, or its name; 2 when absent. */
  priority?: number | "immediate" | "high" | "normal" | "low" | null;
}

/** A rule. */
export interface Rule {
  /** Its id. */
  id: string;
  /** The mailbox whose mail it applies to. */
  mailbox: string;
  /** The position; lower ones come first. */
  position: number;
  /** Whether it is evaluated at all. */
  active: boolean;
  /** The conditions, all of which must match; an empty list matches every mail. */
  match: Array<Record<string, unknown>>;
  /** The actions, in order. */
  actions: Array<Record<string, unknown>>;
  /** Reminders of forwarded mail until the mail is resolved. */
  follow_up?: Record<string, unknown> | null;
  /** Increases with each change. */
  version: number;
  /** When it was created. */
  created_at: string;
  /** When it was last changed. */
  updated_at: string;
}

/**  */
export type RuleAction = Record<string, unknown>;

/**  */
export type RuleCondition = Record<string, unknown>;

/** A tenant's rules. */
export interface RuleList {
  /** The rules in the order of evaluation, mailbox by mailbox. */
  data: Array<Rule>;
  /** Pass this as `cursor` to read the next page; null on the last page. */
  next_cursor?: string | null;
}

/** A rule to create or change. Unknown fields are refused. */
export interface RuleRequest {
  /** The id, unique in your tenant; on creation only. Generated when absent. */
  id?: string | null;
  /** The mailbox whose mail it applies to; required on creation. */
  mailbox?: string | null;
  /** The position; lower ones come first. The last when absent. */
  position?: number | null;
  /** Whether it is evaluated at all. */
  active?: boolean | null;
  /** At most 50 conditions. `field` is `from`, `to`, `cc` or `subject`, each with one of `contains`, `equals` (both without regard to case) and `regex` (its named groups are captures); `header` with `name` and perhaps `value`, such as `{"contains": "x"}`; `size` with `min` and `max` in bytes; or `has_attachment` with `value`. */
  match?: Array<RuleCondition> | null;
  /** At most 20 actions. `do` is `forward` (with `to`, one address or a list, or `contact`, a name to look up; `as`, one of `compose`, `redirect` and `attachment`; `from`; `account`), `tag` (with `tag`), `webhook`, `mark_seen`, `move` (with `folder`) or `stop`. Addresses, names and tags may name captures as `{order}`. */
  actions?: Array<RuleAction> | null;
  /** Sends reminders of forwarded mail at this interval, until the mail is resolved. */
  follow_up?: FollowUpRequest | null;
  /** With `PATCH`: change only if the rule still has this version. */
  version?: number | null;
  /** Shown only; it may be sent back as it was. */
  created_at?: string;
  /** Shown only; it may be sent back as it was. */
  updated_at?: string;
}

/** What a rule would do with a mail. */
export interface RuleTrial {
  /** Whether all conditions match and the rule could be applied. */
  matched: boolean;
  /** Each condition, in order. */
  conditions: Array<TriedCondition>;
  /** The captures of the patterns' named groups. */
  captures: Record<string, string>;
  /** What would be done, in order, as rules describe actions. */
  actions: Array<Record<string, unknown>>;
  /** Why nothing would be done although all conditions match: no contact with that name, or a loop. */
  reason?: string | null;
}

/** A suppression of a part of the mail. */
export interface ScopedSuppression {
  /** An address, or a pattern with a star for all local parts, all subdomains or all domains. */
  pattern: string;
  /** The stream whose mail is suppressed; null means all mail. */
  stream?: string | null;
  /** Whether it applies to every tenant. */
  installation: boolean;
  /** `hard_bounce`, `complaint`, `manual` or `unsubscribe`. */
  reason: "manual" | "hard_bounce" | "complaint" | "unsubscribe";
  /** A note. */
  note?: string | null;
  /** When it was created. */
  created_at: string;
  /** When it expires; null means never. */
  expires_at?: string | null;
}

/** A page of scoped suppressions. */
export interface ScopedSuppressionList {
  /** The suppressions, by pattern and stream. */
  data: Array<ScopedSuppression>;
  /** Pass this as `cursor` to read the next page; null on the last page. */
  next_cursor?: string | null;
}

/** The mail to suppress. Unknown fields are refused. */
export interface ScopedSuppressionRequest {
  /** An address, `*@example.net`, `*@*.example.net` or `postmaster@*`. */
  pattern?: string | null;
  /** Only mail of this stream. */
  stream?: string | null;
  /** Mail of every tenant; for the admin key. */
  installation?: boolean | null;
  /** `manual` (default), `hard_bounce`, `complaint` or `unsubscribe`. */
  reason?: "manual" | "hard_bounce" | "complaint" | "unsubscribe" | null;
  /** A note, at most 500 characters. */
  note?: string | null;
  /** When it expires, as RFC 3339 or Unix seconds; never when absent. */
  expires_at?: string | null;
}

/** A message that was sent because of an inbound mail. */
export interface SentOn {
  /** The rule that sent it. */
  rule: string;
  /** The message. */
  uid: string;
  /** The message's status; null if it was removed. */
  status?: "accepted" | "validating" | "ready" | "scheduled" | "sending" | "sent" | "failed" | "invalid" | "in_doubt" | "suppressed" | "cancelled" | "expired" | "captured" | null;
}

/** The message after the action: complete for a key with the scope `read`, otherwise its `uid` and `status`. */
export interface SettledMessage {
  /** Your id of the message, or its uid. */
  id?: string;
  /** The message's own id, a UUID v7. */
  uid: string;
  /** The tenant it belongs to. */
  tenant?: string;
  /** The account that sends it. */
  account?: string;
  /** `accepted`, `validating`, `ready`, `scheduled`, `sending`, `sent`, `failed`, `invalid`, `in_doubt`, `suppressed`, `cancelled` or `expired`. */
  status: "accepted" | "validating" | "ready" | "scheduled" | "sending" | "sent" | "failed" | "invalid" | "in_doubt" | "suppressed" | "cancelled" | "expired" | "captured";
  /** What blocks it besides its own schedule: suspensions (`tenant`, `batch:CODE`, `account:ID`), a used-up limit (`limit:ID`) and an open circuit (`circuit:ID`) of its account. `/explain` says why, and until when. */
  held_by?: Array<string>;
  /** 0 (immediate) to 3 (low). */
  priority?: number;
  /** The batch it belongs to. */
  batch?: string | null;
  /** Whether its content is hidden: `subject` and `metadata` are not shown, and the bodies are removed once it is sent. */
  sensitive?: boolean;
  /** The subject; `[hidden]` if the message is sensitive. */
  subject?: string;
  /** The first recipient. */
  to?: string | null;
  /** How many recipients it has. */
  recipient_count?: number;
  /** How many of several recipients were permanently refused. */
  refused_count?: number;
  /** When it was accepted. */
  created_at?: string;
  /** When it last changed. */
  updated_at?: string;
  /** When it is due. */
  due_at?: string | null;
  /** When it expires unsent. */
  expires_at?: string | null;
  /** When the relay accepted it. */
  sent_at?: string | null;
  /** When it failed. */
  failed_at?: string | null;
  /** When it had ended and every notification was acknowledged or given up. */
  reported_at?: string | null;
  /** The number of the latest attempt; 0 before the first. */
  attempt?: number;
  /** Increases with each change. */
  version?: number;
  /** Whether it failed because its retries were exhausted. */
  exhausted?: boolean;
  /** The id of the request that created it. */
  request_id?: string | null;
  /** Its Message-ID, without brackets. */
  message_id?: string;
  /** The relay's own id of the mail. */
  provider_message_id?: string | null;
  /** Why it is where it is, as a sentence. */
  reason?: string | null;
  error?: Failure | null;
  /** The outcome after it was sent: the worst one known of its recipients. */
  outcome?: string | null;
  bounce?: Bounce | null;
  /** What to do if the relay's final answer is lost: `resend` or `hold`. */
  on_doubt?: "resend" | "hold";
  /** Your reference. */
  external_id?: string | null;
  /** Your labels. */
  tags?: Array<string>;
  /** Your own JSON object; null if the message is sensitive. */
  metadata?: Record<string, unknown> | null;
}

/** A signing key, without its secret half. */
export interface SigningKey {
  /** The domain it signs for; a domain outside ASCII as A-labels (`xn--…`). */
  domain: string;
  /** The domain in Unicode, if that differs. */
  domain_unicode?: string | null;
  /** The name by which receivers find the public half. */
  selector: string;
  /** `rsa` or `ed25519`. */
  algorithm: "rsa" | "ed25519";
  /** Whether it signs. */
  active: boolean;
  /** The DNS name to publish the record at. */
  dns_name: string;
  /** The TXT record to publish there. */
  dns_record: string;
  /** When it was created. */
  created_at: string;
}

/** A tenant's signing keys. */
export interface SigningKeyList {
  /** The keys, by domain and selector. */
  data: Array<SigningKey>;
  /** Pass this as `cursor` to read the next page; null on the last page. */
  next_cursor?: string | null;
}

/** A signing key to create. Unknown fields are refused. */
export interface SigningKeyRequest {
  /** The domain to sign for: the one in your From addresses. */
  domain: string;
  /** The name by which receivers find the public half; `pw` and the month, as in `pw202611`, when absent. */
  selector?: string | null;
  /** `rsa` (default; 2,048 bits, which every receiver verifies) or `ed25519`. */
  algorithm?: "rsa" | "ed25519" | null;
}

/** A template that is not stored, as for `POST /v1/templates`, and the values to render with. Unknown fields are refused. */
export interface SourcePreviewRequest {
  /** A name; optional. */
  name?: string | null;
  /** Its language, in which the templates that it refers to are looked up. */
  locale?: string | null;
  /** The subject. */
  subject?: string | null;
  /** The html part. At least one of `html`, `text` and `mjml` is required. */
  html?: string | null;
  /** The text part; derived from the html when absent. */
  text?: string | null;
  /** The html part as MJML; this or `html`. */
  mjml?: string | null;
  /** The template that wraps this one: its block `content` holds each part. */
  layout?: string | null;
  /** Whether the rules of `<style>` are written into the elements that they select, for mail programs that read no style sheets. */
  inline_css?: boolean | null;
  /** The purpose, at most 500 characters. */
  description?: string | null;
  /** Variables to use if none are given. */
  sample?: Record<string, unknown> | null;
  /** The variables; `sample` when absent. At most 1 MiB of JSON and 50,000 values. */
  variables?: Record<string, unknown> | null;
}

/** What a tenant's accounts did. */
export interface Statistics {
  /** The periods by time and account; a period without activity has no row. */
  data: Array<StatisticsRow>;
  /** Pass this as `cursor` to read the next page; null on the last page. */
  next_cursor?: string | null;
}

/** What one account did in one period. */
export interface StatisticsRow {
  /** When the period began, in UTC. */
  at: string;
  /** The account. */
  account: string;
  /** Messages accepted. */
  accepted: number;
  /** Messages accepted by a relay. */
  sent: number;
  /** Messages that failed. */
  failed: number;
  /** Messages refused by a check. */
  invalid: number;
  /** Transient failures that delayed a message. */
  deferred: number;
  /** Bounces. */
  bounced: number;
  /** Complaints. */
  complained: number;
  /** Messages not sent because of the suppression list. */
  suppressed: number;
  /** The average time from acceptance to `sent`, in milliseconds; null if nothing was sent. */
  average_queue_ms?: number | null;
}

/** Counts of a tenant's messages. */
export interface Stats {
  /** How many messages are in each status; every status is present. */
  by_status: Record<string, unknown>;
  /** How many messages wait because their tenant, batch or account is suspended, or because of a used-up limit or an open circuit of their account; counted up to 100,000: that value means "at least". */
  held: number;
  /** How many messages `in_doubt` wait for your decision (`/resolve`); the others are sent again automatically. Of the newest 10,000. */
  in_doubt_held: number;
  /** How long the oldest message that nothing blocks has been due: whether the queue keeps up. */
  oldest_due_seconds: number;
  /** How long the oldest blocked message (see `held`) has been due. */
  oldest_held_seconds: number;
  /** Messages per second over the last minute: `accepted`, `sent`, `failed`. */
  rates: Record<string, unknown>;
}

/** A named kind of mail. */
export interface Stream {
  /** The id, which messages name as `stream`, or begin their `batch` with. */
  id: string;
  /** The name that readers see. When it is empty, they see the id. */
  name: string;
  /** The purpose. */
  description?: string | null;
  /** Whether readers can unsubscribe by links that the gateway adds and serves. */
  unsubscribe: boolean;
  /** An address of a watched mailbox that readers can write to in order to unsubscribe. */
  unsubscribe_mailto?: string | null;
  /** Increases with each change. */
  version: number;
  /** When it was created. */
  created_at: string;
  /** When it was last changed. */
  updated_at: string;
}

/** A page of streams. */
export interface StreamList {
  /** By id. */
  data: Array<Stream>;
  /** Pass this as `cursor` to read the next page; null on the last page. */
  next_cursor?: string | null;
}

/** A stream to create or change. Unknown fields are refused. */
export interface StreamRequest {
  /** The id, unique in your tenant; required on creation, and fixed then. */
  id?: string | null;
  /** The name that readers see, at most 200 characters. */
  name?: string | null;
  /** The purpose, at most 1,000 characters; `null` removes it. */
  description?: string | null;
  /** Whether readers can unsubscribe: its mail gets `List-Unsubscribe` and `List-Unsubscribe-Post`. Requires `public_url` with https, or `unsubscribe_mailto`. */
  unsubscribe?: boolean | null;
  /** An address of a watched mailbox that readers can write to in order to unsubscribe; `null` removes it. */
  unsubscribe_mailto?: string | null;
  /** With `PATCH`: change only if the stream still has this version. */
  version?: number | null;
  /** Shown only; it may be sent back as it was. */
  created_at?: string;
  /** Shown only; it may be sent back as it was. */
  updated_at?: string;
}

/** The counts of a stream's mail, and the rates. */
export interface StreamStatistics {
  /** All periods together. */
  total: StreamStatisticsRow;
  /** The periods, the oldest first; one without activity has no row. */
  data: Array<StreamStatisticsRow>;
}

/** The counts of a stream's mail in one period, or in all of them. */
export interface StreamStatisticsRow {
  /** When the period began, in UTC; null in the total. */
  at?: string | null;
  /** Messages accepted. */
  accepted: number;
  /** Messages accepted by a relay. */
  sent: number;
  /** Messages that failed. */
  failed: number;
  /** Messages not sent because of the suppression lists. */
  suppressed: number;
  /** Reports of delivery. */
  delivered: number;
  /** Bounces. */
  bounced: number;
  /** Complaints. */
  complained: number;
  /** Readers who left the stream. */
  unsubscribed: number;
  /** Readers who came back to it. */
  resubscribed: number;
  /** Complaints for each message sent; null if none was sent. Gmail and Yahoo ask for less than 0.001. */
  complaint_rate?: number | null;
  /** Bounces for each message sent; null if none was sent. */
  bounce_rate?: number | null;
  /** Readers who left for each message sent; null if none was sent. */
  unsubscribe_rate?: number | null;
}

/** A webhook that needs attention. */
export interface SubscriberBehind {
  id: string;
  url: string;
  /** Whether it has calls due now. */
  due: boolean;
  /** Why it was deactivated. */
  disabled_reason?: string | null;
}

/** The answer: the one entry for `address`, or the entries for `addresses`. */
export type Suppressed = Suppression | SuppressionList;

/** An address that gets no mail. */
export interface Suppression {
  /** The address, in lower case; a domain outside ASCII as A-labels (`xn--…`). */
  address: string;
  /** The address in Unicode, if that differs. */
  address_unicode?: string | null;
  /** `hard_bounce`, `complaint`, `manual` or `unsubscribe`. */
  reason: "manual" | "hard_bounce" | "complaint" | "unsubscribe";
  /** A note. */
  note?: string | null;
  /** When it was suppressed. */
  created_at: string;
  /** When it expires; null means never. */
  expires_at?: string | null;
}

/** The fields of a suppression to change. Unknown fields are refused. */
export interface SuppressionChange {
  /** `manual`, `hard_bounce`, `complaint` or `unsubscribe`. */
  reason?: "manual" | "hard_bounce" | "complaint" | "unsubscribe" | null;
  /** A note, at most 500 characters; `null` removes it. */
  note?: string | null;
  /** When it expires, as RFC 3339 or Unix seconds; `null` means never. */
  expires_at?: string | null;
  /** Shown only; it may be sent back as it was. */
  address?: string;
  /** Shown only; it may be sent back as it was. */
  address_unicode?: string | null;
  /** Shown only; it may be sent back as it was. */
  created_at?: string;
}

/** A page of suppressed addresses. */
export interface SuppressionList {
  /** The entries, by address. */
  data: Array<Suppression>;
  /** Pass this as `cursor` to read the next page; null on the last page. */
  next_cursor?: string | null;
}

/** Addresses to suppress: one, or several that share the other fields. Unknown fields are refused. */
export interface SuppressionRequest {
  /** The address; this or `addresses`. */
  address?: string | null;
  /** At most 1,000 addresses. */
  addresses?: Array<string> | null;
  /** `manual` (default), `hard_bounce`, `complaint` or `unsubscribe`. */
  reason?: "manual" | "hard_bounce" | "complaint" | "unsubscribe" | null;
  /** A note, at most 500 characters. */
  note?: string | null;
  /** When it expires, as RFC 3339 or Unix seconds; never when absent. */
  expires_at?: string | null;
}

/** A template in one of its versions. */
export interface Template {
  /** Its name. */
  name: string;
  /** The language that its name ends with. */
  locale?: string | null;
  /** Its version, from 1. */
  version: number;
  /** The subject. */
  subject: string;
  /** The html part. */
  html?: string | null;
  /** The text part; derived from the html when null. */
  text?: string | null;
  /** The html part as MJML, instead of `html`. */
  mjml?: string | null;
  /** The template that wraps this one. */
  layout?: string | null;
  /** Whether the rules of `<style>` are written into the elements that they select. */
  inline_css: boolean;
  /** The purpose. */
  description?: string | null;
  /** Variables to preview it with. */
  sample?: Record<string, unknown> | null;
  /** When this version was created. */
  created_at: string;
}

/** A page of templates, or of the versions of one. */
export interface TemplateList {
  /** The templates, without their sources. */
  data: Array<TemplateSummary>;
  /** Pass this as `cursor` to read the next page; null on the last page. */
  next_cursor?: string | null;
}

/** A template to create. Unknown fields are refused; all sources together have at most 1 MiB. */
export interface TemplateRequest {
  /** The name, unique in your tenant: 1 to 128 of `A-Z a-z 0-9 . _ -`. With `PUT` it is in the path. */
  name?: string | null;
  /** Its language, which its name then ends with: `welcome` with `de-AT` is stored as `welcome.de-AT`. With `PUT` the path has it. */
  locale?: string | null;
  /** The subject. */
  subject?: string | null;
  /** The html part; values are escaped. At least one of `html`, `text` and `mjml` is required. */
  html?: string | null;
  /** The text part; derived from the html when absent. */
  text?: string | null;
  /** The html part as MJML; this or `html`. */
  mjml?: string | null;
  /** The template that wraps this one: its block `content` holds each part. */
  layout?: string | null;
  /** Whether the rules of `<style>` are written into the elements that they select, for mail programs that read no style sheets. */
  inline_css?: boolean | null;
  /** The purpose, at most 500 characters. */
  description?: string | null;
  /** Variables to preview it with. */
  sample?: Record<string, unknown> | null;
  /** With `PUT`: create the next version only if the latest is this one. */
  version?: number | null;
  /** Shown only; it may be sent back as it was. */
  created_at?: string;
}

/** A template without its sources. */
export interface TemplateSummary {
  /** Its name. */
  name: string;
  /** The language that its name ends with. */
  locale?: string | null;
  /** Its version, from 1. */
  version: number;
  /** The subject. */
  subject: string;
  /** Which of `html`, `text` and `mjml` it has. */
  parts: Array<string>;
  /** The template that wraps this one. */
  layout?: string | null;
  /** The purpose. */
  description?: string | null;
  /** When this version was created. */
  created_at: string;
}

/** Where a test of a template goes. Unknown fields are refused. */
export interface TemplateTestRequest {
  /** The recipients, at most 10. */
  to: Array<string>;
  /** The sender; required unless the tenant has a `default_from`. */
  from?: string | null;
  /** The account that sends it; as for any message when absent. */
  account?: string | null;
  /** The variables; the template's `sample` when absent. At most 1 MiB of JSON and 50,000 values. */
  variables?: Record<string, unknown> | null;
  /** The version; the latest when absent. */
  version?: number | null;
  /** The language; the tenant's when absent. */
  locale?: string | null;
}

/** A template to fill in. */
export interface TemplateUse {
  /** Its name. */
  name: string;
  /** Its version; the latest when absent. */
  version?: number | null;
  /** The values to fill in. A variable that the template uses and this lacks is an error. At most 1 MiB of JSON and 50,000 values. */
  variables?: Record<string, unknown> | null;
}

/** A tenant. */
export interface Tenant {
  /** Its id. */
  id: string;
  /** The display name. */
  name: string;
  /** Whether all its mail is suspended. */
  suspended: boolean;
  /** When it was suspended. */
  suspended_since?: string | null;
  /** The account for mail that names none. */
  default_account?: string | null;
  /** Its weight when tenants compete. */
  weight: number;
  /** Limits of the mail it may send; null means the gateway's own. */
  content: ContentLimits;
  /** The older spelling of `report_retention_seconds`, in days. */
  retention_days?: number | null;
  /** How long messages are kept once they ended and were completely reported; null means as long as the gateway is configured for, 604,800 by default. */
  report_retention_seconds?: number | null;
  /** How many days messages are kept that ended and could not be completely reported; null means 90. */
  unreported_retention_days?: number | null;
  client_sync?: Remote | null;
  attachment_endpoint?: Remote | null;
  /** The format of its reports: `event`, `outbox` or `batch`. */
  callback_form: "event" | "outbox" | "batch";
  /** What to do with attachments too large to mail. */
  large_files: LargeFiles;
  /** The domain that its bounces return to. */
  bounce_domain?: string | null;
  /** The envelope sender for mail and accounts that name none. */
  return_path?: string | null;
  /** The sender of mail that names none. */
  default_from?: string | null;
  /** Its identity for receivers that count complaints (`Feedback-ID`). */
  feedback_id?: string | null;
  /** Whether its mail declares that a program sent it (`Auto-Submitted`). */
  auto_submitted: boolean;
  /** Whether it is a test tenant: mail captured by its sandbox counts as sent. */
  test: boolean;
  /** The name of a header in which its mail carries the client's own id. */
  id_header?: string | null;
  /** What to do with mail in doubt if neither the mail nor its account says; null for `resend`. */
  on_doubt?: "resend" | "hold" | null;
  /** The senders its mail may have: addresses, domains, patterns; any when empty. */
  allowed_senders: Array<string>;
  /** Whether `Reply-To` must be one of them, too. */
  bind_reply_to: boolean;
  /** What becomes of mail that the virus scanner could not scan: `open`, `closed` or `off`. */
  virus_policy: "open" | "closed" | "off";
  /** How much mail it may hand over in a day of UTC; null means any amount. */
  daily_quota: DailyQuota;
  /** Whether reading bodies takes the right `read:content`, beside `read`. */
  guard_content: boolean;
  archive?: Archive | null;
  /** The language of its templates for mail that names none; null means templates without a language. */
  locale?: string | null;
  /** Increases with each change. */
  version: number;
  /** When it was created. */
  created_at: string;
  /** When it was last changed. */
  updated_at: string;
}

/** A page of tenants. */
export interface TenantList {
  /** The tenants, by id. */
  data: Array<Tenant>;
  /** Pass this as `cursor` to read the next page; null on the last page. */
  next_cursor?: string | null;
}

/** A tenant to create or change. Unknown fields are refused. */
export interface TenantRequest {
  /** The id, 1 to 64 of `A-Z a-z 0-9 . _ -`; required on creation, and fixed then. */
  id?: string | null;
  /** The display name; the id when absent. */
  name?: string | null;
  /** The weight when tenants compete, 1 to 10,000. */
  weight?: number | null;
  /** The account for mail that names none; it must exist. */
  default_account?: string | null;
  /** Limits of the mail it may send. */
  content?: ContentRequest | null;
  /** The older spelling of `report_retention_seconds`, in days; only one of them may be given. */
  retention_days?: number | null;
  /** How long messages are kept once they ended and were completely reported; 0 removes them at the next clean-up. */
  report_retention_seconds?: number | null;
  /** How many days messages are kept that ended and could not be completely reported, at most 3,650; never shorter than the other. */
  unreported_retention_days?: number | null;
  /** The endpoint for its delivery reports. */
  client_sync?: RemoteRequest | null;
  /** The endpoint for attachments named by `endpoint`. */
  attachment_endpoint?: RemoteRequest | null;
  /** The format of its reports: `event` (default), `outbox` or `batch`. */
  callback_form?: "event" | "outbox" | "batch" | null;
  /** What to do with attachments too large to mail: all settings, or the policy alone, as a text. */
  large_files?: "reject" | "warn" | "rewrite" | "link" | Record<string, unknown> | null;
  /** The domain that its bounces return to. */
  bounce_domain?: string | null;
  /** The envelope sender for mail and accounts that name none. */
  return_path?: string | null;
  /** The sender of mail that names none. */
  default_from?: string | null;
  /** Its identity for receivers that count complaints (`Feedback-ID`): 5 to 15 of `A-Z a-z 0-9 . _ -`. */
  feedback_id?: string | null;
  /** Whether its mail declares that a program sent it (`Auto-Submitted`), so that no holiday notice answers. */
  auto_submitted?: boolean | null;
  /** Whether it is a test tenant: mail captured by its sandbox counts as sent, and compatibility APIs accept mail for it. */
  test?: boolean | null;
  /** The name of a header in which its mail carries the client's own id: `X-` and up to 60 of `A-Z a-z 0-9 -`. */
  id_header?: string | null;
  /** What to do with mail in doubt if neither the mail nor its account says: `resend` (default), or `hold`, which never sends twice. */
  on_doubt?: "resend" | "hold" | null;
  /** The senders its mail may have (`From`, `Sender`, envelope sender), however it is submitted: addresses, domains, and patterns such as `*.example.com`, at most 200; any when empty. */
  allowed_senders?: Array<string> | null;
  /** Whether `Reply-To` must be one of them, too. */
  bind_reply_to?: boolean | null;
  /** What becomes of mail that the virus scanner could not scan: it passes (`open`, the default) or waits (`closed`). `off` scans nothing. */
  virus_policy?: "open" | "closed" | "off" | null;
  /** How much mail it may hand over in a day of UTC, whichever way; any amount when absent. */
  daily_quota?: DailyQuotaRequest | null;
  /** Whether reading bodies (mail, content, attachments, submitted requests) takes the right `read:content`, beside `read`. */
  guard_content?: boolean | null;
  /** Where copies of what was sent go; nowhere when absent. */
  archive?: ArchiveRequest | null;
  /** The language of its templates for mail that names none, or one that a template does not have: `de`, `de-AT`, `zh-Hant`. */
  locale?: string | null;
  /** With `PATCH`: change only if the tenant still has this version. */
  version?: number | null;
  /** Shown only; it may be sent back as it was. */
  suspended?: boolean;
  /** Shown only; it may be sent back as it was. */
  suspended_since?: string | null;
  /** Shown only; it may be sent back as it was. */
  created_at?: string;
  /** Shown only; it may be sent back as it was. */
  updated_at?: string;
}

/** Percentiles. */
export interface TimeInQueue {
  p50_ms?: number | null;
  p95_ms?: number | null;
  /** The number of messages examined. */
  sample: number;
}

/** Sessions that failed in one way. */
export interface TlsFailure {
  /** The result, in the word of RFC 8460; `other` if it has none. */
  type: "starttls-not-supported" | "certificate-host-mismatch" | "certificate-expired" | "certificate-not-trusted" | "validation-failure" | "tlsa-invalid" | "dnssec-invalid" | "dane-required" | "sts-policy-fetch-error" | "sts-policy-invalid" | "sts-webpki-invalid" | "other";
  /** The server of the domain. */
  server?: string | null;
  /** Sessions. */
  total: number;
  /** The first day with it. */
  first_day: string;
  /** The last day with it. */
  last_day: string;
}

/** What TLS reports count. */
export interface TlsSummary {
  /** Sessions. */
  total: number;
  /** Those that failed. */
  failed: number;
  /** The latest first. */
  days: Array<DomainReportDay>;
  /** Why they failed, the most frequent first. */
  failures: Array<TlsFailure>;
}

/** A rule, and a mail to test it with. Unknown fields are refused. */
export interface TrialRequest {
  /** A rule that need not be stored; its `match` and `actions` are enough. This or `id`. */
  rule?: RuleRequest | null;
  /** A stored rule. */
  id?: string | null;
  /** An inbound mail, by its id. This or `raw`. */
  inbound?: string | null;
  /** A mail of at most 25 MiB, in base64. Everything else has at most 1 MiB and 20,000 values. */
  raw?: string | null;
}

/** An account that may be chosen. */
export interface TriedAccount {
  /** The account. */
  account: string;
  /** Its weight. */
  weight: number;
  /** Why it cannot send now: `suspended`, `circuit` or `limit`; null if it can. */
  held_by?: "suspended" | "circuit" | "limit" | null;
}

/** The result of one condition. */
export interface TriedCondition {
  /** Whether it matches. */
  holds: boolean;
  /** The explanation. */
  why: string;
}

/** One route, compared with the message. */
export interface TriedRoute {
  /** The route. */
  route: string;
  /** Whether all its conditions hold. */
  matched: boolean;
  /** Its conditions. */
  conditions: Array<TriedRouteCondition>;
  /** Its accounts that do not exist any more. */
  missing: Array<string>;
  /** Whether it matches and is passed over because all its accounts are gone. */
  passed_over: boolean;
}

/** One condition of a route. */
export interface TriedRouteCondition {
  /** `sender_domain`, `tag`, `batch`, `stream`, `priority` or `recipient_domain`. */
  condition: "sender_domain" | "tag" | "batch" | "stream" | "priority" | "recipient_domain";
  /** Whether it holds. */
  holds: boolean;
}

/** A part of a search, as it was interpreted. */
export interface UnderstoodTerm {
  /** The filter it became: `id`, `recipient`, `domain`, `text`, `subject`, `tag`, `error_code`, `message_id`, `external_id`, `metadata`, `status`, `outcome`, `account` or `batch`. */
  name: string;
  /** The value of the filter. */
  value: string;
}

/** How a reader unsubscribes: either or both. */
export interface Unsubscribe {
  /** The URL that the reader's mail program posts to with one click (RFC 8058): `https://`. */
  url?: string | null;
  /** The address that the reader writes to. */
  mailto?: string | null;
}

/** What counts against the limits now; null if there is no such limit. */
export interface Used {
  /** Against `per_minute`. */
  minute?: number | null;
  /** Against `per_hour`. */
  hour?: number | null;
  /** Against `per_day`. */
  day?: number | null;
}

/** A person who operates the gateway. */
export interface User {
  /** The name to sign in with, which the audit log shows. */
  name: string;
  /** What people call the person. */
  display_name: string;
  /** The address. */
  email?: string | null;
  /** What the user may do. */
  role: "viewer" | "operator" | "manager" | "admin";
  /** The tenants that the role applies to; null for all of them. */
  tenants?: Array<string> | null;
  /** Whether a viewer or operator may read bodies where a tenant guards them. */
  read_content: boolean;
  /** The provider at which the user signs in. */
  issuer?: string | null;
  /** The provider's name for the person. */
  subject?: string | null;
  /** Whether the user has a password and an authenticator app here. */
  has_password: boolean;
  /** How many recovery codes are left. */
  recovery_codes: number;
  /** How many passkeys the user has. */
  passkeys: number;
  /** Since when the user may not sign in. */
  disabled_at?: string | null;
  /** Increases with each change, also when the user signs in. */
  version: number;
  /** When it was created. */
  created_at: string;
  /** When it was last changed. */
  updated_at: string;
}

/** A page of users. */
export interface UserList {
  /** By name. */
  data: Array<User>;
  /** Pass this as `cursor` to read the next page; null on the last page. */
  next_cursor?: string | null;
}

/** A user to create or change. Unknown fields are refused. */
export interface UserRequest {
  /** The name; required on creation, and fixed then. Capital letters are read as small ones. */
  name?: string | null;
  /** What people call the person, at most 200 characters. */
  display_name?: string | null;
  /** The address; `null` removes it. Who signs in at the provider with this address, which the provider has verified, becomes this user. */
  email?: string | null;
  /** `viewer`, `operator`, `manager` or `admin`; required on creation. */
  role?: "viewer" | "operator" | "manager" | "admin";
  /** The tenants that the role applies to; `null` for all of them. Required on creation. */
  tenants?: Array<string> | null;
  /** Whether a viewer or operator may read bodies where a tenant guards them. */
  read_content?: boolean | null;
  /** Whether the user may not sign in. */
  disabled?: boolean | null;
  /** With `PATCH`: change only if the user still has this version. */
  version?: number | null;
  /** Shown only; it may be sent back as it was. */
  issuer?: string | null;
  /** Shown only; it may be sent back as it was. */
  subject?: string | null;
  /** Shown only; it may be sent back as it was. */
  has_password?: boolean;
  /** Shown only; it may be sent back as it was. */
  recovery_codes?: number;
  /** Shown only; it may be sent back as it was. */
  passkeys?: number;
  /** Shown only; it may be sent back as it was. */
  disabled_at?: string | null;
  /** Shown only; it may be sent back as it was. */
  created_at?: string;
  /** Shown only; it may be sent back as it was. */
  updated_at?: string;
}

/** A browser in which a user is signed in. */
export interface UserSession {
  /** The session's id. */
  id: string;
  /** When it began. */
  began_at: string;
  /** When it ends by itself. */
  ends_at: string;
  /** When it was last used, to some minutes. */
  seen_at: string;
  /** How the user signed in: `password`, `passkey`, `oidc` or `invitation`. */
  way: string;
  /** From which address. */
  address?: string | null;
  /** With which browser, as it says. */
  agent?: string | null;
  /** Whether it is the session of this request. */
  current: boolean;
}

/** The sessions of a user. */
export interface UserSessionList {
  /** The newest first. */
  data: Array<UserSession>;
}

/** The result of a verification. */
export interface VerifiedToken {
  /** Whether the token is valid. */
  valid: boolean;
  /** Why it is not valid: `malformed`, `unknown`, `path`, `code`, `attempts`, `expired`, `consumed` or `revoked`. */
  reason?: string | null;
  /** `activation` or `password_recovery`. */
  action?: string | null;
  /** The account's id. */
  account?: number | null;
  /** The account's login. */
  login?: string | null;
  /** Whether it was consumed now. */
  consumed?: boolean | null;
}

/** The token to verify. */
export interface VerifyToken {
  /** The token from the link. */
  token: string;
  /** The path of the link, which the token is signed for. */
  path: string;
  /** The code from the mail, if the reader was asked for it. */
  code?: string | null;
  /** Whether a valid token is consumed; an activation then activates its account. */
  consume?: boolean | null;
}

/** A daily limit that grows. */
export interface WarmUp {
  /** When the first day begins. */
  from: string;
  /** The limit of the first, second, … day. */
  per_day: Array<number>;
}

/** A daily limit that grows. */
export interface WarmUpRequest {
  /** When the first day begins, as RFC 3339 or Unix seconds; now when absent. */
  from?: string | null;
  /** The limit of the first, second, … day; at most 90 days. */
  per_day: Array<number>;
}

/** A webhook. */
export interface Webhook {
  /** The id; `client_sync` for the one in the tenant's settings. */
  id: string;
  /** The protocol: `webhook`, or for `client_sync` also `callback` or `sync`. */
  kind: "webhook" | "callback" | "sync";
  /** The URL; null for `client_sync`, whose URL is in the tenant's settings. */
  url?: string | null;
  /** The format of its calls, `postway`, `resend` or `postmark`; null for a `client_sync` of another `kind`. */
  form?: string | null;
  /** The events: a list of names, or `*` for all. */
  events: Array<"email.accepted" | "email.invalid" | "email.deferred" | "email.sent" | "email.failed" | "email.recipient_failed" | "email.in_doubt" | "email.resent" | "email.resolved" | "email.cancelled" | "email.expired" | "email.suppressed" | "email.replayed" | "email.delivered" | "email.delayed" | "email.bounced" | "email.complained" | "email.auto_replied" | "email.pec.accepted" | "email.pec.taken_over" | "email.pec.delivered" | "email.pec.failed" | "email.pec.timeout" | "email.received" | "email.unproven_report" | "email.captured" | "email.unsubscribed" | "email.resubscribed" | "email.replied" | "email.opened" | "email.clicked" | "suppression.created" | "suppression.deleted" | "*">;
  /** The purpose. */
  description?: string | null;
  /** Whether it is called at all. While it is inactive, no notifications are created for it. */
  active: boolean;
  /** Why it was deactivated automatically: it answered 410. */
  disabled_reason?: string | null;
  /** When it may be called again, as it requested. */
  quiet_until?: string | null;
  /** Increases with each change. */
  version: number;
  /** When it was created: it gets events from then on. */
  created_at: string;
  /** When it was last changed. */
  updated_at: string;
}

/** A tenant's webhooks. */
export interface WebhookList {
  /** The webhooks by id, which is by age. */
  data: Array<Webhook>;
  /** Pass this as `cursor` to read the next page; null on the last page. */
  next_cursor?: string | null;
}

/** A webhook to create or change. Unknown fields are refused. */
export interface WebhookRequest {
  /** The URL to call, `http://` or `https://`; required on creation. Private hosts are refused unless the operator allows them (`POSTWAY_ALLOW_PRIVATE_TARGETS`). */
  url?: string | null;
  /** The events: a list of names, or `["*"]` (default) for all. */
  events?: Array<"email.accepted" | "email.invalid" | "email.deferred" | "email.sent" | "email.failed" | "email.recipient_failed" | "email.in_doubt" | "email.resent" | "email.resolved" | "email.cancelled" | "email.expired" | "email.suppressed" | "email.replayed" | "email.delivered" | "email.delayed" | "email.bounced" | "email.complained" | "email.auto_replied" | "email.pec.accepted" | "email.pec.taken_over" | "email.pec.delivered" | "email.pec.failed" | "email.pec.timeout" | "email.received" | "email.unproven_report" | "email.captured" | "email.unsubscribed" | "email.resubscribed" | "email.replied" | "email.opened" | "email.clicked" | "suppression.created" | "suppression.deleted" | "*"> | null;
  /** The format of its calls: `postway` (default), or `resend` or `postmark` for receivers that were written for them. */
  form?: string | null;
  /** The purpose, at most 500 characters. */
  description?: string | null;
  /** Whether it is called at all. Activating it clears `disabled_reason`. */
  active?: boolean | null;
  /** With `PATCH`: change only if the webhook still has this version. */
  version?: number | null;
  /** Shown only; it may be sent back as it was. */
  id?: string;
  /** Shown only; it may be sent back as it was. */
  kind?: string;
  /** Shown only; it may be sent back as it was. */
  disabled_reason?: string | null;
  /** Shown only; it may be sent back as it was. */
  quiet_until?: string | null;
  /** Shown only; it may be sent back as it was. */
  created_at?: string;
  /** Shown only; it may be sent back as it was. */
  updated_at?: string;
}

/** The result of a test call. */
export interface WebhookTest {
  /** Whether the answer would have acknowledged an event. */
  ok: boolean;
  /** The HTTP status, if an answer came. */
  status?: number | null;
  /** How long it took. */
  latency_ms: number;
  /** The answer, shortened, or what went wrong. */
  answer: string;
}

/** A webhook with a secret that was just generated. */
export interface WebhookWithSecret {
  /** The id; `client_sync` for the one in the tenant's settings. */
  id: string;
  /** The protocol: `webhook`, or for `client_sync` also `callback` or `sync`. */
  kind: "webhook" | "callback" | "sync";
  /** The URL; null for `client_sync`, whose URL is in the tenant's settings. */
  url?: string | null;
  /** The format of its calls, `postway`, `resend` or `postmark`; null for a `client_sync` of another `kind`. */
  form?: string | null;
  /** The events: a list of names, or `*` for all. */
  events: Array<"email.accepted" | "email.invalid" | "email.deferred" | "email.sent" | "email.failed" | "email.recipient_failed" | "email.in_doubt" | "email.resent" | "email.resolved" | "email.cancelled" | "email.expired" | "email.suppressed" | "email.replayed" | "email.delivered" | "email.delayed" | "email.bounced" | "email.complained" | "email.auto_replied" | "email.pec.accepted" | "email.pec.taken_over" | "email.pec.delivered" | "email.pec.failed" | "email.pec.timeout" | "email.received" | "email.unproven_report" | "email.captured" | "email.unsubscribed" | "email.resubscribed" | "email.replied" | "email.opened" | "email.clicked" | "suppression.created" | "suppression.deleted" | "*">;
  /** The purpose. */
  description?: string | null;
  /** Whether it is called at all. While it is inactive, no notifications are created for it. */
  active: boolean;
  /** Why it was deactivated automatically: it answered 410. */
  disabled_reason?: string | null;
  /** When it may be called again, as it requested. */
  quiet_until?: string | null;
  /** Increases with each change. */
  version: number;
  /** When it was created: it gets events from then on. */
  created_at: string;
  /** When it was last changed. */
  updated_at: string;
  /** The secret that signs its calls. It is shown only once. */
  secret: string;
}

/** A skipped line. */
export interface WrongLine {
  /** The line number, from 1. */
  line: number;
  /** Why it was skipped. */
  message: string;
}

/** What every call takes besides its own options. */
export interface CallOptions {
  /** Ends the call, and the wait for its next try. */
  signal?: AbortSignal;
}

export interface GetLivenessOptions extends CallOptions {
}

export interface GetReadinessOptions extends CallOptions {
}

export interface ReportProviderEventsOptions extends CallOptions {
}

export interface GetMetricsOptions extends CallOptions {
}

export interface ShowUnsubscribeOptions extends CallOptions {
}

export interface UnsubscribeOptions extends CallOptions {
}

export interface ListAccountsOptions extends CallOptions {
  /** How many, 1 to 500; all of them when absent */
  limit?: number;
  /** Where to continue: the `next_cursor` of the previous page */
  cursor?: string;
}

export interface CreateAccountOptions extends CallOptions {
  /** Only check; store nothing */
  dry_run?: boolean;
}

export interface GetAccountOptions extends CallOptions {
}

export interface ReplaceAccountOptions extends CallOptions {
}

export interface ChangeAccountOptions extends CallOptions {
}

export interface DeleteAccountOptions extends CallOptions {
  /** Delete it even if rules forward through it, whose mail then fails, or routes name it, which then pass it over */
  force?: boolean;
}

export interface ActivateAccountOptions extends CallOptions {
}

export interface GetAccountHookOptions extends CallOptions {
}

export interface PutAccountHookOptions extends CallOptions {
}

export interface DeleteAccountHookOptions extends CallOptions {
}

export interface ListAccountHookEventsOptions extends CallOptions {
  /** Only those in this status */
  status?: "waiting" | "leased" | "applied" | "ignored" | "unmatched" | "dead";
  /** How many, 1 to 500; 50 when absent */
  limit?: number;
  /** Where to continue: the `next_cursor` of the previous page */
  cursor?: string;
}

export interface RotateAccountHookOptions extends CallOptions {
}

export interface SuspendAccountOptions extends CallOptions {
}

export interface TestAccountOptions extends CallOptions {
}

export interface ListArchiveOptions extends CallOptions {
  /** Of messages accepted at or after this time */
  since?: string;
  /** Of messages accepted before this time */
  until?: string;
  /** How many, 1 to 500; 50 when absent */
  limit?: number;
  /** Where to continue: the `next_cursor` of the previous page */
  cursor?: string;
}

export interface GetArchivedOptions extends CallOptions {
}

export interface DeleteArchivedOptions extends CallOptions {
}

export interface GetRawArchivedOptions extends CallOptions {
}

export interface ListAuditOptions extends CallOptions {
  /** Only changes to this tenant */
  tenant?: string;
  /** Only what this one did: `admin`, `user:ada`, `key:…` */
  actor?: string;
  /** Only these actions: one, such as `account.change`, or all that begin so, such as `account.` */
  action?: string;
  /** Only changes of this resource */
  target?: string;
  /** `json` (default), or `jsonl` for the complete log, one entry per line */
  format?: "json" | "jsonl";
  /** How many, 1 to 500; 50 when absent */
  limit?: number;
  /** Where to continue: the `next_cursor` of the previous page */
  cursor?: string;
}

export interface FollowAuditOptions extends CallOptions {
  /** The position of the last line that you have; from the first kept line when absent */
  after?: number;
  /** How many, 1 to 500; 50 when absent */
  limit?: number;
  /** How many seconds to wait for new lines, at most 30 */
  wait?: number;
  /** `json` (default), or `jsonl` for all lines that follow, one per line */
  format?: "json" | "jsonl";
}

export interface ListBatchesOptions extends CallOptions {
  /** How many, 1 to 500; 50 when absent */
  limit?: number;
  /** Where to continue: the `next_cursor` of the previous page */
  cursor?: string;
}

export interface GetBatchOptions extends CallOptions {
}

export interface ActivateBatchOptions extends CallOptions {
}

export interface SuspendBatchOptions extends CallOptions {
}

export interface ListBulkActionsOptions extends CallOptions {
  /** How many, 1 to 500; 50 when absent */
  limit?: number;
  /** Where to continue: the `next_cursor` of the previous page */
  cursor?: string;
}

export interface CreateBulkActionOptions extends CallOptions {
  /** Whether only to say what would be done */
  dry_run?: boolean;
}

export interface GetBulkActionOptions extends CallOptions {
}

export interface StopBulkActionOptions extends CallOptions {
}

export interface CleanUpOptions extends CallOptions {
  /** The minimum age, up to 315,360,000; 0 for all */
  older_than_seconds?: number;
}

export interface ListContactsOptions extends CallOptions {
  /** Only the one with this name */
  name?: string;
  /** How many, 1 to 500; 50 when absent */
  limit?: number;
  /** Where to continue: the `next_cursor` of the previous page */
  cursor?: string;
}

export interface CreateContactOptions extends CallOptions {
}

export interface GetContactOptions extends CallOptions {
}

export interface ChangeContactOptions extends CallOptions {
}

export interface DeleteContactOptions extends CallOptions {
}

export interface ListDeadLettersOptions extends CallOptions {
  /** Only those of this account */
  account?: string;
  /** Only those of this batch */
  batch?: string;
  /** Only those to this address */
  recipient?: string;
  /** Only those with this label */
  tag?: string;
  /** Only those that came with this request */
  request_id?: string;
  /** Only the message with this id of the relay */
  provider_message_id?: string;
  /** Only those with this field in their metadata, as `key=value` */
  metadata?: string;
  /** Only those whose subject contains this, in any case */
  subject?: string;
  /** Only those whose latest failure has this code, such as `smtp_550` */
  error_code?: string;
  /** Accepted at or after this time */
  since?: string;
  /** Accepted before this time */
  until?: string;
  /** How many, 1 to 500; 50 when absent */
  limit?: number;
  /** Where to continue: the `next_cursor` of the previous page */
  cursor?: string;
}

export interface ReplayDeadLettersOptions extends CallOptions {
}

export interface ListSigningKeysOptions extends CallOptions {
  /** Only those of this domain */
  domain?: string;
  /** How many, 1 to 500; all of them when absent */
  limit?: number;
  /** Where to continue: the `next_cursor` of the previous page */
  cursor?: string;
}

export interface CreateSigningKeyOptions extends CallOptions {
}

export interface GetSigningKeyOptions extends CallOptions {
}

export interface DeleteSigningKeyOptions extends CallOptions {
}

export interface ActivateSigningKeyOptions extends CallOptions {
}

export interface SuspendSigningKeyOptions extends CallOptions {
}

export interface ListDomainsOptions extends CallOptions {
  /** How many, 1 to 500; all of them when absent */
  limit?: number;
  /** Where to continue: the `next_cursor` of the previous page */
  cursor?: string;
}

export interface DeleteDomainOptions extends CallOptions {
}

export interface CheckDomainOptions extends CallOptions {
}

export interface ListDomainReportsOptions extends CallOptions {
  /** How many, 1 to 500; 50 when absent */
  limit?: number;
  /** Where to continue: the `next_cursor` of the previous page */
  cursor?: string;
}

export interface SummarizeDomainReportsOptions extends CallOptions {
  /** How many days, today included, 1 to 400; 30 when absent */
  days?: number;
}

export interface EraseAddressOptions extends CallOptions {
}

export interface ReadEventsOptions extends CallOptions {
  /** A cursor, or `now` for entries from now on; when absent, all stored entries */
  after?: string;
  /** How many, 1 to 500; 50 when absent */
  limit?: number;
  /** How many seconds to wait for new entries, at most 30 */
  wait?: number;
}

export interface ListInboundOptions extends CallOptions {
  /** Only those of this mailbox */
  mailbox?: string;
  /** Only those with this status: `received`, `routing`, `routed`, `no_match`, `gone`, `waiting` or `dead` */
  status?: "received" | "routing" | "routed" | "no_match" | "gone" | "waiting" | "dead";
  /** Only those of this kind: `bounce`, `delay`, `success`, `complaint`, `pec`, `auto_reply`, `domain_report` or `ordinary` */
  kind?: "bounce" | "delay" | "success" | "complaint" | "pec" | "auto_reply" | "domain_report" | "ordinary";
  /** How many, 1 to 500; 50 when absent */
  limit?: number;
  /** Where to continue: the `next_cursor` of the previous page */
  cursor?: string;
}

export interface ReplayInboundAllOptions extends CallOptions {
}

export interface GetInboundOptions extends CallOptions {
}

export interface GetInboundAttachmentOptions extends CallOptions {
}

export interface GetInboundContentOptions extends CallOptions {
}

export interface PreviewInboundOptions extends CallOptions {
}

export interface GetRawInboundOptions extends CallOptions {
}

export interface ReplayInboundOptions extends CallOptions {
}

export interface ResolveInboundOptions extends CallOptions {
}

export interface ListMailboxesOptions extends CallOptions {
  /** How many, 1 to 500; all of them when absent */
  limit?: number;
  /** Where to continue: the `next_cursor` of the previous page */
  cursor?: string;
}

export interface CreateMailboxOptions extends CallOptions {
  /** Only check; store nothing */
  dry_run?: boolean;
}

export interface GetMailboxOptions extends CallOptions {
}

export interface ChangeMailboxOptions extends CallOptions {
}

export interface DeleteMailboxOptions extends CallOptions {
}

export interface ActivateMailboxOptions extends CallOptions {
}

export interface SuspendMailboxOptions extends CallOptions {
}

export interface TestMailboxOptions extends CallOptions {
}

export interface ListMessagesOptions extends CallOptions {
  /** One text for every search: an address or part of one, `@domain`, an id or uid, `<Message-ID>`, a failure code, an `external_id`, `key=value` of the metadata, `#tag`, words of the subject, or `tag:`, `subject:`, `to:`, `id:`, `external:`, `metadata:`, `code:`, `status:`, `outcome:`, `account:`, `batch:` before a value. Quotes hold words together: `subject:"your order"`. Nothing is refused; `understood` says how it was interpreted */
  q?: string;
  /** Only those in this state */
  status?: "accepted" | "validating" | "ready" | "scheduled" | "sending" | "sent" | "failed" | "invalid" | "in_doubt" | "suppressed" | "cancelled" | "expired" | "captured";
  /** Only those with a recipient that has this outcome */
  outcome?: "delivered" | "delayed" | "bounced" | "complained" | "auto_replied" | "pec_accepted" | "pec_taken_over" | "pec_delivered" | "pec_failed" | "pec_timeout";
  /** Only those that this blocks now: `any`, `tenant`, `batch:CODE`, `account:ID`, `limit:ID`, `circuit:ID`, or `doubt` for those that wait for your decision */
  held_by?: string;
  /** Only those that wait to be sent */
  waiting?: boolean;
  /** Only those of this account */
  account?: string;
  /** Only those of this batch */
  batch?: string;
  /** Only those to this address */
  recipient?: string;
  /** Only those whose subject contains this, in any case */
  subject?: string;
  /** Only those with this label */
  tag?: string;
  /** Only those with this field in their metadata, as `key=value` */
  metadata?: string;
  /** Only those that came with this request */
  request_id?: string;
  /** Only the message with this id of the relay */
  provider_message_id?: string;
  /** Only those whose latest failure has this code, such as `smtp_550` */
  error_code?: string;
  /** Accepted at or after this time */
  since?: string;
  /** Accepted before this time */
  until?: string;
  /** Whether to count all matching messages, up to 100,000 */
  count?: boolean;
  /** How many, 1 to 500; 50 when absent */
  limit?: number;
  /** Where to continue: the `next_cursor` of the previous page */
  cursor?: string;
}

export interface SendMessageOptions extends CallOptions {
  /** Only check; store nothing. Files are fetched, so at most four dry runs of a tenant run at once; others are 503 */
  dry_run?: boolean;
  /** Accept a subject as long as headers may be, unless the tenant has set a limit */
  any_subject?: boolean;
  /** Identifies this request, so that a repeat is recognised */
  idempotency_key?: string | null;
  /** `resend` or `hold` for messages that do not set it themselves */
  on_doubt?: "resend" | "hold" | null;
}

export interface SendBatchOptions extends CallOptions {
  /** Only check; store nothing */
  dry_run?: boolean;
  /** Accept subjects as long as headers may be, unless the tenant has set a limit */
  any_subject?: boolean;
  /** Identifies this batch, so that a repeat is recognised */
  idempotency_key?: string | null;
  /** `resend` or `hold` for messages that do not set it themselves */
  on_doubt?: "resend" | "hold" | null;
}

export interface SendRawMessageOptions extends CallOptions {
  /** Your own id of the message, unique in your tenant */
  id?: string;
  /** The account that sends it */
  account?: string;
  /** The envelope sender, instead of the mail's */
  from?: string;
  /** An envelope recipient, instead of the mail's; may be repeated */
  to?: Array<string>;
  /** The batch it belongs to */
  batch?: string;
  /** 0 to 3, or immediate, high, normal, low */
  priority?: "0" | "1" | "2" | "3" | "immediate" | "high" | "normal" | "low";
  /** Not before this time */
  send_at?: string;
  /** Not after this time */
  expires_at?: string;
  /** The reports to ask relays for, as parameters of SMTP (RFC 3461): `NOTIFY=SUCCESS,FAILURE RET=HDRS` */
  dsn?: string;
  /** `resend` or `hold` if the relay's final answer is lost */
  on_doubt?: "resend" | "hold";
  /** A label; may be repeated */
  tag?: Array<string>;
  /** Hide the content from every reader, and remove it once the mail is sent */
  sensitive?: boolean;
  /** Only check; store nothing */
  dry_run?: boolean;
  /** Identifies this request, so that a repeat is recognised */
  idempotency_key?: string | null;
}

export interface GetMessageOptions extends CallOptions {
}

export interface GetMessageAttachmentOptions extends CallOptions {
}

export interface CancelMessageOptions extends CallOptions {
}

export interface GetMessageContentOptions extends CallOptions {
}

export interface GetMessageEventsOptions extends CallOptions {
  /** How many, 1 to 500; all of them when absent */
  limit?: number;
  /** Where to continue: the `next_cursor` of the previous page */
  cursor?: string;
}

export interface ExplainMessageOptions extends CallOptions {
}

export interface GetMessagePayloadOptions extends CallOptions {
}

export interface ListPecReceiptsOptions extends CallOptions {
  /** How many, 1 to 500; 50 when absent */
  limit?: number;
  /** Where to continue: the `next_cursor` of the previous page */
  cursor?: string;
}

export interface ExportPecReceiptsOptions extends CallOptions {
}

export interface PreviewMessageOptions extends CallOptions {
}

export interface GetRawMessageOptions extends CallOptions {
}

export interface RescheduleMessageOptions extends CallOptions {
}

export interface ResolveMessageOptions extends CallOptions {
}

export interface RetryMessageOptions extends CallOptions {
}

export interface ListNodesOptions extends CallOptions {
  /** How many, 1 to 500; all of them when absent */
  limit?: number;
  /** Where to continue: the `next_cursor` of the previous page */
  cursor?: string;
}

export interface ListOutboxSourcesOptions extends CallOptions {
  /** How many, 1 to 500; all of them when absent */
  limit?: number;
  /** Where to continue: the `next_cursor` of the previous page */
  cursor?: string;
}

export interface GetOverviewOptions extends CallOptions {
}

export interface ListRecipientsOptions extends CallOptions {
  /** Only those with this address, in any case */
  address?: string;
  /** Only the one with this id of yours */
  external_id?: string;
  /** Only the one with this personal number */
  personal_number?: string;
  /** How many, 1 to 500; 50 when absent */
  limit?: number;
  /** Where to continue: the `next_cursor` of the previous page */
  cursor?: string;
}

export interface CreateRecipientOptions extends CallOptions {
  /** Only check; store nothing */
  dry_run?: boolean;
}

export interface GetRecipientOptions extends CallOptions {
}

export interface ChangeRecipientOptions extends CallOptions {
}

export interface DeleteRecipientOptions extends CallOptions {
}

export interface ListRoutesOptions extends CallOptions {
  /** How many, 1 to 500; all of them when absent */
  limit?: number;
  /** Where to continue: the `next_cursor` of the previous page */
  cursor?: string;
}

export interface CreateRouteOptions extends CallOptions {
}

export interface OrderRoutesOptions extends CallOptions {
}

export interface TryRoutesOptions extends CallOptions {
}

export interface GetRouteOptions extends CallOptions {
}

export interface ChangeRouteOptions extends CallOptions {
}

export interface DeleteRouteOptions extends CallOptions {
}

export interface ListRulesOptions extends CallOptions {
  /** Only those of this mailbox */
  mailbox?: string;
  /** How many, 1 to 500; all of them when absent */
  limit?: number;
  /** Where to continue: the `next_cursor` of the previous page */
  cursor?: string;
}

export interface CreateRuleOptions extends CallOptions {
}

export interface TryRuleOptions extends CallOptions {
}

export interface GetRuleOptions extends CallOptions {
}

export interface ChangeRuleOptions extends CallOptions {
}

export interface DeleteRuleOptions extends CallOptions {
}

export interface ListScopedSuppressionsOptions extends CallOptions {
  /** Only those of this stream */
  stream?: string;
  /** Only those that apply to every tenant; for the admin key */
  installation?: boolean;
  /** How many, 1 to 500; 50 when absent */
  limit?: number;
  /** Where to continue: the `next_cursor` of the previous page */
  cursor?: string;
}

export interface CreateScopedSuppressionOptions extends CallOptions {
}

export interface DeleteScopedSuppressionOptions extends CallOptions {
  /** The stream, if it applies to one */
  stream?: string;
  /** Whether it applies to every tenant; for the admin key */
  installation?: boolean;
}

export interface RotateSecretsOptions extends CallOptions {
}

export interface GetStatisticsOptions extends CallOptions {
  /** `hour` (default) or `day`, in UTC */
  by?: "hour" | "day";
  /** From the hour or day that contains this time; when absent, one day back by hour, 30 days back by day */
  since?: string;
  /** Before this time; now when absent. At most 31 days by hour, 366 by day */
  until?: string;
  /** Only this account */
  account?: string;
  /** How many, 1 to 500; all of them when absent */
  limit?: number;
  /** Where to continue: the `next_cursor` of the previous page */
  cursor?: string;
}

export interface GetStatsOptions extends CallOptions {
}

export interface ListStreamsOptions extends CallOptions {
  /** How many, 1 to 500; 50 when absent */
  limit?: number;
  /** Where to continue: the `next_cursor` of the previous page */
  cursor?: string;
}

export interface CreateStreamOptions extends CallOptions {
}

export interface GetStreamOptions extends CallOptions {
}

export interface ChangeStreamOptions extends CallOptions {
}

export interface DeleteStreamOptions extends CallOptions {
}

export interface GetStreamStatisticsOptions extends CallOptions {
  /** `hour` (default) or `day`, in UTC */
  by?: string;
  /** From the hour or day that contains this time; when absent, one day back by hour, 30 days back by day */
  since?: string;
  /** Before this time; now when absent. At most 31 days by hour, 366 by day */
  until?: string;
}

export interface ListSuppressionsOptions extends CallOptions {
  /** How many, 1 to 500; 50 when absent */
  limit?: number;
  /** Where to continue: the `next_cursor` of the previous page */
  cursor?: string;
}

export interface CreateSuppressionOptions extends CallOptions {
}

export interface ExportSuppressionsOptions extends CallOptions {
}

export interface ImportSuppressionsOptions extends CallOptions {
  /** `csv` or `jsonl`, whatever the content type says */
  format?: "csv" | "jsonl";
}

export interface GetSuppressionOptions extends CallOptions {
}

export interface ChangeSuppressionOptions extends CallOptions {
}

export interface DeleteSuppressionOptions extends CallOptions {
}

export interface ListTemplatesOptions extends CallOptions {
  /** How many, 1 to 500; 50 when absent */
  limit?: number;
  /** Where to continue: the `next_cursor` of the previous page */
  cursor?: string;
}

export interface CreateTemplateOptions extends CallOptions {
}

export interface PreviewSourceOptions extends CallOptions {
}

export interface GetTemplateOptions extends CallOptions {
  /** The version; the latest when absent */
  version?: number;
}

export interface PutTemplateOptions extends CallOptions {
}

export interface DeleteTemplateOptions extends CallOptions {
}

export interface PreviewTemplateOptions extends CallOptions {
}

export interface SendTemplateTestOptions extends CallOptions {
  /** Identifies this request, so that a repeat is recognised */
  idempotency_key?: string | null;
}

export interface ListTemplateVersionsOptions extends CallOptions {
  /** How many, 1 to 500; 50 when absent */
  limit?: number;
  /** Where to continue: the `next_cursor` of the previous page */
  cursor?: string;
}

export interface GetOwnTenantOptions extends CallOptions {
}

export interface ListTenantsOptions extends CallOptions {
  /** How many, 1 to 500; 50 when absent */
  limit?: number;
  /** Where to continue: the `next_cursor` of the previous page */
  cursor?: string;
}

export interface CreateTenantOptions extends CallOptions {
  /** Only check; store nothing */
  dry_run?: boolean;
}

export interface GetTenantOptions extends CallOptions {
}

export interface ChangeTenantOptions extends CallOptions {
}

export interface DeleteTenantOptions extends CallOptions {
  /** The tenant's id, repeated */
  confirm: string;
}

export interface ActivateTenantOptions extends CallOptions {
}

export interface ListKeysOptions extends CallOptions {
  /** How many, 1 to 500; all of them when absent */
  limit?: number;
  /** Where to continue: the `next_cursor` of the previous page */
  cursor?: string;
}

export interface CreateKeyOptions extends CallOptions {
}

export interface RevokeKeyOptions extends CallOptions {
}

export interface SuspendTenantOptions extends CallOptions {
}

export interface VerifyTokenOptions extends CallOptions {
}

export interface ListUsersOptions extends CallOptions {
  /** How many, 1 to 500; 50 when absent */
  limit?: number;
  /** Where to continue: the `next_cursor` of the previous page */
  cursor?: string;
}

export interface CreateUserOptions extends CallOptions {
}

export interface GetUserOptions extends CallOptions {
}

export interface ChangeUserOptions extends CallOptions {
}

export interface DeleteUserOptions extends CallOptions {
}

export interface InviteUserOptions extends CallOptions {
}

export interface ListUserSessionsOptions extends CallOptions {
}

export interface EndUserSessionsOptions extends CallOptions {
}

export interface ListWebhooksOptions extends CallOptions {
  /** How many, 1 to 500; all of them when absent */
  limit?: number;
  /** Where to continue: the `next_cursor` of the previous page */
  cursor?: string;
}

export interface CreateWebhookOptions extends CallOptions {
}

export interface GetWebhookOptions extends CallOptions {
}

export interface ChangeWebhookOptions extends CallOptions {
}

export interface DeleteWebhookOptions extends CallOptions {
}

export interface ListDeliveriesOptions extends CallOptions {
  /** Only those that are `pending`, `calling`, `waiting`, `acknowledged` or `dead` */
  status?: "pending" | "calling" | "waiting" | "acknowledged" | "dead";
  /** How many, 1 to 500; 50 when absent */
  limit?: number;
  /** Where to continue: the `next_cursor` of the previous page */
  cursor?: string;
}

export interface ResendDeliveryOptions extends CallOptions {
}

export interface ResendDeliveriesOptions extends CallOptions {
}

export interface RotateWebhookSecretOptions extends CallOptions {
}

export interface TestWebhookOptions extends CallOptions {
}

/** The calls; `Client` adds how they are made. */
export declare class Operations {
  /** Liveness (`GET /health/live`). Answers as long as the process serves requests, whatever its database does. For liveness probes; no key is needed. */
  getLiveness(options?: GetLivenessOptions): Promise<Health>;
  /** Readiness (`GET /health/ready`). 200 if a write to the database just succeeded, 503 otherwise. */
  getReadiness(options?: GetReadinessOptions): Promise<Health>;
  /** Report events of mail (`POST /hooks/{provider}/{token}`). For providers, in their own form: SES through SNS, SendGrid, Mailgun, Postmark, Resend, or the documented JSON of `http`. A call must be signed as the account's hook says. 200 means that its events are stored. No key is needed. 401 says that the signature is missing, wrong or too old, and 404 that there is no such hook. */
  reportProviderEvents(provider: string, token: string, body: Uint8Array | string, options?: ReportProviderEventsOptions): Promise<void>;
  /** Show metrics (`GET /metrics`). In Prometheus' text format. No key is needed unless `telemetry.metrics_key` is set: then that one, or the admin key. */
  getMetrics(options?: GetMetricsOptions): Promise<string>;
  /** Show the unsubscribe page (`GET /unsubscribe/{token}`). For the reader of a mail, in the language of the browser. It changes nothing. It needs no key. */
  showUnsubscribe(token: string, options?: ShowUnsubscribeOptions): Promise<string>;
  /** Unsubscribe or resubscribe (`POST /unsubscribe/{token}`). The form says what to do: what a mail program posts by itself (RFC 8058: `List-Unsubscribe=One-Click`), or what the buttons of the page post, `unsubscribe=1` or `undo=1`. Repeating it changes nothing. It needs no key. */
  unsubscribe(token: string, options?: UnsubscribeOptions): Promise<string>;
  /** List accounts (`GET /v1/accounts`). All accounts of your tenant by id, without their secrets, each with its circuit and the use of its limits. */
  listAccounts(options?: ListAccountsOptions): Promise<AccountList>;
  /** Everything that `listAccounts` lists, fetched page by page; `limit` is the size of a page. */
  allAccounts(options?: Omit<ListAccountsOptions, "cursor">): AsyncGenerator<Account, void, undefined>;
  /** Create an account (`POST /v1/accounts`). The settings are checked, but nothing is called: `POST /v1/accounts/{id}/test` tests them. 409 if the id is taken. */
  createAccount(body: AccountRequest, options?: CreateAccountOptions): Promise<Account>;
  /** Show an account (`GET /v1/accounts/{id}`). The account with its current state: whether it is suspended, whether and why its circuit is open, and the use of its limits. */
  getAccount(id: string, options?: GetAccountOptions): Promise<Account>;
  /** Replace an account's settings (`PUT /v1/accounts/{id}`). Absent fields take their defaults; the password or secret key is kept unless a new one is given or the destination changes. With `version`, the change is made only if the account still has that version; 409 otherwise. */
  replaceAccount(id: string, body: AccountRequest, options?: ReplaceAccountOptions): Promise<Account>;
  /** Change an account (`PATCH /v1/accounts/{id}`). Changes the given fields and leaves the others. A change of host, port, region, endpoint, base_url or proxy, and any reduction of TLS protection, requires the password or key again. With `version`, the change is made only if the account still has that version; 409 otherwise. */
  changeAccount(id: string, body: AccountRequest, options?: ChangeAccountOptions): Promise<Account>;
  /** Delete an account (`DELETE /v1/accounts/{id}`). 409 while mail waits for it, while it is its tenant's default, while another account falls back to it, or, unless `force` is set, while a rule forwards through it or a route names it. */
  deleteAccount(id: string, options?: DeleteAccountOptions): Promise<void>;
  /** Activate an account (`POST /v1/accounts/{id}/activate`). Its mail is sent again. */
  activateAccount(id: string, options?: ActivateAccountOptions): Promise<Account>;
  /** Show an account's hook (`GET /v1/accounts/{id}/hook`). Without its token and its secret. */
  getAccountHook(id: string, options?: GetAccountHookOptions): Promise<ProviderHook>;
  /** Create or change an account's hook (`PUT /v1/accounts/{id}/hook`). The address to which the account's provider reports deliveries, bounces, complaints, opens and clicks. A new hook is answered with its `url`, which is shown only once; a change keeps it, unless the provider is another. Secrets that are left out stay. */
  putAccountHook(id: string, body: ProviderHookRequest, options?: PutAccountHookOptions): Promise<ProviderHookWithToken>;
  /** Delete an account's hook (`DELETE /v1/accounts/{id}/hook`). What it reported and was not processed yet is not processed any more. */
  deleteAccountHook(id: string, options?: DeleteAccountHookOptions): Promise<void>;
  /** List what a provider reported (`GET /v1/accounts/{id}/hook/events`). The newest first, kept for at least a week: which message each event was about, and why one was not applied. */
  listAccountHookEvents(id: string, options?: ListAccountHookEventsOptions): Promise<ReportedEventList>;
  /** Everything that `listAccountHookEvents` lists, fetched page by page; `limit` is the size of a page. */
  allAccountHookEvents(id: string, options?: Omit<ListAccountHookEventsOptions, "cursor">): AsyncGenerator<ReportedEvent, void, undefined>;
  /** Replace a hook's URL (`POST /v1/accounts/{id}/hook/rotate`). The new `url` is shown only once. The earlier one stops within a second on every node: give the new one to the provider at once, which repeats what was refused meanwhile. */
  rotateAccountHook(id: string, options?: RotateAccountHookOptions): Promise<ProviderHookWithToken>;
  /** Suspend an account (`POST /v1/accounts/{id}/suspend`). Its mail is not sent, on any node; mail is still accepted. Mail that is being transmitted is finished. */
  suspendAccount(id: string, options?: SuspendAccountOptions): Promise<Account>;
  /** Test an account (`POST /v1/accounts/{id}/test`). Connects, secures and signs in; with `to`, also sends a test mail through the account. The answer is 200 even if a step fails: see `ok`. */
  testAccount(id: string, body?: AccountTestRequest, options?: TestAccountOptions): Promise<AccountTest>;
  /** List the archive (`GET /v1/archive`). Stored copies of what was sent, those of the latest messages first, and how many copies wait. */
  listArchive(options?: ListArchiveOptions): Promise<ArchivedCopyList>;
  /** Everything that `listArchive` lists, fetched page by page; `limit` is the size of a page. */
  allArchive(options?: Omit<ListArchiveOptions, "cursor">): AsyncGenerator<ArchivedCopy, void, undefined>;
  /** Show an archived copy (`GET /v1/archive/{id}`). Where the copy is, and until when. */
  getArchived(id: string, options?: GetArchivedOptions): Promise<ArchivedCopy>;
  /** Delete an archived copy (`DELETE /v1/archive/{id}`). Deletes a copy before its time, for example because a person asks for it. Only an admin may, so that what is archived stays even if a tenant's keys are lost. */
  deleteArchived(id: string, options?: DeleteArchivedOptions): Promise<void>;
  /** Get an archived mail (`GET /v1/archive/{id}/raw`). The mail as it was sent, below fields with its envelope; an encrypted copy is opened. */
  getRawArchived(id: string, options?: GetRawArchivedOptions): Promise<Uint8Array>;
  /** Read the audit log (`GET /v1/audit`). For the admin key and admins of all tenants. Every call that changed a tenant, user, key, account, batch, suppression, template, recipient, signing key, webhook, mailbox, rule or contact, or removed messages, newest first. A page with `actor`, `action` or `target` examines some thousands of entries: as long as there is a `next_cursor`, continue with it, even after a page with fewer entries than requested, or none. With `format=jsonl`, or `Accept: application/x-ndjson`, the complete log is returned as JSON lines. */
  listAudit(options?: ListAuditOptions): Promise<AuditList>;
  /** Everything that `listAudit` lists, fetched page by page; `limit` is the size of a page. */
  allAudit(options?: Omit<ListAuditOptions, "cursor">): AsyncGenerator<AuditEntry, void, undefined>;
  /** Follow the audit log (`GET /v1/audit/lines`). For the admin key and admins of all tenants. The lines after a position, in the order in which they were written, with their digests. With `wait`, an empty answer comes only after that many seconds. With `format=jsonl`, or `Accept: application/x-ndjson`, all lines after the position are returned as JSON lines. */
  followAudit(options?: FollowAuditOptions): Promise<AuditLineList>;
  /** List batches (`GET /v1/batches`). Batches that have had messages, and batches suspended before their first. */
  listBatches(options?: ListBatchesOptions): Promise<BatchList>;
  /** Everything that `listBatches` lists, fetched page by page; `limit` is the size of a page. */
  allBatches(options?: Omit<ListBatchesOptions, "cursor">): AsyncGenerator<Batch, void, undefined>;
  /** Show a batch (`GET /v1/batches/{code}`). The batch, and how many of its messages are in each status. */
  getBatch(code: string, options?: GetBatchOptions): Promise<BatchProgress>;
  /** Activate a batch (`POST /v1/batches/{code}/activate`). Its mail is sent again. */
  activateBatch(code: string, options?: ActivateBatchOptions): Promise<Batch>;
  /** Suspend a batch (`POST /v1/batches/{code}/suspend`). Its mail is not sent, on any node, until the batch is activated. Mail that is being transmitted is finished. The code need not have been used yet. */
  suspendBatch(code: string, options?: SuspendBatchOptions): Promise<Batch>;
  /** List bulk actions (`GET /v1/bulk-actions`). The latest first: those that are running, and those that ended in the last 30 days. */
  listBulkActions(options?: ListBulkActionsOptions): Promise<BulkActionList>;
  /** Everything that `listBulkActions` lists, fetched page by page; `limit` is the size of a page. */
  allBulkActions(options?: Omit<ListBulkActionsOptions, "cursor">): AsyncGenerator<BulkAction, void, undefined>;
  /** Act on many messages (`POST /v1/bulk-actions`). Cancels, retries, reschedules, resolves or suppresses all messages of a filter or a list of ids. The answer comes at once; the server then does it step by step, from the newest message to the oldest, each message at most once, also across a restart. Messages accepted after the request are not touched. A message whose state does not admit the action is left as it is and counted in `skipped`. With `dry_run=true` nothing is done: the answer says how many messages match, and how many of them would change. */
  createBulkAction(body: BulkActionRequest, options?: CreateBulkActionOptions): Promise<BulkAction>;
  /** Show a bulk action (`GET /v1/bulk-actions/{id}`). How far it is. */
  getBulkAction(id: string, options?: GetBulkActionOptions): Promise<BulkAction>;
  /** Stop a bulk action (`POST /v1/bulk-actions/{id}/stop`). Nothing more is done from now on; what was done stays. 409 if it has ended. */
  stopBulkAction(id: string, options?: StopBulkActionOptions): Promise<BulkAction>;
  /** Remove old messages (`POST /v1/cleanup`). Messages that ended and were completely reported more than `older_than_seconds` ago; the tenant's own `report_retention_seconds`, or the gateway's, when absent. Messages whose notifications were given up stay for `unreported_retention_days` at least. A call runs for at most 20 seconds and then says that there is `more`. */
  cleanUp(options?: CleanUpOptions): Promise<Cleanup>;
  /** List contacts (`GET /v1/contacts`). With `name`, only the contact with that name; case and white space do not matter. */
  listContacts(options?: ListContactsOptions): Promise<ContactList>;
  /** Everything that `listContacts` lists, fetched page by page; `limit` is the size of a page. */
  allContacts(options?: Omit<ListContactsOptions, "cursor">): AsyncGenerator<Contact, void, undefined>;
  /** Create a contact (`POST /v1/contacts`). 409 if the id or the name is taken. Case and spacing of names do not matter. */
  createContact(body: ContactRequest, options?: CreateContactOptions): Promise<Contact>;
  /** Show a contact (`GET /v1/contacts/{id}`). One name and its addresses. */
  getContact(id: string, options?: GetContactOptions): Promise<Contact>;
  /** Change a contact (`PATCH /v1/contacts/{id}`). Changes the given fields; `addresses` is replaced as a list. With `version`, the change is made only if the contact still has that version; 409 otherwise. */
  changeContact(id: string, body: ContactRequest, options?: ChangeContactOptions): Promise<Contact>;
  /** Delete a contact (`DELETE /v1/contacts/{id}`). Rules that look up its name find no address from then on; forwarded mail is not affected. */
  deleteContact(id: string, options?: DeleteContactOptions): Promise<void>;
  /** List dead letters (`GET /v1/dead-letters`). Failed messages whose retries are exhausted, newest first, each with its last `reason`, with the filters of `GET /v1/messages` except `status`. */
  listDeadLetters(options?: ListDeadLettersOptions): Promise<MessageList>;
  /** Everything that `listDeadLetters` lists, fetched page by page; `limit` is the size of a page. */
  allDeadLetters(options?: Omit<ListDeadLettersOptions, "cursor">): AsyncGenerator<MessageSummary, void, undefined>;
  /** Replay dead letters (`POST /v1/dead-letters/replay`). Puts failed messages back in the queue with all their retries. A message that cannot be replayed does not stop the others. */
  replayDeadLetters(body: ReplayRequest, options?: ReplayDeadLettersOptions): Promise<ReplayResult>;
  /** List signing keys (`GET /v1/dkim`). All keys of your tenant, each with the DNS record to publish. Private halves are never shown. */
  listSigningKeys(options?: ListSigningKeysOptions): Promise<SigningKeyList>;
  /** Everything that `listSigningKeys` lists, fetched page by page; `limit` is the size of a page. */
  allSigningKeys(options?: Omit<ListSigningKeysOptions, "cursor">): AsyncGenerator<SigningKey, void, undefined>;
  /** Create a signing key (`POST /v1/dkim`). Publish `dns_record` as a TXT record at `dns_name`; receivers cannot verify signatures before. 409 if domain and selector are taken. */
  createSigningKey(body: SigningKeyRequest, options?: CreateSigningKeyOptions): Promise<SigningKey>;
  /** Show a signing key (`GET /v1/dkim/{domain}/{selector}`). One key with the DNS record to publish. Its private half is never shown. */
  getSigningKey(domain: string, selector: string, options?: GetSigningKeyOptions): Promise<SigningKey>;
  /** Delete a signing key (`DELETE /v1/dkim/{domain}/{selector}`). This cannot be undone. Leave its record published for a few days, until the mail it signed has arrived. */
  deleteSigningKey(domain: string, selector: string, options?: DeleteSigningKeyOptions): Promise<void>;
  /** Activate a signing key (`POST /v1/dkim/{domain}/{selector}/activate`). Mail of its domain that is composed from now on is signed with it. Publish its record first. */
  activateSigningKey(domain: string, selector: string, options?: ActivateSigningKeyOptions): Promise<SigningKey>;
  /** Suspend a signing key (`POST /v1/dkim/{domain}/{selector}/suspend`). Mail is sent without its signature; mail composed before keeps it. */
  suspendSigningKey(domain: string, selector: string, options?: SuspendSigningKeyOptions): Promise<SigningKey>;
  /** List domains (`GET /v1/domains`). The domains that you send from: those with signing keys, the one that bounces come back to, and those that you had checked or that others report about. Each with what the last check of its DNS found. */
  listDomains(options?: ListDomainsOptions): Promise<DomainList>;
  /** Everything that `listDomains` lists, fetched page by page; `limit` is the size of a page. */
  allDomains(options?: Omit<ListDomainsOptions, "cursor">): AsyncGenerator<Domain, void, undefined>;
  /** Forget a domain (`DELETE /v1/domains/{domain}`). Removes what its checks found. A domain with signing keys, and the one that bounces come back to, stay in the list. */
  deleteDomain(domain: string, options?: DeleteDomainOptions): Promise<void>;
  /** Check a domain (`POST /v1/domains/{domain}/check`). Asks DNS now for SPF, DKIM, DMARC and MX, and whether MTA-STS and TLS-RPT are announced, and remembers what was found. A domain that only takes bounces is asked for its MX. The check is repeated every six hours from then on. */
  checkDomain(domain: string, options?: CheckDomainOptions): Promise<Domain>;
  /** List reports about a domain (`GET /v1/domains/{domain}/reports`). DMARC aggregate reports and TLS reports that came to mailboxes with the role `domain_reports`, the latest first. They are kept for 400 days. */
  listDomainReports(domain: string, options?: ListDomainReportsOptions): Promise<DomainReportList>;
  /** Everything that `listDomainReports` lists, fetched page by page; `limit` is the size of a page. */
  allDomainReports(domain: string, options?: Omit<ListDomainReportsOptions, "cursor">): AsyncGenerator<DomainReport, void, undefined>;
  /** Sum up the reports about a domain (`GET /v1/domains/{domain}/reports/summary`). Who sends mail in the domain's name, how much of it passes SPF, DKIM and DMARC, day by day, and with which results other servers connect to the domain's own. Each report counts once. Reports whose mail is proven not to be from its sender do not count. */
  summarizeDomainReports(domain: string, options?: SummarizeDomainReportsOptions): Promise<DomainReportSummary>;
  /** Erase an address (`POST /v1/erase`). Removes it from the messages that have ended. Entries of the suppression list and of the recipient directory stay: delete them separately. A call runs for at most 20 seconds and then says that there is `more`. */
  eraseAddress(body: EraseRequest, options?: EraseAddressOptions): Promise<Erasure>;
  /** Read the feed (`GET /v1/events`). The events of your messages, in order. Keep the `cursor` of the last entry you have processed and pass it as `after`. After a crash some entries come again, so compare `uid` and `sequence`. With `wait`, an empty answer comes only after that many seconds. With `Accept: text/event-stream` the entries come as server-sent events, whose `id` is the cursor. */
  readEvents(options?: ReadEventsOptions): Promise<Feed>;
  /** List inbound mail (`GET /v1/inbound`). Newest first. A mail must match every filter. Unknown parameters are refused. */
  listInbound(options?: ListInboundOptions): Promise<InboundList>;
  /** Everything that `listInbound` lists, fetched page by page; `limit` is the size of a page. */
  allInbound(options?: Omit<ListInboundOptions, "cursor">): AsyncGenerator<InboundSummary, void, undefined>;
  /** Replay inbound mail (`POST /v1/inbound/replay`). Settled mail that matches the filter is processed again, with all its tries and the current rules. What was sent because of it is not sent again. At most 1,000 mails at a time; `more` says whether to call again. */
  replayInboundAll(body: InboundReplayRequest, options?: ReplayInboundAllOptions): Promise<InboundReplayed>;
  /** Show an inbound mail (`GET /v1/inbound/{id}`). The mail with what it contained, what was done, and the status of the messages that were sent because of it. */
  getInbound(id: string, options?: GetInboundOptions): Promise<Inbound>;
  /** Download a file of an inbound mail (`GET /v1/inbound/{id}/attachments/{index}`). The bytes of one attachment as they were received, as a download: the answer never opens in a browser. `GET /v1/inbound/{id}/content` lists the files. */
  getInboundAttachment(id: string, index: number, options?: GetInboundAttachmentOptions): Promise<Uint8Array>;
  /** Read an inbound mail (`GET /v1/inbound/{id}/content`). The decoded header fields and text, and the list of attachments. */
  getInboundContent(id: string, options?: GetInboundContentOptions): Promise<MailContent>;
  /** Preview an inbound mail (`GET /v1/inbound/{id}/preview`). The html with its embedded images. It is served so that no script runs and nothing is fetched. */
  previewInbound(id: string, options?: PreviewInboundOptions): Promise<string>;
  /** Get the complete inbound mail (`GET /v1/inbound/{id}/raw`). Its bytes as the server delivered them. 404 if it could not be read, or is no longer stored. */
  getRawInbound(id: string, options?: GetRawInboundOptions): Promise<Uint8Array>;
  /** Replay an inbound mail (`POST /v1/inbound/{id}/replay`). It is processed again, with all its tries and the current rules. What was sent because of it is not sent again. 409 while it is not settled, or if its bytes are gone. */
  replayInbound(id: string, options?: ReplayInboundOptions): Promise<Inbound>;
  /** Resolve an inbound mail (`POST /v1/inbound/{id}/resolve`). Declares that it was dealt with: there are no more reminders of it. */
  resolveInbound(id: string, options?: ResolveInboundOptions): Promise<Inbound>;
  /** List mailboxes (`GET /v1/mailboxes`). All watched mailboxes of your tenant, without their secrets, each with the result of its last scan. */
  listMailboxes(options?: ListMailboxesOptions): Promise<MailboxList>;
  /** Everything that `listMailboxes` lists, fetched page by page; `limit` is the size of a page. */
  allMailboxes(options?: Omit<ListMailboxesOptions, "cursor">): AsyncGenerator<Mailbox, void, undefined>;
  /** Create a mailbox (`POST /v1/mailboxes`). It is watched within seconds. 409 if the id is taken, or another mailbox has the same host, username and folder. */
  createMailbox(body: MailboxRequest, options?: CreateMailboxOptions): Promise<Mailbox>;
  /** Show a mailbox (`GET /v1/mailboxes/{id}`). With how far it was read, how far behind that is, and what is wrong with it. */
  getMailbox(id: string, options?: GetMailboxOptions): Promise<Mailbox>;
  /** Change a mailbox (`PATCH /v1/mailboxes/{id}`). Changes the given fields and leaves the others; `null` resets a setting to its default. With `version`, the change is made only if the mailbox still has that version; 409 otherwise. Another host, username or folder is another mailbox to read: it is read from its `start`. A change of host, port or proxy, and any reduction of TLS protection, requires the password or token again. */
  changeMailbox(id: string, body: MailboxRequest, options?: ChangeMailboxOptions): Promise<Mailbox>;
  /** Delete a mailbox (`DELETE /v1/mailboxes/{id}`). With its rules, and everything stored about its mail. The mail on its server is not touched. */
  deleteMailbox(id: string, options?: DeleteMailboxOptions): Promise<void>;
  /** Activate a mailbox (`POST /v1/mailboxes/{id}/activate`). Reading continues where it ended: mail that arrived meanwhile is not missed. */
  activateMailbox(id: string, options?: ActivateMailboxOptions): Promise<Mailbox>;
  /** Suspend a mailbox (`POST /v1/mailboxes/{id}/suspend`). Nothing new is read from it. Mail that was read before is still processed. */
  suspendMailbox(id: string, options?: SuspendMailboxOptions): Promise<Mailbox>;
  /** Test a mailbox (`POST /v1/mailboxes/{id}/test`). Connects, secures, signs in and opens the folder. The answer is 200 even if a step fails: see `ok`. */
  testMailbox(id: string, options?: TestMailboxOptions): Promise<MailboxTest>;
  /** List messages (`GET /v1/messages`). Newest first. A message must match every filter. Unknown parameters are refused. A page examines some thousands of messages at most, or the texts of about a million: as long as there is a `next_cursor`, continue with it, even after a page with fewer messages than requested, or none. `searched_since` then says how far back the search went. */
  listMessages(options?: ListMessagesOptions): Promise<MessageList>;
  /** Everything that `listMessages` lists, fetched page by page; `limit` is the size of a page. */
  allMessages(options?: Omit<ListMessagesOptions, "cursor">): AsyncGenerator<MessageSummary, void, undefined>;
  /** Send a mail (`POST /v1/messages`). The answer comes once the mail is durable. The same id or `Idempotency-Key` with the same body gives the same answer again and sends nothing twice; with another body it is 409. A ready-made mail may be sent as `message/rfc822`, with the query of `POST /v1/messages/raw`. */
  sendMessage(body: MessageRequest, options?: SendMessageOptions): Promise<Receipt>;
  /** Send many mails (`POST /v1/messages/batch`). At most 1,000, whose composed mails have at most 64 MiB together. `defaults` supplies fields that a message leaves out. A refused message does not stop the others. */
  sendBatch(body: BatchRequest, options?: SendBatchOptions): Promise<BatchResult>;
  /** Send a ready-made mail (`POST /v1/messages/raw`). The body is an RFC 5322 mail. It is sent unchanged except for the headers that every mail of Postway carries. Sender and recipients are those in its headers, unless the query names others. */
  sendRawMessage(body: Uint8Array | string, options?: SendRawMessageOptions): Promise<Receipt>;
  /** Show a message (`GET /v1/messages/{id}`). Its status, its recipients with their outcomes, and its attempts. 404 once it was removed. */
  getMessage(id: string, options?: GetMessageOptions): Promise<Message>;
  /** Download a file of the mail (`GET /v1/messages/{id}/attachments/{index}`). The bytes of one attachment, as a download: the answer never opens in a browser. `GET /v1/messages/{id}/content` lists the files. 403 for a sensitive message. */
  getMessageAttachment(id: string, index: number, options?: GetMessageAttachmentOptions): Promise<Uint8Array>;
  /** Cancel a message (`POST /v1/messages/{id}/cancel`). Stops a message that is not being transmitted yet; 409 otherwise. If some recipients already have it, it stays `sent`, or `in_doubt` if they may have it, and is not sent to the others. */
  cancelMessage(id: string, options?: CancelMessageOptions): Promise<SettledMessage>;
  /** Read the mail (`GET /v1/messages/{id}/content`). The decoded header fields and text, and the list of attachments. */
  getMessageContent(id: string, options?: GetMessageContentOptions): Promise<MailContent>;
  /** Show a message's history (`GET /v1/messages/{id}/events`). Its events, oldest first. */
  getMessageEvents(id: string, options?: GetMessageEventsOptions): Promise<EventList>;
  /** Everything that `getMessageEvents` lists, fetched page by page; `limit` is the size of a page. */
  allMessageEvents(id: string, options?: Omit<GetMessageEventsOptions, "cursor">): AsyncGenerator<Event, void, undefined>;
  /** Explain what a message waits for (`GET /v1/messages/{id}/explain`). Every gate that is closed for it now: a suspension of its tenant, batch or account, a used-up limit, an open circuit, a busy destination, its schedule, its next retry, a doubt, an isolated node, its turn. */
  explainMessage(id: string, options?: ExplainMessageOptions): Promise<Explanation>;
  /** Get the submitted request (`GET /v1/messages/{id}/payload`). The request as it was received, for as long as the message is kept: JSON, or the ready-made mail. For a message of a batch, the message alone. 403 for a sensitive message. */
  getMessagePayload(id: string, options?: GetMessagePayloadOptions): Promise<Uint8Array>;
  /** List a message's receipts (`GET /v1/messages/{id}/pec`). Receipts of certified mail (PEC): acceptance, delivery, failure. `/pec/export` returns them as evidence. */
  listPecReceipts(id: string, options?: ListPecReceiptsOptions): Promise<PecReceiptList>;
  /** Everything that `listPecReceipts` lists, fetched page by page; `limit` is the size of a page. */
  allPecReceipts(id: string, options?: Omit<ListPecReceiptsOptions, "cursor">): AsyncGenerator<PecReceipt, void, undefined>;
  /** Export a message's receipts (`GET /v1/messages/{id}/pec/export`). A zip file with the mail as it was sent, each receipt as it was received, and a manifest with times, signatures and SHA-256 digests. 413 if they have more than 96 MiB together: `/v1/inbound/{id}/raw` returns each receipt by itself. 403 for a sensitive message. */
  exportPecReceipts(id: string, options?: ExportPecReceiptsOptions): Promise<Uint8Array>;
  /** Preview the mail (`GET /v1/messages/{id}/preview`). The html with its embedded images. It is served so that no script runs and nothing is fetched. */
  previewMessage(id: string, options?: PreviewMessageOptions): Promise<string>;
  /** Get the complete mail (`GET /v1/messages/{id}/raw`). The RFC 5322 bytes as they are sent. Bcc is never among the headers. 404 while the mail is not composed yet, 403 for a sensitive message. */
  getRawMessage(id: string, options?: GetRawMessageOptions): Promise<Uint8Array>;
  /** Reschedule a message (`POST /v1/messages/{id}/reschedule`). For a message that waits for its `send_at`; 409 in any other state. A time in the past means now. */
  rescheduleMessage(id: string, body: RescheduleRequest, options?: RescheduleMessageOptions): Promise<SettledMessage>;
  /** Resolve a message in doubt (`POST /v1/messages/{id}/resolve`). The mail was transmitted and the relay's answer was lost. Declare it `sent` or `failed`, or `resend` it. This applies to the recipients in doubt; the message is sent to recipients that are still open. */
  resolveMessage(id: string, body: ResolveRequest, options?: ResolveMessageOptions): Promise<SettledMessage>;
  /** Send a message now (`POST /v1/messages/{id}/retry`). Puts a failed message back in the queue with all its retries, for the recipients that failed. The files of an invalid message are fetched again. A message that waits for its next attempt or its `send_at` becomes due now. 409 in any other state. */
  retryMessage(id: string, options?: RetryMessageOptions): Promise<SettledMessage>;
  /** List nodes (`GET /v1/nodes`). For the admin key. The oldest first. */
  listNodes(options?: ListNodesOptions): Promise<NodeList>;
  /** Everything that `listNodes` lists, fetched page by page; `limit` is the size of a page. */
  allNodes(options?: Omit<ListNodesOptions, "cursor">): AsyncGenerator<Node, void, undefined>;
  /** List outbox sources (`GET /v1/outbox`). All of them for the admin key, a tenant's own for its keys. */
  listOutboxSources(options?: ListOutboxSourcesOptions): Promise<OutboxSourceList>;
  /** Everything that `listOutboxSources` lists, fetched page by page; `limit` is the size of a page. */
  allOutboxSources(options?: Omit<ListOutboxSourcesOptions, "cursor">): AsyncGenerator<OutboxSource, void, undefined>;
  /** Show the overview (`GET /v1/overview`). Rates, the queue, times in queue, failures, and what is blocked. With `Accept: text/event-stream` a new overview comes every two seconds. */
  getOverview(options?: GetOverviewOptions): Promise<Overview>;
  /** List recipients (`GET /v1/recipients`). Recipients that are not deleted. A recipient must match every filter. */
  listRecipients(options?: ListRecipientsOptions): Promise<RecipientList>;
  /** Everything that `listRecipients` lists, fetched page by page; `limit` is the size of a page. */
  allRecipients(options?: Omit<ListRecipientsOptions, "cursor">): AsyncGenerator<KnownRecipient, void, undefined>;
  /** Create a recipient (`POST /v1/recipients`). 409 if the external id is taken. */
  createRecipient(body: RecipientRequest, options?: CreateRecipientOptions): Promise<KnownRecipient>;
  /** Show a recipient (`GET /v1/recipients/{id}`). A deleted recipient has `deleted_at`; it is found by its id, and by yours until another one has it. */
  getRecipient(id: string, options?: GetRecipientOptions): Promise<KnownRecipient>;
  /** Change a recipient (`PATCH /v1/recipients/{id}`). Changes the given fields; `null` removes external id, name, language or personal number. With `version`, the change is made only if the recipient still has that version; 409 otherwise. */
  changeRecipient(id: string, body: RecipientRequest, options?: ChangeRecipientOptions): Promise<KnownRecipient>;
  /** Delete a recipient (`DELETE /v1/recipients/{id}`). Messages that name it are refused from now on, and waiting ones are not sent. Its external id is free again. */
  deleteRecipient(id: string, options?: DeleteRecipientOptions): Promise<void>;
  /** List routes (`GET /v1/routes`). The routes of your tenant in the order in which they apply: by position, then by id. */
  listRoutes(options?: ListRoutesOptions): Promise<RouteList>;
  /** Everything that `listRoutes` lists, fetched page by page; `limit` is the size of a page. */
  allRoutes(options?: Omit<ListRoutesOptions, "cursor">): AsyncGenerator<Route, void, undefined>;
  /** Create a route (`POST /v1/routes`). It applies to mail that is accepted from now on and names no account. 409 if the id is taken, or your tenant has the maximum number of routes. */
  createRoute(body: RouteRequest, options?: CreateRouteOptions): Promise<Route>;
  /** Order routes (`POST /v1/routes/order`). Gives the routes the positions 1, 2, … in this order. 409 if they are not all of your tenant's routes: read them again, because others changed them. */
  orderRoutes(body: RouteOrderRequest, options?: OrderRoutesOptions): Promise<RouteList>;
  /** Try the routes (`POST /v1/routes/try`). Returns which route a message without `account` would match, and which accounts it would choose from. Nothing is stored. */
  tryRoutes(body: RouteTrialRequest, options?: TryRoutesOptions): Promise<RouteTrial>;
  /** Show a route (`GET /v1/routes/{id}`). Its conditions, and the accounts it chooses from. */
  getRoute(id: string, options?: GetRouteOptions): Promise<Route>;
  /** Change a route (`PATCH /v1/routes/{id}`). Changes the given fields and leaves the others; `match` and `accounts` are replaced as a whole. It applies to mail that is accepted from now on. With `version`, the change is made only if the route still has that version; 409 otherwise. */
  changeRoute(id: string, body: RouteRequest, options?: ChangeRouteOptions): Promise<Route>;
  /** Delete a route (`DELETE /v1/routes/{id}`). Its mail is then routed by the routes after it, or sent by the default account. Mail that was accepted before keeps its account. */
  deleteRoute(id: string, options?: DeleteRouteOptions): Promise<void>;
  /** List rules (`GET /v1/rules`). In the order of evaluation, mailbox by mailbox. */
  listRules(options?: ListRulesOptions): Promise<RuleList>;
  /** Everything that `listRules` lists, fetched page by page; `limit` is the size of a page. */
  allRules(options?: Omit<ListRulesOptions, "cursor">): AsyncGenerator<Rule, void, undefined>;
  /** Create a rule (`POST /v1/rules`). Without a `position` it is evaluated last. It applies to mail that is processed from now on. */
  createRule(body: RuleRequest, options?: CreateRuleOptions): Promise<Rule>;
  /** Test a rule (`POST /v1/rules/dry-run`). Returns whether its conditions match a mail, what its patterns capture, and what would be done. Nothing is done. */
  tryRule(body: TrialRequest, options?: TryRuleOptions): Promise<RuleTrial>;
  /** Show a rule (`GET /v1/rules/{id}`). One rule with its conditions and actions. */
  getRule(id: string, options?: GetRuleOptions): Promise<Rule>;
  /** Change a rule (`PATCH /v1/rules/{id}`). Changes the given fields and leaves the others; `match` and `actions` are replaced as lists. With `version`, the change is made only if the rule still has that version; 409 otherwise. */
  changeRule(id: string, body: RuleRequest, options?: ChangeRuleOptions): Promise<Rule>;
  /** Delete a rule (`DELETE /v1/rules/{id}`). Its reminders end. Mail that it forwarded is not affected. */
  deleteRule(id: string, options?: DeleteRuleOptions): Promise<void>;
  /** List scoped suppressions (`GET /v1/scoped-suppressions`). Those of your tenant, or of the complete installation, without expired ones. */
  listScopedSuppressions(options?: ListScopedSuppressionsOptions): Promise<ScopedSuppressionList>;
  /** Everything that `listScopedSuppressions` lists, fetched page by page; `limit` is the size of a page. */
  allScopedSuppressions(options?: Omit<ListScopedSuppressionsOptions, "cursor">): AsyncGenerator<ScopedSuppression, void, undefined>;
  /** Suppress a part of the mail (`POST /v1/scoped-suppressions`). To an address or a pattern of addresses, of one stream or of all. An existing suppression is renewed. To suppress all mail of your tenant to one address, use `POST /v1/suppressions`. */
  createScopedSuppression(body: ScopedSuppressionRequest, options?: CreateScopedSuppressionOptions): Promise<ScopedSuppression>;
  /** Stop suppressing a part of the mail (`DELETE /v1/scoped-suppressions/{pattern}`). 404 if there is no such suppression: pattern, stream and `installation` must be the same. */
  deleteScopedSuppression(pattern: string, options?: DeleteScopedSuppressionOptions): Promise<void>;
  /** Re-encrypt stored secrets (`POST /v1/secrets/rotate`). For the admin key. Call this after `POSTWAY_SECRET_KEY` was changed, with the old key in `POSTWAY_SECRET_KEY_PREVIOUS`, on every node. Once nothing is `unreadable` or `busy`, the previous key is needed only for links, codes and return paths that were created under it and are still in use. */
  rotateSecrets(options?: RotateSecretsOptions): Promise<Rotation>;
  /** Show account statistics (`GET /v1/statistics`). Counts by account and hour or day, including messages that were removed since. An event counts in the hour in which it happened. */
  getStatistics(options?: GetStatisticsOptions): Promise<Statistics>;
  /** Everything that `getStatistics` lists, fetched page by page; `limit` is the size of a page. */
  allStatistics(options?: Omit<GetStatisticsOptions, "cursor">): AsyncGenerator<StatisticsRow, void, undefined>;
  /** Show queue statistics (`GET /v1/stats`). How many messages are in each status now, the age of the oldest waiting ones, and current rates. `GET /v1/statistics` has the past. */
  getStats(options?: GetStatsOptions): Promise<Stats>;
  /** List streams (`GET /v1/streams`). The streams of your tenant, by id. */
  listStreams(options?: ListStreamsOptions): Promise<StreamList>;
  /** Everything that `listStreams` lists, fetched page by page; `limit` is the size of a page. */
  allStreams(options?: Omit<ListStreamsOptions, "cursor">): AsyncGenerator<Stream, void, undefined>;
  /** Create a stream (`POST /v1/streams`). 409 if the id is taken, or your tenant has the maximum number of streams. */
  createStream(body: StreamRequest, options?: CreateStreamOptions): Promise<Stream>;
  /** Show a stream (`GET /v1/streams/{id}`). The stream, and whether readers can unsubscribe from it. */
  getStream(id: string, options?: GetStreamOptions): Promise<Stream>;
  /** Change a stream (`PATCH /v1/streams/{id}`). Changes the given fields. With `version`, the change is made only if the stream still has that version; 409 otherwise. */
  changeStream(id: string, body: StreamRequest, options?: ChangeStreamOptions): Promise<Stream>;
  /** Delete a stream (`DELETE /v1/streams/{id}`). From then on its mail belongs to an ordinary batch of that name. Readers who unsubscribed still get no mail under its name. */
  deleteStream(id: string, options?: DeleteStreamOptions): Promise<void>;
  /** Show stream statistics (`GET /v1/streams/{id}/statistics`). Counts and rates of a stream by hour or day, including messages that were removed since. An event counts in the hour in which it happened. */
  getStreamStatistics(id: string, options?: GetStreamStatisticsOptions): Promise<StreamStatistics>;
  /** List suppressed addresses (`GET /v1/suppressions`). Addresses that get no mail of your tenant, in alphabetical order, without expired entries. */
  listSuppressions(options?: ListSuppressionsOptions): Promise<SuppressionList>;
  /** Everything that `listSuppressions` lists, fetched page by page; `limit` is the size of a page. */
  allSuppressions(options?: Omit<ListSuppressionsOptions, "cursor">): AsyncGenerator<Suppression, void, undefined>;
  /** Suppress addresses (`POST /v1/suppressions`). One as `address`, answered with its entry, or up to 1,000 as `addresses`, answered with a list. An address that is already suppressed is renewed. */
  createSuppression(body: SuppressionRequest, options?: CreateSuppressionOptions): Promise<Suppressed>;
  /** Export suppressed addresses (`GET /v1/suppressions/export`). The complete list as CSV with the columns `address,reason,note,created_at,expires_at`. */
  exportSuppressions(options?: ExportSuppressionsOptions): Promise<string>;
  /** Import suppressed addresses (`POST /v1/suppressions/import`). A file of up to 16 MiB: CSV (`text/csv`) with the columns of an export, named in the first line or else `address,reason,note,expires_at`, or JSON lines (`application/x-ndjson`) with an object or an address each. A line has at most 64 KiB, and 32 columns or 100 values. A faulty line is skipped, and the answer lists it by its number. `application/octet-stream` is read as CSV, unless `format` says otherwise. */
  importSuppressions(body: Uint8Array | string, options?: ImportSuppressionsOptions): Promise<ImportResult>;
  /** Check an address (`GET /v1/suppressions/{address}`). 200 with the entry if it is suppressed, 404 if it is not. */
  getSuppression(address: string, options?: GetSuppressionOptions): Promise<Suppression>;
  /** Change a suppression (`PATCH /v1/suppressions/{address}`). Changes `reason`, `note` and `expires_at` as given; `null` removes note and expiry. */
  changeSuppression(address: string, body: SuppressionChange, options?: ChangeSuppressionOptions): Promise<Suppression>;
  /** Stop suppressing an address (`DELETE /v1/suppressions/{address}`). Mail to it is sent again from now on. 404 if it is not on the list. */
  deleteSuppression(address: string, options?: DeleteSuppressionOptions): Promise<void>;
  /** List templates (`GET /v1/templates`). The latest version of each, without html and text. */
  listTemplates(options?: ListTemplatesOptions): Promise<TemplateList>;
  /** Everything that `listTemplates` lists, fetched page by page; `limit` is the size of a page. */
  allTemplates(options?: Omit<ListTemplatesOptions, "cursor">): AsyncGenerator<TemplateSummary, void, undefined>;
  /** Create a template (`POST /v1/templates`). As version 1; 409 if the name is taken. */
  createTemplate(body: TemplateRequest, options?: CreateTemplateOptions): Promise<Template>;
  /** Preview a template that is not stored (`POST /v1/templates/preview`). A template as for `POST /v1/templates`, without a required name, and `variables`. It may extend and include stored templates. Nothing is stored. */
  previewSource(body: SourcePreviewRequest, options?: PreviewSourceOptions): Promise<Preview>;
  /** Show a template (`GET /v1/templates/{name}`). The sources of the latest version, or of the requested one. */
  getTemplate(name: string, options?: GetTemplateOptions): Promise<Template>;
  /** Create the next version of a template (`PUT /v1/templates/{name}`). The first if the template does not exist. If the body equals the latest version, nothing is created and the answer is 200 with that version. With `version`, the change is made only if that is still the latest; 409 otherwise. */
  putTemplate(name: string, body: TemplateRequest, options?: PutTemplateOptions): Promise<Template>;
  /** Delete a template (`DELETE /v1/templates/{name}`). All its versions. Messages accepted with it that are not composed yet become `invalid`. */
  deleteTemplate(name: string, options?: DeleteTemplateOptions): Promise<void>;
  /** Preview a template (`POST /v1/templates/{name}/preview`). Renders it with `variables`, or with its `sample` if none are given, in the language that a message with this `locale` would get. `warnings` lists why such a message would be refused; a missing variable is 422 and named. */
  previewTemplate(name: string, body: PreviewRequest, options?: PreviewTemplateOptions): Promise<Preview>;
  /** Send a test of a template (`POST /v1/templates/{name}/test`). One mail to the addresses in `to` and nobody else, rendered with `variables`, or with the template's `sample` if none are given. Its subject begins with `[Test]`, and it has the tag `test`. */
  sendTemplateTest(name: string, body: TemplateTestRequest, options?: SendTemplateTestOptions): Promise<Receipt>;
  /** List a template's versions (`GET /v1/templates/{name}/versions`). The latest first, without html and text. Beyond 1,000 versions the oldest are removed. */
  listTemplateVersions(name: string, options?: ListTemplateVersionsOptions): Promise<TemplateList>;
  /** Everything that `listTemplateVersions` lists, fetched page by page; `limit` is the size of a page. */
  allTemplateVersions(name: string, options?: Omit<ListTemplateVersionsOptions, "cursor">): AsyncGenerator<TemplateSummary, void, undefined>;
  /** Show your tenant (`GET /v1/tenant`). The settings of the tenant that the key belongs to; an admin key names one with `X-Tenant`. Only the admin key changes them. */
  getOwnTenant(options?: GetOwnTenantOptions): Promise<Tenant>;
  /** List tenants (`GET /v1/tenants`). All tenants with their settings, without secrets. For the admin key. */
  listTenants(options?: ListTenantsOptions): Promise<TenantList>;
  /** Everything that `listTenants` lists, fetched page by page; `limit` is the size of a page. */
  allTenants(options?: Omit<ListTenantsOptions, "cursor">): AsyncGenerator<Tenant, void, undefined>;
  /** Create a tenant (`POST /v1/tenants`). It has a `sandbox` account as its default, which captures mail instead of sending it. 409 for an id that is or was in use. */
  createTenant(body: TenantRequest, options?: CreateTenantOptions): Promise<Tenant>;
  /** Show a tenant (`GET /v1/tenants/{id}`). One tenant with its settings, without secrets. For the admin key. */
  getTenant(id: string, options?: GetTenantOptions): Promise<Tenant>;
  /** Change a tenant (`PATCH /v1/tenants/{id}`). Merges the given fields into the tenant: `null` resets a setting to its default; a token or password that is not given stays. With `version`, the change is made only if the tenant still has that version; 409 otherwise. */
  changeTenant(id: string, body: TenantRequest, options?: ChangeTenantOptions): Promise<Tenant>;
  /** Delete a tenant (`DELETE /v1/tenants/{id}`). With everything it has: mail, accounts, keys, suppressions. Confirm by repeating its id in `confirm`. It cannot be undone. The tenant `default` cannot be deleted. */
  deleteTenant(id: string, options: DeleteTenantOptions): Promise<void>;
  /** Activate a tenant (`POST /v1/tenants/{id}/activate`). Its mail is sent again. */
  activateTenant(id: string, options?: ActivateTenantOptions): Promise<Tenant>;
  /** List keys (`GET /v1/tenants/{id}/keys`). Without the keys themselves. */
  listKeys(id: string, options?: ListKeysOptions): Promise<KeyList>;
  /** Everything that `listKeys` lists, fetched page by page; `limit` is the size of a page. */
  allKeys(id: string, options?: Omit<ListKeysOptions, "cursor">): AsyncGenerator<Key, void, undefined>;
  /** Create a key (`POST /v1/tenants/{id}/keys`). The answer contains the key, which is shown only once. */
  createKey(id: string, body: KeyRequest, options?: CreateKeyOptions): Promise<NewKeyView>;
  /** Revoke a key (`DELETE /v1/tenants/{id}/keys/{key_id}`). It stops working: here at once, on other nodes within five seconds. */
  revokeKey(id: string, key_id: string, options?: RevokeKeyOptions): Promise<void>;
  /** Suspend a tenant (`POST /v1/tenants/{id}/suspend`). None of its mail is sent, on any node; mail is still accepted. Mail that is being transmitted is finished. */
  suspendTenant(id: string, options?: SuspendTenantOptions): Promise<Tenant>;
  /** Verify a token (`POST /v1/tokens/verify`). For tokens of an outbox with accounts. The answer is 200 even if the token is not valid: see `valid`. 429 if you ask too often. */
  verifyToken(body: VerifyToken, options?: VerifyTokenOptions): Promise<VerifiedToken>;
  /** List users (`GET /v1/users`). For admins: the users whose tenants are among your own, by name. */
  listUsers(options?: ListUsersOptions): Promise<UserList>;
  /** Everything that `listUsers` lists, fetched page by page; `limit` is the size of a page. */
  allUsers(options?: Omit<ListUsersOptions, "cursor">): AsyncGenerator<User, void, undefined>;
  /** Create a user (`POST /v1/users`). For admins, each for its own tenants. The user signs in at the provider, or with an invitation, which `POST /v1/users/{name}/invitation` makes. 409 if the name is taken. */
  createUser(body: UserRequest, options?: CreateUserOptions): Promise<User>;
  /** Show a user (`GET /v1/users/{name}`). For admins: role, tenants, and the ways in which the user can sign in; never a secret. */
  getUser(name: string, options?: GetUserOptions): Promise<User>;
  /** Change a user (`PATCH /v1/users/{name}`). Changes the given fields: here at once, on other nodes within seconds, also for sessions that go on. With `version`, the change is made only if the user still has that version; 409 otherwise, and for the last user who may do everything. Nobody changes their own role, tenants or rights: 403. */
  changeUser(name: string, body: UserRequest, options?: ChangeUserOptions): Promise<User>;
  /** Delete a user (`DELETE /v1/users/{name}`). Its sessions end: here at once, on other nodes within seconds. The audit log and the histories of messages keep its name. 409 for the last user who may do everything, 403 for yourself. */
  deleteUser(name: string, options?: DeleteUserOptions): Promise<void>;
  /** Invite a user (`POST /v1/users/{name}/invitation`). For admins. Whoever has the invitation sets a new password and authenticator app for the user, and ends its sessions: pass it on in private. It works once and for seven days, and earlier ones stop working. */
  inviteUser(name: string, options?: InviteUserOptions): Promise<Invitation>;
  /** List a user's sessions (`GET /v1/users/{name}/sessions`). For admins: where the user is signed in. */
  listUserSessions(name: string, options?: ListUserSessionsOptions): Promise<UserSessionList>;
  /** End a user's sessions (`DELETE /v1/users/{name}/sessions`). For admins: signs the user out everywhere, here at once, on other nodes within seconds. */
  endUserSessions(name: string, options?: EndUserSessionsOptions): Promise<void>;
  /** List webhooks (`GET /v1/webhooks`). The tenant's own `client_sync` is among them, if it has one. */
  listWebhooks(options?: ListWebhooksOptions): Promise<WebhookList>;
  /** Everything that `listWebhooks` lists, fetched page by page; `limit` is the size of a page. */
  allWebhooks(options?: Omit<ListWebhooksOptions, "cursor">): AsyncGenerator<Webhook, void, undefined>;
  /** Create a webhook (`POST /v1/webhooks`). The secret in the answer is shown only once: it verifies that a call is ours. 409 if there are 100 already. */
  createWebhook(body: WebhookRequest, options?: CreateWebhookOptions): Promise<WebhookWithSecret>;
  /** Show a webhook (`GET /v1/webhooks/{id}`). One webhook, without its secrets. */
  getWebhook(id: string, options?: GetWebhookOptions): Promise<Webhook>;
  /** Change a webhook (`PATCH /v1/webhooks/{id}`). Changes the given fields and leaves the others. With `version`, the change is made only if the webhook still has that version; 409 otherwise. Activating it clears `disabled_reason`, and pending notifications are delivered. */
  changeWebhook(id: string, body: WebhookRequest, options?: ChangeWebhookOptions): Promise<Webhook>;
  /** Delete a webhook (`DELETE /v1/webhooks/{id}`). With its pending notifications. */
  deleteWebhook(id: string, options?: DeleteWebhookOptions): Promise<void>;
  /** List a webhook's deliveries (`GET /v1/webhooks/{id}/deliveries`). Delivered and pending notifications, those of the newest messages first, each with its latest call. */
  listDeliveries(id: string, options?: ListDeliveriesOptions): Promise<DeliveryList>;
  /** Everything that `listDeliveries` lists, fetched page by page; `limit` is the size of a page. */
  allDeliveries(id: string, options?: Omit<ListDeliveriesOptions, "cursor">): AsyncGenerator<Delivery, void, undefined>;
  /** Repeat a delivery (`POST /v1/webhooks/{id}/deliveries/{uid}/{sequence}/resend`). For a notification that was acknowledged or given up. It is delivered as soon as possible, under the same `webhook-id`. 409 while it is still pending, and while the webhook is inactive. */
  resendDelivery(id: string, uid: string, sequence: number, options?: ResendDeliveryOptions): Promise<Delivery>;
  /** Repeat missed deliveries (`POST /v1/webhooks/{id}/resend`). All notifications created in that time that are `dead`, or with `"which":"all"` all that are settled. They are delivered as soon as the webhook accepts calls, in order for each message, each under its own `webhook-id`. Pending ones are not changed, so a call may be repeated. A call runs for at most 20 seconds and then returns a `next_cursor`. 409 while the webhook is inactive. */
  resendDeliveries(id: string, body: ResendDeliveriesRequest, options?: ResendDeliveriesOptions): Promise<ResentDeliveries>;
  /** Rotate a webhook's secret (`POST /v1/webhooks/{id}/rotate`). Calls are signed with the new and the earlier secrets for a day, at most three at a time, so that you can replace it meanwhile. The new secret is shown only once. */
  rotateWebhookSecret(id: string, options?: RotateWebhookSecretOptions): Promise<WebhookWithSecret>;
  /** Test a webhook (`POST /v1/webhooks/{id}/test`). Calls it once with an event of the type `webhook.test`. The answer is 200 even if the call fails: see `ok`. */
  testWebhook(id: string, options?: TestWebhookOptions): Promise<WebhookTest>;
}
