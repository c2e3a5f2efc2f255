//! Writer of the schematic (KiCad 6 and later) and of the library of its symbols.
//!
//! The schematic has no wires: every pin has the label of its net or is marked as not connected.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::tables::{Design, Part, Pin};

/// Distance between two adjacent pins, in mm.
const GRID: f64 = 2.54;
/// Height of a column of parts on the sheet, in mm.
const COLUMN: f64 = 270.0;
/// Distance between two columns of parts, in mm.
const WIDTH: f64 = 27.0 * GRID;

/// Returns the position of a pin's end relative to the centre of its part, in mm to the right and upwards.
fn place(pins: usize, pin: usize) -> (f64, f64) {
    let left = pins.div_ceil(2);
    let top = (left as f64 - 1.0) / 2.0 * GRID;
    // Pins are numbered downwards on the left and then upwards on the right, as on a chip.
    match pin <= left {
        true => (-6.0 * GRID, grid(top) - (pin - 1) as f64 * GRID),
        false => (6.0 * GRID, grid(top) - (pins - pin) as f64 * GRID),
    }
}

/// Rounds a length in mm up to a multiple of the grid.
fn grid(length: f64) -> f64 {
    (length / GRID).ceil() * GRID
}

/// Returns the schematic in the format of KiCad 6.
pub fn schematic(design: &Design) -> String {
    let mut sheet = Sheet::default();
    let (mut x, mut y) = (20.0 * GRID, 8.0 * GRID);
    let mut instances = String::new();
    for part in design.parts.iter().filter(|part| !part.symbol.is_empty()) {
        let pins: Vec<_> = design.pins(part).collect();
        let rows = pins.len().div_ceil(2);
        let height = (rows + 4) as f64 * GRID;
        if y + height > COLUMN {
            (x, y) = (x + WIDTH, 8.0 * GRID);
        }
        // The reference text is above the part, and the first pin is one row below the text.
        let middle = y + GRID + place(pins.len(), 1).1;
        let uuid = sheet.part(part, &pins, x, middle);
        let _ = writeln!(
            instances,
            "    (path \"/{uuid}\" (reference \"{}\") (unit 1) (value \"{}\") (footprint \"{}\"))",
            reference(part),
            part.value,
            footprint(part)
        );
        for (index, (number, _)) in (1..).zip(&pins) {
            let (right, up) = place(pins.len(), index);
            let net = design.net(&part.reference, *number);
            sheet.end(net, x + right, middle - up, right < 0.0);
        }
        y += height;
    }
    let symbols = symbols(design, "kit:", "    ");
    let (own, body, title) = (uuid(0), sheet.text, design.title);
    format!(
        "(kicad_sch (version 20211123) (generator hwbarr)\n  (uuid {own})\n  (paper \"A3\")\n  \
         (title_block (title \"{title}\"))\n  \
         (lib_symbols\n{symbols}  )\n{body}  (sheet_instances (path \"/\" (page \"1\")))\n  (symbol_instances\n{instances}  )\n)\n"
    )
}

/// Returns the library file of the schematic's symbols.
pub fn library(design: &Design) -> String {
    let symbols = symbols(design, "", "  ");
    format!("(kicad_symbol_lib (version 20211014) (generator hwbarr)\n{symbols})\n")
}

/// Returns a map from each part's reference designator (such as `U1`) to the UUID of its symbol; the board file names these UUIDs.
pub fn identifiers(design: &Design) -> BTreeMap<String, String> {
    let mut sheet = Sheet::default();
    let mut found = BTreeMap::new();
    for part in design.parts.iter().filter(|part| !part.symbol.is_empty()) {
        let pins: Vec<_> = design.pins(part).collect();
        let uuid = sheet.part(part, &pins, 0.0, 0.0);
        pins.iter().for_each(|_| drop(sheet.uuid()));
        found.insert(part.reference.clone(), uuid);
    }
    found
}

/// Returns a part's reference for KiCad. A part without a footprint gets a # before its reference,
/// with which KiCad omits it from the netlist.
fn reference(part: &Part) -> String {
    match part.footprint {
        Some(_) => part.reference.clone(),
        None => format!("#{}", part.reference),
    }
}

fn footprint(part: &Part) -> String {
    let footprint = part.footprint.map(|footprint| footprint.name());
    footprint.map_or(String::new(), |name| format!("kit:{name}"))
}

fn symbols(design: &Design, library: &str, indent: &str) -> String {
    let symbols = design.symbols.iter();
    symbols
        .map(|(name, pins)| {
            let part = design.parts.iter().find(|part| part.symbol == *name);
            let is_flag = part.is_some_and(|part| part.footprint.is_none());
            symbol(name, pins, is_flag, library, indent)
        })
        .collect()
}

/// Writes a symbol: a box with pins on both sides.
fn symbol(
    name: &str,
    pins: &BTreeMap<usize, Pin>,
    is_flag: bool,
    library: &str,
    indent: &str,
) -> String {
    let rows = pins.len().div_ceil(2);
    let (_, top) = place(pins.len(), 1);
    let (top, bottom) = (top + GRID, top - rows as f64 * GRID);
    let kind = match is_flag {
        true => "(power) (in_bom no) (on_board no)",
        false => "(in_bom yes) (on_board yes)",
    };
    let prefix = match name {
        "Resistor" => "R",
        "Capacitor" => "C",
        "Test point" => "TP",
        _ if is_flag => "#FLG",
        _ if name.starts_with("74") || name.starts_with("AM26") => "U",
        _ => "J",
    };
    let mut text = format!(
        "{indent}(symbol \"{library}{name}\" (pin_names (offset 1.016)) {kind}\n{}{}{}{}      (symbol \"{name}_1_1\"\n        \
         (rectangle (start {:.2} {top:.2}) (end {:.2} {bottom:.2}) (stroke (width 0.254) (type default) (color 0 0 0 0)) (fill (type background)))\n",
        property("Reference", 0, prefix, 0.0, top + GRID),
        property("Value", 1, name, 0.0, top),
        property("Footprint", 2, "", 0.0, 0.0),
        property("Datasheet", 3, "", 0.0, 0.0),
        -4.0 * GRID,
        4.0 * GRID,
    );
    for (index, (number, pin)) in (1..).zip(pins) {
        let (right, up) = place(pins.len(), index);
        let angle = if right < 0.0 { 0 } else { 180 };
        let (kind, label) = (pin.kind.name(), pin.name.as_str());
        let label = if label.is_empty() { "~" } else { label };
        let _ = writeln!(
            text,
            "        (pin {kind} line (at {right:.2} {up:.2} {angle}) (length {:.2}) (name \"{label}\" {FONT}) (number \"{number}\" {FONT}))",
            2.0 * GRID
        );
    }
    text + "      )\n" + indent + ")\n"
}

const FONT: &str = "(effects (font (size 1.27 1.27)))";

fn property(name: &str, id: usize, value: &str, x: f64, y: f64) -> String {
    let hidden = match id {
        0 | 1 => FONT,
        _ => "(effects (font (size 1.27 1.27)) hide)",
    };
    format!("      (property \"{name}\" \"{value}\" (id {id}) (at {x:.2} {y:.2} 0) {hidden})\n")
}

/// Returns a deterministic identifier, so that the file is reproducible.
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

    /// Writes a part; returns its symbol's identifier.
    fn part(&mut self, part: &Part, pins: &[(usize, &Pin)], x: f64, y: f64) -> String {
        let own = self.uuid();
        let (_, top) = place(pins.len(), 1);
        let is_on_board = match part.footprint {
            Some(_) => "yes",
            None => "no",
        };
        let is_bought = if part.item.is_empty() { "no" } else { "yes" };
        let _ = write!(
            self.text,
            "  (symbol (lib_id \"kit:{}\") (at {x:.2} {y:.2} 0) (unit 1) (in_bom {is_bought}) (on_board {is_on_board})\n    (uuid {own})\n{}{}{}{}",
            part.symbol,
            property("Reference", 0, &reference(part), x, y - top - 1.6 * GRID),
            property(
                "Value",
                1,
                &part.value,
                x,
                y - top + (pins.len().div_ceil(2) as f64 + 0.6) * GRID
            ),
            property("Footprint", 2, &footprint(part), x, y),
            property("Datasheet", 3, "", x, y),
        );
        for (number, _) in pins {
            let of_pin = self.uuid();
            let _ = writeln!(self.text, "    (pin \"{number}\" (uuid {of_pin}))");
        }
        self.text += "  )\n";
        own
    }

    /// Writes the label of the net at the outer end of a pin, or a no-connect flag for a pin without a net.
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
