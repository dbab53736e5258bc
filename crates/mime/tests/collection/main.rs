//! Measures how well reports are read, on collections of labelled mail, and fails below a minimum.
//!
//! Real bounces are private, so no collection of them is in this repository: `POSTWAY_COLLECTIONS` names
//! their folders, separated by colons. Without it only this project's own collection of invented mails is
//! measured.
//!
//! ```sh
//! POSTWAY_COLLECTIONS=FOLDER:FOLDER cargo test --release -p postway-mime --test collection -- --nocapture
//! ```

mod labels;
mod score;

use std::{env, path::Path};

use labels::{Collection, Half};
use score::Score;

/// The invented mails of this project.
const OWN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/collection/own");

#[test]
fn collections_are_read_no_worse_than_their_floor() {
    let named = env::var("POSTWAY_COLLECTIONS").unwrap_or_default();
    let folders = [OWN].into_iter().chain(named.split(':').filter(|folder| !folder.is_empty()));
    let mut below = Vec::new();
    println!("{}", Score::HEADING);
    for folder in folders {
        let collection = Collection::read(Path::new(folder));
        for half in [Half::Tuned, Half::Unseen] {
            let mails: Vec<_> = collection.mails.iter().filter(|mail| mail.half() == half).collect();
            let mut score = Score::default();
            mails.iter().for_each(|mail| score.add(mail));
            println!("{}", score.line(&collection.name, half));
            if env::var_os("POSTWAY_COLLECTION_FAULTS").is_some() && half == Half::Tuned {
                score.faults.iter().for_each(|fault| println!("    {fault}"));
            }
            below.extend(score.below_floor(&collection.name, half));
        }
    }
    assert!(below.is_empty(), "read worse than before: {below:#?}");
}
