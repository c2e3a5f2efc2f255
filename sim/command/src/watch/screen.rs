//! The screen of a watched board on a terminal.
//!
//! [`draw`] draws a [`History`] on any ratatui backend;
//! [`run`] owns the terminal and restores it in every case.
//! After a termination signal, the program restores the terminal and then ends by the same signal.

use super::history::{History, Nodes, Phase};
use super::source::Source;
use super::text::{awaited, channels, found, mark, row, state};
use crate::Failure;
use barrier_board::live::Look;
use barrier_waveform::words::counted;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Gauge, Paragraph, Sparkline};
use ratatui::{DefaultTerminal, Frame};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use std::ffi::c_int;
use std::fs::File;
use std::io::{self, IsTerminal as _, stdin};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The termination signals after which the terminal is restored.
const SIGNALS: [c_int; 4] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];
/// Number of lines of the screen without the nodes, including the frame around the nodes.
const ELSEWHERE: u16 = 14;
/// Maximum time until the program reacts to a signal.
const HEED: Duration = Duration::from_millis(50);

/// Shows the board until the user quits or `looks` samples have been shown.
pub fn run(
    source: &mut Source,
    history: &mut History,
    every: Duration,
    looks: Option<u64>,
) -> Result<(), Failure> {
    let asked = Arc::new(AtomicUsize::new(0));
    for signal in SIGNALS {
        let number = usize::try_from(signal)?;
        signal_hook::flag::register_usize(signal, asked.clone(), number)?;
    }
    // `ratatui` also restores the terminal after a panic.
    let mut terminal = ratatui::try_init()?;
    let shown = show(&mut terminal, &asked, source, history, every, looks);
    let restored = ratatui::try_restore();
    let signal = asked.load(Ordering::Relaxed);
    if signal != 0 {
        signal_hook::low_level::emulate_default_handler(c_int::try_from(signal)?)?;
    }
    restored?;
    shown
}

fn show(
    terminal: &mut DefaultTerminal,
    asked: &AtomicUsize,
    source: &mut Source,
    history: &mut History,
    every: Duration,
    looks: Option<u64>,
) -> Result<(), Failure> {
    let keyboard = keyboard()?;
    let (mut paused, mut look) = (false, 1);
    loop {
        terminal.draw(|frame| draw(frame, history, paused))?;
        if looks.is_some_and(|looks| look >= looks) {
            return Ok(());
        }
        let next = Instant::now() + every;
        loop {
            if asked.load(Ordering::Relaxed) != 0 {
                return Ok(());
            }
            let left = next.saturating_duration_since(Instant::now());
            // If the terminal is closed,
            // crossterm would read in an endless loop, so it is not called.
            if !await_keys(&keyboard, left.min(HEED))? {
                return Err("the terminal was closed".into());
            }
            if !event::poll(Duration::ZERO)? {
                match left.is_zero() {
                    true => break,
                    false => continue,
                }
            }
            match event::read()? {
                Event::Key(key) if asks_to_end(key) => return Ok(()),
                Event::Key(key) if key.code == KeyCode::Char(' ') && is_press(key) => {
                    paused = !paused;
                }
                // Other events are ignored; a resized terminal is redrawn with the next sample.
                _ => {}
            }
        }
        if !paused {
            history.observe(source.look()?);
            look += 1;
        }
    }
}

/// Opens the terminal from which crossterm reads keys: standard input, or else the controlling terminal.
fn keyboard() -> io::Result<OwnedFd> {
    let input = stdin();
    match input.is_terminal() {
        true => input.as_fd().try_clone_to_owned(),
        false => Ok(File::open("/dev/tty")?.into()),
    }
}

/// Waits for a key for at most `limit`. Returns false if the terminal is closed.
fn await_keys(keyboard: &OwnedFd, limit: Duration) -> io::Result<bool> {
    let mut ready = [PollFd::new(keyboard, PollFlags::IN)];
    let limit = Timespec::try_from(limit).map_err(io::Error::other)?;
    match poll(&mut ready, Some(&limit)) {
        // After a signal the function returns, because the caller checks for signals.
        Ok(_) | Err(Errno::INTR) => {}
        Err(e) => return Err(e.into()),
    }
    let gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
    Ok(!ready[0].revents().intersects(gone))
}

fn is_press(key: KeyEvent) -> bool {
    key.kind != KeyEventKind::Release
}

fn asks_to_end(key: KeyEvent) -> bool {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    is_press(key)
        && match key.code {
            KeyCode::Char('q') | KeyCode::Esc => true,
            KeyCode::Char('c') => control,
            _ => false,
        }
}

/// Draws one picture of the board.
pub fn draw(frame: &mut Frame, history: &History, paused: bool) {
    let observation = history.last();
    let in_row = row(observation);
    let is_tree = observation.share < observation.nodes.len();
    // Shows only the boards that fit, so that the list of late nodes below them stays visible.
    let capacity = frame.area().height.saturating_sub(ELSEWHERE);
    let rows = u16::try_from(observation.nodes.len().div_ceil(in_row)).unwrap_or(u16::MAX);
    let rows = if is_tree {
        rows.min(capacity.max(1))
    } else {
        rows
    };
    let [head, rate, barrier, nodes, late, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(4),
        Constraint::Length(barrier_height(observation)),
        Constraint::Length(rows + 2),
        Constraint::Min(3),
        Constraint::Length(1),
    ])
    .areas(frame.area());

    let title = Line::from_iter([
        Span::styled(history.title.clone(), Modifier::BOLD),
        Span::raw(format!(
            ": {}, {} of them connected, {}",
            counted(observation.nodes.len(), "node"),
            observation.connected().len(),
            counted(observation.releases, "release")
        )),
        Span::styled(
            found(history).map_or_else(String::new, |found| format!(", {found}")),
            color(Phase::In),
        ),
    ]);
    frame.render_widget(title, head);

    let average = match history.rate() {
        Some(rate) => format!("{rate:.0} barriers/s"),
        None => "barriers/s".into(),
    };
    let block = Block::bordered().title(average);
    let capacity = usize::from(block.inner(rate).width);
    let rates: Vec<u64> = history.rates().rev().take(capacity).rev().collect();
    frame.render_widget(Sparkline::default().data(rates).block(block), rate);

    draw_barrier(frame, barrier, history);

    let phases = observation.phases();
    let grid: Vec<Line> = phases
        .chunks(in_row)
        .enumerate()
        .take(usize::from(rows))
        .map(|(number, phases)| match is_tree {
            true => board(number, number * in_row, phases),
            false => {
                let nodes = (number * in_row..).zip(phases);
                Line::from_iter(nodes.map(|(node, phase)| cell(observation, node, *phase)))
            }
        })
        .collect();
    let title = match is_tree {
        true => "boards: a mark for each node, # in the barrier, ! awaited",
        false if history.has_channels() => "nodes: # in a barrier, ! awaited in a channel",
        false => "nodes: wire out, wire in, # in the barrier, ! awaited",
    };
    let block = Block::bordered().title(title);
    frame.render_widget(Paragraph::new(grid).block(block), nodes);

    let block = Block::bordered().title("late, and how often at looks at a barrier that waited");
    let capacity = usize::from(block.inner(late).height);
    let width = usize::from(block.inner(late).width);
    let waiting = awaited(history).unwrap_or_else(|| "no node is awaited".into());
    let laggards = history.laggards();
    let digits = laggards.iter().map(|(node, _)| node.to_string().len());
    let digits = digits.max().unwrap_or(0).max(2);
    let bars = laggards
        .iter()
        .map(|(node, part)| bar(*node, digits, *part, width));
    let lines: Vec<Line> = std::iter::once(Line::raw(waiting))
        .chain(bars)
        .take(capacity)
        .collect();
    frame.render_widget(Paragraph::new(lines).block(block), late);

    let keys = match paused {
        false => "q ends, space pauses",
        true => "paused: q ends, space goes on",
    };
    frame.render_widget(Line::styled(keys, Modifier::DIM), foot);
}

/// Returns the height of the barrier's frame, which contains one bar, or one line per channel.
fn barrier_height(observation: &Look) -> u16 {
    let lines = observation.channels.len().max(1);
    u16::try_from(lines).unwrap_or(u16::MAX).saturating_add(2)
}

/// Draws the number of nodes in the barrier, or the channels of a version 2 board.
fn draw_barrier(frame: &mut Frame, area: Rect, history: &History) {
    let observation = history.last();
    let block = Block::bordered().title(state(history));
    if history.has_channels() {
        let lines: Vec<Line> = channels(observation).map(Line::raw).collect();
        return frame.render_widget(Paragraph::new(lines).block(block), area);
    }
    let (entered, all) = (observation.entered().len(), observation.nodes.len());
    let gauge = Gauge::default()
        .block(block)
        .gauge_style(color(Phase::In))
        .ratio((entered as f64 / all.max(1) as f64).clamp(0.0, 1.0))
        .label(format!("{entered} of {all}"));
    frame.render_widget(gauge, area);
}

/// Draws a node: its number, its two wires, and its state.
fn cell(observation: &Look, node: usize, phase: Phase) -> Span<'static> {
    let level = |high| if high { '\u{2594}' } else { '\u{2581}' };
    if !observation.channels.is_empty() {
        // A node of version 2 has one wire per channel, and their levels differ.
        return Span::styled(format!("{node:>2} {}    ", mark(phase)), color(phase));
    }
    let text = format!(
        "{node:>2} {}{}{}  ",
        level(observation.nodes[node].0),
        level(observation.output),
        mark(phase)
    );
    Span::styled(text, color(phase))
}

/// Draws a board of a tree in one line: its number, its first node, and one mark per node.
fn board(number: usize, first: usize, phases: &[Phase]) -> Line<'static> {
    let head = Span::raw(format!("board {number:>2}, from node {first:>4} "));
    let marks = phases
        .iter()
        .map(|phase| Span::styled(mark(*phase).to_string(), color(*phase)));
    Line::from_iter(std::iter::once(head).chain(marks))
}

/// Draws a bar with the fraction of samples in which a node was awaited.
fn bar(node: usize, digits: usize, part: f64, width: usize) -> Line<'static> {
    let words = format!("node {node:>digits$} {:>4.0} % ", part * 100.0);
    let capacity = width.saturating_sub(words.len());
    let bar = "\u{2588}".repeat((part * capacity as f64).round() as usize);
    Line::from_iter([Span::raw(words), Span::styled(bar, color(Phase::Awaited))])
}

fn color(phase: Phase) -> Style {
    match phase {
        Phase::In => Style::new().fg(Color::Green),
        Phase::Awaited => Style::new().fg(Color::Red).add_modifier(Modifier::BOLD),
        Phase::Out => Style::new(),
        Phase::Undriven => Style::new().fg(Color::DarkGray),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use barrier_board::live::Snapshot;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn screen(history: &History, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
        terminal
            .draw(|frame| draw(frame, history, false))
            .expect("drawn");
        terminal.backend().to_string()
    }

    fn observation(at_ms: u64, inputs: u64, outputs: u64, releases: u64) -> Look {
        let board = Snapshot {
            at_ns: at_ms * 1_000_000,
            inputs,
            outputs,
            releases,
        };
        Look::at(&board, 60, (u64::MAX >> 4) & !(1 << 59))
    }

    /// Returns the history of sixteen boards of sixty nodes; two boards wait for three nodes.
    fn sixteen_boards() -> History {
        let mut look = Look {
            share: 60,
            ..observation(1000, 0, 0, 7)
        };
        look.nodes = (0..960)
            .map(|node| (node < 120 && ![3, 60, 119].contains(&node), node < 900))
            .collect();
        History::new("process 4711 (mpirun)".into(), look)
    }

    #[test]
    fn each_board_of_a_tree_has_a_row() {
        insta::assert_snapshot!(screen(&sixteen_boards(), 100, 40));
    }

    /// Returns the history of sixty nodes:
    /// barriers at an increasing rate, then a wait for three nodes.
    fn busy() -> History {
        const ALL: u64 = u64::MAX >> 4;
        let mut history = History::new("sim:tcp://10.0.0.1:25175".into(), observation(0, 0, 0, 0));
        for look in 1..=40 {
            history.observe(observation(look * 100, 0, 0, look * look));
        }
        history.observe(observation(4100, ALL & !(1 << 3), 0, 1601));
        history.observe(observation(
            5600,
            ALL & !(1 << 3 | 1 << 17 | 1 << 59),
            0,
            1601,
        ));
        history
    }

    #[test]
    fn sixty_nodes_fit_a_terminal() {
        insta::assert_snapshot!(screen(&busy(), 80, 24));
    }

    #[test]
    fn a_board_where_nothing_happens_says_so() {
        let history = History::new("process 4711 (mpirun)".into(), observation(0, 0, 0, 0));
        insta::assert_snapshot!(screen(&history, 80, 24));
    }

    #[test]
    fn a_terminal_of_any_size_is_drawn() {
        for (width, height) in [(1, 1), (10, 5), (80, 3), (300, 100)] {
            screen(&busy(), width, height);
            screen(&sixteen_boards(), width, height);
        }
    }

    #[test]
    fn scripts_see_the_same_board() {
        use super::super::text;
        insta::assert_snapshot!(text::picture(&busy()));
        insta::assert_snapshot!(text::line(&busy()));
        insta::assert_snapshot!(text::json(&busy()));
    }
}
