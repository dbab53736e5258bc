//! `[compat]`: the compatibility APIs.

use std::collections::BTreeSet;

use postway_api::{CompatApi, CompatConfig};

use super::layers::ConfigLayers;

/// The compatibility APIs that are served: `all`, `none` or their names, and the one that is also served at
/// `/`.
pub(super) fn read(layers: &mut ConfigLayers) -> Option<CompatConfig> {
    let default = CompatConfig::default();
    let doors = layers.take("compat.doors", default.doors, "all", parse_doors);
    let root = layers.take_optional("compat.root", |text| {
        let door: CompatApi = text.parse().map_err(|error| format!("{error}"))?;
        match &doors {
            Some(doors) if !doors.contains(&door) => {
                Err(format!("`{door}` is not open; add it to compat.doors"))
            }
            _ => Ok(door),
        }
    });
    Some(CompatConfig { doors: doors?, root: root? })
}

/// One of several names: `all` and `none` are allowed only alone.
fn parse_door(name: &str) -> Result<CompatApi, String> {
    match name {
        "all" | "none" => Err(format!("`{name}` must stand alone; name the doors without it")),
        name => name.parse().map_err(|error| format!("{error}")),
    }
}

fn parse_doors(text: &str) -> Result<BTreeSet<CompatApi>, String> {
    match text.trim() {
        "all" => Ok(CompatApi::ALL.into()),
        "none" | "" => Ok(BTreeSet::new()),
        names => names.split(',').map(|name| parse_door(name.trim())).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_for_all_and_none_stand_alone() {
        assert_eq!(parse_doors(" all "), Ok(CompatApi::ALL.into()));
        assert_eq!(parse_doors("none"), Ok(BTreeSet::new()));
        assert_eq!(parse_doors("postmark, resend").map(|doors| doors.len()), Ok(2));
        for text in ["all,postmark", "resend,none"] {
            assert!(parse_doors(text).unwrap_err().contains("must stand alone"), "{text}");
        }
        assert!(!parse_doors("postmark,xx").unwrap_err().contains("alone"));
    }
}
