//! `[log]`: how much is logged, and in which form.

use tracing_subscriber::{EnvFilter, filter::LevelFilter};

use super::layers::ConfigLayers;

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
pub struct LogSection {
    /// A level, or directives such as `info,postway_dispatch=debug`; known to parse.
    pub level: String,
    /// The form of a line.
    pub format: LogFormat,
}

impl LogSection {
    pub(super) fn read(layers: &mut ConfigLayers) -> Option<Self> {
        let level = layers.take("log.level", "info".to_owned(), "info", read_level);
        let format = layers.take("log.format", LogFormat::Text, "text", |text| match text {
            "text" => Ok(LogFormat::Text),
            "json" => Ok(LogFormat::Json),
            other => Err(format!("`{other}` is not a format; use text or json")),
        });
        Some(Self { level: level?, format: format? })
    }
}

/// Checks a level or directives. The filter itself takes an unknown bare word for the name of a module, and
/// then logs nothing.
fn read_level(text: &str) -> Result<String, String> {
    const USE: &str =
        "use error, warn, info, debug, trace or off, or directives such as info,postway_dispatch=debug";
    let words: Vec<&str> = text.split(',').map(str::trim).filter(|word| !word.is_empty()).collect();
    if words.is_empty() {
        return Err(format!("it is empty; {USE}"));
    }
    let mut bare = words.iter().filter(|word| !word.contains(['=', '[']));
    if let Some(word) = bare.find(|word| word.parse::<LevelFilter>().is_err()) {
        return Err(format!("`{word}` is no level; {USE}"));
    }
    // Spaces between directives would be taken for parts of their names.
    let text = words.join(",");
    match EnvFilter::try_new(&text) {
        Ok(_) => Ok(text),
        Err(error) => Err(format!("{error}; {USE}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_is_no_level_is_wrong() {
        for wrong in ["loud", "debgu", "info,postway", "", ",", "postway=loud"] {
            assert!(read_level(wrong).is_err(), "{wrong:?}");
        }
        for right in
            ["info", "WARN", "off", "info,postway_dispatch=debug", "warn, postway=trace", "[attempt]=debug"]
        {
            assert!(read_level(right).is_ok(), "{right:?}");
        }
        assert!(read_level("loud").unwrap_err().starts_with("`loud` is no level; use error, warn, info"));
    }
}
