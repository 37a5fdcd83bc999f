//! The terminal: redrawn each second until `q`.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use crossterm::terminal::{self, ClearType};
use crossterm::{cursor, execute, queue};

use super::client::AskError;
use super::{CommandError, page};
use crate::admin::Report;

const REFRESH: Duration = Duration::from_secs(1);

/// Restores the terminal when dropped.
struct TerminalGuard;

/// Shows the pages that `report` returns, until the operator quits. If the server cannot be reached for a while, it
/// keeps trying.
pub fn live(report: impl Fn() -> Result<Report, AskError>) -> Result<(), CommandError> {
    // The first error is shown on the plain terminal.
    let mut text = page::text(&report()?);
    let _taken = TerminalGuard::take().map_err(CommandError::Terminal)?;
    loop {
        draw(&text).map_err(CommandError::Terminal)?;
        if quits_within(REFRESH).map_err(CommandError::Terminal)? {
            return Ok(());
        }
        text = match report() {
            Ok(report) => page::text(&report),
            Err(error) => error.to_string(),
        };
    }
}

impl TerminalGuard {
    fn take() -> io::Result<Self> {
        terminal::enable_raw_mode()?;
        let taken = Self;
        execute!(io::stdout(), terminal::EnterAlternateScreen, cursor::Hide)?;
        Ok(taken)
    }
}

impl Drop for TerminalGuard {
    fn drop(&mut self) {
        let _ = execute!(io::stdout(), cursor::Show, terminal::LeaveAlternateScreen);
        let _ = terminal::disable_raw_mode();
    }
}

fn draw(text: &str) -> io::Result<()> {
    // A terminal that does not know its size reports 0.
    let (columns, rows) = terminal::size().map(|(columns, rows)| if rows == 0 { (80, 24) } else { (columns, rows) })?;
    let mut out = io::stdout().lock();
    queue!(out, cursor::MoveTo(0, 0))?;
    for line in visible(text, columns, rows) {
        write!(out, "{line}")?;
        queue!(out, terminal::Clear(ClearType::UntilNewLine), cursor::MoveToNextLine(1))?;
    }
    queue!(out, terminal::Clear(ClearType::FromCursorDown))?;
    write!(out, "q quits")?;
    out.flush()
}

/// The lines that fit, with a row left for the last line.
fn visible(text: &str, columns: u16, rows: u16) -> impl Iterator<Item = String> {
    let fits = move |line: &str| line.chars().take(columns.into()).collect();
    text.lines().take(usize::from(rows).saturating_sub(1)).map(fits)
}

fn quits_within(time: Duration) -> io::Result<bool> {
    let end = Instant::now() + time;
    while event::poll(end.saturating_duration_since(Instant::now()))? {
        match event::read()? {
            Event::Key(key) if key.kind == KeyEventKind::Press => {
                let interrupted = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
                if interrupted || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc) {
                    return Ok(true);
                }
            }
            Event::Resize(..) => return Ok(false),
            _ => {}
        }
    }
    Ok(false)
}
