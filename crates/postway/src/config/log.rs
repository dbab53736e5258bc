//! `[log]`: how much is logged, and in which form.

use tracing_subscriber::EnvFilter;

use super::layers::Layers;

/// The form of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line, for programs.
    Json,
}

/// What is logged.
#[derive(Clone, Debug)]
pub struct Log {
    /// A level, or directives such as `info,postway_dispatch=debug`; known to parse.
    pub level: String,
    /// The form of a line.
    pub format: LogFormat,
}

impl Log {
    pub(super) fn read(layers: &mut Layers) -> Option<Self> {
        let level =
            layers.take("log.level", "info".to_owned(), "info", |text| match EnvFilter::try_new(text) {
                Ok(_) => Ok(text.to_owned()),
                Err(error) => Err(format!(
                    "{error}; use error, warn, info, debug, trace, or directives such as info,postway=debug"
                )),
            });
        let format = layers.take("log.format", LogFormat::Text, "text", |text| match text {
            "text" => Ok(LogFormat::Text),
            "json" => Ok(LogFormat::Json),
            other => Err(format!("`{other}` is not a format; use text or json")),
        });
        Some(Self { level: level?, format: format? })
    }
}
