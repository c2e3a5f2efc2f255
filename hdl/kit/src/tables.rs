//! The tables of the kit and of its option for long cables: parts and their positions, nets, symbols, and the items to order.

use std::collections::BTreeMap;

use crate::footprint::Footprint;
use crate::geometry::Point;

/// The tables of a design, each with its path in `boards`.
struct Tables {
    title: &'static str,
    parts: (&'static str, &'static str),
    connections: (&'static str, &'static str),
    symbols: (&'static str, &'static str),
    items: (&'static str, &'static str),
}

/// Includes one table: its path in `boards` and its text.
macro_rules! table {
    ($name:expr) => {
        (
            $name,
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../boards/", $name)),
        )
    };
}

/// Includes all tables whose paths begin with this prefix.
macro_rules! tables {
    ($title:literal, $begins:literal) => {
        Tables {
            title: $title,
            parts: table!(concat!($begins, "parts.csv")),
            connections: table!(concat!($begins, "connections.csv")),
            symbols: table!(concat!($begins, "symbols.csv")),
            items: table!(concat!($begins, "items.csv")),
        }
    };
}

const KIT: Tables = tables!("A barrier of four nodes on an iCEstick", "kit/");
const HUB: Tables = tables!(
    "Long cables: the board at the iCEstick, four nodes over RS-422",
    "kit-long/hub-"
);
const NODE: Tables = tables!(
    "Long cables: the board at a PC, one node over RS-422",
    "kit-long/node-"
);

/// A part of the kit's board or of its schematic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The reference of the part, such as R1.
    pub reference: String,
    /// The name of the part's symbol; empty for a part that is on the board only, such as a hole.
    pub symbol: String,
    /// The value of the part, such as 10k.
    pub value: String,
    /// The part's footprint; `None` for a power flag, which is in the schematic only.
    pub footprint: Option<Footprint>,
    /// The position of the footprint's origin on the board.
    pub at: Point,
    /// The footprint's rotation, in degrees anticlockwise.
    pub turn: i64,
    /// The name of the part's item in the table of items to order; empty if it is not ordered.
    pub item: String,
    /// The purpose of the part.
    pub description: String,
}

/// The electrical type of a pin, as KiCad names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PinType {
    /// The pin reads a level.
    Input,
    /// The pin drives both levels.
    Output,
    /// The pin is an input or drives both levels.
    Bidirectional,
    /// The pin drives both levels or is high-impedance.
    TriState,
    /// The pin drives only the low level.
    OpenCollector,
    /// The pin belongs to a passive part: a resistor, a capacitor or a terminal.
    Passive,
    /// The pin is supplied with power.
    PowerIn,
    /// The pin supplies power.
    PowerOut,
}

/// All pin types with their names in the tables and in KiCad's files.
pub const PIN_TYPES: [(PinType, &str); 8] = [
    (PinType::Input, "input"),
    (PinType::Output, "output"),
    (PinType::Bidirectional, "bidirectional"),
    (PinType::TriState, "tri_state"),
    (PinType::OpenCollector, "open_collector"),
    (PinType::Passive, "passive"),
    (PinType::PowerIn, "power_in"),
    (PinType::PowerOut, "power_out"),
];

impl PinType {
    /// Returns KiCad's name of the pin type.
    pub fn name(self) -> &'static str {
        let found = PIN_TYPES.iter().find(|(kind, _)| *kind == self);
        found.map_or("passive", |(_, name)| name)
    }
}

/// A pin of a symbol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    /// The name of the pin's function; may be empty.
    pub name: String,
    /// The electrical type of the pin.
    pub kind: PinType,
}

/// An item to order, with its manufacturer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The item's name, which parts refer to.
    pub name: String,
    /// The number of spares to order in addition to the number of parts on the board.
    pub more: usize,
    /// The package of the item.
    pub package: String,
    /// The manufacturer; empty for the board itself.
    pub manufacturer: String,
    /// The manufacturer's part number.
    pub number: String,
    /// An alternative item that may be bought instead.
    pub alternative: String,
    /// A note for the buyer.
    pub note: String,
}

/// A design: parts, nets and symbols.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Design {
    /// The title of the schematic.
    pub title: &'static str,
    /// The path of the table of items, for error messages.
    pub items_table: &'static str,
    /// The parts, in the order of their table.
    pub parts: Vec<Part>,
    /// The net of each connected pin, by part reference and pin number.
    pub nets: BTreeMap<(String, usize), String>,
    /// The pins of each symbol, by symbol name and pin number.
    pub symbols: BTreeMap<String, BTreeMap<usize, Pin>>,
    /// The items to order, in the order of the bill.
    pub items: Vec<Item>,
}

impl Design {
    /// Returns the design of the kit.
    ///
    /// # Errors
    ///
    /// The error names the table and the row that cannot be read.
    pub fn kit() -> Result<Self, String> {
        Self::read(&KIT)
    }

    /// Returns the two designs for long cables: the board at the iCEstick, and the board at each PC.
    ///
    /// # Errors
    ///
    /// The error names the table and the row that cannot be read.
    pub fn long_cables() -> Result<[Self; 2], String> {
        Ok([Self::read(&HUB)?, Self::read(&NODE)?])
    }

    fn read(tables: &Tables) -> Result<Self, String> {
        Ok(Self {
            title: tables.title,
            items_table: tables.items.0,
            parts: rows(tables.parts, 9, part)?,
            nets: rows(tables.connections, 4, connection)?
                .into_iter()
                .collect(),
            symbols: symbols(tables.symbols)?,
            items: rows(tables.items, 7, item)?,
        })
    }

    /// Returns the names of the nets, sorted.
    pub fn net_names(&self) -> Vec<&str> {
        let mut names: Vec<_> = self.nets.values().map(String::as_str).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Returns the net of a part's pin; `None` if the pin is not connected.
    pub fn net(&self, part: &str, pin: usize) -> Option<&str> {
        self.nets.get(&(part.to_owned(), pin)).map(String::as_str)
    }

    /// Returns the pins of a part's symbol, each with its number; no pins for a part without a symbol.
    pub fn pins(&self, part: &Part) -> impl Iterator<Item = (usize, &Pin)> {
        let pins = self.symbols.get(&part.symbol);
        pins.into_iter()
            .flatten()
            .map(|(number, pin)| (*number, pin))
    }
}

/// Splits a CSV row at its commas; a cell in quotation marks may contain commas.
fn cells(row: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut is_quoted = false;
    for letter in row.chars() {
        match letter {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => cells.push(String::new()),
            _ => cells.last_mut().into_iter().for_each(|c| c.push(letter)),
        }
    }
    cells
}

fn rows<T>(
    (name, table): (&str, &str),
    columns: usize,
    read: impl Fn(&[String]) -> Option<T>,
) -> Result<Vec<T>, String> {
    let rows = (2..).zip(table.lines().skip(1));
    rows.map(|(number, row)| {
        let cells = cells(row);
        let found = (cells.len() == columns).then(|| read(&cells)).flatten();
        found.ok_or_else(|| {
            format!("boards/{name}, line {number}: not {columns} readable cells: {row}")
        })
    })
    .collect()
}

/// Parses a length in millimetres; returns micrometres.
fn length(text: &str) -> Option<i64> {
    let millimetres: f64 = text.parse().ok()?;
    Some((millimetres * 1000.0).round() as i64)
}

fn part(row: &[String]) -> Option<Part> {
    let footprint = match row[3].as_str() {
        "" => None,
        name => Some(Footprint::named(name)?),
    };
    Some(Part {
        reference: row[0].clone(),
        symbol: row[1].clone(),
        value: row[2].clone(),
        footprint,
        at: Point::new(length(&row[4])?, length(&row[5])?),
        turn: row[6].parse().ok()?,
        item: row[7].clone(),
        description: row[8].clone(),
    })
}

fn connection(row: &[String]) -> Option<((String, usize), String)> {
    Some(((row[1].clone(), row[2].parse().ok()?), row[0].clone()))
}

fn item(row: &[String]) -> Option<Item> {
    Some(Item {
        name: row[0].clone(),
        more: row[1].parse().ok()?,
        package: row[2].clone(),
        manufacturer: row[3].clone(),
        number: row[4].clone(),
        alternative: row[5].clone(),
        note: row[6].clone(),
    })
}

fn symbols(table: (&str, &str)) -> Result<BTreeMap<String, BTreeMap<usize, Pin>>, String> {
    let read = |row: &[String]| {
        let (first, last) = row[1].split_once('-').unwrap_or((&row[1], &row[1]));
        let kind = PIN_TYPES.iter().find(|(_, name)| *name == row[3])?.0;
        let numbers = first.parse::<usize>().ok()?..=last.parse().ok()?;
        let name = row[2].clone();
        Some((row[0].clone(), numbers, Pin { name, kind }))
    };
    let mut symbols = BTreeMap::<_, BTreeMap<_, _>>::new();
    for (symbol, numbers, pin) in rows(table, 4, read)? {
        let pins = symbols.entry(symbol).or_default();
        pins.extend(numbers.map(|number| (number, pin.clone())));
    }
    Ok(symbols)
}
