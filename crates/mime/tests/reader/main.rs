//! Tests of the reader: with mail that we compose, with arbitrary bytes, and in little memory.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its functions too")]

mod agreement;
mod memory;

use postway_mime::reader::ReaderLimit;

#[test]
fn every_limit_is_in_the_guide_in_the_same_words() {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/security.md");
    let page = std::fs::read_to_string(page).unwrap();
    for limit in ReaderLimit::ALL {
        assert!(page.contains(&format!("`{limit}`")), "the guide does not have `{limit}`");
    }
}
