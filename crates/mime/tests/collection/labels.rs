//! Labelled collections: a folder with a `labels.jsonl`, one line for each mail, and the mails that it names.
//!
//! A folder without labels contains ordinary mail. Each collection is divided into two halves by a digest of
//! the file names: rules may be written for one half, and the faults of the other half are not printed, so
//! that its scores are those of unseen mail.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

/// The half of a collection that a mail belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Half {
    /// Used to write rules.
    Tuned,
    /// Only measured.
    Unseen,
}

/// The label of a mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Truth {
    /// A failure or a delay.
    Report,
    /// A report of another kind, by its name in the API.
    Other(&'static str),
    /// Mail that must not be taken for a report.
    Ordinary,
    /// The kind is unknown.
    Unknown,
}

/// The label of a recipient. A value that is not in the mail is `None`.
#[derive(Debug)]
pub struct Fact {
    pub address: String,
    pub alias: Option<String>,
    pub status: Option<String>,
    pub reply: Option<u16>,
    pub class: Option<String>,
    /// Whether the server gave up, for collections that label this instead of the class of the code.
    pub gave_up: Option<bool>,
}

/// A mail and its label.
pub struct LabelledMail {
    pub file: String,
    pub raw: Vec<u8>,
    pub truth: Truth,
    pub facts: Vec<Fact>,
}

impl LabelledMail {
    /// The half of the collection, by the file name.
    pub fn half(&self) -> Half {
        // FNV-1a: any stable digest will do.
        let digest = self.file.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |digest, octet| {
            (digest ^ u64::from(octet)).wrapping_mul(0x0100_0000_01b3)
        });
        if (digest >> 32) & 1 == 0 { Half::Tuned } else { Half::Unseen }
    }
}

/// A folder of mails.
pub struct Collection {
    pub name: String,
    pub mails: Vec<LabelledMail>,
}

impl Collection {
    /// Reads a folder.
    pub fn read(folder: &Path) -> Self {
        let name = folder.file_name().expect("a folder has a name").to_string_lossy().into_owned();
        let mails = match fs::read_to_string(folder.join("labels.jsonl")) {
            Ok(labels) => labels.lines().map(|line| labelled(folder, line)).collect(),
            Err(_) => ordinary(folder),
        };
        Self { name, mails }
    }
}

fn labelled(folder: &Path, line: &str) -> LabelledMail {
    let label: Value = serde_json::from_str(line).expect("a label is JSON");
    let file = label["file"].as_str().expect("a label names its file").to_owned();
    let raw = fs::read(folder.join(&file)).expect("the file that a label names can be read");
    let truth = match label["kind"].as_str() {
        Some("bounce" | "delay" | "delayed") => Truth::Report,
        Some("delivered" | "success") => Truth::Other("success"),
        Some("feedback" | "complaint") => Truth::Other("complaint"),
        Some("vacation" | "auto_reply") => Truth::Other("auto_reply"),
        Some("not-bounce" | "ordinary") => Truth::Ordinary,
        _ => Truth::Unknown,
    };
    let list = |name: &str| label[name].as_array().cloned().unwrap_or_default();
    let outcomes = list("recipients").into_iter().map(|value| {
        let class = value["class"].as_str().map(|class| class == "permanent");
        Fact { gave_up: class, class: None, ..fact(&value) }
    });
    let facts = list("facts").iter().map(fact).chain(outcomes).collect();
    LabelledMail { file, raw, truth, facts }
}

fn fact(value: &Value) -> Fact {
    let text = |name: &str| value[name].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let pseudo = value["status_pseudo"].as_bool().unwrap_or_default();
    Fact {
        address: text("recipient").or_else(|| text("address")).unwrap_or_default().to_lowercase(),
        alias: text("alias").map(|alias| alias.to_lowercase()),
        status: text("status").filter(|_| !pseudo),
        reply: text("reply").and_then(|reply| reply.parse().ok()),
        // A delay is transient, even if its labelled status says otherwise.
        class: text("class").filter(|_| !(pseudo && text("action").as_deref() == Some("delayed"))),
        gave_up: None,
    }
}

fn ordinary(folder: &Path) -> Vec<LabelledMail> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .expect("the folder of a collection can be read")
        .map(|entry| entry.expect("an entry of a folder can be read").path())
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    files
        .into_iter()
        .map(|path| LabelledMail {
            file: path.file_name().expect("a file has a name").to_string_lossy().into_owned(),
            raw: fs::read(&path).expect("a mail can be read"),
            truth: Truth::Ordinary,
            facts: Vec::new(),
        })
        .collect()
}
