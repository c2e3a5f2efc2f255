//! The desk kit of `boards/kit`: a schematic for KiCad and a bill of materials, both made from two tables.
//!
//! `parts.csv` lists the parts, `connections.csv` the pins of each net. Nothing is drawn by hand: every pin of the
//! schematic has the label of its net, or is marked as not connected. `cargo test -p hdl --test kit` compares the files with
//! the tables, and with `KIT_UPDATE=1` writes them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::source::{Source, source};

/// The parts: reference, value, number of pins, description.
pub const PARTS: Source = source!("boards/kit/parts.csv");
/// The net of each connected pin, and the pin's function.
pub const CONNECTIONS: Source = source!("boards/kit/connections.csv");

/// The distance between two pins, mm.
const GRID: f64 = 2.54;
/// Height of a column of parts on the sheet, mm.
const COLUMN: f64 = 235.0;
/// Distance between two columns of parts, mm.
const WIDTH: f64 = 27.0 * GRID;

/// A part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Such as R1.
    pub reference: String,
    /// Such as 10k.
    pub value: String,
    /// Number of pins.
    pub pins: usize,
    /// Description.
    pub description: String,
}

/// Returns the parts, in the order of the table.
pub fn parts() -> Vec<Part> {
    let part = |row: Vec<&str>| Part {
        reference: row[0].to_owned(),
        value: row[1].to_owned(),
        pins: row[2].parse().unwrap_or(0),
        description: row[3].to_owned(),
    };
    rows(PARTS.text).map(part).collect()
}

/// Returns the net of each connected pin, by part and pin.
pub fn nets() -> BTreeMap<(String, usize), String> {
    let net = |row: Vec<&str>| {
        let pin = row[2].parse().unwrap_or(0);
        ((row[1].to_owned(), pin), row[0].to_owned())
    };
    rows(CONNECTIONS.text).map(net).collect()
}

/// Returns the rows below the header, of four columns each; the last column may contain commas.
fn rows(table: &str) -> impl Iterator<Item = Vec<&str>> {
    let rows = table.lines().skip(1);
    rows.map(|row| row.splitn(4, ',').collect::<Vec<_>>())
        .filter(|row| row.len() == 4)
}

/// Returns the bill of materials: one row per value.
pub fn bill() -> String {
    let mut bill: Vec<(String, Vec<String>, String)> = Vec::new();
    for part in parts() {
        match bill.iter_mut().find(|(value, ..)| *value == part.value) {
            Some((_, references, _)) => references.push(part.reference),
            None => bill.push((part.value, vec![part.reference], part.description)),
        }
    }
    let mut text = "quantity,value,references,as\n".to_owned();
    for (value, references, description) in bill {
        let (many, names) = (references.len(), references.join(" "));
        let _ = writeln!(text, "{many},{value},{names},{description}");
    }
    text
}

/// Returns the position of a pin's end relative to the middle of its part; mm, to the right and upwards.
fn place(pins: usize, pin: usize) -> (f64, f64) {
    let left = pins.div_ceil(2);
    let top = (left as f64 - 1.0) / 2.0 * GRID;
    // Down on the left and up on the right, as the pins of a chip are numbered.
    match pin <= left {
        true => (-6.0 * GRID, grid(top) - (pin - 1) as f64 * GRID),
        false => (6.0 * GRID, grid(top) - (pins - pin) as f64 * GRID),
    }
}

/// Rounds up to the grid.
fn grid(length: f64) -> f64 {
    (length / GRID).ceil() * GRID
}

/// Returns the schematic in the format of KiCad 6.
pub fn schematic() -> String {
    let (parts, nets) = (parts(), nets());
    let mut sheet = Sheet::default();
    let mut symbols = BTreeMap::new();
    let (mut x, mut y) = (20.0 * GRID, 8.0 * GRID);
    let mut instances = String::new();
    for part in &parts {
        symbols.entry(part.value.clone()).or_insert(part.pins);
        let rows = part.pins.div_ceil(2);
        let height = (rows + 3) as f64 * GRID;
        if y + height > COLUMN {
            (x, y) = (x + WIDTH, 8.0 * GRID);
        }
        // The reference is above the part, and the first pin one row below it.
        let middle = y + GRID + place(part.pins, 1).1;
        let uuid = sheet.part(part, x, middle);
        let _ = writeln!(
            instances,
            "    (path \"/{uuid}\" (reference \"{}\") (unit 1) (value \"{}\") (footprint \"\"))",
            part.reference, part.value
        );
        for pin in 1..=part.pins {
            let (right, up) = place(part.pins, pin);
            let net = nets.get(&(part.reference.clone(), pin));
            sheet.end(net.map(String::as_str), x + right, middle - up, right < 0.0);
        }
        y += height;
    }
    let symbols: String = symbols
        .iter()
        .map(|(value, pins)| symbol(value, *pins))
        .collect();
    let (own, body) = (uuid(0), sheet.text);
    format!(
        "(kicad_sch (version 20211123) (generator hwbarr)\n  (uuid {own})\n  (paper \"A3\")\n  \
         (title_block (title \"A barrier of four nodes on an iCEstick\"))\n  \
         (lib_symbols\n{symbols}  )\n{body}  (sheet_instances (path \"/\" (page \"1\")))\n  (symbol_instances\n{instances}  )\n)\n"
    )
}

/// Writes a part's symbol: a box with pins at both sides.
fn symbol(value: &str, pins: usize) -> String {
    let rows = pins.div_ceil(2);
    let (_, top) = place(pins, 1);
    let (top, bottom) = (top + GRID, top - rows as f64 * GRID);
    let mut text = format!(
        "    (symbol \"kit:{value}\" (in_bom yes) (on_board yes)\n{}{}{}{}      (symbol \"{value}_1_1\"\n        \
         (rectangle (start {:.2} {top:.2}) (end {:.2} {bottom:.2}) (stroke (width 0.254) (type default) (color 0 0 0 0)) (fill (type background)))\n",
        property("Reference", 0, "X", 0.0, top + GRID),
        property("Value", 1, value, 0.0, top),
        property("Footprint", 2, "", 0.0, 0.0),
        property("Datasheet", 3, "", 0.0, 0.0),
        -4.0 * GRID,
        4.0 * GRID,
    );
    for pin in 1..=pins {
        let (right, up) = place(pins, pin);
        let angle = if right < 0.0 { 0 } else { 180 };
        let _ = writeln!(
            text,
            "        (pin passive line (at {right:.2} {up:.2} {angle}) (length {:.2}) (name \"~\" {FONT}) (number \"{pin}\" {FONT}))",
            2.0 * GRID
        );
    }
    text + "      )\n    )\n"
}

const FONT: &str = "(effects (font (size 1.27 1.27)))";

fn property(name: &str, id: usize, value: &str, x: f64, y: f64) -> String {
    let hidden = match id {
        0 | 1 => FONT,
        _ => "(effects (font (size 1.27 1.27)) hide)",
    };
    format!("      (property \"{name}\" \"{value}\" (id {id}) (at {x:.2} {y:.2} 0) {hidden})\n")
}

/// Returns deterministic identifiers, so the file is reproducible.
fn uuid(number: usize) -> String {
    format!("00000000-0000-4000-8000-{number:012x}")
}

#[derive(Default)]
struct Sheet {
    text: String,
    things: usize,
}

impl Sheet {
    fn uuid(&mut self) -> String {
        self.things += 1;
        uuid(self.things)
    }

    /// Writes a part; returns its number.
    fn part(&mut self, part: &Part, x: f64, y: f64) -> String {
        let Part {
            reference,
            value,
            pins,
            ..
        } = part;
        let own = self.uuid();
        let (_, top) = place(*pins, 1);
        let _ = write!(
            self.text,
            "  (symbol (lib_id \"kit:{value}\") (at {x:.2} {y:.2} 0) (unit 1) (in_bom yes) (on_board yes)\n    (uuid {own})\n{}{}{}{}",
            property("Reference", 0, reference, x, y - top - 1.6 * GRID),
            property(
                "Value",
                1,
                value,
                x,
                y - top + (pins.div_ceil(2) - 1) as f64 * GRID / 2.0
            ),
            property("Footprint", 2, "", x, y),
            property("Datasheet", 3, "", x, y),
        );
        for pin in 1..=*pins {
            let of_pin = self.uuid();
            let _ = writeln!(self.text, "    (pin \"{pin}\" (uuid {of_pin}))");
        }
        self.text += "  )\n";
        own
    }

    /// Writes the end of a pin: the label of its net, or a no-connect mark.
    fn end(&mut self, net: Option<&str>, x: f64, y: f64, is_left: bool) {
        let own = self.uuid();
        let (angle, side) = if is_left { (180, "right") } else { (0, "left") };
        let _ = match net {
            Some(net) => writeln!(
                self.text,
                "  (global_label \"{net}\" (shape passive) (at {x:.2} {y:.2} {angle}) (effects (font (size 1.27 1.27)) (justify {side})) (uuid {own}))"
            ),
            None => writeln!(self.text, "  (no_connect (at {x:.2} {y:.2}) (uuid {own}))"),
        };
    }
}
