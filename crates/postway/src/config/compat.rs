//! `[compat]`: the doors of other systems.

use std::collections::BTreeSet;

use postway_api::{CompatConfig, DoorName};

use super::layers::Layers;

/// Which doors are open: `all`, `none` or their names, and the one that is also at `/`.
pub(super) fn read(layers: &mut Layers) -> Option<CompatConfig> {
    let default = CompatConfig::default();
    let doors = layers.take("compat.doors", default.doors, "all", parse_doors);
    let root = layers.take_optional("compat.root", |text| {
        let door: DoorName = text.parse().map_err(|error| format!("{error}"))?;
        match &doors {
            Some(doors) if !doors.contains(&door) => {
                Err(format!("`{door}` is not open; add it to compat.doors"))
            }
            _ => Ok(door),
        }
    });
    Some(CompatConfig { doors: doors?, root: root? })
}

fn parse_doors(text: &str) -> Result<BTreeSet<DoorName>, String> {
    match text.trim() {
        "all" => Ok(DoorName::ALL.into()),
        "none" | "" => Ok(BTreeSet::new()),
        names => {
            names.split(',').map(|name| name.trim().parse().map_err(|error| format!("{error}"))).collect()
        }
    }
}
