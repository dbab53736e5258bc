//! The progress of long work, on standard error: drawn on a terminal, printed as a line every few seconds
//! elsewhere.
//!
//! A drawn bar is erased when the work is done, so that only the result stays.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use tokio::time::Instant;

/// How often the spinner turns on a terminal.
const TICK: Duration = Duration::from_millis(100);
/// How often a line is printed if there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// A bar for work of a known length.
pub fn steps(length: u64, what: &'static str) -> ProgressBar {
    styled(ProgressBar::new(length).with_prefix(what), "{spinner} {prefix} {pos} of {len} {wide_msg}")
}

/// A spinner for work of unknown length.
pub struct SpinnerProgress {
    bar: ProgressBar,
    line_at: Instant,
}

impl SpinnerProgress {
    /// Starts the spinner.
    pub fn start() -> Self {
        let bar = styled(ProgressBar::new_spinner(), "{spinner} {wide_msg}");
        bar.enable_steady_tick(TICK);
        Self { bar, line_at: Instant::now() }
    }

    /// Shows the progress.
    pub fn show_progress(&mut self, text: String) {
        if self.bar.is_hidden() && self.line_at.elapsed() >= LINE_EVERY {
            self.line_at = Instant::now();
            eprintln!("{text}");
        }
        self.bar.set_message(text);
    }
}

impl Drop for SpinnerProgress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn styled(bar: ProgressBar, template: &str) -> ProgressBar {
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
