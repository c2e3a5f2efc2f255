//! Heat map of the communication matrix: one square for each kind; rows send, columns receive.
//!
//! All squares share one logarithmic colour scale.
//! Colours are CSS classes, so one style sheet serves light and dark backgrounds.
//! Each cell has a title, which browsers show as a tooltip.

use super::Matrix;
use mpi_core::matrix::{Amount, Kind};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The maximum number of rows of a square; with more ranks, several ranks share a row.
const ROWS: u32 = 128;

/// The side length of a square in pixels. The next constants are the margins around a square.
const SIDE: f64 = 360.0;
const LEFT: f64 = 64.0;
const TOP: f64 = 84.0;
const GAP: f64 = 72.0;
const BELOW: f64 = 96.0;

/// The number of colours of the scale.
const STEPS: u32 = 8;

const STYLE: &str = "\
text{font:13px system-ui,sans-serif;fill:#1f2933}\
.h{font-size:17px;font-weight:600}.k{font-size:14px;font-weight:600}.a{font-size:11px;fill:#66788a}\
.p{fill:#ffffff}.f{fill:#f2f5f8;stroke:#d9e1e8}\
.c0{fill:#dfe9f2}.c1{fill:#c4e6c3}.c2{fill:#96d2a4}.c3{fill:#6dbc90}.c4{fill:#4da284}.c5{fill:#36877a}.c6{fill:#266b6e}.c7{fill:#1d4f60}.c8{fill:#14303f}\
@media (prefers-color-scheme: dark){text{fill:#e4e9ee}.a{fill:#93a4b4}.p{fill:#12181f}.f{fill:#1a222b;stroke:#2f3b47}\
.c0{fill:#26333f}.c1{fill:#1d4f60}.c2{fill:#266b6e}.c3{fill:#36877a}.c4{fill:#4da284}.c5{fill:#6dbc90}.c6{fill:#96d2a4}.c7{fill:#c4e6c3}.c8{fill:#f0fbe9}}";

/// The amounts of one square by row and column.
type Square = BTreeMap<(u32, u32), Amount>;

/// Returns the heat map of the launched job as an SVG document.
pub(super) fn heat_map(matrix: &Matrix) -> String {
    let ranks = matrix.ranks.max(1);
    let each = ranks.div_ceil(ROWS);
    let rows = ranks.div_ceil(each);
    let squares: Vec<(&str, Square)> = Kind::ALL
        .into_iter()
        .map(|kind| (title(kind), square(matrix, kind, each)))
        .filter(|(_, square)| !square.is_empty())
        .collect();
    let largest = squares.iter().flat_map(|(_, square)| square.values());
    let largest = largest.map(|amount| amount.bytes).max().unwrap_or(0);
    let count = squares.len().max(1) as f64;
    let width = LEFT + count * SIDE + (count - 1.0) * GAP + 32.0;
    let height = TOP + SIDE + BELOW;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\">\n\
         <style>{STYLE}</style>\n<rect class=\"p\" width=\"100%\" height=\"100%\"/>\n\
         <text class=\"h\" x=\"{LEFT}\" y=\"34\">Bytes from rank to rank</text>\n"
    );
    if squares.is_empty() {
        let _ = writeln!(
            out,
            "<text x=\"{LEFT}\" y=\"{TOP}\">no rank has sent anything</text>"
        );
    }
    for (at, (name, square)) in squares.iter().enumerate() {
        let left = LEFT + at as f64 * (SIDE + GAP);
        draw(&mut out, left, name, square, (ranks, each, rows), largest);
    }
    legend(&mut out, largest);
    out.push_str("</svg>\n");
    out
}

fn title(kind: Kind) -> &'static str {
    match kind {
        Kind::P2p => "point to point",
        Kind::Collective => "collective",
        Kind::OneSided => "one-sided",
    }
}

/// Adds the amounts of one kind by row and column, with `each` ranks in a row.
fn square(matrix: &Matrix, kind: Kind, each: u32) -> Square {
    let mut square = Square::new();
    for (way, amount) in &matrix.amounts {
        if way.job == 0 && way.kind == kind {
            let sum = square.entry((way.from / each, way.to / each)).or_default();
            sum.messages += amount.messages;
            sum.bytes += amount.bytes;
        }
    }
    square
}

fn draw(
    out: &mut String,
    left: f64,
    name: &str,
    square: &Square,
    (ranks, each, rows): (u32, u32, u32),
    largest: u64,
) {
    let cell = SIDE / f64::from(rows);
    // Large cells are separated by a gap of one pixel.
    let gap = if cell >= 6.0 { 1.0 } else { 0.0 };
    let total = square
        .values()
        .fold(Amount::default(), |sum, amount| Amount {
            messages: sum.messages + amount.messages,
            bytes: sum.bytes + amount.bytes,
        });
    let _ = writeln!(
        out,
        "<text class=\"k\" x=\"{left:.1}\" y=\"{:.1}\">{name}</text>\
         <text class=\"a\" x=\"{left:.1}\" y=\"{:.1}\">{}</text>\n\
         <rect class=\"f\" x=\"{left:.1}\" y=\"{TOP:.1}\" width=\"{SIDE}\" height=\"{SIDE}\"/>",
        TOP - 26.0,
        TOP - 9.0,
        words(total),
    );
    let of = |row: u32| match (row * each, (row * each + each).min(ranks) - 1) {
        (first, last) if first == last => format!("rank {first}"),
        (first, last) => format!("ranks {first}-{last}"),
    };
    for ((from, to), amount) in square {
        let _ = writeln!(
            out,
            "<rect class=\"c{}\" x=\"{:.2}\" y=\"{:.2}\" width=\"{:.2}\" height=\"{:.2}\"><title>{} to {}: {}</title></rect>",
            step(amount.bytes, largest),
            left + f64::from(*to) * cell + gap / 2.0,
            TOP + f64::from(*from) * cell + gap / 2.0,
            cell - gap,
            cell - gap,
            of(*from),
            of(*to),
            words(*amount),
        );
    }
    for row in ticks(rows) {
        let middle = (f64::from(row) + 0.5) * cell;
        let _ = writeln!(
            out,
            "<text class=\"a\" text-anchor=\"end\" x=\"{:.1}\" y=\"{:.1}\">{}</text>\
             <text class=\"a\" text-anchor=\"middle\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            left - 6.0,
            TOP + middle + 4.0,
            row * each,
            left + middle,
            TOP + SIDE + 15.0,
            row * each,
        );
    }
    let (x, y) = (left - 38.0, TOP + SIDE / 2.0);
    let _ = writeln!(
        out,
        "<text class=\"a\" text-anchor=\"middle\" transform=\"translate({x:.1} {y:.1}) rotate(-90)\">from rank</text>\
         <text class=\"a\" text-anchor=\"middle\" x=\"{:.1}\" y=\"{:.1}\">to rank</text>",
        left + SIDE / 2.0,
        TOP + SIDE + 33.0,
    );
}

/// Returns the rows with a label: at most 16, at a distance that is a power of two.
fn ticks(rows: u32) -> impl Iterator<Item = u32> {
    let distances = [1, 2, 4, 8, 16];
    let distance = distances.into_iter().find(|distance| rows / distance < 16);
    (0..rows).step_by(distance.unwrap_or(16) as usize)
}

/// Returns the colour of a number of bytes: 0 for none, then equal logarithmic steps to `largest`.
fn step(bytes: u64, largest: u64) -> u32 {
    if bytes == 0 {
        return 0;
    }
    let share = (bytes as f64).ln_1p() / (largest as f64).ln_1p();
    ((share * f64::from(STEPS)).ceil() as u32).clamp(1, STEPS)
}

/// Draws the legend: each colour with its upper limit in bytes.
fn legend(out: &mut String, largest: u64) {
    let (y, width) = (TOP + SIDE + 52.0, 40.0);
    for colour in 0..=STEPS {
        let x = LEFT + f64::from(colour) * width;
        let end = (largest as f64).ln_1p() * f64::from(colour) / f64::from(STEPS);
        let end = if colour == STEPS {
            largest
        } else {
            end.exp_m1().floor() as u64
        };
        let _ = writeln!(
            out,
            "<rect class=\"c{colour}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"12\"/>\
             <text class=\"a\" text-anchor=\"middle\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            width - 2.0,
            x + width / 2.0 - 1.0,
            y + 27.0,
            short(end),
        );
    }
}

fn words(amount: Amount) -> String {
    let plural = if amount.messages == 1 { "" } else { "s" };
    format!(
        "{} message{plural}, {}",
        amount.messages,
        bytes(amount.bytes)
    )
}

const UNITS: [(u64, &str, &str); 4] = [
    (1 << 40, "TiB", "Ti"),
    (1 << 30, "GiB", "Gi"),
    (1 << 20, "MiB", "Mi"),
    (1 << 10, "KiB", "Ki"),
];

/// Formats a size in bytes, in the largest unit that is not larger than the size.
fn bytes(count: u64) -> String {
    match UNITS.iter().find(|(unit, ..)| count >= *unit) {
        Some((unit, name, _)) if count.is_multiple_of(*unit) => format!("{} {name}", count / unit),
        Some((unit, name, _)) => format!("{:.1} {name}", count as f64 / *unit as f64),
        None => format!("{count} B"),
    }
}

fn short(count: u64) -> String {
    match UNITS.iter().find(|(unit, ..)| count >= *unit) {
        Some((unit, _, name)) => format!("{:.0} {name}", count as f64 / *unit as f64),
        None => format!("{count}"),
    }
}
