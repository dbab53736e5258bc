//! The configuration: defaults, overridden by `postway.toml`, overridden by `POSTWAY_*` variables.
//!
//! [`load`] reads all three once and returns values that are right by their type, or every error at once. A
//! file's unknown key is an error that names its line; an unknown variable is a warning. Nothing here is read
//! again later, and nothing here writes.

mod clamd;
mod compat;
mod content;
mod database;
mod dispatch;
mod egress;
mod error;
mod http;
mod keys;
mod layers;
mod limits;
mod log;
mod network;
mod oidc;
mod outbox;
mod pec;
mod print;
mod reception;
mod retention;
mod settings;
mod smtp;
mod telemetry;
#[cfg(test)]
mod tests;
mod tls;
mod traces;
mod value;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

pub use clamd::ClamdSection;
pub use content::{AttachmentsSection, SpoolSection, StorageSection};
pub use database::DatabaseConfig;
pub use dispatch::DispatchSection;
pub use egress::EgressSection;
pub use error::ConfigErrors;
pub use http::{ForwardedHeader, HttpSection};
pub use keys::ConfigSecret;
pub use log::{LogFormat, LogSection};
pub use network::NetworkPrefix;
pub use oidc::OidcSection;
pub use pec::PecSection;
pub use reception::ReceptionSection;
pub use retention::RetentionSection;
pub use smtp::SmtpSection;
pub use telemetry::TelemetrySection;
pub use tls::TlsSection;
pub use traces::TracingSection;
pub use value::ResolvedSetting;

use layers::ConfigLayers;
use postway_api::{CompatConfig, RequestLimits};
use postway_intake::outbox::OutboxSource;

/// Read when no file is named, if it exists.
pub const DEFAULT_FILE: &str = "postway.toml";

/// The configuration of a server.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// The folder for everything that Postway writes.
    pub data_dir: PathBuf,
    /// The admin key; none: taken from, or made into, the data folder.
    pub admin_key: Option<ConfigSecret>,
    /// 32 bytes in standard base64 that encrypt stored credentials; none: taken from, or made into, the data
    /// folder.
    pub secret_key: Option<ConfigSecret>,
    /// The previous secret keys, the newest first: they decrypt what they encrypted, and signatures made with
    /// them stay valid.
    pub secret_key_previous: Vec<ConfigSecret>,
    /// Private networks that webhooks and fetches may reach.
    pub allow_private_targets: Vec<NetworkPrefix>,
    /// The URL under which readers of mail reach this gateway, for links to large files.
    pub public_url: Option<String>,
    /// The name server that checks of domains ask; without it, that of the system.
    pub dns_server: Option<SocketAddr>,
    /// `[database]`
    pub database: DatabaseConfig,
    /// `[storage]`
    pub storage: StorageSection,
    /// `[attachments]`
    pub attachments: AttachmentsSection,
    /// `[spool]`
    pub spool: SpoolSection,
    /// `[pec]`
    pub pec: PecSection,
    /// `[outbox]` and `[outbox.NAME]`
    pub outbox: Vec<OutboxSource>,
    /// `[http]`
    pub http: HttpSection,
    /// `[limits]`
    pub limits: RequestLimits,
    /// `[oidc]`, where an issuer is set
    pub oidc: Option<OidcSection>,
    /// `[compat]`
    pub compat: CompatConfig,
    /// `[dispatch]`
    pub dispatch: DispatchSection,
    /// `[retention]`
    pub retention: RetentionSection,
    /// `[tls]`
    pub tls: TlsSection,
    /// `[smtp]`
    pub smtp: SmtpSection,
    /// `[egress]`
    pub egress: EgressSection,
    /// `[clamd]`
    pub clamd: ClamdSection,
    /// `[reception]`
    pub reception: ReceptionSection,
    /// `[log]`
    pub log: LogSection,
    /// `[telemetry]`
    pub telemetry: TelemetrySection,
    /// `[tracing]`
    pub tracing: TracingSection,
    /// Whether this is `postway dev`: no setting, so that no file can open a server.
    pub is_for_development: bool,
}

impl ServerConfig {
    /// The file with the admin key alone, written once the server listens.
    pub fn admin_key_file(&self) -> PathBuf {
        self.data_dir.join("admin.key")
    }

    /// The file with the secret key, where none is configured.
    pub fn secret_key_file(&self) -> PathBuf {
        self.data_dir.join("secret.key")
    }
}

/// A configuration with its warnings and sources.
#[derive(Clone, Debug)]
pub struct LoadedConfig {
    /// The values.
    pub config: ServerConfig,
    /// Likely mistakes that do no harm, such as unknown variables. The caller logs them.
    pub warnings: Vec<String>,
    /// Each effective value as shown to people, with its source.
    pub resolved: Vec<ResolvedSetting>,
}

impl LoadedConfig {
    /// The effective configuration as TOML, secrets masked, with the source of each value.
    pub fn to_toml(&self) -> String {
        print::render(&self.resolved)
    }
}

/// Loads the configuration of this process: the named file, or `./postway.toml` if it exists, and the
/// environment.
pub fn load(file: Option<&Path>) -> Result<LoadedConfig, ConfigErrors> {
    let default = Path::new(DEFAULT_FILE);
    let file = file.or_else(|| default.exists().then_some(default));
    load_from(file, std::env::vars_os())
}

/// Loads a configuration from the given file and variables only.
pub fn load_from(
    file: Option<&Path>,
    env: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<LoadedConfig, ConfigErrors> {
    let mut layers = ConfigLayers::gather(file, env);
    let config = read(&mut layers);
    match config {
        Some(config) if layers.errors.is_empty() => {
            Ok(LoadedConfig { config, warnings: layers.warnings, resolved: layers.resolved })
        }
        _ => Err(ConfigErrors(layers.errors)),
    }
}

/// Reads every section before giving up on any, so that all errors are reported at once.
fn read(layers: &mut ConfigLayers) -> Option<ServerConfig> {
    let data_dir = layers.take("data_dir", PathBuf::from("./data"), "./data", |text| match text {
        "" => Err("is empty; name a folder".to_owned()),
        _ => Ok(PathBuf::from(text)),
    });
    let admin_key = keys::read_admin_key(layers, "admin_key");
    let secret_key = keys::read_secret_key(layers);
    let secret_key_previous = keys::read_previous_keys(layers);
    let allow_private_targets = network::read_allow_private_targets(layers);
    let public_url = content::read_public_url(layers);
    let dns_server = network::read_dns_server(layers);
    let folder = data_dir.clone().unwrap_or_else(|| PathBuf::from("./data"));
    let database = DatabaseConfig::read(layers, &folder);
    let storage = StorageSection::read(layers, &folder);
    let attachments = AttachmentsSection::read(layers);
    let spool = SpoolSection::read(layers);
    let pec = PecSection::read(layers);
    let outbox = outbox::read(layers);
    let http = HttpSection::read(layers);
    let limits = limits::read(layers);
    let oidc = OidcSection::read(layers, public_url.as_ref().and_then(|url| url.as_deref()));
    let compat = compat::read(layers);
    let dispatch = DispatchSection::read(layers);
    let retention = RetentionSection::read(layers);
    let tls = TlsSection::read(layers);
    let shared = tls.as_ref().and_then(|tls| tls.certificate.clone());
    let smtp = SmtpSection::read(layers, shared.as_ref());
    let egress = EgressSection::read(layers);
    let clamd = ClamdSection::read(layers);
    let reception = ReceptionSection::read(layers);
    if let (Some(http), Some(None)) = (&http, tls.as_ref().map(|tls| &tls.certificate))
        && http.tls_listen.is_some()
    {
        layers.warnings.push(
            "http.tls_listen has no certificate (tls.certificate_file): it makes one of its own, which clients trust only \
             if they are configured to"
                .to_owned(),
        );
    }
    let log = LogSection::read(layers);
    let telemetry = TelemetrySection::read(layers);
    let tracing = TracingSection::read(layers);
    Some(ServerConfig {
        data_dir: data_dir?,
        admin_key: admin_key?,
        secret_key: secret_key?,
        secret_key_previous: secret_key_previous?,
        allow_private_targets: allow_private_targets?,
        public_url: public_url?,
        dns_server: dns_server?,
        database: database?,
        storage: storage?,
        attachments: attachments?,
        spool: spool?,
        pec: pec?,
        outbox: outbox?,
        http: http?,
        limits: limits?,
        oidc: oidc?,
        compat: compat?,
        dispatch: dispatch?,
        retention: retention?,
        tls: tls?,
        smtp: smtp?,
        egress: egress?,
        clamd: clamd?,
        reception: reception?,
        log: log?,
        telemetry: telemetry?,
        tracing: tracing?,
        is_for_development: false,
    })
}

fn listen_address(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .map_err(|_| format!("`{text}` is not an address to listen on; write one like 127.0.0.1:8520"))
}

fn integer_between(text: &str, min: u64, max: u64) -> Result<u64, String> {
    match text.trim().parse() {
        Ok(number) if (min..=max).contains(&number) => Ok(number),
        _ => Err(format!("`{text}` must be a whole number from {min} to {max}")),
    }
}
