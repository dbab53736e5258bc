//! Drawing the board: header, figures, charts of the last hour, the queue on the left, what needs attention
//! on the right.
//!
//! Made for 80×24 and more. On a smaller screen the charts go first, then lines from below; nothing breaks.

use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    style::{Color, Modifier, Style},
    text::{Line, Span},
    widgets::{Block, Borders, Paragraph, Sparkline},
};

use super::attention::AttentionSection;
use super::board::{LineTone, StatusBoard};
use crate::cli::amount::count;

/// Screens lower than this have no charts.
const CHARTS_FROM_ROWS: u16 = 22;
const CHART_ROWS: u16 = 4;
const QUEUE_COLUMNS: u16 = 27;
const NAME_COLUMNS: usize = 13;

/// Draws it all. `away` says why the figures are old, if they are.
pub fn draw(frame: &mut Frame<'_>, board: Option<&StatusBoard>, away: Option<&str>, colour: bool) {
    let ink = ColourPalette { colour };
    let charts = if frame.area().height >= CHARTS_FROM_ROWS { CHART_ROWS } else { 0 };
    let rows = [
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(3),
        Constraint::Length(charts),
        Constraint::Min(0),
        Constraint::Length(1),
    ];
    let [header, news, figures, chart, body, footer] = Layout::vertical(rows).areas(frame.area());
    let help = format!(" q leaves{}", if away.is_some() { "   tried again by itself" } else { "" });
    frame.render_widget(Paragraph::new(help).style(ink.style_for(LineTone::Quiet)), footer);
    let Some(board) = board else {
        frame.render_widget(Paragraph::new("postway").style(ink.title()), header);
        let (notice, tone) =
            away.map_or(("asking the server", LineTone::Quiet), |away| (away, LineTone::Bad));
        frame.render_widget(Paragraph::new(notice).style(ink.style_for(tone)), news);
        return;
    };
    draw_header(frame, [header, news], board, away, ink);
    draw_figures(frame, figures, board, ink);
    if charts > 0 {
        draw_charts(frame, chart, board, ink);
    }
    let [queue, attention] =
        Layout::horizontal([Constraint::Length(QUEUE_COLUMNS), Constraint::Min(0)]).areas(body);
    draw_queue(frame, queue, board, ink);
    draw_sections(frame, attention, &board.sections, ink);
}

/// The styles of lines: with colours if they are allowed, else with weight alone.
#[derive(Clone, Copy)]
struct ColourPalette {
    colour: bool,
}

impl ColourPalette {
    fn style_for(self, tone: LineTone) -> Style {
        let plain = Style::default();
        match (tone, self.colour) {
            (LineTone::Plain, _) => plain,
            (LineTone::Quiet, true) => plain.fg(Color::DarkGray),
            (LineTone::Good, true) => plain.fg(Color::Green),
            (LineTone::Warning, true) => plain.fg(Color::Yellow),
            (LineTone::Bad, true) => plain.fg(Color::Red).add_modifier(Modifier::BOLD),
            (LineTone::Quiet, false) => plain.add_modifier(Modifier::DIM),
            (LineTone::Good, false) => plain,
            (LineTone::Warning | LineTone::Bad, false) => plain.add_modifier(Modifier::BOLD),
        }
    }

    fn title(self) -> Style {
        Style::default().add_modifier(Modifier::BOLD)
    }

    fn chart(self) -> Style {
        if self.colour { Style::default().fg(Color::Cyan) } else { Style::default() }
    }
}

fn draw_header(
    frame: &mut Frame<'_>,
    [first, second]: [Rect; 2],
    board: &StatusBoard,
    away: Option<&str>,
    ink: ColourPalette,
) {
    frame.render_widget(Paragraph::new(board.title.as_str()).style(ink.title()), first);
    let mut line = Line::styled(board.corner.clone(), ink.style_for(LineTone::Quiet));
    if let Some(away) = away {
        line.push_span(Span::styled(format!("  {away}"), ink.style_for(LineTone::Bad)));
    }
    frame.render_widget(line, second);
}

fn draw_figures(frame: &mut Frame<'_>, area: Rect, board: &StatusBoard, ink: ColourPalette) {
    let rows = board.figures.chunks(3).map(|row| {
        let cells = row.iter().flat_map(|(name, value, tone)| {
            [
                Span::styled(format!("{name:<NAME_COLUMNS$}"), ink.style_for(LineTone::Quiet)),
                Span::styled(format!("{value:<14}"), ink.style_for(*tone)),
            ]
        });
        Line::from(cells.collect::<Vec<_>>())
    });
    frame.render_widget(Paragraph::new(rows.collect::<Vec<_>>()), area);
}

fn draw_charts(frame: &mut Frame<'_>, area: Rect, board: &StatusBoard, ink: ColourPalette) {
    let halves = Layout::horizontal([Constraint::Fill(1), Constraint::Fill(1)]).spacing(1).areas::<2>(area);
    for ((name, minutes), area) in
        [("accepted", &board.accepted), ("sent", &board.sent)].into_iter().zip(halves)
    {
        let most = minutes.iter().max().copied().unwrap_or(0);
        let most = count(i64::try_from(most).unwrap_or(i64::MAX));
        let block = Block::new().borders(Borders::TOP).title(format!(" {name}, last hour, peak {most}/min "));
        // A narrow screen shows the latest minutes.
        let shown = usize::from(area.width).min(minutes.len());
        let chart =
            Sparkline::default().block(block).data(&minutes[minutes.len() - shown..]).style(ink.chart());
        frame.render_widget(chart, area);
    }
}

fn draw_queue(frame: &mut Frame<'_>, area: Rect, board: &StatusBoard, ink: ColourPalette) {
    let block = Block::new().borders(Borders::TOP).title(" queue ");
    let lines = board.queue.iter().map(|(state, messages, tone)| {
        Line::styled(format!("{state:<NAME_COLUMNS$}{:>12}", count(*messages)), ink.style_for(*tone))
    });
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()).block(block), area);
}

fn draw_sections(frame: &mut Frame<'_>, area: Rect, sections: &[AttentionSection], ink: ColourPalette) {
    let block = Block::new().borders(Borders::TOP).title(" what needs a look ");
    let rows = usize::from(block.inner(area).height);
    let mut lines: Vec<Line<'_>> = Vec::new();
    if sections.is_empty() {
        lines.push(Line::styled("nothing", ink.style_for(LineTone::Good)));
    }
    for (section, room) in sections.iter().zip(shares(sections, rows)) {
        if room == 0 {
            continue;
        }
        let (all, shown) = (section.lines.len(), section.lines.len().min(room - 1));
        let title = match all - shown {
            0 => section.title.to_owned(),
            _ => format!("{}, {shown} of {all}", section.title),
        };
        lines.push(Line::styled(title, ink.title()));
        let line =
            |(text, tone): &(String, LineTone)| Line::styled(format!("  {text}"), ink.style_for(*tone));
        lines.extend(section.lines[..shown].iter().map(line));
    }
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

/// Rows for each section with its title: all it wants while there is room, else what is left, fairly.
fn shares(sections: &[AttentionSection], rows: usize) -> Vec<usize> {
    let wanted: Vec<usize> = sections.iter().map(|section| section.lines.len() + 1).collect();
    let mut given = vec![0; wanted.len()];
    let mut left = rows;
    // A title alone says nothing, so each section gets two rows first, from the most important on.
    for share in &mut given {
        if left >= 2 {
            *share = 2;
            left -= 2;
        }
    }
    let mut grew = true;
    while left > 0 && grew {
        grew = false;
        for (share, wanted) in given.iter_mut().zip(&wanted) {
            if left > 0 && *share > 0 && *share < *wanted {
                *share += 1;
                left -= 1;
                grew = true;
            }
        }
    }
    given
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_shared_fairly_and_never_overspent() {
        let section = |lines: usize| AttentionSection {
            title: "x",
            lines: vec![(String::new(), LineTone::Plain); lines],
        };
        assert_eq!(shares(&[section(1), section(9), section(2)], 11), [2, 6, 3]);
        assert_eq!(shares(&[section(5), section(5)], 3), [3, 0]);
        assert_eq!(shares(&[section(5)], 1), [0]);
        assert_eq!(shares(&[], 5), [0; 0]);
    }
}
