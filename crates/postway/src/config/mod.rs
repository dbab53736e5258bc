//! The configuration: defaults, overridden by `postway.toml`, overridden by `POSTWAY_*` variables.
//!
//! [`load`] reads all three once and returns values that are right by their type, or every error at once. A file's
//! unknown key is an error that names its line; an unknown variable is a warning. Nothing here is read again
//! later, and nothing here writes.

mod compat;
mod content;
mod database;
mod dispatch;
mod error;
mod http;
mod keys;
mod layers;
mod log;
mod network;
mod outbox;
mod pec;
mod print;
mod retention;
mod settings;
mod smtp;
mod telemetry;
#[cfg(test)]
mod tests;
mod value;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

pub use content::{Attachments, Spool, Storage};
pub use database::Database;
pub use dispatch::Dispatch;
pub use error::ConfigErrors;
pub use http::Http;
pub use keys::Secret;
pub use log::{Log, LogFormat};
pub use network::Cidr;
pub use pec::Pec;
pub use retention::Retention;
pub use smtp::Smtp;
pub use telemetry::Telemetry;
pub use value::Resolved;

use layers::Layers;
use postway_api::CompatConfig;
use postway_intake::outbox::Source;

/// Read when no file is named, if it exists.
pub const DEFAULT_FILE: &str = "postway.toml";

/// What the server runs with.
#[derive(Clone, Debug)]
pub struct Config {
    /// The folder for everything that Postway writes.
    pub data_dir: PathBuf,
    /// The admin key; none: taken from, or made into, the data folder.
    pub admin_key: Option<Secret>,
    /// 32 bytes in standard base64 that encrypt stored credentials; none: taken from, or made into, the data folder.
    pub secret_key: Option<Secret>,
    /// The secret keys before this one, the newest first: they open what they sealed, and what was made under them holds.
    pub secret_key_previous: Vec<Secret>,
    /// Private networks that webhooks and fetches may reach.
    pub allow_private_targets: Vec<Cidr>,
    /// Where readers of mail reach this gateway, for links to large files.
    pub public_url: Option<String>,
    /// `[database]`
    pub database: Database,
    /// `[storage]`
    pub storage: Storage,
    /// `[attachments]`
    pub attachments: Attachments,
    /// `[spool]`
    pub spool: Spool,
    /// `[pec]`
    pub pec: Pec,
    /// `[outbox]` and `[outbox.NAME]`
    pub outbox: Vec<Source>,
    /// `[http]`
    pub http: Http,
    /// `[compat]`
    pub compat: CompatConfig,
    /// `[dispatch]`
    pub dispatch: Dispatch,
    /// `[retention]`
    pub retention: Retention,
    /// `[smtp]`
    pub smtp: Smtp,
    /// `[log]`
    pub log: Log,
    /// `[telemetry]`
    pub telemetry: Telemetry,
}

impl Config {
    /// The file with the admin key alone, written once the server listens.
    pub fn admin_key_file(&self) -> PathBuf {
        self.data_dir.join("admin.key")
    }

    /// The file with the secret key, where none is configured.
    pub fn secret_key_file(&self) -> PathBuf {
        self.data_dir.join("secret.key")
    }
}

/// A configuration with what people want to know about it.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The values.
    pub config: Config,
    /// What looks mistaken but harms nobody: unknown variables. To be logged by the one who starts.
    pub warnings: Vec<String>,
    /// Each effective value as shown to people, with its source.
    pub resolved: Vec<Resolved>,
}

impl Loaded {
    /// The effective configuration as TOML, secrets masked, with the source of each value.
    pub fn to_toml(&self) -> String {
        print::render(&self.resolved)
    }
}

/// Loads the configuration of this process: the named file, or `./postway.toml` if it exists, and the environment.
pub fn load(file: Option<&Path>) -> Result<Loaded, ConfigErrors> {
    let default = Path::new(DEFAULT_FILE);
    let file = file.or_else(|| default.exists().then_some(default));
    load_from(file, std::env::vars_os())
}

/// Loads a configuration from the given file and variables only.
pub fn load_from(
    file: Option<&Path>,
    env: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Loaded, ConfigErrors> {
    let mut layers = Layers::gather(file, env);
    let config = read(&mut layers);
    match config {
        Some(config) if layers.errors.is_empty() => {
            Ok(Loaded { config, warnings: layers.warnings, resolved: layers.resolved })
        }
        _ => Err(ConfigErrors(layers.errors)),
    }
}

/// Reads every section before giving up on any, so that all errors are told at once.
fn read(layers: &mut Layers) -> Option<Config> {
    let data_dir = layers.take("data_dir", PathBuf::from("./data"), "./data", |text| match text {
        "" => Err("is empty; name a folder".to_owned()),
        _ => Ok(PathBuf::from(text)),
    });
    let admin_key = keys::read_admin_key(layers, "admin_key");
    let secret_key = keys::read_secret_key(layers);
    let secret_key_previous = keys::read_previous_keys(layers);
    let allow_private_targets = network::read_allow_private_targets(layers);
    let public_url = content::read_public_url(layers);
    let folder = data_dir.clone().unwrap_or_else(|| PathBuf::from("./data"));
    let database = Database::read(layers, &folder);
    let storage = Storage::read(layers, &folder);
    let attachments = Attachments::read(layers);
    let spool = Spool::read(layers);
    let pec = Pec::read(layers);
    let outbox = outbox::read(layers);
    let http = Http::read(layers);
    let compat = compat::read(layers);
    let dispatch = Dispatch::read(layers);
    let retention = Retention::read(layers);
    let smtp = Smtp::read(layers);
    let log = Log::read(layers);
    let telemetry = Telemetry::read(layers);
    Some(Config {
        data_dir: data_dir?,
        admin_key: admin_key?,
        secret_key: secret_key?,
        secret_key_previous: secret_key_previous?,
        allow_private_targets: allow_private_targets?,
        public_url: public_url?,
        database: database?,
        storage: storage?,
        attachments: attachments?,
        spool: spool?,
        pec: pec?,
        outbox: outbox?,
        http: http?,
        compat: compat?,
        dispatch: dispatch?,
        retention: retention?,
        smtp: smtp?,
        log: log?,
        telemetry: telemetry?,
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
