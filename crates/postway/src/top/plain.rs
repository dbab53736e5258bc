//! The board as text, once: for a pipe, a log, or `--once`.

use super::board::StatusBoard;
use crate::cli::amount::count;

/// Figures side by side.
const COLUMNS: usize = 3;

/// The board as text without colours.
pub fn plain(board: &StatusBoard) -> String {
    let mut text = format!("{}  {}\n\n", board.title, board.corner);
    for row in board.figures.chunks(COLUMNS) {
        let cells = row.iter().map(|(name, value, _)| format!("{name:<13}{value:<13}"));
        push_line(&mut text, &cells.collect::<String>());
    }
    text.push('\n');
    for (state, messages, _) in &board.queue {
        push_line(&mut text, &format!("{state:<13}{:>12}", count(*messages)));
    }
    for section in &board.sections {
        text.push_str(&format!("\n{}\n", section.title));
        for (line, _) in &section.lines {
            push_line(&mut text, &format!("  {line}"));
        }
    }
    text
}

fn push_line(text: &mut String, line: &str) {
    text.push_str(line.trim_end());
    text.push('\n');
}
