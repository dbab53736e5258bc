//! The terminal: taken over, drawn on, and restored however the command ends.
//!
//! `q`, Escape, Ctrl-C and signals leave. A resize draws anew at once. If the server does not answer, the
//! screen says so and it is asked again; a refusal is permanent, so it ends the command.

use std::io;
use std::time::Duration;

use anyhow::Context as _;
use crossterm::event::{Event, EventStream, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use futures::StreamExt as _;
use ratatui::DefaultTerminal;
use tokio::time::{Instant, sleep_until};

use super::board::{StatusBoard, WatchedServer};
use super::draw::draw;
use super::source::{ServerSnapshot, SnapshotSource};
use crate::cli::amount::span;
use crate::cli::failure::CommandFailure;
use crate::server::shutdown::StopSignals;

/// Shows the server, asking every `interval`, until the user leaves.
pub async fn live(
    source: SnapshotSource,
    station: &WatchedServer,
    interval: Duration,
    colour: bool,
) -> Result<(), CommandFailure> {
    let signals = StopSignals::listen().context("cannot listen for signals")?;
    let terminal = ratatui::try_init().context("cannot use the terminal; --once prints without one")?;
    let restore = TerminalRestore;
    let outcome = watch(terminal, source, station, RefreshPace { interval, colour }, signals).await;
    drop(restore);
    outcome
}

/// Restores the terminal when it is dropped.
struct TerminalRestore;

impl Drop for TerminalRestore {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

#[derive(Clone, Copy)]
struct RefreshPace {
    interval: Duration,
    colour: bool,
}

async fn watch(
    mut terminal: DefaultTerminal,
    source: SnapshotSource,
    station: &WatchedServer,
    pace: RefreshPace,
    mut signals: StopSignals,
) -> Result<(), CommandFailure> {
    let mut keys = EventStream::new();
    let mut asking = Box::pin(ask_at(source, Instant::now()));
    let mut view = ScreenView::default();
    loop {
        let away = view.away_notice();
        let drawn = terminal.draw(|frame| draw(frame, view.board.as_ref(), away.as_deref(), pace.colour));
        drawn.map_err(|error| broken(&error))?;
        tokio::select! {
            event = keys.next() => match event {
                Some(Ok(event)) if leaves(&event) => return Ok(()),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(broken(&error)),
                // The terminal is gone.
                None => return Ok(()),
            },
            () = signals.next() => return Ok(()),
            (source, asked_at, answer) = &mut asking => {
                view.take(answer.map(|news| StatusBoard::new(station, &news)))?;
                asking.set(ask_at(source, asked_at + pace.interval));
            }
        }
    }
}

/// Asks at a time, or at once if it has passed.
async fn ask_at(
    mut source: SnapshotSource,
    at: Instant,
) -> (SnapshotSource, Instant, Result<ServerSnapshot, CommandFailure>) {
    sleep_until(at).await;
    let asked_at = Instant::now();
    let answer = source.ask().await;
    (source, asked_at, answer)
}

/// What is on the screen.
#[derive(Default)]
struct ScreenView {
    board: Option<StatusBoard>,
    /// Since when there has been no answer, and why.
    away: Option<(Instant, String)>,
}

impl ScreenView {
    fn take(&mut self, answer: Result<StatusBoard, CommandFailure>) -> Result<(), CommandFailure> {
        match answer {
            Ok(board) => {
                self.board = Some(board);
                self.away = None;
            }
            Err(failure @ (CommandFailure::Unreachable { .. } | CommandFailure::Failed(_))) => {
                let since = self.away.as_ref().map_or_else(Instant::now, |(since, _)| *since);
                self.away = Some((since, reason(&failure)));
            }
            Err(failure) => return Err(failure),
        }
        Ok(())
    }

    fn away_notice(&self) -> Option<String> {
        let (since, reason) = self.away.as_ref()?;
        Some(format!("away for {}: {reason}", span(since.elapsed().as_secs())))
    }
}

fn reason(failure: &CommandFailure) -> String {
    match failure {
        CommandFailure::Unreachable { reason, .. } => reason.clone(),
        other => other.to_string().lines().next().unwrap_or_default().to_owned(),
    }
}

fn leaves(event: &Event) -> bool {
    let Event::Key(KeyEvent { code, modifiers, kind, .. }) = event else { return false };
    let interrupts = *code == KeyCode::Char('c') && modifiers.contains(KeyModifiers::CONTROL);
    *kind != KeyEventKind::Release && (interrupts || matches!(code, KeyCode::Char('q' | 'Q') | KeyCode::Esc))
}

fn broken(error: &io::Error) -> CommandFailure {
    CommandFailure::Failed(anyhow::anyhow!("the terminal cannot be used any more: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn q_escape_and_control_c_leave_and_other_keys_do_not() {
        let key = |code, modifiers| leaves(&Event::Key(KeyEvent::new(code, modifiers)));
        assert!(key(KeyCode::Char('q'), KeyModifiers::NONE) && key(KeyCode::Esc, KeyModifiers::NONE));
        assert!(key(KeyCode::Char('c'), KeyModifiers::CONTROL));
        assert!(!key(KeyCode::Char('c'), KeyModifiers::NONE) && !leaves(&Event::Resize(80, 24)));
    }

    #[test]
    fn an_absent_server_is_told_and_a_refusal_ends() {
        let mut view = ScreenView::default();
        let unreachable =
            CommandFailure::Unreachable { url: "x".to_owned(), reason: "connection refused".to_owned() };
        assert!(view.take(Err(unreachable)).is_ok());
        assert!(view.away_notice().is_some_and(|notice| notice.contains("connection refused")));
        assert!(matches!(
            view.take(Err(CommandFailure::Refused("no".to_owned()))),
            Err(CommandFailure::Refused(_))
        ));
    }
}
