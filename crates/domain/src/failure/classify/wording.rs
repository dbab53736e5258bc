//! Phrases that say what a reply is about, in lower case. A phrase is here because a server in the field
//! writes it. Servers must not use it for anything else in the phases of its rule.

pub(super) const SENDER_QUOTA: &[&str] = &[
    "daily message quota exceeded",
    "daily sending quota exceeded",
    "daily user sending limit",
    "daily user sending quota",
    "daily smtp relay limit",
    "daily smtp relay sending",
    "submissionquotaexceeded",
    "sending quota exceeded",
    "sending limit exceeded",
    "reached your daily limit",
    "sender quota exceeded",
    "maximum credits exceeded",
];
pub(super) const RATE: &[&str] = &[
    "maximum sending rate",
    "throttling",
    "throttled",
    "rate limit",
    "ratelimit",
    "sending rate",
    "too many messages",
    "too much mail",
    "too many connections",
    "too many concurrent",
    "concurrent connections limit",
    "too many login attempts",
    "thread limit exceeded",
    "receiving mail too quickly",
    "receiving mail at a rate",
    "unexpected volume",
    "unusual rate",
    "connection rate",
    "exceeded the maximum number of",
];
pub(super) const SUSPENDED: &[&str] = &[
    "sending is paused",
    "sending paused",
    "sending is disabled",
    "account is paused",
    "account paused",
    "account suspended",
    "account is suspended",
    "account has been suspended",
    "account is disabled",
    "account disabled",
    "account has been disabled",
    "account is locked",
    "account locked",
    "bad outbound sender",
    "tenant has exceeded threshold",
];
pub(super) const NO_AUTH: &[&str] = &[
    "authentication required",
    "authentication is required",
    "must authenticate",
    "auth first",
    "not authenticated",
    "client was not authenticated",
    "must issue a starttls",
    "starttls first",
];
pub(super) const CLIENT_REFUSED: &[&str] =
    &["client host rejected", "client host [", "helo command rejected", "your ip "];
pub(super) const GREYLIST: &[&str] = &["greylist", "graylist", "grey list", "grey-list", "gray-list"];
pub(super) const TOO_MANY_RECIPIENTS: &[&str] = &["too many recipients", "too many rcpt"];
pub(super) const RELAY: &[&str] = &[
    "relay access denied",
    "relaying denied",
    "relay not permitted",
    "relaying not permitted",
    "unable to relay",
    "not allowed to relay",
    "relay denied",
    "no relaying",
    "rcpthosts",
];
pub(super) const MAILBOX_FULL: &[&str] = &[
    "mailbox full",
    "mailbox is full",
    "mailbox quota",
    "over quota",
    "overquota",
    "quota exceeded",
    "exceeded storage",
    "out of storage",
    "insufficient quota",
];
pub(super) const TOO_LARGE: &[&str] = &[
    "message size exceeds",
    "message too large",
    "message too big",
    "message file too big",
    "message is too large",
    "exceeds maximum message size",
    "exceeded maximum message size",
    "exceeded your message size",
];
pub(super) const SENDER: &[&str] = &[
    "sender address rejected",
    "not owned by user",
    "email address is not verified",
    "sender rejected",
    "sender verify failed",
    "permissions to send as",
    "sendasdenied",
    "from address",
];
pub(super) const SENDER_AT_RCPT: &[&str] =
    &["sender address rejected", "sender verify failed", "not owned by user"];
pub(super) const UNKNOWN_DOMAIN: &[&str] =
    &["domain not found", "unknown domain", "domain does not exist", "no such domain"];
pub(super) const UNKNOWN_USER: &[&str] = &[
    "user unknown",
    "unknown user",
    "no such user",
    "no such recipient",
    "no mailbox here",
    "user not found",
    "recipient not found",
    "unknown recipient",
    "invalid recipient",
    "invalid mailbox",
    "unrouteable address",
    "unroutable address",
    "mailbox not found",
    "no such mailbox",
    "user doesn't exist",
    "user does not exist",
    "mailbox does not exist",
    "account that you tried to reach does not exist",
];
pub(super) const SPAM: &[&str] = &[
    "spam",
    "unsolicited mail",
    "junk mail",
    "blacklist",
    "blocklist",
    "dnsbl",
    "low reputation",
    "bulk mail",
];
pub(super) const VIRUS: &[&str] =
    &["virus", "malware", "phish", "prohibited attachment", "blocked for security"];
