//! The table of every setting: its key in the file, its variable, its kind.
//!
//! This table is the only list of settings: unknown keys of the file and unknown variables of the environment
//! are found by it, and `config print` follows its order.

/// The type of a setting, which also decides how it may be given and shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingKind {
    /// A string.
    Text,
    /// A string that is never shown, and that may come from a file (`…_file`, `…_FILE`).
    Secret,
    /// A URL whose password is never shown, and that may come from a file.
    Url,
    /// A whole number, zero or more.
    Integer,
    /// Strings; in a variable, separated by commas.
    List,
    /// Strings, or one word for several of them; in a variable, separated by commas.
    ListOrWord,
}

impl SettingKind {
    /// Whether the value may come from a file that is named instead.
    pub fn may_come_from_file(self) -> bool {
        matches!(self, Self::Secret | Self::Url)
    }

    /// Advice for a value of another type in the file.
    pub fn expected(self) -> &'static str {
        match self {
            Self::Text | Self::Secret | Self::Url => "a string in quotes",
            Self::Integer => "a whole number without quotes",
            Self::List => "a list of strings, such as [\"a\", \"b\"]",
            Self::ListOrWord => "a string in quotes or a list of strings",
        }
    }
}

/// One setting.
#[derive(Clone, Copy, Debug)]
pub struct ConfigSetting {
    /// Its key in the file, with its section: `http.listen`.
    pub key: &'static str,
    /// The variable that overrides it.
    pub env: &'static str,
    /// The type of its value.
    pub kind: SettingKind,
}

const fn setting(key: &'static str, env: &'static str, kind: SettingKind) -> ConfigSetting {
    ConfigSetting { key, env, kind }
}

/// Every setting, in the order of `config print`: keys without a section first, as TOML wants them.
pub const SETTINGS: &[ConfigSetting] = &[
    setting("data_dir", "POSTWAY_DATA_DIR", SettingKind::Text),
    setting("admin_key", "POSTWAY_ADMIN_KEY", SettingKind::Secret),
    setting("secret_key", "POSTWAY_SECRET_KEY", SettingKind::Secret),
    setting("secret_key_previous", "POSTWAY_SECRET_KEY_PREVIOUS", SettingKind::Secret),
    setting("allow_private_targets", "POSTWAY_ALLOW_PRIVATE_TARGETS", SettingKind::List),
    setting("public_url", "POSTWAY_PUBLIC_URL", SettingKind::Text),
    setting("dns_server", "POSTWAY_DNS_SERVER", SettingKind::Text),
    setting("database.url", "POSTWAY_DATABASE_URL", SettingKind::Url),
    setting("storage.url", "POSTWAY_STORAGE_URL", SettingKind::Url),
    setting("storage.max_inline_bytes", "POSTWAY_STORAGE_MAX_INLINE_BYTES", SettingKind::Integer),
    setting("attachments.folders", "POSTWAY_ATTACHMENTS_FOLDERS", SettingKind::List),
    setting("attachments.max_file_bytes", "POSTWAY_ATTACHMENTS_MAX_FILE_BYTES", SettingKind::Integer),
    setting("attachments.cache_bytes", "POSTWAY_ATTACHMENTS_CACHE_BYTES", SettingKind::Integer),
    setting("spool.folder", "POSTWAY_SPOOL_FOLDER", SettingKind::Text),
    setting("spool.tenant", "POSTWAY_SPOOL_TENANT", SettingKind::Text),
    setting("pec.trust_file", "POSTWAY_PEC_TRUST_FILE", SettingKind::Text),
    setting("outbox.url", "POSTWAY_OUTBOX_URL", SettingKind::Url),
    setting("outbox.tenant", "POSTWAY_OUTBOX_TENANT", SettingKind::Text),
    setting("outbox.kind", "POSTWAY_OUTBOX_KIND", SettingKind::Text),
    setting("outbox.schema", "POSTWAY_OUTBOX_SCHEMA", SettingKind::Text),
    setting("outbox.from", "POSTWAY_OUTBOX_FROM", SettingKind::Text),
    setting("outbox.account", "POSTWAY_OUTBOX_ACCOUNT", SettingKind::Text),
    setting("outbox.batch_limit", "POSTWAY_OUTBOX_BATCH_LIMIT", SettingKind::Integer),
    setting("outbox.batch_timeout", "POSTWAY_OUTBOX_BATCH_TIMEOUT", SettingKind::Text),
    setting("outbox.poll_seconds", "POSTWAY_OUTBOX_POLL_SECONDS", SettingKind::Integer),
    setting("outbox.accounts_schema", "POSTWAY_OUTBOX_ACCOUNTS_SCHEMA", SettingKind::Text),
    setting("outbox.link_base_url", "POSTWAY_OUTBOX_LINK_BASE_URL", SettingKind::Text),
    setting("outbox.activation_path", "POSTWAY_OUTBOX_ACTIVATION_PATH", SettingKind::Text),
    setting("outbox.recovery_path", "POSTWAY_OUTBOX_RECOVERY_PATH", SettingKind::Text),
    setting("outbox.link_key", "POSTWAY_OUTBOX_LINK_KEY", SettingKind::Secret),
    setting("http.listen", "POSTWAY_HTTP_LISTEN", SettingKind::Text),
    setting("http.max_message_bytes", "POSTWAY_HTTP_MAX_MESSAGE_BYTES", SettingKind::Integer),
    setting("http.max_request_bytes", "POSTWAY_HTTP_MAX_REQUEST_BYTES", SettingKind::Integer),
    setting("http.max_connections", "POSTWAY_HTTP_MAX_CONNECTIONS", SettingKind::Integer),
    setting(
        "http.max_connections_per_client",
        "POSTWAY_HTTP_MAX_CONNECTIONS_PER_CLIENT",
        SettingKind::Integer,
    ),
    setting("http.trusted_proxies", "POSTWAY_HTTP_TRUSTED_PROXIES", SettingKind::List),
    setting("http.forwarded_header", "POSTWAY_HTTP_FORWARDED_HEADER", SettingKind::Text),
    setting("http.proxy_networks", "POSTWAY_HTTP_PROXY_NETWORKS", SettingKind::List),
    setting("http.tls_listen", "POSTWAY_HTTP_TLS_LISTEN", SettingKind::Text),
    setting("http.redirect_listen", "POSTWAY_HTTP_REDIRECT_LISTEN", SettingKind::Text),
    setting("limits.key_requests", "POSTWAY_LIMITS_KEY_REQUESTS", SettingKind::Text),
    setting("limits.key_bytes", "POSTWAY_LIMITS_KEY_BYTES", SettingKind::Text),
    setting("limits.key_concurrent", "POSTWAY_LIMITS_KEY_CONCURRENT", SettingKind::Integer),
    setting("limits.address_requests", "POSTWAY_LIMITS_ADDRESS_REQUESTS", SettingKind::Text),
    setting("limits.address_bytes", "POSTWAY_LIMITS_ADDRESS_BYTES", SettingKind::Text),
    setting("limits.address_concurrent", "POSTWAY_LIMITS_ADDRESS_CONCURRENT", SettingKind::Integer),
    setting("oidc.issuer", "POSTWAY_OIDC_ISSUER", SettingKind::Text),
    setting("oidc.client_id", "POSTWAY_OIDC_CLIENT_ID", SettingKind::Text),
    setting("oidc.client_secret", "POSTWAY_OIDC_CLIENT_SECRET", SettingKind::Secret),
    setting("oidc.name", "POSTWAY_OIDC_NAME", SettingKind::Text),
    setting("oidc.scopes", "POSTWAY_OIDC_SCOPES", SettingKind::Text),
    setting("oidc.redirect_url", "POSTWAY_OIDC_REDIRECT_URL", SettingKind::Text),
    setting("oidc.role_claim", "POSTWAY_OIDC_ROLE_CLAIM", SettingKind::Text),
    setting("oidc.roles", "POSTWAY_OIDC_ROLES", SettingKind::List),
    setting("oidc.default_role", "POSTWAY_OIDC_DEFAULT_ROLE", SettingKind::Text),
    setting("oidc.tenants_claim", "POSTWAY_OIDC_TENANTS_CLAIM", SettingKind::Text),
    setting("oidc.tenants", "POSTWAY_OIDC_TENANTS", SettingKind::List),
    setting("oidc.just_in_time", "POSTWAY_OIDC_JUST_IN_TIME", SettingKind::Text),
    setting("compat.doors", "POSTWAY_COMPAT_DOORS", SettingKind::ListOrWord),
    setting("compat.root", "POSTWAY_COMPAT_ROOT", SettingKind::Text),
    setting("dispatch.max_in_flight", "POSTWAY_DISPATCH_MAX_IN_FLIGHT", SettingKind::Integer),
    setting("dispatch.drain_seconds", "POSTWAY_DISPATCH_DRAIN_SECONDS", SettingKind::Integer),
    setting("retention.audit_days", "POSTWAY_RETENTION_AUDIT_DAYS", SettingKind::Integer),
    setting(
        "retention.report_retention_seconds",
        "POSTWAY_RETENTION_REPORT_RETENTION_SECONDS",
        SettingKind::Integer,
    ),
    setting("tls.certificate_file", "POSTWAY_TLS_CERTIFICATE_FILE", SettingKind::Text),
    setting("tls.key_file", "POSTWAY_TLS_KEY_FILE", SettingKind::Text),
    setting("smtp.listen", "POSTWAY_SMTP_LISTEN", SettingKind::Text),
    setting("smtp.tls_listen", "POSTWAY_SMTP_TLS_LISTEN", SettingKind::Text),
    setting("smtp.tls_certificate_file", "POSTWAY_SMTP_TLS_CERTIFICATE_FILE", SettingKind::Text),
    setting("smtp.tls_key_file", "POSTWAY_SMTP_TLS_KEY_FILE", SettingKind::Text),
    setting("smtp.plaintext_networks", "POSTWAY_SMTP_PLAINTEXT_NETWORKS", SettingKind::List),
    setting("smtp.open_networks", "POSTWAY_SMTP_OPEN_NETWORKS", SettingKind::List),
    setting("smtp.proxy_networks", "POSTWAY_SMTP_PROXY_NETWORKS", SettingKind::List),
    setting("smtp.xclient_networks", "POSTWAY_SMTP_XCLIENT_NETWORKS", SettingKind::List),
    setting("smtp.client_certificates", "POSTWAY_SMTP_CLIENT_CERTIFICATES", SettingKind::List),
    setting("smtp.client_ca_file", "POSTWAY_SMTP_CLIENT_CA_FILE", SettingKind::Text),
    setting("smtp.max_connections", "POSTWAY_SMTP_MAX_CONNECTIONS", SettingKind::Integer),
    setting(
        "smtp.max_connections_per_client",
        "POSTWAY_SMTP_MAX_CONNECTIONS_PER_CLIENT",
        SettingKind::Integer,
    ),
    setting("smtp.max_recipients", "POSTWAY_SMTP_MAX_RECIPIENTS", SettingKind::Integer),
    setting("smtp.ehlo_name", "POSTWAY_SMTP_EHLO_NAME", SettingKind::Text),
    setting("egress.notification_proxy", "POSTWAY_EGRESS_NOTIFICATION_PROXY", SettingKind::Url),
    setting("egress.names_resolved_by", "POSTWAY_EGRESS_NAMES_RESOLVED_BY", SettingKind::Text),
    setting("clamd.address", "POSTWAY_CLAMD_ADDRESS", SettingKind::Text),
    setting("clamd.timeout_seconds", "POSTWAY_CLAMD_TIMEOUT_SECONDS", SettingKind::Integer),
    setting("clamd.max_bytes", "POSTWAY_CLAMD_MAX_BYTES", SettingKind::Integer),
    setting("reception.listen", "POSTWAY_RECEPTION_LISTEN", SettingKind::Text),
    setting("reception.max_mail_bytes", "POSTWAY_RECEPTION_MAX_MAIL_BYTES", SettingKind::Integer),
    setting("reception.max_connections", "POSTWAY_RECEPTION_MAX_CONNECTIONS", SettingKind::Integer),
    setting(
        "reception.max_connections_per_client",
        "POSTWAY_RECEPTION_MAX_CONNECTIONS_PER_CLIENT",
        SettingKind::Integer,
    ),
    setting("reception.max_recipients", "POSTWAY_RECEPTION_MAX_RECIPIENTS", SettingKind::Integer),
    setting("reception.max_per_minute", "POSTWAY_RECEPTION_MAX_PER_MINUTE", SettingKind::Integer),
    setting("reception.greeting_delay_ms", "POSTWAY_RECEPTION_GREETING_DELAY_MS", SettingKind::Integer),
    setting("reception.senders", "POSTWAY_RECEPTION_SENDERS", SettingKind::Text),
    setting("reception.dns_server", "POSTWAY_RECEPTION_DNS_SERVER", SettingKind::Text),
    setting("log.level", "POSTWAY_LOG", SettingKind::Text),
    setting("log.format", "POSTWAY_LOG_FORMAT", SettingKind::Text),
    setting("telemetry.upkeep_seconds", "POSTWAY_TELEMETRY_UPKEEP_SECONDS", SettingKind::Integer),
    setting("telemetry.metrics_key", "POSTWAY_TELEMETRY_METRICS_KEY", SettingKind::Secret),
    setting("tracing.endpoint", "POSTWAY_TRACING_ENDPOINT", SettingKind::Text),
    setting("tracing.headers", "POSTWAY_TRACING_HEADERS", SettingKind::Secret),
    setting("tracing.ratio", "POSTWAY_TRACING_RATIO", SettingKind::Text),
    setting("tracing.service_name", "POSTWAY_TRACING_SERVICE_NAME", SettingKind::Text),
];

/// Variables of OpenTelemetry that count where the setting is given nowhere else.
const USUAL_VARIABLES: &[(&str, &str)] = &[
    ("tracing.endpoint", "OTEL_EXPORTER_OTLP_ENDPOINT"),
    ("tracing.headers", "OTEL_EXPORTER_OTLP_HEADERS"),
    ("tracing.ratio", "OTEL_TRACES_SAMPLER_ARG"),
    ("tracing.service_name", "OTEL_SERVICE_NAME"),
];

/// The variable of others that a setting may be given by.
pub fn usual_variable(key: &str) -> Option<&'static str> {
    USUAL_VARIABLES.iter().find(|(of, _)| *of == key).map(|(_, variable)| *variable)
}

/// Variables that the command line reads itself; not settings, and no reason to warn.
const COMMAND_LINE_VARIABLES: &[&str] = &[
    "POSTWAY_URL",
    "POSTWAY_API_KEY",
    "POSTWAY_TENANT",
    "POSTWAY_ACCOUNT_PASSWORD",
    "POSTWAY_MAILBOX_PASSWORD",
];

/// The setting with this key.
pub fn find(key: &str) -> Option<&'static ConfigSetting> {
    SETTINGS.iter().find(|setting| setting.key == key)
}

/// Whether a key of the file, or one with `_file` added to a secret, is known.
pub fn is_known_key(key: &str) -> bool {
    find(key).is_some() || indirect(key, "_file", |setting| setting.key)
}

/// Whether a variable is known.
pub fn is_known_variable(name: &str) -> bool {
    COMMAND_LINE_VARIABLES.contains(&name)
        || USUAL_VARIABLES.iter().any(|(_, variable)| *variable == name)
        || SETTINGS.iter().any(|setting| setting.env == name)
        || indirect(name, "_FILE", |setting| setting.env)
}

/// Whether keys begin with this section.
pub fn is_section(name: &str) -> bool {
    SETTINGS.iter().any(|setting| setting.key.split_once('.').is_some_and(|(section, _)| section == name))
}

/// The known name nearest to a mistyped one, if any is near enough to be meant.
pub fn nearest_key(key: &str) -> Option<&'static str> {
    nearest(key, SETTINGS.iter().map(|setting| setting.key))
}

/// The known variable nearest to a mistyped one, if any is near enough to be meant.
pub fn nearest_variable(name: &str) -> Option<&'static str> {
    nearest(name, SETTINGS.iter().map(|setting| setting.env))
}

fn indirect(name: &str, suffix: &str, of: impl Fn(&ConfigSetting) -> &'static str) -> bool {
    name.strip_suffix(suffix).is_some_and(|direct| {
        SETTINGS.iter().any(|setting| setting.kind.may_come_from_file() && of(setting) == direct)
    })
}

fn nearest(name: &str, known: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    const DISTANCE_MAX: usize = 3;
    known
        .map(|candidate| (edit_distance(name, candidate), candidate))
        .min()
        .filter(|(distance, _)| *distance <= DISTANCE_MAX)
        .map(|(_, candidate)| candidate)
}

/// Levenshtein's distance, one row at a time.
fn edit_distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in right.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variable_follows_from_its_key_but_the_log_level() {
        for setting in SETTINGS {
            let derived = format!("POSTWAY_{}", setting.key.replace('.', "_").to_uppercase());
            let expected = if setting.key == "log.level" { "POSTWAY_LOG".to_owned() } else { derived };
            assert_eq!(setting.env, expected);
        }
    }

    #[test]
    fn secrets_may_come_from_files_and_other_values_may_not() {
        assert!(is_known_variable("POSTWAY_ADMIN_KEY_FILE"));
        assert!(is_known_key("database.url_file"));
        assert!(!is_known_variable("POSTWAY_HTTP_LISTEN_FILE"));
        assert!(!is_known_key("data_dir_file"));
    }

    #[test]
    fn a_mistyped_key_finds_its_neighbour() {
        assert_eq!(nearest_key("http.lisen"), Some("http.listen"));
        assert_eq!(nearest_key("colour"), None);
    }
}
