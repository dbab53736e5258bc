// Every body and call of the API. Made by clients/make of the OpenAPI document. Do not edit.

/** An account. */
export interface Account {
  /** Its id. */
  id: string;
  /** Whose it is. */
  tenant: string;
  /** `smtp`, `ses`, a provider (`sendgrid`, `mailgun`, `postmark`, `resend`, `graph`, `gmail`), `http` or `sandbox`. */
  kind: "smtp" | "ses" | "sendgrid" | "mailgun" | "postmark" | "resend" | "graph" | "gmail" | "http" | "sandbox";
  /** The relay's host name or address. */
  host?: string | null;
  /** The relay's port. */
  port?: number | null;
  /** `starttls`, `implicit`, `none` or `opportunistic`. */
  tls: "starttls" | "implicit" | "none" | "opportunistic";
  /** Who signs in. */
  username?: string | null;
  /** Whether there is a password; it is never shown. */
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
  /** SES: whether there is a secret half; it is never shown. */
  secret_access_key_set: boolean;
  /** SES: the configuration set that every mail names. */
  configuration_set?: string | null;
  /** SES: where to call instead of the region's own endpoint. */
  endpoint?: string | null;
  /** Providers: whether there is an API key; it is never shown. */
  api_key_set: boolean;
  /** Providers: where to call instead of the provider's own address; the address of an `http` account. */
  base_url?: string | null;
  /** Mailgun: the sending domain. */
  domain?: string | null;
  /** Postmark: the message stream. */
  message_stream?: string | null;
  /** The most connections at once, per node. */
  max_connections: number;
  /** The envelope sender, when it is not the mail's From. */
  return_path?: string | null;
  /** The account that sends its mail while its circuit is open or its day is used up. */
  fallback?: string | null;
  /** Certified mail. */
  pec: boolean;
  /** What becomes of mail in doubt that says nothing of it; null where the tenant decides. */
  on_doubt?: "resend" | "hold" | null;
  /** How much it may send; 0 means no limit. */
  limits: Limits;
  warm_up?: WarmUp | null;
  /** How much receiving domains are sent, per node, where it is not what is built in; `*` stands for all others. */
  destinations: Record<string, DestinationLimit>;
  /** When to try again. */
  retry: Retry;
  /** Whether somebody has suspended it. */
  suspended: boolean;
  circuit?: Circuit | null;
  used?: Used | null;
  /** Rises with each change. */
  version: number;
  /** When it was made. */
  created_at: string;
  /** When it was changed last. */
  updated_at: string;
}

/** A tenant's accounts. */
export interface AccountList {
  /** By id. */
  data: Array<Account>;
  /** Give this as `cursor` for the next; null at the end. */
  next_cursor?: string | null;
}

/** An account to make or change. Unknown fields are refused. */
export interface AccountRequest {
  /** Its id, unique in your tenant; needed when it is made, and fixed then. */
  id?: string | null;
  /** `smtp` (default), `ses`, `sendgrid`, `mailgun`, `postmark`, `resend`, `graph`, `gmail`, `http`, or `sandbox`, which captures mail instead of sending it. */
  kind?: "smtp" | "ses" | "sendgrid" | "mailgun" | "postmark" | "resend" | "graph" | "gmail" | "http" | "sandbox";
  /** The relay's host name or address. Private ones can be set with the admin key alone. */
  host?: string | null;
  /** The relay's port. */
  port?: number | null;
  /** `starttls` (default), `implicit`, `none` or `opportunistic`. */
  tls?: "starttls" | "implicit" | "none" | "opportunistic" | null;
  /** Who signs in; the mailbox that sends by Graph or Gmail. */
  username?: string | null;
  /** The password: encrypted at rest, never shown again. `null` removes it. */
  password?: string | null;
  /** In the place of a password, how it comes by the tokens that it signs in with (XOAUTH2, OAUTHBEARER). `null` removes it. */
  oauth?: OAuthRequest | null;
  /** Whether the password may cross a connection without TLS. */
  allow_plaintext_auth?: boolean | null;
  /** More certificate authorities to trust, in PEM form. */
  ca_pem?: string | null;
  /** SES: the AWS region. */
  region?: string | null;
  /** SES: the public half of the key. Without one the server's own AWS key signs, if the admin key made the account. */
  access_key_id?: string | null;
  /** SES: the secret half: encrypted at rest, never shown again. `null` removes it. */
  secret_access_key?: string | null;
  /** SES: the configuration set that every mail names. */
  configuration_set?: string | null;
  /** SES: scheme, host and port to call instead of the region's own endpoint. */
  endpoint?: string | null;
  /** SendGrid, Mailgun, Postmark, Resend, and optionally `http`: the key of the API: encrypted at rest, never shown again. */
  api_key?: string | null;
  /** Providers: scheme, host and port to call instead of the provider's own; for `http` the whole address to post to. */
  base_url?: string | null;
  /** Mailgun: the sending domain. */
  domain?: string | null;
  /** Postmark: the message stream; `outbound` when absent. */
  message_stream?: string | null;
  /** The most connections at once, per node, 1 to 500. */
  max_connections?: number | null;
  /** The envelope sender, when it is not the mail's From. */
  return_path?: string | null;
  /** The account that sends its mail while its circuit is open or its day is used up. */
  fallback?: string | null;
  /** Certified mail. */
  pec?: boolean | null;
  /** What becomes of mail in doubt that says nothing of it: `resend`, or `hold`, which never sends twice. As the tenant says when absent. */
  on_doubt?: "resend" | "hold" | null;
  /** How much it may send; 0 means no limit. `PATCH` leaves what is not given. */
  limits?: LimitsRequest | null;
  /** How its daily limit grows while it is new. */
  warm_up?: WarmUpRequest | null;
  /** How much receiving domains are sent, per node; `*` stands for every domain that is not named. */
  destinations?: Record<string, DestinationRequest> | null;
  /** When to try again. */
  retry?: RetryRequest | null;
  /** With `PATCH` and `PUT`: only if the account still has this version. */
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

/** How a trial went. */
export interface AccountTest {
  /** Whether every step went well. */
  ok: boolean;
  /** In order, up to the first that failed. */
  steps: Array<AccountTestStep>;
  /** The test mail's uid, if one was sent. */
  message?: string | null;
}

/** Whom to send a test mail. */
export interface AccountTestRequest {
  /** The recipient; no mail is sent when absent. */
  to?: string | null;
  /** The sender; the account's return path or user name when absent. */
  from?: string | null;
}

/** One step of a trial. */
export interface AccountTestStep {
  /** `connect`, `tls`, `auth` or `send`. */
  step: "connect" | "tls" | "auth" | "send";
  /** Whether it went well. */
  ok: boolean;
  /** What was said. */
  detail: string;
  /** How long it took. */
  duration_ms: number;
}

/** A further form of the text. */
export interface AlternativeRequest {
  /** `text/calendar` (`; method=REQUEST` unless the calendar has its METHOD), `text/x-amp-html` or `text/watch-html`. */
  content_type: string;
  /** What it says, as text. */
  content: string;
  /** Whether a calendar is attached as `invite.ics` as well. */
  attach?: boolean | null;
}

/** A file: its bytes, or where they are (`content`, `url`, `endpoint` or `path`, or all in one as `storage_path`). */
export interface Attachment {
  /** Its name. */
  filename: string;
  /** Its media type. */
  content_type?: string | null;
  /** Its bytes in base64. */
  content?: string | null;
  /** Where to fetch it, `http://` or `https://`; not from private networks. */
  url?: string | null;
  /** What to ask your tenant's `attachment_endpoint` for, with POST. */
  endpoint?: string | null;
  /** A file on the server's disk, in a folder that its operator allows. */
  path?: string | null;
  /** The SHA-256 that its bytes must have, in hexadecimal. */
  sha256?: string | null;
  /** The MD5 that its bytes must have, in hexadecimal, for clients that have no better digest. */
  content_md5?: string | null;
  /** The older form of all of these: `base64:…`, `https://…`, `/path`, or else what to ask the endpoint for. */
  storage_path?: string | null;
  /** What `storage_path` is, where its form does not tell: `base64`, `http_url`, `filesystem` or `endpoint`. */
  fetch_mode?: "base64" | "http_url" | "filesystem" | "endpoint" | null;
  /** The name by which the HTML shows it (`cid:…`). */
  content_id?: string | null;
  /** Whether the HTML shows it. */
  inline?: boolean | null;
}

/** An attempt to send. */
export interface Attempt {
  /** The relay's three digits. */
  smtp_code?: number | null;
  /** The relay's enhanced code. */
  enhanced_code?: string | null;
  /** The relay's words. */
  reply?: string | null;
  /** Its number, from 1. */
  number: number;
  /** When it began. */
  started_at: string;
  /** How long it took. */
  duration_ms: number;
  /** By which account. */
  account: string;
  /** To which server. */
  remote?: string | null;
  /** How it ended. */
  outcome: string;
  /** The relay's own id of the mail. */
  provider_message_id?: string | null;
}

/** A management call. */
export interface AuditEntry {
  /** The entry's own id. */
  id: string;
  /** When. */
  at: string;
  /** Who: `admin`, or `key:` and the id of a key. */
  actor: string;
  /** About which tenant. */
  tenant?: string | null;
  /** What was done. */
  action: string;
  /** To what. */
  target: string;
  /** The request that asked for it. */
  request_id?: string | null;
  /** Particulars; never a secret. */
  detail?: Record<string, unknown> | null;
}

/** A page of the audit log. */
export interface AuditList {
  /** Newest first. */
  data: Array<AuditEntry>;
  /** Give this as `cursor` for the next; null at the end. */
  next_cursor?: string | null;
}

/** A batch. */
export interface Batch {
  /** Its code. */
  code: string;
  /** Whether its mail is held. */
  suspended: boolean;
  /** Since when. */
  suspended_since?: string | null;
  /** How many of its messages wait to be sent; 10,000 are so many or more. */
  waiting: number;
}

/** What became of one message of a batch: a `status`, or an `error`. */
export interface BatchItem {
  /** Your id of it, or its uid. */
  id?: string | null;
  /** Its own id. */
  uid?: string | null;
  /** Where it stands. */
  status?: string | null;
  /** True where it was here already, by its id or its key; absent where it is new. */
  repeated?: boolean | null;
  error?: ErrorBody | null;
}

/** A page of batches. */
export interface BatchList {
  /** By code. */
  data: Array<Batch>;
  /** Give this as `cursor` for the next; null at the end. */
  next_cursor?: string | null;
}

/** A batch, with how far it is. */
export interface BatchProgress {
  /** Its code. */
  code: string;
  /** Whether its mail is held. */
  suspended: boolean;
  /** Since when. */
  suspended_since?: string | null;
  /** How many of its messages wait to be sent; 10,000 are so many or more. */
  waiting: number;
  /** How many of its messages stand where; states that none is in are not there. */
  by_status: Record<string, unknown>;
  /** Whether these are all: of a larger batch 10,000 are counted. */
  counted_all: boolean;
}

/** Many mails at once. */
export interface BatchRequest {
  /** Fields for every message that does not have its own, all but `id`; `headers` and `metadata` are merged. */
  defaults?: MessageRequest | null;
  /** 1 to 1,000, each as for `POST /v1/messages` once it has the defaults. */
  messages: Array<MessageRequest>;
}

/** What became of a batch. */
export interface BatchResult {
  /** How many are durable. */
  accepted: number;
  /** How many were refused. */
  rejected: number;
  /** One answer per message, in their order. */
  results: Array<BatchItem>;
}

/** A bounce. */
export interface Bounce {
  /** `hard` where the address itself is bad, which suppresses it; `soft` otherwise. */
  type?: "hard" | "soft" | null;
  /** The code that came back. */
  code?: string | null;
  /** Why, in one word or more. */
  reason?: string | null;
  /** When it came. */
  at?: string | null;
  /** When everybody who asked for it had been told. */
  reported_at?: string | null;
}

/** A call. */
export interface Call {
  /** When it began. */
  at: string;
  /** How long it took. */
  latency_ms: number;
  /** The HTTP status, if an answer came. */
  status?: number | null;
  /** What was sent, shortened. */
  request: string;
  /** What was answered, shortened, or what went wrong. */
  answer: string;
}

/** Whether an account is left alone. */
export interface Circuit {
  /** `closed`: it is used. `open`: its mail waits until it is tried again. */
  state: "closed" | "open";
  /** The failure's code. */
  code?: string | null;
  /** What was said. */
  reason?: string | null;
  /** Since when. */
  since?: string | null;
  /** When it is tried again. */
  until?: string | null;
}

/** What a cleanup did. */
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
  /** The name it is found by. */
  name: string;
  /** Where to; none means that the name is known and has no address. */
  addresses: Array<string>;
  /** Rises with each change. */
  version: number;
  /** When it was made. */
  created_at: string;
  /** When it was changed last. */
  updated_at: string;
}

/** A page of contacts. */
export interface ContactList {
  /** By id. */
  data: Array<Contact>;
  /** Give this as `cursor` for the next; null at the end. */
  next_cursor?: string | null;
}

/** A contact to make or change. Unknown fields are refused. */
export interface ContactRequest {
  /** Its id, unique in your tenant; only when it is made. One is made when absent. */
  id?: string | null;
  /** The name it is found by, at most 200 characters; needed when it is made. */
  name?: string | null;
  /** Where to, at most 100: a list, or one address. */
  addresses?: string | Array<string> | null;
  /** With `PATCH`: only if the contact still has this version. */
  version?: number | null;
  /** Shown only; it may be sent back as it was. */
  created_at?: string;
  /** Shown only; it may be sent back as it was. */
  updated_at?: string;
}

/** Bounds of composed mail. */
export interface ContentLimits {
  /** The longest subject, in characters. */
  subject_chars?: number | null;
  /** The largest HTML part, in bytes. */
  html_bytes?: number | null;
  /** The largest message, in bytes. */
  message_bytes?: number | null;
  /** Whether every composed message must have html. */
  html_required: boolean;
  /** Whether a message with html and no text gets a text made of its html. */
  auto_text: boolean;
}

/** Bounds of composed mail. */
export interface ContentRequest {
  /** The longest subject, in characters; 150 when absent. */
  subject_chars?: number | null;
  /** The largest HTML part, in bytes; 524,288 when absent. */
  html_bytes?: number | null;
  /** The largest message, in bytes; the gateway's own bound when absent. */
  message_bytes?: number | null;
  /** Whether every composed message must have html. */
  html_required?: boolean | null;
  /** Whether a message with html and no text gets a text made of its html, unless its own `auto_text` is `false`. */
  auto_text?: boolean | null;
}

/** Something a webhook was, or is to be, told. */
export interface Delivery {
  /** The message. */
  message: string;
  /** The event's place in the message's history. */
  sequence: number;
  /** The event. */
  event: string;
  /** `pending`, `calling`, `waiting`, `acknowledged` or `dead`. */
  status: "pending" | "calling" | "waiting" | "acknowledged" | "dead";
  /** Calls so far. */
  tries: number;
  /** Since when it is to be told. */
  created_at: string;
  /** When the next call is due. */
  next_at?: string | null;
  /** When it was acknowledged, or given up. */
  settled_at?: string | null;
  last_call?: Call | null;
}

/** A page of a webhook's deliveries. */
export interface DeliveryList {
  /** Those of the newest messages first. */
  data: Array<Delivery>;
  /** Give this as `cursor` for the next; null at the end. It may follow a page with fewer than asked for, or none. */
  next_cursor?: string | null;
}

/** How much one receiving domain is sent. 0: no limit. */
export interface DestinationLimit {
  /** Mails on the wire at once. */
  connections: number;
  /** Mails begun in any second. */
  per_second: number;
}

/** How much one receiving domain is sent. 0: no limit. */
export interface DestinationRequest {
  /** Mails on the wire at once. */
  connections?: number;
  /** Mails begun in any second. */
  per_second?: number;
}

/** What to forget. */
export interface EraseRequest {
  /** The address. */
  address: string;
}

/** What was forgotten. */
export interface Erasure {
  /** Messages to nobody else, which were removed. */
  removed: number;
  /** Messages to others as well, in which the address, the subject and the bodies were removed. */
  redacted: number;
  /** Messages that are still on their way, and were left: call again once they have ended. */
  waiting: number;
  /** Whether there may be more that have ended: call again. */
  more: boolean;
}

/** What went wrong. */
export interface ErrorBody {
  /** A stable word: `malformed_request`, `unauthorized`, `forbidden`, `sensitive`, `not_found`, `method_not_allowed`, `request_timeout`, `conflict`, `gone`, `payload_too_large`, `unsupported_media_type`, `validation_error`, `too_many_requests`, `unavailable`, `internal`. */
  code: string;
  /** A sentence for people. */
  message: string;
  /** The request, as in `X-Request-Id`; absent for one item of a batch. */
  request_id?: string | null;
  /** The fields that failed their checks. */
  details: Array<FieldError>;
}

/** An entry of a message's history. */
export interface Event {
  /** Its place, from 1. */
  seq: number;
  /** When. */
  at: string;
  /** What happened. */
  type: string;
  /** Particulars; empty where there are none. */
  data: Record<string, unknown>;
}

/** A message's history. */
export interface EventList {
  /** In order. */
  data: Array<Event>;
  /** Give this as `cursor` for the next; null at the end. */
  next_cursor?: string | null;
}

/** What holds a message. */
export interface Explanation {
  /** Where it stands. */
  status: "accepted" | "validating" | "ready" | "scheduled" | "sending" | "sent" | "failed" | "invalid" | "in_doubt" | "suppressed" | "cancelled" | "expired" | "captured";
  /** What happens to it now, or why it ended as it did, where that is not a matter of gates. */
  reason?: string | null;
  /** What it waits for; empty when nothing holds it. */
  gates: Array<Gate>;
  /** When it goes, as far as is known. */
  next_at?: string | null;
}

/** A failure. */
export interface Failure {
  /** A stable word, such as `smtp_550` or `connect_timeout`. */
  code?: string | null;
  /** What kind of trouble it is. */
  category?: string | null;
  /** The same in the coarse words that gateways share: `TRANSIENT_ERROR`, `PERMANENT_ERROR`, `CONFIGURATION_ERROR`, `QUOTA_ERROR` or `TIMEOUT_ERROR`. */
  provider_category?: string | null;
  /** The code as the provider wrote it. */
  original_code?: string | null;
  /** Where in the conversation it happened. */
  phase?: string | null;
  /** The relay's three digits. */
  smtp_code?: number | null;
  /** The relay's enhanced code. */
  enhanced_code?: string | null;
  /** What the relay or the system said. */
  message?: string | null;
}

/** Why messages failed. */
export interface FailureReason {
  /** The failure's code. */
  code: string;
  /** How many. */
  count: number;
}

/** What came next. */
export interface Feed {
  /** In order, oldest first. */
  data: Array<FeedEntry>;
  /** Give this as `after` for the next; there is always one. */
  next_cursor: string;
}

/** Something that happened to a message. */
export interface FeedEntry {
  /** Give this as `after` for what comes next. */
  cursor: string;
  /** Its place in the message's history; null where the message was removed. */
  sequence?: number | null;
  /** When; null where the message was removed. */
  at?: string | null;
  /** What, as webhooks name it. */
  type: string;
  /** What, as the message's history names it. */
  event: string;
  message?: NamedMessage | null;
  /** Which mail came in, for `email.received`: its id in `/v1/inbound`. */
  inbound?: string | null;
  /** Particulars; empty where there are none. */
  data: Record<string, unknown>;
}

/** What is wrong with one field. */
export interface FieldError {
  /** Which field, as a path: `to[0]`, `attachments[1].content`; empty for the whole. */
  field: string;
  /** What is wrong with it, and what to do. */
  message: string;
  /** For a message or a template: `INVALID_PAYLOAD`, `OUTBOX_NOT_FOUND`, `RECIPIENT_NOT_FOUND`, `INVALID_EMAIL` or `INVALID_TEMPLATE`. */
  code?: string | null;
  /** The check that found it: `INTEGRITY`, `OUTBOX`, `RECIPIENT` or `TEMPLATE`. */
  check?: string | null;
}

/** Reminders of what was sent on. */
export interface FollowUpRequest {
  /** Hours between two, at most 2,160. */
  every_hours: number;
  /** How many there are at most, up to 100. */
  times_max?: number;
}

/** One thing that holds a message. */
export interface Gate {
  /** `tenant`, `batch`, `account`, `limit`, `circuit`, `destination`, `schedule`, `retry`, `doubt`, `clock`, `node` or `turn`. */
  gate: string;
  /** Why, for people. */
  reason: string;
  /** Until when; null when somebody must act. */
  until?: string | null;
}

/** How the server feels. */
export interface Health {
  /** `ok`. */
  status: string;
  /** What an operator should look at though mail is taken: `storage_apart`, where nodes do not share `storage.url`; `database_not_durable`, where the database is set up to lose commits when it crashes; `isolated`, while this node's heartbeat fails and it sends nothing; `secret_key_wrong`, where stored passwords do not open with the server's secret key. */
  warnings?: Array<string>;
}

/** What became of an import. */
export interface ImportResult {
  /** How many addresses get no mail from now on. */
  imported: number;
  /** How many lines were left out. */
  rejected: number;
  /** The first 1,000 of those. */
  errors: Array<WrongLine>;
}

/** A mail that came in, with what was found and done. */
export interface Inbound {
  /** Its id. */
  id: string;
  /** Its mailbox. */
  mailbox: string;
  /** `received`, `routing`, `routed`, `no_match`, `gone`, `waiting` or `dead`. */
  status: "received" | "routing" | "routed" | "no_match" | "gone" | "waiting" | "dead";
  /** What it is: `bounce`, `delay`, `success`, `complaint`, `pec`, `auto_reply` or `ordinary`; null before it was looked at. */
  kind?: "bounce" | "delay" | "success" | "complaint" | "pec" | "auto_reply" | "ordinary" | null;
  /** Its author. */
  from?: string | null;
  /** To whom. */
  to?: string | null;
  /** Its subject. */
  subject?: string | null;
  /** Its Message-ID, without brackets. */
  message_id?: string | null;
  /** Its size in bytes. */
  size: number;
  /** When it says that it was sent: its Date. */
  date?: string | null;
  /** When its server took it. */
  arrived_at?: string | null;
  /** When it was registered here. */
  created_at: string;
  /** When it was settled. */
  settled_at?: string | null;
  /** When it is looked at next: another try, or a reminder. */
  due_at?: string | null;
  /** Tries used; begins anew once it is settled. */
  tries: number;
  /** How often it was dealt with in all, whatever came of it. */
  attempts: number;
  /** What went wrong, or why nothing matched. */
  error?: string | null;
  /** Its labels. */
  tags: Array<string>;
  /** The rule that reminds of it. */
  follow_up?: string | null;
  /** Reminders so far. */
  reminders: number;
  /** When somebody said that it is resolved. */
  resolved_at?: string | null;
  /** The folder it was in. */
  folder: string;
  /** What UIDs were good for then. */
  uid_validity: number;
  /** Its UID there. */
  imap_uid: number;
  /** The SHA-256 digest of its bytes; null where they were not read. */
  digest?: string | null;
  /** What was found in it and done with it. */
  result?: Record<string, unknown> | null;
  /** What was sent because of it. */
  messages: Array<SentOn>;
  /** Its history: what subscribers were told of it. */
  events: Array<Event>;
}

/** Some mail that came in, and where to go on. */
export interface InboundList {
  /** Newest first. */
  data: Array<InboundSummary>;
  /** Give this as `cursor` for the next; null at the end. */
  next_cursor?: string | null;
}

/** Which mail to replay. Every condition given must hold. Unknown fields are refused. */
export interface InboundReplayRequest {
  /** Those that stand so: `no_match`, `dead` or `routed`. Needed. */
  status: "no_match" | "dead" | "routed";
  /** Only those of this mailbox. */
  mailbox?: string | null;
  /** Only those of this kind: `bounce`, `delay`, `success`, `complaint`, `pec`, `auto_reply` or `ordinary`. */
  kind?: "bounce" | "delay" | "success" | "complaint" | "pec" | "auto_reply" | "ordinary" | null;
  /** Only those that were registered at this time or later: RFC 3339 or Unix seconds. */
  since?: string | null;
  /** Only those that were registered before this time. */
  until?: string | null;
  /** Only those that were settled before this time: give the `at` of the first answer to go on where `more` is true. */
  settled_before?: string | null;
  /** How many at most, the newest first: 1 to 1,000. */
  limit?: number | null;
}

/** How many mails are looked at again. */
export interface InboundReplayed {
  /** So many. */
  replayed: number;
  /** Whether there may be more: the same call with `settled_before` goes on with them. */
  more: boolean;
  /** When. */
  at: string;
}

/** A mail that came in, as in lists. */
export interface InboundSummary {
  /** Its id. */
  id: string;
  /** Its mailbox. */
  mailbox: string;
  /** `received`, `routing`, `routed`, `no_match`, `gone`, `waiting` or `dead`. */
  status: "received" | "routing" | "routed" | "no_match" | "gone" | "waiting" | "dead";
  /** What it is: `bounce`, `delay`, `success`, `complaint`, `pec`, `auto_reply` or `ordinary`; null before it was looked at. */
  kind?: "bounce" | "delay" | "success" | "complaint" | "pec" | "auto_reply" | "ordinary" | null;
  /** Its author. */
  from?: string | null;
  /** To whom. */
  to?: string | null;
  /** Its subject. */
  subject?: string | null;
  /** Its Message-ID, without brackets. */
  message_id?: string | null;
  /** Its size in bytes. */
  size: number;
  /** When it says that it was sent: its Date. */
  date?: string | null;
  /** When its server took it. */
  arrived_at?: string | null;
  /** When it was registered here. */
  created_at: string;
  /** When it was settled. */
  settled_at?: string | null;
  /** When it is looked at next: another try, or a reminder. */
  due_at?: string | null;
  /** Tries used; begins anew once it is settled. */
  tries: number;
  /** How often it was dealt with in all, whatever came of it. */
  attempts: number;
  /** What went wrong, or why nothing matched. */
  error?: string | null;
  /** Its labels. */
  tags: Array<string>;
  /** The rule that reminds of it. */
  follow_up?: string | null;
  /** Reminders so far. */
  reminders: number;
  /** When somebody said that it is resolved. */
  resolved_at?: string | null;
  /** The folder it was in. */
  folder: string;
  /** What UIDs were good for then. */
  uid_validity: number;
  /** Its UID there. */
  imap_uid: number;
  /** The SHA-256 digest of its bytes; null where they were not read. */
  digest?: string | null;
}

/** An API key, without itself. */
export interface Key {
  /** Its id: the part of it that may be known. */
  id: string;
  /** What it begins with. */
  prefix: string;
  /** Its name for people. */
  name: string;
  /** What it may do: `send`, `read`, `manage`. */
  scopes: Array<"send" | "read" | "manage">;
  /** From where it may be used; anywhere when empty. */
  allow_ips: Array<string>;
  /** Whom its mail may be from: addresses, domains, patterns; whoever its tenant may be when empty. */
  allowed_senders: Array<string>;
  /** Whom its mail may be to; anybody when empty. */
  allowed_recipients: Array<string>;
  /** When it was made. */
  created_at: string;
  /** After which it does not open any more. */
  expires_at?: string | null;
  /** When it was last used, to the minute. */
  last_used_at?: string | null;
  /** When it was revoked. */
  revoked_at?: string | null;
}

/** A tenant's keys. */
export interface KeyList {
  /** The oldest first, the revoked among them. */
  data: Array<Key>;
  /** Give this as `cursor` for the next; null at the end. */
  next_cursor?: string | null;
}

/** A key to make. Unknown fields are refused. */
export interface KeyRequest {
  /** Its name for people. */
  name?: string | null;
  /** What it may do: `send` (hand over, cancel, retry), `read`, `manage` (accounts, batches, suppressions, templates, recipients, signing keys). All three when absent. */
  scopes?: Array<"send" | "read" | "manage">;
  /** After which it does not open any more: RFC 3339 or Unix seconds. */
  expires_at?: string | null;
  /** From where it may be used: addresses and networks; anywhere when absent. */
  allow_ips?: Array<string> | null;
  /** Whom its mail may be from, besides what binds its tenant: addresses, domains, and patterns such as `*.example.com` or `news-*@example.com`, 200 at most. */
  allowed_senders?: Array<string> | null;
  /** Whom its mail may be to, as for test systems; anybody when absent. */
  allowed_recipients?: Array<string> | null;
}

/** Somebody a tenant writes to. */
export interface KnownRecipient {
  /** Its id. */
  id: string;
  /** Your own id of it, unique among those not deleted. */
  external_id?: string | null;
  /** The name, for people. */
  name?: string | null;
  /** Where to; a domain outside ASCII as A-labels (`xn--…`). */
  address: string;
  /** The address as people write it, where that is another spelling. */
  address_unicode?: string | null;
  /** The personal number, all but its end hidden; the whole is never shown. */
  personal_number?: string | null;
  /** Rises with each change. */
  version: number;
  /** When it was made. */
  created_at: string;
  /** When it was changed last. */
  updated_at: string;
  /** When it was deleted. */
  deleted_at?: string | null;
}

/** What becomes of attachments too large to mail. */
export interface LargeFiles {
  /** `reject` the message, `warn` in its history and send it, or `rewrite` it with a link in the file's place. */
  policy: string;
  /** The largest file that is not too large, in bytes; null: only the message as a whole is bounded. */
  above_bytes?: number | null;
  /** How many days a link works, at most 3,650; 30 when null. */
  link_days?: number | null;
}

/** How much an account may send, in any window of that length. 0: no limit. */
export interface Limits {
  /** In any sixty seconds. */
  per_minute: number;
  /** In any sixty minutes. */
  per_hour: number;
  /** In any twenty-four hours. */
  per_day: number;
  /** What happens to mail beyond: `defer` or `reject`. */
  behavior: "defer" | "reject";
}

/** How much an account may send, in any window of that length. 0 and null: no limit. */
export interface LimitsRequest {
  /** In any sixty seconds. */
  per_minute?: number | null;
  /** In any sixty minutes. */
  per_hour?: number | null;
  /** In any twenty-four hours. */
  per_day?: number | null;
  /** What happens to mail beyond: `defer` (default) or `reject`. */
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
  /** What is attached, in order. */
  attachments: Array<MailFile>;
  /** What is left out here because the mail has more of it than is read, such as `parts beyond 1,000`. Empty for a mail that is shown whole; `raw` always has all of it. */
  omitted: Array<string>;
}

/** A file in a mail. */
export interface MailFile {
  /** Its place, from 0. */
  index: number;
  filename?: string | null;
  content_type: string;
  /** In bytes. */
  size: number;
  /** The id by which the html refers to it. */
  content_id?: string | null;
}

/** A header field. */
export interface MailHeader {
  name: string;
  value: string;
}

/** Something that holds mail. */
export interface MailHolder {
  /** As messages name it: `tenant`, `batch:CODE`, `account:ID`, `limit:ID` or `circuit:ID`. `GET /v1/messages` takes it as `held_by`. */
  held_by: string;
  /** How many messages it holds; 2,000 are so many or more. */
  messages: number;
  /** Since when. */
  since?: string | null;
  /** When it ends by itself, or is tried again; null where somebody must act. */
  until?: string | null;
  /** Why, where the holder says. */
  reason?: string | null;
}

/** A mailbox. */
export interface Mailbox {
  /** Its id. */
  id: string;
  /** Whose it is. */
  tenant: string;
  /** The IMAP server. */
  host: string;
  /** Its port. */
  port: number;
  /** `implicit`, `starttls` or `none`. */
  tls: "implicit" | "starttls" | "none";
  /** More certificate authorities to trust. */
  ca_pem?: string | null;
  /** Who signs in. */
  username: string;
  /** `password` or `xoauth2`. */
  auth: "password" | "xoauth2";
  /** Whether there is a password; it is never shown. */
  password_set: boolean;
  /** Whether there is a token; it is never shown. */
  token_set: boolean;
  oauth?: OAuth | null;
  /** The folder that is watched. */
  folder: string;
  /** What its mail is looked at for: `forward`, `bounces`, `pec`. */
  roles: Array<"forward" | "bounces" | "pec">;
  /** Whether it is watched at all. */
  active: boolean;
  /** What it is for. */
  description?: string | null;
  /** Seconds between two looks where the server does not tell of new mail by itself. */
  poll_seconds: number;
  /** Where watching began. */
  start: "now" | "beginning" | Record<string, unknown>;
  /** The proxy on the way, without its password. */
  proxy?: string | null;
  /** Whether reports in it may be about any tenant's messages. */
  all_tenants: boolean;
  /** How often a mail that could not be dealt with is tried before it is dead. */
  attempts_max: number;
  /** What becomes of forwarded mail in doubt, where the rule does not say it; null where its account decides. */
  on_doubt?: "resend" | "hold" | null;
  /** The largest mail that is read, in bytes. */
  mail_bytes_max: number;
  /** When it was last read to its end without a fault; null before the first time. */
  last_scanned_at?: string | null;
  /** How many UIDs it is behind: `uid_next` − 1 − `last_seen_uid`. */
  lag?: number | null;
  /** What was wrong at the last look; null where it went well. */
  error?: string | null;
  /** Since when something has been wrong. */
  error_since?: string | null;
  /** What the server says its UIDs are good for. Where it changes, the folder is read anew, and known mail is passed over. */
  uid_validity?: number | null;
  /** The last UID that was read. */
  last_seen_uid?: number | null;
  /** The UID that the next mail will get, as the server last said. */
  uid_next?: number | null;
  /** Rises with each change. */
  version: number;
  /** When it was made. */
  created_at: string;
  /** When it was changed last. */
  updated_at: string;
}

/** A mailbox that needs a look. */
export interface MailboxBehind {
  mailbox: string;
  lag?: number | null;
  error?: string | null;
}

/** A tenant's mailboxes. */
export interface MailboxList {
  /** By id. */
  data: Array<Mailbox>;
  /** Give this as `cursor` for the next; null at the end. */
  next_cursor?: string | null;
}

/** A mailbox to make or change. Unknown fields are refused. */
export interface MailboxRequest {
  /** Its id, unique in your tenant; only when it is made. One is made when absent. */
  id?: string | null;
  /** The IMAP server. Private ones can be set with the admin key alone. */
  host?: string | null;
  /** Its port; 993, or 143 where `tls` is not `implicit`, when absent. */
  port?: number | null;
  /** `implicit` (default), `starttls` or `none`. */
  tls?: "implicit" | "starttls" | "none" | null;
  /** More certificate authorities to trust, in PEM form. */
  ca_pem?: string | null;
  /** Who signs in. */
  username?: string | null;
  /** The password: encrypted at rest, never shown again. */
  password?: string | null;
  /** In the place of a password, an OAuth 2 bearer token (XOAUTH2): encrypted at rest, never shown again. */
  token?: string | null;
  /** In the place of either, how it comes by the tokens that it signs in with (XOAUTH2, OAUTHBEARER). `null` removes it. */
  oauth?: OAuthRequest | null;
  /** `password` or `xoauth2`; goes by which of the two is given. */
  auth?: "password" | "xoauth2" | null;
  /** The folder that is watched. */
  folder?: string | null;
  /** What its mail is looked at for: `forward` (rules; the default), `bounces`, `pec`. A list, or one of them. */
  roles?: "forward" | "bounces" | "pec" | Array<"forward" | "bounces" | "pec"> | null;
  /** Another name for `roles`; only one of them may be given. */
  role?: "forward" | "bounces" | "pec" | Array<"forward" | "bounces" | "pec"> | null;
  /** Whether it is watched at all. */
  active?: boolean | null;
  /** What it is for, at most 500 characters. */
  description?: string | null;
  /** Seconds between two looks where the server does not tell of new mail by itself, 5 to 86,400. */
  poll_seconds?: number | null;
  /** Where watching begins: `"now"` (default), `"beginning"`, `{"newest": 100}`, `{"since": "2026-01-31T00:00:00Z"}` or `{"after_uid": 4711}`, where another program left off. */
  start?: "now" | "beginning" | Record<string, unknown> | null;
  /** A proxy on the way: `socks5://user@host:port` or `http://user@host:port`. */
  proxy?: string | null;
  /** The proxy's password: encrypted at rest, never shown again. */
  proxy_password?: string | null;
  /** Whether reports in it may be about any tenant's messages. For the admin key. */
  all_tenants?: boolean | null;
  /** How often a mail that could not be dealt with is tried before it is dead, 1 to 20. */
  attempts_max?: number | null;
  /** What becomes of forwarded mail in doubt, where the rule does not say it: `resend`, or `hold`, which never sends twice. As its account says when absent. */
  on_doubt?: "resend" | "hold" | null;
  /** The largest mail that is read, in bytes: 65,536 to 67,108,864. */
  mail_bytes_max?: number | null;
  /** With `PATCH`: only if the mailbox still has this version. */
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

/** How a trial of a mailbox went. */
export interface MailboxTest {
  /** Whether every step went well. */
  ok: boolean;
  /** In order, up to the first that failed. */
  steps: Array<MailboxTestStep>;
  /** How long it took. */
  duration_ms: number;
}

/** One step of a trial of a mailbox. */
export interface MailboxTestStep {
  /** `settings`, `connect`, `tls`, `login`, `folder` or `mail`. */
  step: "settings" | "connect" | "tls" | "login" | "folder" | "mail";
  /** Whether it went well. */
  ok: boolean;
  /** What was found, or what to do. */
  detail: string;
}

/** A message with its parts. */
export interface Message {
  /** Your id of it, or its uid. */
  id: string;
  /** Its own id, a UUID v7. */
  uid: string;
  /** Whose it is. */
  tenant: string;
  /** The account that sends it. */
  account: string;
  /** `accepted`, `validating`, `ready`, `scheduled`, `sending`, `sent`, `failed`, `invalid`, `in_doubt`, `suppressed`, `cancelled` or `expired`. */
  status: "accepted" | "validating" | "ready" | "scheduled" | "sending" | "sent" | "failed" | "invalid" | "in_doubt" | "suppressed" | "cancelled" | "expired" | "captured";
  /** What holds it back besides its own time: suspensions (`tenant`, `batch:CODE`, `account:ID`), a used-up limit (`limit:ID`) and an open circuit (`circuit:ID`) of its account. `/explain` says why, and until when. */
  held_by: Array<string>;
  /** 0 (immediate) to 3 (low). */
  priority: number;
  /** The batch it belongs to. */
  batch?: string | null;
  /** Whether nobody may read it: `subject` and `metadata` are hidden, and its bodies are removed once it is sent. */
  sensitive: boolean;
  /** The subject; `[hidden]` where the message is sensitive. */
  subject: string;
  /** The first recipient. */
  to?: string | null;
  /** How many recipients it has. */
  recipient_count: number;
  /** How many of several recipients were refused for good. */
  refused_count: number;
  /** When it was accepted. */
  created_at: string;
  /** When it changed last. */
  updated_at: string;
  /** When it is due. */
  due_at?: string | null;
  /** After which it is not sent. */
  expires_at?: string | null;
  /** When the relay took it. */
  sent_at?: string | null;
  /** When it failed. */
  failed_at?: string | null;
  /** When it had ended and everybody had been told, or was given up on. */
  reported_at?: string | null;
  /** The number of the latest attempt; 0 before the first. */
  attempt: number;
  /** Rises with each change. */
  version: number;
  /** Whether it failed because retries ran out. */
  exhausted: boolean;
  /** The request that brought it. */
  request_id?: string | null;
  /** Its Message-ID, without brackets. */
  message_id: string;
  /** The relay's own id of it. */
  provider_message_id?: string | null;
  /** Why it is where it is, for people. */
  reason?: string | null;
  error?: Failure | null;
  /** What became of it after it was sent: the worst that is known of a recipient. */
  outcome?: string | null;
  bounce?: Bounce | null;
  /** What to do when the relay's last answer is lost: `resend` or `hold`. */
  on_doubt: "resend" | "hold";
  /** Your reference. */
  external_id?: string | null;
  /** Your labels. */
  tags: Array<string>;
  /** Your own JSON object; null where the message is sensitive. */
  metadata?: Record<string, unknown> | null;
  /** The entry of your directory of recipients that it is for. */
  recipient_id?: string | null;
  /** Where the submitted request is: `inline` in the database, the name of an object, or null where it was removed. */
  payload_file_path?: string | null;
  /** Where the mail is: `inline` in the database, the name of an object, or null before it is composed and once it was removed. */
  eml_file_path?: string | null;
  /** To whom. */
  recipients: Array<Recipient>;
  /** What was tried. */
  attempts: Array<Attempt>;
  /** What happened, in order. */
  events: Array<Event>;
  /** Who was told what, in order. */
  notifications: Array<Notification>;
}

/** How many messages match. */
export interface MessageCount {
  /** How many. */
  messages: number;
  /** Whether there may be more: counting ends at 100,000, and earlier where too many would have to be looked at. */
  or_more: boolean;
}

/** Some messages, and where to go on. */
export interface MessageList {
  /** Newest first. */
  data: Array<MessageSummary>;
  /** Give this as `cursor` for the next; null at the end. It may follow a page with fewer messages than asked for, or none. */
  next_cursor?: string | null;
  count?: MessageCount | null;
  /** What `q` was taken for, where it was given. */
  understood?: Array<UnderstoodTerm> | null;
}

/** A mail to send. Unknown fields are refused. */
export interface MessageRequest {
  /** Your own id of it, unique in your tenant: 1 to 128 of `A-Z a-z 0-9 . _ : @ -`. The `uid` stands in when absent. */
  id?: string | null;
  /** The account to send by; your tenant's default when absent. */
  account?: string | null;
  /** The sender, with or without a name; needed unless the tenant has a `default_from`. */
  from?: string | null;
  /** Recipients: a list, or one. At most 1,000 with `cc` and `bcc`, and at least one of them all. */
  to?: string | Array<string> | null;
  /** Recipients of copies: a list, or one. */
  cc?: string | Array<string> | null;
  /** Recipients that the others do not see: a list, or one. */
  bcc?: string | Array<string> | null;
  /** Where answers go: a list of at most 25, or one. */
  reply_to?: string | Array<string> | null;
  /** The envelope sender, when it is not `from`. */
  return_path?: string | null;
  /** The subject. */
  subject?: string | null;
  /** The plain text; this, `html` or both, unless a `template` makes them. */
  text?: string | null;
  /** The HTML. */
  html?: string | null;
  /** Makes the plain text of the HTML where there is none; as `content.auto_text` of your tenant is set when absent. */
  auto_text?: boolean | null;
  /** Further forms of the text, at most one of each kind: an invitation, an AMP mail. */
  alternatives?: Array<AlternativeRequest> | null;
  /** Further headers; those that Postway writes itself are refused. */
  headers?: Record<string, string> | null;
  /** Files that go with it. */
  attachments?: Array<Attachment> | null;
  /** The template that makes subject and texts, in the place of `subject`, `text` and `html`. */
  template?: TemplateUse | null;
  /** The entry of your directory of recipients that it is for; its address is the one in `to`. */
  recipient?: RecipientUse | null;
  /** Where a reader gets off the list (`List-Unsubscribe`). */
  unsubscribe?: Unsubscribe | null;
  /** Whether it says that a program sent it (`Auto-Submitted`); as your tenant is set when absent. */
  auto_submitted?: boolean | null;
  /** Hides subject and bodies from every reader, and removes the bodies once it is sent. */
  sensitive?: boolean | null;
  /** 0 to 3, or `immediate`, `high`, `normal` (2, when absent), `low`. */
  priority?: number | "immediate" | "high" | "normal" | "low" | null;
  /** The code of the batch it belongs to. One that begins with a stream's id and a colon is mail of that stream. */
  batch?: string | null;
  /** The stream it belongs to, which must be there; short for a `batch` of that name. */
  stream?: string | null;
  /** Not before this time: RFC 3339 or Unix seconds. */
  send_at?: string | null;
  /** Not after this time: RFC 3339 or Unix seconds. */
  expires_at?: string | null;
  /** Labels to find it by. */
  tags?: Array<string> | null;
  /** Your own JSON object, given back with the message: at most 16 KiB, nested at most 32 levels deep. */
  metadata?: Record<string, unknown> | null;
  /** What to do when the relay's last answer is lost: `resend` (default, perhaps twice) or `hold`. */
  on_doubt?: "resend" | "hold" | null;
  /** A newer message with the same key cancels this one if it has not left yet. */
  collapse_key?: string | null;
  /** Your reference to something of your own. */
  external_id?: string | null;
}

/** A message, as in lists. */
export interface MessageSummary {
  /** Your id of it, or its uid. */
  id: string;
  /** Its own id, a UUID v7. */
  uid: string;
  /** Whose it is. */
  tenant: string;
  /** The account that sends it. */
  account: string;
  /** `accepted`, `validating`, `ready`, `scheduled`, `sending`, `sent`, `failed`, `invalid`, `in_doubt`, `suppressed`, `cancelled` or `expired`. */
  status: "accepted" | "validating" | "ready" | "scheduled" | "sending" | "sent" | "failed" | "invalid" | "in_doubt" | "suppressed" | "cancelled" | "expired" | "captured";
  /** What holds it back besides its own time: suspensions (`tenant`, `batch:CODE`, `account:ID`), a used-up limit (`limit:ID`) and an open circuit (`circuit:ID`) of its account. `/explain` says why, and until when. */
  held_by: Array<string>;
  /** 0 (immediate) to 3 (low). */
  priority: number;
  /** The batch it belongs to. */
  batch?: string | null;
  /** Whether nobody may read it: `subject` and `metadata` are hidden, and its bodies are removed once it is sent. */
  sensitive: boolean;
  /** The subject; `[hidden]` where the message is sensitive. */
  subject: string;
  /** The first recipient. */
  to?: string | null;
  /** How many recipients it has. */
  recipient_count: number;
  /** How many of several recipients were refused for good. */
  refused_count: number;
  /** When it was accepted. */
  created_at: string;
  /** When it changed last. */
  updated_at: string;
  /** When it is due. */
  due_at?: string | null;
  /** After which it is not sent. */
  expires_at?: string | null;
  /** When the relay took it. */
  sent_at?: string | null;
  /** When it failed. */
  failed_at?: string | null;
  /** When it had ended and everybody had been told, or was given up on. */
  reported_at?: string | null;
  /** The number of the latest attempt; 0 before the first. */
  attempt: number;
  /** Rises with each change. */
  version: number;
  /** Whether it failed because retries ran out. */
  exhausted: boolean;
  /** The request that brought it. */
  request_id?: string | null;
  /** Its Message-ID, without brackets. */
  message_id: string;
  /** The relay's own id of it. */
  provider_message_id?: string | null;
  /** Why it is where it is, for people. */
  reason?: string | null;
  error?: Failure | null;
  /** What became of it after it was sent: the worst that is known of a recipient. */
  outcome?: string | null;
  bounce?: Bounce | null;
  /** What to do when the relay's last answer is lost: `resend` or `hold`. */
  on_doubt: "resend" | "hold";
  /** Your reference. */
  external_id?: string | null;
  /** Your labels. */
  tags: Array<string>;
  /** Your own JSON object; null where the message is sensitive. */
  metadata?: Record<string, unknown> | null;
}

/** What happened in one minute. */
export interface Minute {
  /** When it began. */
  at: string;
  accepted: number;
  sent: number;
  failed: number;
}

/** A message by its names. */
export interface NamedMessage {
  /** Your id of it, or its uid; null where it was removed. */
  id?: string | null;
  /** Its own id. */
  uid: string;
}

/** A key that was just made. */
export interface NewKeyView {
  /** Its id: the part of it that may be known. */
  id: string;
  /** What it begins with. */
  prefix: string;
  /** Its name for people. */
  name: string;
  /** What it may do: `send`, `read`, `manage`. */
  scopes: Array<"send" | "read" | "manage">;
  /** From where it may be used; anywhere when empty. */
  allow_ips: Array<string>;
  /** Whom its mail may be from: addresses, domains, patterns; whoever its tenant may be when empty. */
  allowed_senders: Array<string>;
  /** Whom its mail may be to; anybody when empty. */
  allowed_recipients: Array<string>;
  /** When it was made. */
  created_at: string;
  /** After which it does not open any more. */
  expires_at?: string | null;
  /** When it was last used, to the minute. */
  last_used_at?: string | null;
  /** When it was revoked. */
  revoked_at?: string | null;
  /** The key itself: shown this once. */
  key: string;
}

/** A node. */
export interface Node {
  /** This life of it. */
  id: string;
  /** Its host and process. */
  name: string;
  /** Where it listens. */
  address: string;
  /** The version of the program. */
  version: string;
  /** `alive`, or `dead` when its heartbeat has not moved for ten seconds. Its work is then taken over and it is struck from the list. */
  status: "alive" | "dead";
  /** Whether it is the one that answers. */
  is_self: boolean;
  /** Whether it keeps bodies over 128 KiB where the node that answers cannot read them: `storage.url` is a folder that they do not share, and such mail waits for the node that took it. */
  storage_apart: boolean;
  /** When it started, by its own clock. */
  started_at: string;
  /** When it last said that it is alive, by its own clock. */
  last_beat_at: string;
}

/** A list of nodes. */
export interface NodeList {
  /** The oldest first. */
  data: Array<Node>;
  /** Give this as `cursor` for the next; null at the end. */
  next_cursor?: string | null;
}

/** Something a subscriber was, or is to be, told. */
export interface Notification {
  /** Who: the id of a webhook, or `client_sync`. */
  subscriber: string;
  /** The event. */
  event: string;
  /** Its place in the message's history. */
  sequence: number;
  /** `pending`, `calling`, `waiting`, `acknowledged` or `dead`. */
  status: "pending" | "calling" | "waiting" | "acknowledged" | "dead";
  /** Calls so far. */
  tries: number;
  /** When the next call is due. */
  next_at?: string | null;
  /** The HTTP status of the latest answer. */
  last_status?: number | null;
  /** When it was acknowledged, or given up. */
  settled_at?: string | null;
}

/** A grant, without its secrets. */
export interface OAuth {
  /** `microsoft` or `google`. */
  preset?: "microsoft" | "google" | null;
  /** `client_credentials`, `refresh_token` or `service_account`. */
  grant: "client_credentials" | "refresh_token" | "service_account";
  /** Where tokens are asked for. */
  token_url?: string | null;
  /** The client's id. */
  client_id: string;
  /** What is asked for. */
  scope?: string | null;
  /** Microsoft: the directory. */
  directory?: string | null;
  /** `service_account`: for whom it acts. */
  subject?: string | null;
  /** Whether there is a client secret; it is never shown. */
  client_secret_set: boolean;
  /** Whether somebody has consented; the token is never shown. */
  refresh_token_set: boolean;
  /** Whether there is a key; it is never shown. */
  private_key_set: boolean;
}

/** A grant to make or change. Fields that are not given stay as they are. */
export interface OAuthRequest {
  /** `microsoft` or `google`: fills in `token_url` and `scope`. */
  preset?: "microsoft" | "google" | null;
  /** `client_credentials`, `refresh_token` or `service_account`; needed when the grant is made. */
  grant?: "client_credentials" | "refresh_token" | "service_account";
  /** Where tokens are asked for, under https. Another one needs the secrets again. */
  token_url?: string | null;
  /** The client's id; the address of a service account. */
  client_id?: string;
  /** What is asked for, with spaces between scopes. */
  scope?: string | null;
  /** Microsoft: the id or the domain of your directory. */
  directory?: string | null;
  /** `service_account`: for whom it acts; `username` when absent. */
  subject?: string | null;
  /** The client's secret: encrypted at rest, never shown again. `null` removes it. */
  client_secret?: string | null;
  /** The refresh token of a person's consent: encrypted at rest, never shown again; `postway accounts authorize` brings it. */
  refresh_token?: string | null;
  /** The key of a service account, in PEM form: encrypted at rest, never shown again. */
  private_key?: string | null;
}

/** An account at fault. */
export interface OpenCircuit {
  account: string;
  code: string;
  reason: string;
  /** When it is tried again. */
  open_until: string;
}

/** A source. */
export interface OutboxSource {
  /** Its name. */
  name: string;
  /** Whose mail it is. */
  tenant: string;
  /** `generic`, or `accounts`. */
  kind: string;
  /** Where it is, without its password; for the admin key. */
  database?: string | null;
  /** How it stands on the node that answers: `starting`, `serving`, `elsewhere` (another node serves it), `away` or `stopped`. */
  status: string;
  /** The node that serves it. */
  holder?: string | null;
  /** Rows that wait, counted up to ten thousand; unknown while the source is away. */
  waiting?: number | null;
  /** How long the oldest of them waits, by the source's clock. */
  lag_seconds?: number | null;
  /** Rows that the node that answers has accepted since it started. */
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
  /** By tenant and name. */
  data: Array<OutboxSource>;
  /** Give this as `cursor` for the next; null at the end. */
  next_cursor?: string | null;
}

/** How a tenant's mail is doing. */
export interface Overview {
  /** How many messages stand where; every state is there. */
  by_status: Record<string, unknown>;
  /** How many wait behind a suspension of the tenant, their batch or their account, or behind a used-up limit or an open circuit of their account; 100,000 are so many or more. */
  held: number;
  /** How many of those `in_doubt` wait for your word (`/resolve`); the others are sent again by themselves. Of the newest 10,000. */
  in_doubt_held: number;
  /** How long the longest-waiting message that nothing holds has been due: whether the queue keeps up. */
  oldest_due_seconds: number;
  /** How long the longest-waiting message that is `held` has been due. */
  oldest_held_seconds: number;
  /** Messages per second over the last minute: `accepted`, `sent`, `failed`. */
  rates: Record<string, unknown>;
  /** When this was so. */
  at: string;
  /** How long messages waited until they were sent, of the latest that were. */
  time_in_queue: TimeInQueue;
  /** Why messages failed in the last day, of the latest that did; the most frequent first. */
  failures: Array<FailureReason>;
  /** What holds mail back now, what holds most of it first; at most 20. */
  holders: Array<MailHolder>;
  /** Accounts that are left alone because they are at fault. */
  circuits: Array<OpenCircuit>;
  /** Mailboxes that are behind, or cannot be read. */
  mailboxes: Array<MailboxBehind>;
  /** Webhooks with calls due, and those that are switched off because of their answers. */
  subscribers: Array<SubscriberBehind>;
  /** The nodes, for the admin key. */
  nodes: Array<Node>;
  /** The last hour, minute by minute, the oldest first. */
  last_hour: Array<Minute>;
}

/** A receipt of certified mail. */
export interface PecReceipt {
  /** What it is, in the words of the rules: `accettazione`, `avvenuta-consegna`, … */
  kind: string;
  /** The recipient it is about; null where it is about the whole message. */
  address?: string | null;
  /** When it says that it happened. */
  at: string;
  /** `verified`, `unverified` or `absent`. */
  signature: "verified" | "unverified" | "absent";
  /** The mail that brought it: `GET /v1/inbound/{id}/raw` has its bytes. */
  inbound: string;
  /** The size of its bytes. */
  size: number;
  /** The SHA-256 digest of its bytes. */
  sha256: string;
  /** Its particulars. */
  detail: Record<string, unknown>;
}

/** A page of a message's receipts. */
export interface PecReceiptList {
  /** In the order in which they came. */
  data: Array<PecReceipt>;
  /** Give this as `cursor` for the next; null at the end. */
  next_cursor?: string | null;
}

/** A mail as a template would make it. */
export interface Preview {
  /** The version; null for one that is not stored. */
  version?: number | null;
  /** The subject. */
  subject: string;
  /** The html part. */
  html?: string | null;
  /** The text part, as given or made from the html. */
  text?: string | null;
  /** Why a message made so would be refused; empty when it would not. */
  warnings: Array<FieldError>;
}

/** What to fill in. Unknown fields are refused. */
export interface PreviewRequest {
  /** The variables; the template's `sample` when absent. At most 1 MiB of JSON and 50,000 values. */
  variables?: Record<string, unknown> | null;
  /** The version; the latest when absent. */
  version?: number | null;
}

/** What a client gets for a message that is durable now. */
export interface Receipt {
  /** Your id of it, or its uid. */
  id: string;
  /** Its own id. */
  uid: string;
  /** Where it stands. */
  status: "accepted" | "validating" | "ready" | "scheduled" | "sending" | "sent" | "failed" | "invalid" | "in_doubt" | "suppressed" | "cancelled" | "expired" | "captured" | "valid";
}

/** A recipient. */
export interface Recipient {
  /** The relay's three digits. */
  smtp_code?: number | null;
  /** The relay's enhanced code. */
  enhanced_code?: string | null;
  /** The relay's words. */
  reply?: string | null;
  /** Where to; a domain outside ASCII as A-labels (`xn--…`). */
  address: string;
  /** The address as people write it, where that is another spelling. */
  address_unicode?: string | null;
  /** `to`, `cc` or `bcc`. */
  kind: "to" | "cc" | "bcc";
  /** `pending`, `sent`, `failed`, `in_doubt`, `suppressed`, `cancelled` or `expired`. */
  status: "pending" | "sent" | "failed" | "in_doubt" | "suppressed" | "cancelled" | "expired" | "captured";
  /** What became of it after it was sent. */
  outcome?: string | null;
  bounce?: Bounce | null;
}

/** A page of recipients. */
export interface RecipientList {
  /** By id, the oldest first. */
  data: Array<KnownRecipient>;
  /** Give this as `cursor` for the next; null at the end. */
  next_cursor?: string | null;
}

/** A recipient to make or change. Unknown fields are refused. */
export interface RecipientRequest {
  /** Your own id of it, at most 256 bytes. */
  external_id?: string | null;
  /** The name, for people. */
  name?: string | null;
  /** Where to; needed when it is made. */
  address?: string;
  /** Another name for `address`; only one of them may be given. */
  email?: string;
  /** A personal number, 4 to 64 characters: encrypted at rest, shown masked, found with `?personal_number=`. */
  personal_number?: string | null;
  /** With `PATCH`: only if the recipient still has this version. */
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

/** A recipient of your directory; at least one of the ids. */
export interface RecipientUse {
  /** Its id. */
  id?: string | null;
  /** Your own id of it. */
  external_id?: string | null;
  /** The name, for people. */
  name?: string | null;
  /** The address, which must be the one in `to`. */
  email?: string | null;
}

/** Somewhere of the tenant's own to call. */
export interface Remote {
  /** The address. */
  url: string;
  /** A path under it. */
  path?: string | null;
  /** How to sign in there. */
  auth: RemoteAuth;
}

/** How to sign in somewhere. */
export interface RemoteAuth {
  /** `none`, `bearer` or `basic`. */
  type: "none" | "bearer" | "basic";
  /** Who signs in, with `basic`. */
  username?: string | null;
  /** Whether there is a token or password; it is never shown. */
  has_secret: boolean;
}

/** How to sign in somewhere. Secrets are encrypted at rest and never shown again. */
export interface RemoteAuthRequest {
  /** `none` (default), `bearer` with a `token`, or `basic` with `username` and `password`. */
  type?: "none" | "bearer" | "basic" | null;
  /** For `bearer`. */
  token?: string | null;
  /** For `basic`. */
  username?: string | null;
  /** For `basic`. */
  password?: string | null;
  /** Whether there is a token or password; it may come back as it was shown, and changes nothing. */
  has_secret?: boolean | null;
}

/** Somewhere of the tenant's own to call. With `PATCH`, what is not given stays. */
export interface RemoteRequest {
  /** The address, `http://` or `https://`; needed unless there is one already. */
  url?: string | null;
  /** A path under it. */
  path?: string | null;
  /** How to sign in there. */
  auth?: RemoteAuthRequest | null;
}

/** What became of one message: a `status`, or an `error`. */
export interface ReplayItem {
  /** The id as given. */
  id: string;
  /** Where it stands. */
  status?: string | null;
  error?: ErrorBody | null;
}

/** Which messages to put back in the queue. */
export interface ReplayRequest {
  /** Ids or uids, at most 1,000. */
  ids: Array<string>;
}

/** What became of a replay. */
export interface ReplayResult {
  /** How many are in the queue again. */
  replayed: number;
  /** How many are not. */
  rejected: number;
  /** One answer per id, in order. */
  results: Array<ReplayItem>;
}

/** What a relay said. */
export interface Reply {
  /** The relay's three digits. */
  smtp_code?: number | null;
  /** The relay's enhanced code. */
  enhanced_code?: string | null;
  /** The relay's words. */
  reply?: string | null;
}

/** Another time for a message that waits for its own. */
export interface RescheduleRequest {
  /** Not before this time, RFC 3339 or Unix seconds, at most 366 days ahead. */
  send_at: string;
}

/** What to tell again. */
export interface ResendDeliveriesRequest {
  /** What was to be told since this time, RFC 3339 or Unix seconds. */
  since: string;
  /** And before this; until now when absent. */
  until?: string | null;
  /** `dead` (the default): what was given up. `all`: what was acknowledged as well. */
  which?: "dead" | "all" | null;
  /** Where to go on: the `next_cursor` of the answer before. */
  cursor?: string | null;
}

/** What is told again. */
export interface ResentDeliveries {
  /** How many are due again. Those that were due already are not among them. */
  resent: number;
  /** Where there may be more: call again with this as `cursor`. */
  next_cursor?: string | null;
}

/** An operator's word on a message in doubt. */
export interface ResolveRequest {
  /** `sent`: it arrived. `failed`: it did not, and shall not. `resend`: send it again, perhaps twice. */
  outcome: "sent" | "failed" | "resend";
}

/** Delays between attempts. */
export interface Retry {
  /** Seconds to wait after the first, second, … transient failure. */
  delays_s: Array<number>;
  /** How much chance moves each delay: 0.25 means up to a quarter shorter or longer. */
  jitter: number;
}

/** Delays between attempts. */
export interface RetryRequest {
  /** Seconds to wait after the first, second, … transient failure. */
  delays_s: Array<number>;
  /** How much chance moves each delay: 0.25 means up to a quarter shorter or longer. */
  jitter?: number;
}

/** What a rotation did. */
export interface Rotation {
  /** Accounts whose secret was sealed anew. */
  accounts: number;
  /** Tenants whose secrets were sealed anew. */
  tenants: number;
  /** Recipients whose personal number was sealed anew. */
  recipients: number;
  /** DKIM keys that were sealed anew. */
  dkim_keys: number;
  /** Webhooks whose secrets were sealed anew. */
  webhooks: number;
  /** Mailboxes whose secrets were sealed anew. */
  mailboxes: number;
  /** Accounts and mailboxes whose tokens were sealed anew. */
  tokens: number;
  /** What opens with neither key: its secret must be set again. */
  unreadable: Array<string>;
  /** What somebody changed at the same moment: run it once more. */
  busy: Array<string>;
}

/** A rule. */
export interface Rule {
  /** Its id. */
  id: string;
  /** The mailbox whose mail it is asked about. */
  mailbox: string;
  /** Its place; lower ones come first. */
  position: number;
  /** Whether it is asked at all. */
  active: boolean;
  /** All of them must hold; none holds always. */
  match: Array<Record<string, unknown>>;
  /** Done in order where they do. */
  actions: Array<Record<string, unknown>>;
  /** Reminds of what was sent on until somebody says that it is resolved. */
  follow_up?: Record<string, unknown> | null;
  /** Rises with each change. */
  version: number;
  /** When it was made. */
  created_at: string;
  /** When it was changed last. */
  updated_at: string;
}

/**  */
export type RuleAction = Record<string, unknown>;

/**  */
export type RuleCondition = Record<string, unknown>;

/** A tenant's rules. */
export interface RuleList {
  /** In the order in which they are asked, mailbox by mailbox. */
  data: Array<Rule>;
  /** Give this as `cursor` for the next; null at the end. */
  next_cursor?: string | null;
}

/** A rule to make or change. Unknown fields are refused. */
export interface RuleRequest {
  /** Its id, unique in your tenant; only when it is made. One is made when absent. */
  id?: string | null;
  /** The mailbox whose mail it is asked about; needed when it is made. */
  mailbox?: string | null;
  /** Its place; lower ones come first. The last when absent. */
  position?: number | null;
  /** Whether it is asked at all. */
  active?: boolean | null;
  /** At most 50 conditions. `field` is `from`, `to`, `cc` or `subject`, each with one of `contains`, `equals` (both without regard to case) and `regex` (its named groups are captures); `header` with `name` and perhaps `value`, such as `{"contains": "x"}`; `size` with `min` and `max` in bytes; or `has_attachment` with `value`. */
  match?: Array<RuleCondition> | null;
  /** At most 20 actions. `do` is `forward` (with `to`, one address or a list, or `contact`, a name to look up; `as`, one of `compose`, `redirect` and `attachment`; `from`; `account`), `tag` (with `tag`), `webhook`, `mark_seen`, `move` (with `folder`) or `stop`. Addresses, names and tags may name captures as `{order}`. */
  actions?: Array<RuleAction> | null;
  /** Sends what was sent on again every so many hours, until the mail is resolved. */
  follow_up?: FollowUpRequest | null;
  /** With `PATCH`: only if the rule still has this version. */
  version?: number | null;
  /** Shown only; it may be sent back as it was. */
  created_at?: string;
  /** Shown only; it may be sent back as it was. */
  updated_at?: string;
}

/** What a rule would do with a mail. */
export interface RuleTrial {
  /** Whether all conditions hold, and it could be applied. */
  matched: boolean;
  /** Each condition, in order. */
  conditions: Array<TriedCondition>;
  /** What named groups of patterns found. */
  captures: Record<string, string>;
  /** What would be done, in order, in the words of rules. */
  actions: Array<Record<string, unknown>>;
  /** Why nothing would be done although all conditions hold: no contact of that name, a loop. */
  reason?: string | null;
}

/** Addresses that get no mail of some kind. */
export interface ScopedSuppression {
  /** An address, or a pattern with a star for all local parts, all subdomains or all domains. */
  pattern: string;
  /** The stream whose mail they do not get; mail of all streams, and of none, when null. */
  stream?: string | null;
  /** Whether it holds for every tenant. */
  installation: boolean;
  /** `hard_bounce`, `complaint`, `manual` or `unsubscribe`. */
  reason: "manual" | "hard_bounce" | "complaint" | "unsubscribe";
  /** More about it. */
  note?: string | null;
  /** Since when. */
  created_at: string;
  /** Until when; for ever when null. */
  expires_at?: string | null;
}

/** A page of scoped suppressions. */
export interface ScopedSuppressionList {
  /** By pattern and stream. */
  data: Array<ScopedSuppression>;
  /** Give this as `cursor` for the next; null at the end. */
  next_cursor?: string | null;
}

/** What is not to be sent. Unknown fields are refused. */
export interface ScopedSuppressionRequest {
  /** An address, `*@example.net`, `*@*.example.net` or `postmaster@*`. */
  pattern?: string | null;
  /** Only mail of this stream. */
  stream?: string | null;
  /** Mail of every tenant; for the admin key. */
  installation?: boolean | null;
  /** `manual` (default), `hard_bounce`, `complaint` or `unsubscribe`. */
  reason?: "manual" | "hard_bounce" | "complaint" | "unsubscribe" | null;
  /** More about it, at most 500 characters. */
  note?: string | null;
  /** Until when, as RFC 3339 or Unix seconds; for ever when absent. */
  expires_at?: string | null;
}

/** A message that was sent because of a mail that came in. */
export interface SentOn {
  /** The rule that asked for it. */
  rule: string;
  /** The message. */
  uid: string;
  /** Where it stands; null where it was removed. */
  status?: "accepted" | "validating" | "ready" | "scheduled" | "sending" | "sent" | "failed" | "invalid" | "in_doubt" | "suppressed" | "cancelled" | "expired" | "captured" | null;
}

/** The message as it is then: whole for a key with the scope `read`, else its `uid` and `status`. */
export interface SettledMessage {
  /** Your id of it, or its uid. */
  id?: string;
  /** Its own id, a UUID v7. */
  uid: string;
  /** Whose it is. */
  tenant?: string;
  /** The account that sends it. */
  account?: string;
  /** `accepted`, `validating`, `ready`, `scheduled`, `sending`, `sent`, `failed`, `invalid`, `in_doubt`, `suppressed`, `cancelled` or `expired`. */
  status: "accepted" | "validating" | "ready" | "scheduled" | "sending" | "sent" | "failed" | "invalid" | "in_doubt" | "suppressed" | "cancelled" | "expired" | "captured";
  /** What holds it back besides its own time: suspensions (`tenant`, `batch:CODE`, `account:ID`), a used-up limit (`limit:ID`) and an open circuit (`circuit:ID`) of its account. `/explain` says why, and until when. */
  held_by?: Array<string>;
  /** 0 (immediate) to 3 (low). */
  priority?: number;
  /** The batch it belongs to. */
  batch?: string | null;
  /** Whether nobody may read it: `subject` and `metadata` are hidden, and its bodies are removed once it is sent. */
  sensitive?: boolean;
  /** The subject; `[hidden]` where the message is sensitive. */
  subject?: string;
  /** The first recipient. */
  to?: string | null;
  /** How many recipients it has. */
  recipient_count?: number;
  /** How many of several recipients were refused for good. */
  refused_count?: number;
  /** When it was accepted. */
  created_at?: string;
  /** When it changed last. */
  updated_at?: string;
  /** When it is due. */
  due_at?: string | null;
  /** After which it is not sent. */
  expires_at?: string | null;
  /** When the relay took it. */
  sent_at?: string | null;
  /** When it failed. */
  failed_at?: string | null;
  /** When it had ended and everybody had been told, or was given up on. */
  reported_at?: string | null;
  /** The number of the latest attempt; 0 before the first. */
  attempt?: number;
  /** Rises with each change. */
  version?: number;
  /** Whether it failed because retries ran out. */
  exhausted?: boolean;
  /** The request that brought it. */
  request_id?: string | null;
  /** Its Message-ID, without brackets. */
  message_id?: string;
  /** The relay's own id of it. */
  provider_message_id?: string | null;
  /** Why it is where it is, for people. */
  reason?: string | null;
  error?: Failure | null;
  /** What became of it after it was sent: the worst that is known of a recipient. */
  outcome?: string | null;
  bounce?: Bounce | null;
  /** What to do when the relay's last answer is lost: `resend` or `hold`. */
  on_doubt?: "resend" | "hold";
  /** Your reference. */
  external_id?: string | null;
  /** Your labels. */
  tags?: Array<string>;
  /** Your own JSON object; null where the message is sensitive. */
  metadata?: Record<string, unknown> | null;
}

/** A signing key, without its secret half. */
export interface SigningKey {
  /** The domain it signs for; one outside ASCII as A-labels (`xn--…`). */
  domain: string;
  /** The domain as people write it, where that is another spelling. */
  domain_unicode?: string | null;
  /** The name by which receivers find the public half. */
  selector: string;
  /** `rsa` or `ed25519`. */
  algorithm: "rsa" | "ed25519";
  /** Whether it signs. */
  active: boolean;
  /** Where to publish the record. */
  dns_name: string;
  /** The TXT record to publish there. */
  dns_record: string;
  /** When it was made. */
  created_at: string;
}

/** A tenant's signing keys. */
export interface SigningKeyList {
  /** By domain and selector. */
  data: Array<SigningKey>;
  /** Give this as `cursor` for the next; null at the end. */
  next_cursor?: string | null;
}

/** A signing key to make. Unknown fields are refused. */
export interface SigningKeyRequest {
  /** The domain to sign for: the one in your From addresses. */
  domain: string;
  /** The name by which receivers find the public half; `pw` and the month, as in `pw202611`, when absent. */
  selector?: string | null;
  /** `rsa` (default; 2,048 bits, which every receiver verifies) or `ed25519`. */
  algorithm?: "rsa" | "ed25519" | null;
}

/** A template that is not stored, as for `POST /v1/templates`, and what to fill in. Unknown fields are refused. */
export interface SourcePreviewRequest {
  /** A name; it need not have one. */
  name?: string | null;
  /** The subject. */
  subject?: string | null;
  /** The html part. At least one of `html`, `text` and `mjml`. */
  html?: string | null;
  /** The text part; made from the html when absent. */
  text?: string | null;
  /** The html part as MJML; this or `html`. */
  mjml?: string | null;
  /** What it is for, at most 500 characters. */
  description?: string | null;
  /** Variables that stand in where none are given. */
  sample?: Record<string, unknown> | null;
  /** The variables; `sample` when absent. At most 1 MiB of JSON and 50,000 values. */
  variables?: Record<string, unknown> | null;
}

/** What a tenant's accounts did. */
export interface Statistics {
  /** By time and account; where nothing happened there is no row. */
  data: Array<StatisticsRow>;
  /** Give this as `cursor` for the next; null at the end. */
  next_cursor?: string | null;
}

/** What one account did in one hour or day. */
export interface StatisticsRow {
  /** When the hour or day began, in UTC. */
  at: string;
  /** Which account. */
  account: string;
  /** Accepted. */
  accepted: number;
  /** Taken by a relay. */
  sent: number;
  /** Failed. */
  failed: number;
  /** Refused by a check. */
  invalid: number;
  /** Put off by a transient failure, once for each. */
  deferred: number;
  /** Bounced. */
  bounced: number;
  /** Complained of. */
  complained: number;
  /** Not sent because of the suppression list. */
  suppressed: number;
  /** The average time from acceptance to `sent`, in milliseconds; null where nothing was sent. */
  average_queue_ms?: number | null;
}

/** Counts of a tenant's messages. */
export interface Stats {
  /** How many messages stand where; every state is there. */
  by_status: Record<string, unknown>;
  /** How many wait behind a suspension of the tenant, their batch or their account, or behind a used-up limit or an open circuit of their account; 100,000 are so many or more. */
  held: number;
  /** How many of those `in_doubt` wait for your word (`/resolve`); the others are sent again by themselves. Of the newest 10,000. */
  in_doubt_held: number;
  /** How long the longest-waiting message that nothing holds has been due: whether the queue keeps up. */
  oldest_due_seconds: number;
  /** How long the longest-waiting message that is `held` has been due. */
  oldest_held_seconds: number;
  /** Messages per second over the last minute: `accepted`, `sent`, `failed`. */
  rates: Record<string, unknown>;
}

/** A named kind of mail. */
export interface Stream {
  /** Its id, which messages name as `stream`, or begin their `batch` with. */
  id: string;
  /** What readers are told it is called; its id where it is empty. */
  name: string;
  /** What it is for. */
  description?: string | null;
  /** Whether readers can leave it by links that the gateway adds and serves. */
  unsubscribe: boolean;
  /** An address of a watched mailbox to which readers can write to leave it. */
  unsubscribe_mailto?: string | null;
  /** Rises with each change. */
  version: number;
  /** When it was made. */
  created_at: string;
  /** When it was changed last. */
  updated_at: string;
}

/** A page of streams. */
export interface StreamList {
  /** By id. */
  data: Array<Stream>;
  /** Give this as `cursor` for the next; null at the end. */
  next_cursor?: string | null;
}

/** A stream to make or change. Unknown fields are refused. */
export interface StreamRequest {
  /** Its id, unique in your tenant; needed when it is made, and not changed later. */
  id?: string | null;
  /** What readers are told it is called, at most 200 characters. */
  name?: string | null;
  /** What it is for, at most 1,000 characters; `null` takes it away. */
  description?: string | null;
  /** Whether readers can leave it: its mail gets `List-Unsubscribe` and `List-Unsubscribe-Post`. Needs `public_url` with https, or `unsubscribe_mailto`. */
  unsubscribe?: boolean | null;
  /** An address of a watched mailbox to which readers can write to leave it; `null` takes it away. */
  unsubscribe_mailto?: string | null;
  /** With `PATCH`: only if the stream still has this version. */
  version?: number | null;
  /** Shown only; it may be sent back as it was. */
  created_at?: string;
  /** Shown only; it may be sent back as it was. */
  updated_at?: string;
}

/** A webhook that needs a look. */
export interface SubscriberBehind {
  id: string;
  url: string;
  /** Whether it has calls due now. */
  due: boolean;
  /** Why it was switched off. */
  disabled_reason?: string | null;
}

/** What was suppressed: the one that was given as `address`, or those of `addresses`. */
export type Suppressed = Suppression | SuppressionList;

/** An address that gets no mail. */
export interface Suppression {
  /** The address, in lower case; a domain outside ASCII as A-labels (`xn--…`). */
  address: string;
  /** The address as people write it, where that is another spelling. */
  address_unicode?: string | null;
  /** `hard_bounce`, `complaint`, `manual` or `unsubscribe`. */
  reason: "manual" | "hard_bounce" | "complaint" | "unsubscribe";
  /** More about it. */
  note?: string | null;
  /** Since when. */
  created_at: string;
  /** Until when; for ever when null. */
  expires_at?: string | null;
}

/** What to change of a suppression. Unknown fields are refused. */
export interface SuppressionChange {
  /** `manual`, `hard_bounce`, `complaint` or `unsubscribe`. */
  reason?: "manual" | "hard_bounce" | "complaint" | "unsubscribe" | null;
  /** More about it, at most 500 characters; `null` takes it away. */
  note?: string | null;
  /** Until when, as RFC 3339 or Unix seconds; `null` means for ever. */
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
  /** By address. */
  data: Array<Suppression>;
  /** Give this as `cursor` for the next; null at the end. */
  next_cursor?: string | null;
}

/** Addresses to suppress: one, or many that share the rest. Unknown fields are refused. */
export interface SuppressionRequest {
  /** The address; this or `addresses`. */
  address?: string | null;
  /** At most 1,000 addresses. */
  addresses?: Array<string> | null;
  /** `manual` (default), `hard_bounce`, `complaint` or `unsubscribe`. */
  reason?: "manual" | "hard_bounce" | "complaint" | "unsubscribe" | null;
  /** More about it, at most 500 characters. */
  note?: string | null;
  /** Until when, as RFC 3339 or Unix seconds; for ever when absent. */
  expires_at?: string | null;
}

/** A template in one of its versions. */
export interface Template {
  /** Its name. */
  name: string;
  /** Its version, from 1. */
  version: number;
  /** The subject. */
  subject: string;
  /** The html part. */
  html?: string | null;
  /** The text part; made from the html when null. */
  text?: string | null;
  /** The html part as MJML, in the place of `html`. */
  mjml?: string | null;
  /** What it is for. */
  description?: string | null;
  /** Variables to preview it with. */
  sample?: Record<string, unknown> | null;
  /** When this version was made. */
  created_at: string;
}

/** A page of templates, or of the versions of one. */
export interface TemplateList {
  /** Without their sources. */
  data: Array<TemplateSummary>;
  /** Give this as `cursor` for the next; null at the end. */
  next_cursor?: string | null;
}

/** A template to make. Unknown fields are refused; all sources together have at most 1 MiB. */
export interface TemplateRequest {
  /** Its name, unique in your tenant: 1 to 128 of `A-Z a-z 0-9 . _ -`. With `PUT` the path has it. */
  name?: string | null;
  /** The subject. */
  subject?: string | null;
  /** The html part; what is filled in is escaped. At least one of `html`, `text` and `mjml`. */
  html?: string | null;
  /** The text part; made from the html when absent. */
  text?: string | null;
  /** The html part as MJML; this or `html`. */
  mjml?: string | null;
  /** What it is for, at most 500 characters. */
  description?: string | null;
  /** Variables to preview it with. */
  sample?: Record<string, unknown> | null;
  /** With `PUT`: only if the latest version is this one. */
  version?: number | null;
  /** Shown only; it may be sent back as it was. */
  created_at?: string;
}

/** A template without its sources. */
export interface TemplateSummary {
  /** Its name. */
  name: string;
  /** Its version, from 1. */
  version: number;
  /** The subject. */
  subject: string;
  /** What it has of `html`, `text` and `mjml`. */
  parts: Array<string>;
  /** What it is for. */
  description?: string | null;
  /** When this version was made. */
  created_at: string;
}

/** A template to fill in. */
export interface TemplateUse {
  /** Its name. */
  name: string;
  /** Its version; the latest when absent. */
  version?: number | null;
  /** What to fill in; a variable that the template uses and this lacks is an error. At most 1 MiB of JSON and 50,000 values. */
  variables?: Record<string, unknown> | null;
}

/** A tenant. */
export interface Tenant {
  /** Its id. */
  id: string;
  /** Its name for people. */
  name: string;
  /** Whether all its mail is held. */
  suspended: boolean;
  /** Since when. */
  suspended_since?: string | null;
  /** The account its mail takes when it names none. */
  default_account?: string | null;
  /** Its share where tenants compete, against the others' weights. */
  weight: number;
  /** Bounds of what it may send; null means the gateway's own. */
  content: ContentLimits;
  /** The older spelling of `report_retention_seconds`, in days. */
  retention_days?: number | null;
  /** How long messages are kept once they ended and were reported; null means as long as the gateway is configured for, which is 604,800 unless it says otherwise. */
  report_retention_seconds?: number | null;
  /** How many days messages are kept that ended and could not be reported; null means 90. */
  unreported_retention_days?: number | null;
  client_sync?: Remote | null;
  attachment_endpoint?: Remote | null;
  /** How its reports are written: `event`, `outbox` or `batch`. */
  callback_form: "event" | "outbox" | "batch";
  /** What becomes of attachments too large to mail. */
  large_files: LargeFiles;
  /** The domain its bounces come back to. */
  bounce_domain?: string | null;
  /** The envelope sender of mail that names none, by accounts that name none. */
  return_path?: string | null;
  /** Whom mail is from that names nobody. */
  default_from?: string | null;
  /** Who it is to receivers that count complaints (`Feedback-ID`). */
  feedback_id?: string | null;
  /** Whether its mail says that a program sent it (`Auto-Submitted`). */
  auto_submitted: boolean;
  /** Whether it is there for tests: what its sandbox captures counts as sent. */
  test: boolean;
  /** The name of a field in which its mail has the client's own id. */
  id_header?: string | null;
  /** What becomes of mail in doubt, where neither the mail nor its account says it; null for `resend`. */
  on_doubt?: "resend" | "hold" | null;
  /** Whom its mail may be from: addresses, domains, patterns; anybody when empty. */
  allowed_senders: Array<string>;
  /** Whether `Reply-To` must be one of them, too. */
  bind_reply_to: boolean;
  /** Rises with each change. */
  version: number;
  /** When it was made. */
  created_at: string;
  /** When it was changed last. */
  updated_at: string;
}

/** A page of tenants. */
export interface TenantList {
  /** By id. */
  data: Array<Tenant>;
  /** Give this as `cursor` for the next; null at the end. */
  next_cursor?: string | null;
}

/** A tenant to make or change. Unknown fields are refused. */
export interface TenantRequest {
  /** Its id, 1 to 64 of `A-Z a-z 0-9 . _ -`; needed when it is made, and fixed then. */
  id?: string | null;
  /** Its name for people; the id when absent. */
  name?: string | null;
  /** Its share where tenants compete, 1 to 10,000. */
  weight?: number | null;
  /** The account its mail takes when it names none; it must exist. */
  default_account?: string | null;
  /** Bounds of what it may send. */
  content?: ContentRequest | null;
  /** The older spelling of `report_retention_seconds`, in days; only one of them may be given. */
  retention_days?: number | null;
  /** How long messages are kept once they ended and were reported; 0 takes them away with the next sweep. */
  report_retention_seconds?: number | null;
  /** How many days messages are kept that ended and could not be reported, at most 3,650; never shorter than the other. */
  unreported_retention_days?: number | null;
  /** Where its delivery reports go. */
  client_sync?: RemoteRequest | null;
  /** Where attachments named by `endpoint` are fetched. */
  attachment_endpoint?: RemoteRequest | null;
  /** How its reports are written: `event` (default), `outbox` or `batch`. */
  callback_form?: "event" | "outbox" | "batch" | null;
  /** What becomes of attachments too large to mail: all of it, or the policy alone, as a text. */
  large_files?: "reject" | "warn" | "rewrite" | "link" | Record<string, unknown> | null;
  /** The domain its bounces come back to. */
  bounce_domain?: string | null;
  /** The envelope sender of mail that names none, by accounts that name none. */
  return_path?: string | null;
  /** Whom mail is from that names nobody. */
  default_from?: string | null;
  /** Who it is to receivers that count complaints (`Feedback-ID`): 5 to 15 of `A-Z a-z 0-9 . _ -`. */
  feedback_id?: string | null;
  /** Whether its mail says that a program sent it (`Auto-Submitted`), so that no holiday notice answers. */
  auto_submitted?: boolean | null;
  /** Whether it is there for tests: what its sandbox captures counts as sent, and doors take mail for it. */
  test?: boolean | null;
  /** The name of a field in which its mail has the client's own id: `X-` and up to 60 of `A-Z a-z 0-9 -`. */
  id_header?: string | null;
  /** What becomes of mail in doubt, where neither the mail nor its account says it: `resend` (default), or `hold`, which never sends twice. */
  on_doubt?: "resend" | "hold" | null;
  /** Whom its mail may be from (`From`, `Sender`, envelope sender), whichever way it comes in: addresses, domains, and patterns such as `*.example.com`, 200 at most; anybody when empty. */
  allowed_senders?: Array<string> | null;
  /** Whether `Reply-To` must be one of them, too. */
  bind_reply_to?: boolean | null;
  /** With `PATCH`: only if the tenant still has this version. */
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
  /** Of how many messages. */
  sample: number;
}

/** A rule and a mail to try it on. Unknown fields are refused. */
export interface TrialRequest {
  /** A rule that need not be stored; its `match` and `actions` are enough. This or `id`. */
  rule?: RuleRequest | null;
  /** A stored rule. */
  id?: string | null;
  /** A mail that came in, by its id. This or `raw`. */
  inbound?: string | null;
  /** A mail of at most 25 MiB, in base64. Everything else has at most 1 MiB and 20,000 values. */
  raw?: string | null;
}

/** How a condition fared. */
export interface TriedCondition {
  /** Whether it holds. */
  holds: boolean;
  /** Why, or why not. */
  why: string;
}

/** A part of a search, as it was understood. */
export interface UnderstoodTerm {
  /** The filter that it is: `id`, `recipient`, `domain`, `text`, `subject`, `tag`, `error_code`, `message_id`, `external_id`, `status`, `outcome`, `account` or `batch`. */
  name: string;
  /** What it is compared with. */
  value: string;
}

/** Where a reader gets off a list: either or both. */
export interface Unsubscribe {
  /** Where the reader's mail program posts, with one click (RFC 8058): an `https://` address. */
  url?: string | null;
  /** Where it writes. */
  mailto?: string | null;
}

/** What counts against the limits now; null where there is none. */
export interface Used {
  /** Against `per_minute`. */
  minute?: number | null;
  /** Against `per_hour`. */
  hour?: number | null;
  /** Against `per_day`. */
  day?: number | null;
}

/** What was found. */
export interface VerifiedToken {
  /** Whether it is good. */
  valid: boolean;
  /** Why it is not: `malformed`, `unknown`, `path`, `code`, `attempts`, `expired`, `consumed` or `revoked`. */
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

/** What to verify. */
export interface VerifyToken {
  /** The token of the link. */
  token: string;
  /** The path of the link, which the token is signed for. */
  path: string;
  /** The code of the mail, where the reader was asked for it. */
  code?: string | null;
  /** Whether a good token is consumed with it; an activation then activates its account. */
  consume?: boolean | null;
}

/** A daily limit that grows. */
export interface WarmUp {
  /** When the first day begins. */
  from: string;
  /** How much may be sent on the first, second, … day. */
  per_day: Array<number>;
}

/** A daily limit that grows. */
export interface WarmUpRequest {
  /** When the first day begins, as RFC 3339 or Unix seconds; now when absent. */
  from?: string | null;
  /** How much may be sent on the first, second, … day; at most 90 days. */
  per_day: Array<number>;
}

/** A webhook. */
export interface Webhook {
  /** Its id; `client_sync` for the one in the tenant's settings. */
  id: string;
  /** How it is told: `webhook`, or for `client_sync` also `callback` or `sync`. */
  kind: "webhook" | "callback" | "sync";
  /** Where it is; null for `client_sync`, which is where the tenant's settings say. */
  url?: string | null;
  /** In whose words it is called, `postway` or `resend`; null for `client_sync` where its `kind` is another. */
  form?: string | null;
  /** Of what it is told: names of events, or `*` for all. */
  events: Array<"email.accepted" | "email.invalid" | "email.deferred" | "email.sent" | "email.failed" | "email.recipient_failed" | "email.in_doubt" | "email.resent" | "email.resolved" | "email.cancelled" | "email.expired" | "email.suppressed" | "email.replayed" | "email.delivered" | "email.delayed" | "email.bounced" | "email.complained" | "email.auto_replied" | "email.pec.accepted" | "email.pec.taken_over" | "email.pec.delivered" | "email.pec.failed" | "email.pec.timeout" | "email.received" | "email.unproven_report" | "email.captured" | "email.unsubscribed" | "email.resubscribed" | "email.replied" | "*">;
  /** What it is for, in your words. */
  description?: string | null;
  /** Whether it is told at all. While it is not, nothing is collected for it. */
  active: boolean;
  /** Why it is not, where nobody asked for that: it answered 410. */
  disabled_reason?: string | null;
  /** Not called before this time, as it asked. */
  quiet_until?: string | null;
  /** Rises with each change. */
  version: number;
  /** When it was made: it is told of what happens from then on. */
  created_at: string;
  /** When it was changed last. */
  updated_at: string;
}

/** A tenant's webhooks. */
export interface WebhookList {
  /** By id, which is by age. */
  data: Array<Webhook>;
  /** Where to go on, if there are more. */
  next_cursor?: string | null;
}

/** A webhook to make or change. Unknown fields are refused. */
export interface WebhookRequest {
  /** Where to call, `http://` or `https://`; needed when it is made. Private hosts are refused unless the operator allows them (`POSTWAY_ALLOW_PRIVATE_TARGETS`). */
  url?: string | null;
  /** Of what: names of events, or `["*"]` (default) for all. */
  events?: Array<"email.accepted" | "email.invalid" | "email.deferred" | "email.sent" | "email.failed" | "email.recipient_failed" | "email.in_doubt" | "email.resent" | "email.resolved" | "email.cancelled" | "email.expired" | "email.suppressed" | "email.replayed" | "email.delivered" | "email.delayed" | "email.bounced" | "email.complained" | "email.auto_replied" | "email.pec.accepted" | "email.pec.taken_over" | "email.pec.delivered" | "email.pec.failed" | "email.pec.timeout" | "email.received" | "email.unproven_report" | "email.captured" | "email.unsubscribed" | "email.resubscribed" | "email.replied" | "*"> | null;
  /** In whose words it is called: `postway` (default), or `resend` for receivers that were written for Resend. */
  form?: string | null;
  /** What it is for, at most 500 characters. */
  description?: string | null;
  /** Whether it is told at all. Switching it on forgets why it was off. */
  active?: boolean | null;
  /** With `PATCH`: only if the webhook still has this version. */
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

/** What came of a test call. */
export interface WebhookTest {
  /** Whether it would have acknowledged. */
  ok: boolean;
  /** The HTTP status, if an answer came. */
  status?: number | null;
  /** How long it took. */
  latency_ms: number;
  /** What was answered, shortened, or what went wrong. */
  answer: string;
}

/** A webhook with a secret that was made just now. */
export interface WebhookWithSecret {
  /** Its id; `client_sync` for the one in the tenant's settings. */
  id: string;
  /** How it is told: `webhook`, or for `client_sync` also `callback` or `sync`. */
  kind: "webhook" | "callback" | "sync";
  /** Where it is; null for `client_sync`, which is where the tenant's settings say. */
  url?: string | null;
  /** In whose words it is called, `postway` or `resend`; null for `client_sync` where its `kind` is another. */
  form?: string | null;
  /** Of what it is told: names of events, or `*` for all. */
  events: Array<"email.accepted" | "email.invalid" | "email.deferred" | "email.sent" | "email.failed" | "email.recipient_failed" | "email.in_doubt" | "email.resent" | "email.resolved" | "email.cancelled" | "email.expired" | "email.suppressed" | "email.replayed" | "email.delivered" | "email.delayed" | "email.bounced" | "email.complained" | "email.auto_replied" | "email.pec.accepted" | "email.pec.taken_over" | "email.pec.delivered" | "email.pec.failed" | "email.pec.timeout" | "email.received" | "email.unproven_report" | "email.captured" | "email.unsubscribed" | "email.resubscribed" | "email.replied" | "*">;
  /** What it is for, in your words. */
  description?: string | null;
  /** Whether it is told at all. While it is not, nothing is collected for it. */
  active: boolean;
  /** Why it is not, where nobody asked for that: it answered 410. */
  disabled_reason?: string | null;
  /** Not called before this time, as it asked. */
  quiet_until?: string | null;
  /** Rises with each change. */
  version: number;
  /** When it was made: it is told of what happens from then on. */
  created_at: string;
  /** When it was changed last. */
  updated_at: string;
  /** What its calls are signed with. It is shown this once. */
  secret: string;
}

/** A line that was left out. */
export interface WrongLine {
  /** Its number, from 1. */
  line: number;
  /** What is wrong with it. */
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

export interface GetMetricsOptions extends CallOptions {
}

export interface ShowUnsubscribeOptions extends CallOptions {
}

export interface UnsubscribeOptions extends CallOptions {
}

export interface ListAccountsOptions extends CallOptions {
  /** How many, 1 to 500; all of them when absent */
  limit?: number;
  /** Where to go on: the `next_cursor` of the page before */
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
  /** Also where rules forward by it: their mail fails until they are changed */
  force?: boolean;
}

export interface ActivateAccountOptions extends CallOptions {
}

export interface SuspendAccountOptions extends CallOptions {
}

export interface TestAccountOptions extends CallOptions {
}

export interface ListAuditOptions extends CallOptions {
  /** Only what was done to this tenant */
  tenant?: string;
  /** `json` (default), or `jsonl` for all of it, one entry a line */
  format?: "json" | "jsonl";
  /** How many, 1 to 500; 50 when absent */
  limit?: number;
  /** Where to go on: the `next_cursor` of the page before */
  cursor?: string;
}

export interface ListBatchesOptions extends CallOptions {
  /** How many, 1 to 500; 50 when absent */
  limit?: number;
  /** Where to go on: the `next_cursor` of the page before */
  cursor?: string;
}

export interface GetBatchOptions extends CallOptions {
}

export interface ActivateBatchOptions extends CallOptions {
}

export interface SuspendBatchOptions extends CallOptions {
}

export interface CleanUpOptions extends CallOptions {
  /** How old they must be at least, up to 315,360,000; 0 for all */
  older_than_seconds?: number;
}

export interface ListContactsOptions extends CallOptions {
  /** Only the one of this name */
  name?: string;
  /** How many, 1 to 500; 50 when absent */
  limit?: number;
  /** Where to go on: the `next_cursor` of the page before */
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
  /** Only the one that the relay calls so */
  provider_message_id?: string;
  /** Only those whose subject contains this, in any case */
  subject?: string;
  /** Only those whose failure has this code */
  error_code?: string;
  /** Accepted at or after this time */
  since?: string;
  /** Accepted before this time */
  until?: string;
  /** How many, 1 to 500; 50 when absent */
  limit?: number;
  /** Where to go on: the `next_cursor` of the page before */
  cursor?: string;
}

export interface ReplayDeadLettersOptions extends CallOptions {
}

export interface ListSigningKeysOptions extends CallOptions {
  /** Only those of this domain */
  domain?: string;
  /** How many, 1 to 500; all of them when absent */
  limit?: number;
  /** Where to go on: the `next_cursor` of the page before */
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

export interface EraseAddressOptions extends CallOptions {
}

export interface ReadEventsOptions extends CallOptions {
  /** A cursor, or `now` for what comes from now on; when absent, all that is kept */
  after?: string;
  /** How many, 1 to 500; 50 when absent */
  limit?: number;
  /** How many seconds to wait for news, at most 30 */
  wait?: number;
}

export interface ListInboundOptions extends CallOptions {
  /** Only those of this mailbox */
  mailbox?: string;
  /** Only those that stand so: `received`, `routing`, `routed`, `no_match`, `gone`, `waiting` or `dead` */
  status?: "received" | "routing" | "routed" | "no_match" | "gone" | "waiting" | "dead";
  /** Only those of this kind: `bounce`, `delay`, `success`, `complaint`, `pec`, `auto_reply` or `ordinary` */
  kind?: "bounce" | "delay" | "success" | "complaint" | "pec" | "auto_reply" | "ordinary";
  /** How many, 1 to 500; 50 when absent */
  limit?: number;
  /** Where to go on: the `next_cursor` of the page before */
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
  /** Where to go on: the `next_cursor` of the page before */
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
  /** One text for all: an address or part of one, `@domain`, an id or uid, `<Message-ID>`, a failure's code, words of the subject, or `tag:`, `subject:`, `to:`, `id:`, `external:`, `code:`, `status:`, `outcome:`, `account:`, `batch:` before a value. Nothing is refused; `understood` says what it was taken for */
  q?: string;
  /** Only those in this state */
  status?: "accepted" | "validating" | "ready" | "scheduled" | "sending" | "sent" | "failed" | "invalid" | "in_doubt" | "suppressed" | "cancelled" | "expired" | "captured";
  /** Only those of which a recipient came to this after it was sent */
  outcome?: "delivered" | "delayed" | "bounced" | "complained" | "auto_replied" | "pec_accepted" | "pec_taken_over" | "pec_delivered" | "pec_failed" | "pec_timeout";
  /** Only those that this holds back now: `any`, `tenant`, `batch:CODE`, `account:ID`, `limit:ID`, `circuit:ID`, or `doubt` for those that wait for your word */
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
  /** Only those that came with this request */
  request_id?: string;
  /** Only the one that the relay calls so */
  provider_message_id?: string;
  /** Only those whose latest failure has this code, such as `smtp_550` */
  error_code?: string;
  /** Accepted at or after this time */
  since?: string;
  /** Accepted before this time */
  until?: string;
  /** Whether to count all that match, up to 100,000 */
  count?: boolean;
  /** How many, 1 to 500; 50 when absent */
  limit?: number;
  /** Where to go on: the `next_cursor` of the page before */
  cursor?: string;
}

export interface SendMessageOptions extends CallOptions {
  /** Only check; store nothing. Files are fetched: for four dry runs of a tenant at once, others are 503 */
  dry_run?: boolean;
  /** Take a subject as long as headers may be, where the tenant has set no bound of its own */
  any_subject?: boolean;
  /** Names this request, for repeats */
  idempotency_key?: string | null;
  /** `resend` or `hold` for mail that does not say it itself */
  on_doubt?: "resend" | "hold" | null;
}

export interface SendBatchOptions extends CallOptions {
  /** Only check; store nothing */
  dry_run?: boolean;
  /** Take subjects as long as headers may be, where the tenant has set no bound of its own */
  any_subject?: boolean;
  /** Names this batch, for repeats */
  idempotency_key?: string | null;
  /** `resend` or `hold` for mail that does not say it itself */
  on_doubt?: "resend" | "hold" | null;
}

export interface SendRawMessageOptions extends CallOptions {
  /** Your own id of it, unique in your tenant */
  id?: string;
  /** The account to send by */
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
  /** `resend` or `hold` when the relay's last answer is lost */
  on_doubt?: "resend" | "hold";
  /** A label; may be repeated */
  tag?: Array<string>;
  /** Hide it from every reader; removed once it is sent */
  sensitive?: boolean;
  /** Only check; store nothing */
  dry_run?: boolean;
  /** Names this request, for repeats */
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
  /** Where to go on: the `next_cursor` of the page before */
  cursor?: string;
}

export interface ExplainMessageOptions extends CallOptions {
}

export interface GetMessagePayloadOptions extends CallOptions {
}

export interface ListPecReceiptsOptions extends CallOptions {
  /** How many, 1 to 500; 50 when absent */
  limit?: number;
  /** Where to go on: the `next_cursor` of the page before */
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
  /** Where to go on: the `next_cursor` of the page before */
  cursor?: string;
}

export interface ListOutboxSourcesOptions extends CallOptions {
  /** How many, 1 to 500; all of them when absent */
  limit?: number;
  /** Where to go on: the `next_cursor` of the page before */
  cursor?: string;
}

export interface GetOverviewOptions extends CallOptions {
}

export interface ListRecipientsOptions extends CallOptions {
  /** Only those with this address, in any case */
  address?: string;
  /** Only the one that you call so */
  external_id?: string;
  /** Only the one with this personal number */
  personal_number?: string;
  /** How many, 1 to 500; 50 when absent */
  limit?: number;
  /** Where to go on: the `next_cursor` of the page before */
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

export interface ListRulesOptions extends CallOptions {
  /** Only those of this mailbox */
  mailbox?: string;
  /** How many, 1 to 500; all of them when absent */
  limit?: number;
  /** Where to go on: the `next_cursor` of the page before */
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
  /** Those that hold for every tenant; for the admin key */
  installation?: boolean;
  /** How many, 1 to 500; 50 when absent */
  limit?: number;
  /** Where to go on: the `next_cursor` of the page before */
  cursor?: string;
}

export interface CreateScopedSuppressionOptions extends CallOptions {
}

export interface DeleteScopedSuppressionOptions extends CallOptions {
  /** The stream, where it is of one */
  stream?: string;
  /** Whether it holds for every tenant; for the admin key */
  installation?: boolean;
}

export interface RotateSecretsOptions extends CallOptions {
}

export interface GetStatisticsOptions extends CallOptions {
  /** `hour` (default) or `day`, in UTC */
  by?: "hour" | "day";
  /** From the hour or day that this is in; when absent, a day back by hour, 30 days back by day */
  since?: string;
  /** Until before this time; now when absent. At most 31 days by hour, 366 by day */
  until?: string;
  /** Only this account */
  account?: string;
  /** How many, 1 to 500; all of them when absent */
  limit?: number;
  /** Where to go on: the `next_cursor` of the page before */
  cursor?: string;
}

export interface GetStatsOptions extends CallOptions {
}

export interface ListStreamsOptions extends CallOptions {
  /** How many, 1 to 500; 50 when absent */
  limit?: number;
  /** Where to go on: the `next_cursor` of the page before */
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

export interface ListSuppressionsOptions extends CallOptions {
  /** How many, 1 to 500; 50 when absent */
  limit?: number;
  /** Where to go on: the `next_cursor` of the page before */
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
  /** Where to go on: the `next_cursor` of the page before */
  cursor?: string;
}

export interface CreateTemplateOptions extends CallOptions {
}

export interface PreviewSourceOptions extends CallOptions {
}

export interface GetTemplateOptions extends CallOptions {
  /** In this version; the latest when absent */
  version?: number;
}

export interface PutTemplateOptions extends CallOptions {
}

export interface DeleteTemplateOptions extends CallOptions {
}

export interface PreviewTemplateOptions extends CallOptions {
}

export interface ListTemplateVersionsOptions extends CallOptions {
  /** How many, 1 to 500; 50 when absent */
  limit?: number;
  /** Where to go on: the `next_cursor` of the page before */
  cursor?: string;
}

export interface GetOwnTenantOptions extends CallOptions {
}

export interface ListTenantsOptions extends CallOptions {
  /** How many, 1 to 500; 50 when absent */
  limit?: number;
  /** Where to go on: the `next_cursor` of the page before */
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
  /** Its id again */
  confirm: string;
}

export interface ActivateTenantOptions extends CallOptions {
}

export interface ListKeysOptions extends CallOptions {
  /** How many, 1 to 500; all of them when absent */
  limit?: number;
  /** Where to go on: the `next_cursor` of the page before */
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

export interface ListWebhooksOptions extends CallOptions {
  /** How many, 1 to 500; all of them when absent */
  limit?: number;
  /** Where to go on: the `next_cursor` of the page before */
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
  /** Where to go on: the `next_cursor` of the page before */
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
  /** Is the process alive? (`GET /health/live`). Answers as long as the process serves requests, whatever its database does. For liveness probes; no key is needed. */
  getLiveness(options?: GetLivenessOptions): Promise<Health>;
  /** Can it take mail? (`GET /health/ready`). 200 when something could be written just now, 503 otherwise. */
  getReadiness(options?: GetReadinessOptions): Promise<Health>;
  /** Show metrics (`GET /metrics`). In Prometheus' text form. No key is needed unless `telemetry.metrics_key` is set: then that one, or the admin key. */
  getMetrics(options?: GetMetricsOptions): Promise<string>;
  /** Show the page of an unsubscribe link (`GET /unsubscribe/{token}`). For the reader of a mail, in the language of the browser. It changes nothing. It needs no key. */
  showUnsubscribe(token: string, options?: ShowUnsubscribeOptions): Promise<string>;
  /** Leave a stream, or come back (`POST /unsubscribe/{token}`). A form says what to do: what a mail program posts by itself (RFC 8058: `List-Unsubscribe=One-Click`), or what the buttons of the page post, `unsubscribe=1` or `undo=1`. Asking twice is asking once. It needs no key. */
  unsubscribe(token: string, options?: UnsubscribeOptions): Promise<string>;
  /** List accounts (`GET /v1/accounts`). All accounts of your tenant in the order of their ids, without their secrets, each with its circuit and how much of its limits is used. */
  listAccounts(options?: ListAccountsOptions): Promise<AccountList>;
  /** Everything that `listAccounts` lists, fetched page by page; `limit` is the size of a page. */
  allAccounts(options?: Omit<ListAccountsOptions, "cursor">): AsyncGenerator<Account, void, undefined>;
  /** Create an account (`POST /v1/accounts`). Settings are checked as a whole, and nothing is called: `POST /v1/accounts/{id}/test` tries them. 409 where the id is taken. */
  createAccount(body: AccountRequest, options?: CreateAccountOptions): Promise<Account>;
  /** Show an account (`GET /v1/accounts/{id}`). With how it stands: whether it is suspended, whether and why its circuit is open, what it has used of its limits. */
  getAccount(id: string, options?: GetAccountOptions): Promise<Account>;
  /** Replace an account's settings (`PUT /v1/accounts/{id}`). Fields that are not given take their defaults; the password or secret key stays unless one is given, or the mail goes elsewhere. With `version`, only if it still is that one; 409 otherwise. */
  replaceAccount(id: string, body: AccountRequest, options?: ReplaceAccountOptions): Promise<Account>;
  /** Change an account (`PATCH /v1/accounts/{id}`). Changes the fields given and leaves the rest. Another host, port, region, endpoint or base_url, and less protection on the way, need the password or key again. With `version`, only if it still is that one; 409 otherwise. */
  changeAccount(id: string, body: AccountRequest, options?: ChangeAccountOptions): Promise<Account>;
  /** Delete an account (`DELETE /v1/accounts/{id}`). 409 while mail waits for it, while it is its tenant's default, while another account falls back to it, or, unless `force` says otherwise, while a rule forwards by it. */
  deleteAccount(id: string, options?: DeleteAccountOptions): Promise<void>;
  /** Activate an account (`POST /v1/accounts/{id}/activate`). Its held mail goes on. */
  activateAccount(id: string, options?: ActivateAccountOptions): Promise<Account>;
  /** Suspend an account (`POST /v1/accounts/{id}/suspend`). Its mail stays where it is, on every node; mail is still accepted. What is on the wire finishes. */
  suspendAccount(id: string, options?: SuspendAccountOptions): Promise<Account>;
  /** Test an account (`POST /v1/accounts/{id}/test`). Connects, secures and signs in; with `to`, a test mail goes through the account as well. The answer is 200 also where a step fails: `ok` says so. */
  testAccount(id: string, body?: AccountTestRequest, options?: TestAccountOptions): Promise<AccountTest>;
  /** Read the audit log (`GET /v1/audit`). For the admin key. Every call that changed a tenant, key, account, batch, suppression, template, recipient, signing key, webhook, mailbox, rule or contact, or removed messages, newest first. With `format=jsonl`, or `Accept: application/x-ndjson`, all of it comes as JSON lines. */
  listAudit(options?: ListAuditOptions): Promise<AuditList>;
  /** Everything that `listAudit` lists, fetched page by page; `limit` is the size of a page. */
  allAudit(options?: Omit<ListAuditOptions, "cursor">): AsyncGenerator<AuditEntry, void, undefined>;
  /** List batches (`GET /v1/batches`). Those that have had messages, and those suspended before their first. */
  listBatches(options?: ListBatchesOptions): Promise<BatchList>;
  /** Everything that `listBatches` lists, fetched page by page; `limit` is the size of a page. */
  allBatches(options?: Omit<ListBatchesOptions, "cursor">): AsyncGenerator<Batch, void, undefined>;
  /** Show a batch (`GET /v1/batches/{code}`). With how many of its messages stand where. */
  getBatch(code: string, options?: GetBatchOptions): Promise<BatchProgress>;
  /** Activate a batch (`POST /v1/batches/{code}/activate`). Its held mail goes on. */
  activateBatch(code: string, options?: ActivateBatchOptions): Promise<Batch>;
  /** Suspend a batch (`POST /v1/batches/{code}/suspend`). Its mail is held where it is, on every node, until the batch is activated. What is on the wire finishes. The code need not have been used yet. */
  suspendBatch(code: string, options?: SuspendBatchOptions): Promise<Batch>;
  /** Remove old messages (`POST /v1/cleanup`). Those that ended and were reported more than `older_than_seconds` ago; the tenant's own `report_retention_seconds`, or the gateway's, when absent. Those whose reports were given up stay for `unreported_retention_days` at least. A call removes for at most 20 seconds and then says that there is `more`. */
  cleanUp(options?: CleanUpOptions): Promise<Cleanup>;
  /** List contacts (`GET /v1/contacts`). With `name`, the one of that name: neither case nor the amount of white space matters. */
  listContacts(options?: ListContactsOptions): Promise<ContactList>;
  /** Everything that `listContacts` lists, fetched page by page; `limit` is the size of a page. */
  allContacts(options?: Omit<ListContactsOptions, "cursor">): AsyncGenerator<Contact, void, undefined>;
  /** Create a contact (`POST /v1/contacts`). 409 where the id or the name is taken. Names are the same whatever their case and spacing. */
  createContact(body: ContactRequest, options?: CreateContactOptions): Promise<Contact>;
  /** Show a contact (`GET /v1/contacts/{id}`). One entry of the directory that rules look names up in. */
  getContact(id: string, options?: GetContactOptions): Promise<Contact>;
  /** Change a contact (`PATCH /v1/contacts/{id}`). Changes the fields given; `addresses` is replaced as a whole. With `version`, only if it still is that one; 409 otherwise. */
  changeContact(id: string, body: ContactRequest, options?: ChangeContactOptions): Promise<Contact>;
  /** Delete a contact (`DELETE /v1/contacts/{id}`). Rules that look its name up find nobody from then on; mail that was sent on stays as it is. */
  deleteContact(id: string, options?: DeleteContactOptions): Promise<void>;
  /** List dead letters (`GET /v1/dead-letters`). Failed messages whose retries ran out, newest first, each with its last `reason`, with the filters of `GET /v1/messages` but `status`. */
  listDeadLetters(options?: ListDeadLettersOptions): Promise<MessageList>;
  /** Everything that `listDeadLetters` lists, fetched page by page; `limit` is the size of a page. */
  allDeadLetters(options?: Omit<ListDeadLettersOptions, "cursor">): AsyncGenerator<MessageSummary, void, undefined>;
  /** Replay dead letters (`POST /v1/dead-letters/replay`). Puts failed messages back in the queue with all their retries. One that cannot be replayed does not stop the others. */
  replayDeadLetters(body: ReplayRequest, options?: ReplayDeadLettersOptions): Promise<ReplayResult>;
  /** List signing keys (`GET /v1/dkim`). All keys of your tenant, each with the DNS record to publish. Private halves are never shown. */
  listSigningKeys(options?: ListSigningKeysOptions): Promise<SigningKeyList>;
  /** Everything that `listSigningKeys` lists, fetched page by page; `limit` is the size of a page. */
  allSigningKeys(options?: Omit<ListSigningKeysOptions, "cursor">): AsyncGenerator<SigningKey, void, undefined>;
  /** Create a signing key (`POST /v1/dkim`). Publish `dns_record` as a TXT record at `dns_name`; receivers cannot verify what it signs before. 409 where domain and selector are taken. */
  createSigningKey(body: SigningKeyRequest, options?: CreateSigningKeyOptions): Promise<SigningKey>;
  /** Show a signing key (`GET /v1/dkim/{domain}/{selector}`). One key with the DNS record to publish. Its private half is never shown. */
  getSigningKey(domain: string, selector: string, options?: GetSigningKeyOptions): Promise<SigningKey>;
  /** Delete a signing key (`DELETE /v1/dkim/{domain}/{selector}`). It cannot be had back. Leave its record published until the mail it signed has arrived, a few days. */
  deleteSigningKey(domain: string, selector: string, options?: DeleteSigningKeyOptions): Promise<void>;
  /** Let a key sign (`POST /v1/dkim/{domain}/{selector}/activate`). Mail of its domain that is composed from now on is signed with it. Publish its record first. */
  activateSigningKey(domain: string, selector: string, options?: ActivateSigningKeyOptions): Promise<SigningKey>;
  /** Stop a key from signing (`POST /v1/dkim/{domain}/{selector}/suspend`). Mail goes on without its signature; mail composed before keeps it. */
  suspendSigningKey(domain: string, selector: string, options?: SuspendSigningKeyOptions): Promise<SigningKey>;
  /** Forget an address (`POST /v1/erase`). Removes it from the messages that have ended. Entries of the suppression list and of the directory of recipients stay: delete them on their own. A call goes on for at most 20 seconds and then says that there is `more`. */
  eraseAddress(body: EraseRequest, options?: EraseAddressOptions): Promise<Erasure>;
  /** Read the feed (`GET /v1/events`). What happened to your messages, in order. Keep the `cursor` of what you have dealt with and give it as `after`; after a crash you get the rest again, so compare `uid` and `sequence`. With `wait`, an answer without news comes only after so many seconds. With `Accept: text/event-stream` the entries come as server-sent events, whose `id` is the cursor. */
  readEvents(options?: ReadEventsOptions): Promise<Feed>;
  /** List inbound mail (`GET /v1/inbound`). Newest first. Every filter given must hold. Unknown parameters are refused. */
  listInbound(options?: ListInboundOptions): Promise<InboundList>;
  /** Everything that `listInbound` lists, fetched page by page; `limit` is the size of a page. */
  allInbound(options?: Omit<ListInboundOptions, "cursor">): AsyncGenerator<InboundSummary, void, undefined>;
  /** Replay inbound mail (`POST /v1/inbound/replay`). Mail that is settled and fits the filter is looked at again, with all its tries and the rules of now. What was sent because of it is not sent again. At most 1,000 of them at a time; `more` says whether to call again. */
  replayInboundAll(body: InboundReplayRequest, options?: ReplayInboundAllOptions): Promise<InboundReplayed>;
  /** Show an inbound mail (`GET /v1/inbound/{id}`). With what was found in it, what was done, and how the messages stand that were sent because of it. */
  getInbound(id: string, options?: GetInboundOptions): Promise<Inbound>;
  /** Get a file of an inbound mail (`GET /v1/inbound/{id}/attachments/{index}`). The bytes of one attachment as they came, to be saved: the answer never opens in a browser. `GET /v1/inbound/{id}/content` lists the files. */
  getInboundAttachment(id: string, index: number, options?: GetInboundAttachmentOptions): Promise<Uint8Array>;
  /** Read an inbound mail (`GET /v1/inbound/{id}/content`). Its header fields and text, decoded, and what is attached. */
  getInboundContent(id: string, options?: GetInboundContentOptions): Promise<MailContent>;
  /** See an inbound mail (`GET /v1/inbound/{id}/preview`). Its html with the images it brings along. Served so that no script runs and nothing is fetched from elsewhere. */
  previewInbound(id: string, options?: PreviewInboundOptions): Promise<string>;
  /** Get an inbound mail itself (`GET /v1/inbound/{id}/raw`). Its bytes as the server gave them. 404 where it could not be read, or is no longer kept. */
  getRawInbound(id: string, options?: GetRawInboundOptions): Promise<Uint8Array>;
  /** Replay an inbound mail (`POST /v1/inbound/{id}/replay`). It is looked at again, with all its tries and the rules of now. What was sent because of it is not sent again. 409 while it is not settled, or where it has no bytes. */
  replayInbound(id: string, options?: ReplayInboundOptions): Promise<Inbound>;
  /** Resolve an inbound mail (`POST /v1/inbound/{id}/resolve`). What it asked for is done: there are no more reminders of it. */
  resolveInbound(id: string, options?: ResolveInboundOptions): Promise<Inbound>;
  /** List mailboxes (`GET /v1/mailboxes`). All watched mailboxes of your tenant, without their secrets, each with how the last look at it went. */
  listMailboxes(options?: ListMailboxesOptions): Promise<MailboxList>;
  /** Everything that `listMailboxes` lists, fetched page by page; `limit` is the size of a page. */
  allMailboxes(options?: Omit<ListMailboxesOptions, "cursor">): AsyncGenerator<Mailbox, void, undefined>;
  /** Create a mailbox (`POST /v1/mailboxes`). It is watched within seconds. 409 where the id is taken, or another mailbox has the same host, username and folder. */
  createMailbox(body: MailboxRequest, options?: CreateMailboxOptions): Promise<Mailbox>;
  /** Show a mailbox (`GET /v1/mailboxes/{id}`). With how far it was read, how far behind that is, and what is wrong with it. */
  getMailbox(id: string, options?: GetMailboxOptions): Promise<Mailbox>;
  /** Change a mailbox (`PATCH /v1/mailboxes/{id}`). Changes the fields given and leaves the rest; `null` gives a setting its default. With `version`, only if it still is that one; 409 otherwise. Another host, username or folder is another place: it is read from its `start`. Another host, port or proxy, and less protection on the way, need the password or token again. */
  changeMailbox(id: string, body: MailboxRequest, options?: ChangeMailboxOptions): Promise<Mailbox>;
  /** Delete a mailbox (`DELETE /v1/mailboxes/{id}`). With its rules, and all that is kept of its mail. Nothing happens to the mail on its server. */
  deleteMailbox(id: string, options?: DeleteMailboxOptions): Promise<void>;
  /** Activate a mailbox (`POST /v1/mailboxes/{id}/activate`). It is read on from where reading ended: what came meanwhile is not missed. */
  activateMailbox(id: string, options?: ActivateMailboxOptions): Promise<Mailbox>;
  /** Suspend a mailbox (`POST /v1/mailboxes/{id}/suspend`). Nothing new is read from it. Mail that is here already is still dealt with. */
  suspendMailbox(id: string, options?: SuspendMailboxOptions): Promise<Mailbox>;
  /** Test a mailbox (`POST /v1/mailboxes/{id}/test`). Connects, secures, signs in and opens the folder. The answer is 200 also where a step fails: `ok` says so. */
  testMailbox(id: string, options?: TestMailboxOptions): Promise<MailboxTest>;
  /** List messages (`GET /v1/messages`). Newest first. Every filter given must hold. Unknown parameters are refused. For one page some thousands are looked at at most: where `next_cursor` is there, go on with it, also after a page with fewer messages than asked for, or none. */
  listMessages(options?: ListMessagesOptions): Promise<MessageList>;
  /** Everything that `listMessages` lists, fetched page by page; `limit` is the size of a page. */
  allMessages(options?: Omit<ListMessagesOptions, "cursor">): AsyncGenerator<MessageSummary, void, undefined>;
  /** Send a mail (`POST /v1/messages`). The answer comes once the mail is durable. The same id or `Idempotency-Key` with the same body gives the same answer again and sends nothing twice; with another body it is 409. A ready-made mail may come as `message/rfc822`, with the query of `POST /v1/messages/raw`. */
  sendMessage(body: MessageRequest, options?: SendMessageOptions): Promise<Receipt>;
  /** Send many mails (`POST /v1/messages/batch`). At most 1,000, whose mails have at most 64 MiB together once they are composed. `defaults` fills what a message leaves out. A refused message does not stop the others. */
  sendBatch(body: BatchRequest, options?: SendBatchOptions): Promise<BatchResult>;
  /** Send a ready-made mail (`POST /v1/messages/raw`). The body is an RFC 5322 mail, sent as it is but for the headers that every mail of Postway carries. Sender and recipients are those in its headers, unless the query names them. */
  sendRawMessage(body: Uint8Array | string, options?: SendRawMessageOptions): Promise<Receipt>;
  /** Show a message (`GET /v1/messages/{id}`). Where it stands, its recipients with what became of each, and its attempts. 404 once it was removed. */
  getMessage(id: string, options?: GetMessageOptions): Promise<Message>;
  /** Get a file of the mail (`GET /v1/messages/{id}/attachments/{index}`). The bytes of one attachment, to be saved: the answer never opens in a browser. `GET /v1/messages/{id}/content` lists the files. 403 for a sensitive message. */
  getMessageAttachment(id: string, index: number, options?: GetMessageAttachmentOptions): Promise<Uint8Array>;
  /** Cancel a message (`POST /v1/messages/{id}/cancel`). Stops a message that is not on the wire yet; 409 otherwise. One that some recipients have got already stays `sent`, or `in_doubt` where they may have, and is not sent to the others. */
  cancelMessage(id: string, options?: CancelMessageOptions): Promise<SettledMessage>;
  /** Read the mail (`GET /v1/messages/{id}/content`). Its header fields and text, decoded, and what is attached. */
  getMessageContent(id: string, options?: GetMessageContentOptions): Promise<MailContent>;
  /** Show a message's history (`GET /v1/messages/{id}/events`). Everything that happened to it, oldest first. */
  getMessageEvents(id: string, options?: GetMessageEventsOptions): Promise<EventList>;
  /** Everything that `getMessageEvents` lists, fetched page by page; `limit` is the size of a page. */
  allMessageEvents(id: string, options?: Omit<GetMessageEventsOptions, "cursor">): AsyncGenerator<Event, void, undefined>;
  /** Explain what holds a message (`GET /v1/messages/{id}/explain`). Every gate that is shut for it now: suspensions of its tenant, batch or account, used-up limits, an open circuit, a busy destination, its schedule, its next retry, a doubt, an isolated node, its turn. */
  explainMessage(id: string, options?: ExplainMessageOptions): Promise<Explanation>;
  /** Get the submitted request (`GET /v1/messages/{id}/payload`). As it came, for as long as the message is kept: JSON, or the mail that was handed over ready-made. Of a message in a batch, the message alone. 403 for a sensitive message. */
  getMessagePayload(id: string, options?: GetMessagePayloadOptions): Promise<Uint8Array>;
  /** List a message's receipts (`GET /v1/messages/{id}/pec`). Of certified mail (PEC): acceptance, delivery, failure. `/pec/export` gives them as evidence. */
  listPecReceipts(id: string, options?: ListPecReceiptsOptions): Promise<PecReceiptList>;
  /** Everything that `listPecReceipts` lists, fetched page by page; `limit` is the size of a page. */
  allPecReceipts(id: string, options?: Omit<ListPecReceiptsOptions, "cursor">): AsyncGenerator<PecReceipt, void, undefined>;
  /** Export a message's receipts (`GET /v1/messages/{id}/pec/export`). A zip with the mail as it was sent, each receipt as it came, and a manifest with times, signatures and SHA-256 digests. 413 where all of it has more than 96 MiB: `/v1/inbound/{id}/raw` gives each receipt by itself. 403 for a sensitive message. */
  exportPecReceipts(id: string, options?: ExportPecReceiptsOptions): Promise<Uint8Array>;
  /** See the mail (`GET /v1/messages/{id}/preview`). Its html with the images it brings along. Served so that no script runs and nothing is fetched from elsewhere. */
  previewMessage(id: string, options?: PreviewMessageOptions): Promise<string>;
  /** Get the mail itself (`GET /v1/messages/{id}/raw`). The RFC 5322 bytes as they are sent. Bcc is never among the headers. 404 while it is not composed yet, and 403 for a sensitive message. */
  getRawMessage(id: string, options?: GetRawMessageOptions): Promise<Uint8Array>;
  /** Give a message another time (`POST /v1/messages/{id}/reschedule`). For one that waits for its `send_at`; 409 in any other state. A time that has passed is now. */
  rescheduleMessage(id: string, body: RescheduleRequest, options?: RescheduleMessageOptions): Promise<SettledMessage>;
  /** Settle a message in doubt (`POST /v1/messages/{id}/resolve`). The mail went out and the relay's answer was lost. Say that it was `sent`, that it `failed`, or `resend` it. The word is about the recipients in doubt; others that are still open are sent to. */
  resolveMessage(id: string, body: ResolveRequest, options?: ResolveMessageOptions): Promise<SettledMessage>;
  /** Send a message now (`POST /v1/messages/{id}/retry`). Puts a failed message back in the queue with all its retries, for the recipients that failed; an invalid one has its files fetched anew; one that waits for its next attempt or for its `send_at` becomes due now. 409 in any other state. */
  retryMessage(id: string, options?: RetryMessageOptions): Promise<SettledMessage>;
  /** List nodes (`GET /v1/nodes`). For the admin key. The oldest first. */
  listNodes(options?: ListNodesOptions): Promise<NodeList>;
  /** Everything that `listNodes` lists, fetched page by page; `limit` is the size of a page. */
  allNodes(options?: Omit<ListNodesOptions, "cursor">): AsyncGenerator<Node, void, undefined>;
  /** List outbox sources (`GET /v1/outbox`). All of them for the admin key, a tenant's own for its keys. */
  listOutboxSources(options?: ListOutboxSourcesOptions): Promise<OutboxSourceList>;
  /** Everything that `listOutboxSources` lists, fetched page by page; `limit` is the size of a page. */
  allOutboxSources(options?: Omit<ListOutboxSourcesOptions, "cursor">): AsyncGenerator<OutboxSource, void, undefined>;
  /** Show how the mail is doing (`GET /v1/overview`). Rates, the queue, times in queue, failures, and what is stuck. With `Accept: text/event-stream` it comes anew every two seconds. */
  getOverview(options?: GetOverviewOptions): Promise<Overview>;
  /** List recipients (`GET /v1/recipients`). Those that are not deleted. Every filter given must hold. */
  listRecipients(options?: ListRecipientsOptions): Promise<RecipientList>;
  /** Everything that `listRecipients` lists, fetched page by page; `limit` is the size of a page. */
  allRecipients(options?: Omit<ListRecipientsOptions, "cursor">): AsyncGenerator<KnownRecipient, void, undefined>;
  /** Create a recipient (`POST /v1/recipients`). 409 where the external id is taken. */
  createRecipient(body: RecipientRequest, options?: CreateRecipientOptions): Promise<KnownRecipient>;
  /** Show a recipient (`GET /v1/recipients/{id}`). A deleted one has `deleted_at`; it is found by its id, and by yours until another has it. */
  getRecipient(id: string, options?: GetRecipientOptions): Promise<KnownRecipient>;
  /** Change a recipient (`PATCH /v1/recipients/{id}`). Changes the fields given; `null` takes external id, name or personal number away. With `version`, only if it still is that one; 409 otherwise. */
  changeRecipient(id: string, body: RecipientRequest, options?: ChangeRecipientOptions): Promise<KnownRecipient>;
  /** Delete a recipient (`DELETE /v1/recipients/{id}`). Messages that name it are refused from now on, and those that wait are not sent. Its external id is free again. */
  deleteRecipient(id: string, options?: DeleteRecipientOptions): Promise<void>;
  /** List rules (`GET /v1/rules`). In the order in which they are asked, mailbox by mailbox. */
  listRules(options?: ListRulesOptions): Promise<RuleList>;
  /** Everything that `listRules` lists, fetched page by page; `limit` is the size of a page. */
  allRules(options?: Omit<ListRulesOptions, "cursor">): AsyncGenerator<Rule, void, undefined>;
  /** Create a rule (`POST /v1/rules`). Without a `position` it is asked last. It holds for mail that is dealt with from now on. */
  createRule(body: RuleRequest, options?: CreateRuleOptions): Promise<Rule>;
  /** Try a rule (`POST /v1/rules/dry-run`). Says whether its conditions hold for a mail, what its patterns find, and what would be done. Nothing is done. */
  tryRule(body: TrialRequest, options?: TryRuleOptions): Promise<RuleTrial>;
  /** Show a rule (`GET /v1/rules/{id}`). One rule with its conditions and actions. */
  getRule(id: string, options?: GetRuleOptions): Promise<Rule>;
  /** Change a rule (`PATCH /v1/rules/{id}`). Changes the fields given and leaves the rest; `match` and `actions` are replaced as a whole. With `version`, only if it still is that one; 409 otherwise. */
  changeRule(id: string, body: RuleRequest, options?: ChangeRuleOptions): Promise<Rule>;
  /** Delete a rule (`DELETE /v1/rules/{id}`). Its reminders end. What it has sent on stays sent. */
  deleteRule(id: string, options?: DeleteRuleOptions): Promise<void>;
  /** List scoped suppressions (`GET /v1/scoped-suppressions`). Those of your tenant, or of the whole installation; those whose time is over left out. */
  listScopedSuppressions(options?: ListScopedSuppressionsOptions): Promise<ScopedSuppressionList>;
  /** Everything that `listScopedSuppressions` lists, fetched page by page; `limit` is the size of a page. */
  allScopedSuppressions(options?: Omit<ListScopedSuppressionsOptions, "cursor">): AsyncGenerator<ScopedSuppression, void, undefined>;
  /** Suppress a part of the mail (`POST /v1/scoped-suppressions`). To an address or a pattern of addresses, of one stream or of all. One that is there already is renewed. For an address and all mail of your tenant use `POST /v1/suppressions`. */
  createScopedSuppression(body: ScopedSuppressionRequest, options?: CreateScopedSuppressionOptions): Promise<ScopedSuppression>;
  /** Stop suppressing a part of the mail (`DELETE /v1/scoped-suppressions/{pattern}`). 404 where there is no such suppression: pattern, stream and whether it holds for every tenant must be the same. */
  deleteScopedSuppression(pattern: string, options?: DeleteScopedSuppressionOptions): Promise<void>;
  /** Seal stored secrets anew (`POST /v1/secrets/rotate`). For the admin key. After `POSTWAY_SECRET_KEY` was changed, with the old key in `POSTWAY_SECRET_KEY_PREVIOUS`, on every node. Once nothing is `unreadable` or `busy`, the previous key is needed only for links, codes and return paths that were made under it and are still out. */
  rotateSecrets(options?: RotateSecretsOptions): Promise<Rotation>;
  /** Show what was done (`GET /v1/statistics`). Counts by account and hour or day, also of messages that were removed since. An event counts in the hour in which it happened. */
  getStatistics(options?: GetStatisticsOptions): Promise<Statistics>;
  /** Everything that `getStatistics` lists, fetched page by page; `limit` is the size of a page. */
  allStatistics(options?: Omit<GetStatisticsOptions, "cursor">): AsyncGenerator<StatisticsRow, void, undefined>;
  /** Show counts (`GET /v1/stats`). How many messages are in which state now, how old the oldest waiting ones are, and current rates. `GET /v1/statistics` has the past. */
  getStats(options?: GetStatsOptions): Promise<Stats>;
  /** List streams (`GET /v1/streams`). The kinds of mail that your tenant has named, by id. */
  listStreams(options?: ListStreamsOptions): Promise<StreamList>;
  /** Everything that `listStreams` lists, fetched page by page; `limit` is the size of a page. */
  allStreams(options?: Omit<ListStreamsOptions, "cursor">): AsyncGenerator<Stream, void, undefined>;
  /** Create a stream (`POST /v1/streams`). 409 where the id is taken, or your tenant has as many streams as it may have. */
  createStream(body: StreamRequest, options?: CreateStreamOptions): Promise<Stream>;
  /** Show a stream (`GET /v1/streams/{id}`). One kind of mail, and whether readers can leave it. */
  getStream(id: string, options?: GetStreamOptions): Promise<Stream>;
  /** Change a stream (`PATCH /v1/streams/{id}`). Changes the fields given. With `version`, only if it still is that one; 409 otherwise. */
  changeStream(id: string, body: StreamRequest, options?: ChangeStreamOptions): Promise<Stream>;
  /** Delete a stream (`DELETE /v1/streams/{id}`). Its mail is mail of a batch of that name from then on. Readers who left it get none under its name all the same. */
  deleteStream(id: string, options?: DeleteStreamOptions): Promise<void>;
  /** List suppressed addresses (`GET /v1/suppressions`). Addresses that get no mail of your tenant, in alphabetical order, those whose time is over left out. */
  listSuppressions(options?: ListSuppressionsOptions): Promise<SuppressionList>;
  /** Everything that `listSuppressions` lists, fetched page by page; `limit` is the size of a page. */
  allSuppressions(options?: Omit<ListSuppressionsOptions, "cursor">): AsyncGenerator<Suppression, void, undefined>;
  /** Suppress addresses (`POST /v1/suppressions`). One as `address`, answered with itself, or up to 1,000 as `addresses`, answered with a list. One that is suppressed already is renewed. */
  createSuppression(body: SuppressionRequest, options?: CreateSuppressionOptions): Promise<Suppressed>;
  /** Export suppressed addresses (`GET /v1/suppressions/export`). All of them as CSV with the columns `address,reason,note,created_at,expires_at`. */
  exportSuppressions(options?: ExportSuppressionsOptions): Promise<string>;
  /** Import suppressed addresses (`POST /v1/suppressions/import`). A file of up to 16 MiB: CSV (`text/csv`) with the columns of an export, named in the first line or else `address,reason,note,expires_at`, or JSON lines (`application/x-ndjson`) with an object or an address each. A line has at most 64 KiB, and 32 columns or 100 values. A line that is wrong is skipped, and the answer lists it by its number. What comes as `application/octet-stream` is CSV, unless `format` says otherwise. */
  importSuppressions(body: Uint8Array | string, options?: ImportSuppressionsOptions): Promise<ImportResult>;
  /** Check an address (`GET /v1/suppressions/{address}`). 200 with the particulars if it is suppressed, 404 if it is not. */
  getSuppression(address: string, options?: GetSuppressionOptions): Promise<Suppression>;
  /** Change a suppression (`PATCH /v1/suppressions/{address}`). `reason`, `note`, `expires_at`: what is given changes, `null` takes note and expiry away. */
  changeSuppression(address: string, body: SuppressionChange, options?: ChangeSuppressionOptions): Promise<Suppression>;
  /** Stop suppressing an address (`DELETE /v1/suppressions/{address}`). Mail to it is sent again from now on. 404 where it is not on the list. */
  deleteSuppression(address: string, options?: DeleteSuppressionOptions): Promise<void>;
  /** List templates (`GET /v1/templates`). In their latest versions, without html and text. */
  listTemplates(options?: ListTemplatesOptions): Promise<TemplateList>;
  /** Everything that `listTemplates` lists, fetched page by page; `limit` is the size of a page. */
  allTemplates(options?: Omit<ListTemplatesOptions, "cursor">): AsyncGenerator<TemplateSummary, void, undefined>;
  /** Create a template (`POST /v1/templates`). In version 1; 409 where the name is taken. */
  createTemplate(body: TemplateRequest, options?: CreateTemplateOptions): Promise<Template>;
  /** Preview a template that is not stored (`POST /v1/templates/preview`). A template as for `POST /v1/templates`, which needs no name here, and `variables`. It may extend and include stored ones. Nothing is stored. */
  previewSource(body: SourcePreviewRequest, options?: PreviewSourceOptions): Promise<Preview>;
  /** Show a template (`GET /v1/templates/{name}`). Its sources in the latest version, or in the one asked for. */
  getTemplate(name: string, options?: GetTemplateOptions): Promise<Template>;
  /** Make the next version of a template (`PUT /v1/templates/{name}`). Its first where there is none. The same as the latest once more makes nothing, and is answered 200 with it. With `version`, only if that is still the latest; 409 otherwise. */
  putTemplate(name: string, body: TemplateRequest, options?: PutTemplateOptions): Promise<Template>;
  /** Delete a template (`DELETE /v1/templates/{name}`). With all its versions. Messages accepted with it that are not composed yet become `invalid`. */
  deleteTemplate(name: string, options?: DeleteTemplateOptions): Promise<void>;
  /** Preview a template (`POST /v1/templates/{name}/preview`). Fills it in with `variables`, or with its `sample` where none are given. What a message made so would be refused for is in `warnings`; a variable that is missing is 422 and names it. */
  previewTemplate(name: string, body: PreviewRequest, options?: PreviewTemplateOptions): Promise<Preview>;
  /** List a template's versions (`GET /v1/templates/{name}/versions`). The latest first, without html and text. The oldest go when there are more than 1,000. */
  listTemplateVersions(name: string, options?: ListTemplateVersionsOptions): Promise<TemplateList>;
  /** Everything that `listTemplateVersions` lists, fetched page by page; `limit` is the size of a page. */
  allTemplateVersions(name: string, options?: Omit<ListTemplateVersionsOptions, "cursor">): AsyncGenerator<TemplateSummary, void, undefined>;
  /** Show your tenant (`GET /v1/tenant`). The settings of the tenant that the key belongs to; an admin key names one with `X-Tenant`. They are changed with the admin key. */
  getOwnTenant(options?: GetOwnTenantOptions): Promise<Tenant>;
  /** List tenants (`GET /v1/tenants`). All tenants with their settings, without secrets. For the admin key. */
  listTenants(options?: ListTenantsOptions): Promise<TenantList>;
  /** Everything that `listTenants` lists, fetched page by page; `limit` is the size of a page. */
  allTenants(options?: Omit<ListTenantsOptions, "cursor">): AsyncGenerator<Tenant, void, undefined>;
  /** Create a tenant (`POST /v1/tenants`). It has a `sandbox` account as its default, which captures mail instead of sending it. 409 for an id that is or was in use. */
  createTenant(body: TenantRequest, options?: CreateTenantOptions): Promise<Tenant>;
  /** Show a tenant (`GET /v1/tenants/{id}`). One tenant with its settings, without secrets. For the admin key. */
  getTenant(id: string, options?: GetTenantOptions): Promise<Tenant>;
  /** Change a tenant (`PATCH /v1/tenants/{id}`). Merges what is given into what is there: `null` takes a setting back to its default, a token or password that is not given stays. With `version`, only if it still is that one; 409 otherwise. */
  changeTenant(id: string, body: TenantRequest, options?: ChangeTenantOptions): Promise<Tenant>;
  /** Delete a tenant (`DELETE /v1/tenants/{id}`). With all it has: mail, accounts, keys, suppressions. Say so by repeating its id in `confirm`. It cannot be undone. The tenant `default` stays. */
  deleteTenant(id: string, options: DeleteTenantOptions): Promise<void>;
  /** Activate a tenant (`POST /v1/tenants/{id}/activate`). Its held mail goes on. */
  activateTenant(id: string, options?: ActivateTenantOptions): Promise<Tenant>;
  /** List keys (`GET /v1/tenants/{id}/keys`). Never the keys themselves. */
  listKeys(id: string, options?: ListKeysOptions): Promise<KeyList>;
  /** Everything that `listKeys` lists, fetched page by page; `limit` is the size of a page. */
  allKeys(id: string, options?: Omit<ListKeysOptions, "cursor">): AsyncGenerator<Key, void, undefined>;
  /** Make a key (`POST /v1/tenants/{id}/keys`). The answer holds the key, this once. */
  createKey(id: string, body: KeyRequest, options?: CreateKeyOptions): Promise<NewKeyView>;
  /** Revoke a key (`DELETE /v1/tenants/{id}/keys/{key_id}`). It opens nothing any more: here at once, on other nodes within five seconds. */
  revokeKey(id: string, key_id: string, options?: RevokeKeyOptions): Promise<void>;
  /** Suspend a tenant (`POST /v1/tenants/{id}/suspend`). All its mail is held where it is, on every node; mail is still accepted. What is on the wire finishes. */
  suspendTenant(id: string, options?: SuspendTenantOptions): Promise<Tenant>;
  /** Verify a token (`POST /v1/tokens/verify`). For tokens of an outbox with accounts. The answer is 200 also where the token is not good: `valid` says so. 429 where you ask too often. */
  verifyToken(body: VerifyToken, options?: VerifyTokenOptions): Promise<VerifiedToken>;
  /** List webhooks (`GET /v1/webhooks`). The tenant's own `client_sync` is among them, if it has one. */
  listWebhooks(options?: ListWebhooksOptions): Promise<WebhookList>;
  /** Everything that `listWebhooks` lists, fetched page by page; `limit` is the size of a page. */
  allWebhooks(options?: Omit<ListWebhooksOptions, "cursor">): AsyncGenerator<Webhook, void, undefined>;
  /** Create a webhook (`POST /v1/webhooks`). The secret in the answer is shown this once: it verifies that a call is ours. 409 where there are 100 already. */
  createWebhook(body: WebhookRequest, options?: CreateWebhookOptions): Promise<WebhookWithSecret>;
  /** Show a webhook (`GET /v1/webhooks/{id}`). One webhook, without its secrets. */
  getWebhook(id: string, options?: GetWebhookOptions): Promise<Webhook>;
  /** Change a webhook (`PATCH /v1/webhooks/{id}`). Changes the fields given and leaves the rest. With `version`, only if it still is that one; 409 otherwise. Switching it on clears `disabled_reason`; what waited for it goes on. */
  changeWebhook(id: string, body: WebhookRequest, options?: ChangeWebhookOptions): Promise<Webhook>;
  /** Delete a webhook (`DELETE /v1/webhooks/{id}`). With what it was still to be told. */
  deleteWebhook(id: string, options?: DeleteWebhookOptions): Promise<void>;
  /** List what a webhook was told (`GET /v1/webhooks/{id}/deliveries`). And what it is still to be told: those of the newest messages first, each with its latest call. */
  listDeliveries(id: string, options?: ListDeliveriesOptions): Promise<DeliveryList>;
  /** Everything that `listDeliveries` lists, fetched page by page; `limit` is the size of a page. */
  allDeliveries(id: string, options?: Omit<ListDeliveriesOptions, "cursor">): AsyncGenerator<Delivery, void, undefined>;
  /** Tell a webhook again (`POST /v1/webhooks/{id}/deliveries/{uid}/{sequence}/resend`). Something that it has acknowledged, or that was given up. It is called as soon as possible, under the same `webhook-id`. 409 while it is still to be told, and while the webhook is switched off. */
  resendDelivery(id: string, uid: string, sequence: number, options?: ResendDeliveryOptions): Promise<Delivery>;
  /** Tell a webhook again what was given up (`POST /v1/webhooks/{id}/resend`). All that was to be told in that time and is `dead`, or with `"which":"all"` all that is over. It is told as soon as the webhook takes calls, in order for each message, each under its own `webhook-id`. What is still to be told stays as it is, so a call may be repeated. A call goes on for at most 20 seconds and then has a `next_cursor`. 409 while the webhook is switched off. */
  resendDeliveries(id: string, body: ResendDeliveriesRequest, options?: ResendDeliveriesOptions): Promise<ResentDeliveries>;
  /** Give a webhook a new secret (`POST /v1/webhooks/{id}/rotate`). Calls are signed with the new and the earlier one for a day, at most three at a time: put the new one in place meanwhile. It is shown this once. */
  rotateWebhookSecret(id: string, options?: RotateWebhookSecretOptions): Promise<WebhookWithSecret>;
  /** Test a webhook (`POST /v1/webhooks/{id}/test`). Calls it once with an event of the type `webhook.test`. The answer is 200 also where the call fails: `ok` says so. */
  testWebhook(id: string, options?: TestWebhookOptions): Promise<WebhookTest>;
}
