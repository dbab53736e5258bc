//! The terminal: taken, drawn on, and given back as it was, however the command ends.
//!
//! `q`, Escape, Ctrl-C and signals leave. A resize draws anew at once. A server that is away is told on the screen and
//! asked again; a refusal will not heal by itself, so it ends the command.

use std::io;
use std::time::Duration;

use anyhow::Context as _;
use crossterm::event::{Event, EventStream, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use futures::StreamExt as _;
use ratatui::DefaultTerminal;
use tokio::time::{Instant, sleep_until};

use super::amount::span;
use super::board::{Board, Station};
use super::draw::draw;
use super::source::{News, Source};
use crate::cli::failure::Failure;
use crate::server::shutdown::Signals;

/// Shows the station, asking every `interval`, until somebody leaves.
pub async fn live(
    source: Source,
    station: &Station,
    interval: Duration,
    colour: bool,
) -> Result<(), Failure> {
    let signals = Signals::listen().context("cannot listen for signals")?;
    let terminal = ratatui::try_init().context("cannot use the terminal; --once prints without one")?;
    let restore = Restore;
    let outcome = watch(terminal, source, station, Pace { interval, colour }, signals).await;
    drop(restore);
    outcome
}

/// Gives the terminal back when it goes.
struct Restore;

impl Drop for Restore {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

#[derive(Clone, Copy)]
struct Pace {
    interval: Duration,
    colour: bool,
}

async fn watch(
    mut terminal: DefaultTerminal,
    source: Source,
    station: &Station,
    pace: Pace,
    mut signals: Signals,
) -> Result<(), Failure> {
    let mut keys = EventStream::new();
    let mut asking = Box::pin(ask_at(source, Instant::now()));
    let mut view = View::default();
    loop {
        let away = view.told();
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
                view.take(answer.map(|news| Board::new(station, &news)))?;
                asking.set(ask_at(source, asked_at + pace.interval));
            }
        }
    }
}

/// Asks at a time, or at once if it has passed.
async fn ask_at(mut source: Source, at: Instant) -> (Source, Instant, Result<News, Failure>) {
    sleep_until(at).await;
    let asked_at = Instant::now();
    let answer = source.ask().await;
    (source, asked_at, answer)
}

/// What is on the screen.
#[derive(Default)]
struct View {
    board: Option<Board>,
    /// Since when there has been no answer, and why.
    away: Option<(Instant, String)>,
}

impl View {
    fn take(&mut self, answer: Result<Board, Failure>) -> Result<(), Failure> {
        match answer {
            Ok(board) => {
                self.board = Some(board);
                self.away = None;
            }
            Err(failure @ (Failure::Unreachable { .. } | Failure::Failed(_))) => {
                let since = self.away.as_ref().map_or_else(Instant::now, |(since, _)| *since);
                self.away = Some((since, reason(&failure)));
            }
            Err(failure) => return Err(failure),
        }
        Ok(())
    }

    fn told(&self) -> Option<String> {
        let (since, reason) = self.away.as_ref()?;
        Some(format!("away for {}: {reason}", span(since.elapsed().as_secs())))
    }
}

fn reason(failure: &Failure) -> String {
    match failure {
        Failure::Unreachable { reason, .. } => reason.clone(),
        other => other.to_string().lines().next().unwrap_or_default().to_owned(),
    }
}

fn leaves(event: &Event) -> bool {
    let Event::Key(KeyEvent { code, modifiers, kind, .. }) = event else { return false };
    let interrupts = *code == KeyCode::Char('c') && modifiers.contains(KeyModifiers::CONTROL);
    *kind != KeyEventKind::Release && (interrupts || matches!(code, KeyCode::Char('q' | 'Q') | KeyCode::Esc))
}

fn broken(error: &io::Error) -> Failure {
    Failure::Failed(anyhow::anyhow!("the terminal cannot be used any more: {error}"))
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
        let mut view = View::default();
        let unreachable =
            Failure::Unreachable { url: "x".to_owned(), reason: "connection refused".to_owned() };
        assert!(view.take(Err(unreachable)).is_ok());
        assert!(view.told().is_some_and(|told| told.contains("connection refused")));
        assert!(matches!(view.take(Err(Failure::Refused("no".to_owned()))), Err(Failure::Refused(_))));
    }
}
