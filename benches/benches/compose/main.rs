//! What content costs: composing, checking html, rendering a template, signing; and the memory that a large
//! attachment takes on its way through the door.
//!
//! Each line is the median of many runs. Memory is how far the process's peak rose above what it was, in
//! multiples of the attachment.

mod large;
mod parts;
mod routes;

fn main() -> anyhow::Result<()> {
    // `cargo test --benches` runs this too; only `cargo bench` asks for figures.
    if !std::env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    parts::print()?;
    routes::print()?;
    large::print()
}
