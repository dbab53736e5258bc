//! Requests that the old system stored as files. Their paths come from its database, so only paths inside one
//! folder are read.

use std::{
    fs::File,
    io::{ErrorKind, Read},
    path::{Component, Path, PathBuf},
};

use serde_json::{Map, Value};

use crate::column::CELL_BYTES_MAX;

/// The folder of the files.
#[derive(Clone, Debug)]
pub struct PayloadFolder {
    root: PathBuf,
    /// The folder's path when the old system wrote the paths.
    was: Option<PathBuf>,
}

impl PayloadFolder {
    /// Opens the folder; `was` is its former path if it was moved.
    pub fn new(root: &Path, was: Option<PathBuf>) -> Result<Self, String> {
        let root = root.canonicalize().map_err(|error| format!("cannot open {}: {error}", root.display()))?;
        Ok(Self { root, was })
    }

    /// Reads the request in a file.
    pub(crate) fn read(&self, path: &str) -> Result<Map<String, Value>, String> {
        let path = self.locate(Path::new(path))?;
        let file = File::open(path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => "the file is gone: send this mail again from where it came".to_owned(),
            _ => format!("the file cannot be opened: {error}"),
        })?;
        let mut bytes = Vec::new();
        let read = file.take(CELL_BYTES_MAX as u64 + 1).read_to_end(&mut bytes);
        read.map_err(|error| format!("the file cannot be read: {error}"))?;
        if bytes.len() > CELL_BYTES_MAX {
            return Err(format!("the file has more than {CELL_BYTES_MAX} bytes"));
        }
        match serde_json::from_slice(&bytes) {
            Ok(Value::Object(request)) => Ok(request),
            Ok(_) => Err("the file has no JSON object".to_owned()),
            Err(error) => Err(format!("the file is no JSON: {error}")),
        }
    }

    fn locate(&self, path: &Path) -> Result<PathBuf, String> {
        let outside = || {
            let root = self.root.display();
            format!(
                "lies outside of {root}: name the folder with --payloads, and where it was with --payloads-were"
            )
        };
        let inside = match &self.was {
            Some(was) => path.strip_prefix(was).unwrap_or(path),
            None => path,
        };
        if inside.components().any(|part| part == Component::ParentDir) {
            return Err(outside());
        }
        // An absolute path replaces the root.
        let whole = self.root.join(inside);
        match whole.canonicalize() {
            Ok(real) if real.starts_with(&self.root) => Ok(real),
            Ok(_) => Err(outside()),
            Err(_) if whole.starts_with(&self.root) => Ok(whole),
            Err(_) => Err(outside()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_leads_into_the_folder_or_nowhere() {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("payloads");
        std::fs::create_dir(&root).unwrap();
        std::fs::write(root.join("a.json"), r#"{"id": "a"}"#).unwrap();
        std::fs::write(root.join("b.json"), "[").unwrap();
        std::fs::write(outer.path().join("secret.json"), r#"{"id": "s"}"#).unwrap();
        std::os::unix::fs::symlink(outer.path().join("secret.json"), root.join("link.json")).unwrap();
        let folder = PayloadFolder::new(&root, Some("/srv/old".into())).unwrap();
        let inside = root.canonicalize().unwrap().join("a.json");
        for path in ["a.json", "./a.json", "/srv/old/a.json", inside.to_str().unwrap()] {
            assert_eq!(folder.read(path).unwrap()["id"], "a", "{path}");
        }
        let absolute = outer.path().join("secret.json");
        for path in ["../secret.json", "link.json", "/srv/old/../secret.json", absolute.to_str().unwrap()] {
            assert!(folder.read(path).unwrap_err().contains("outside"), "{path}");
        }
        assert!(folder.read("gone.json").unwrap_err().contains("gone"));
        assert!(folder.read("b.json").unwrap_err().contains("no JSON"));
    }
}
