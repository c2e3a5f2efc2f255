//! The desk kit: a board of four nodes around an iCEstick, made from tables.
//!
//! `boards/kit-long` has the tables of two boards for long cables, of which only schematics and bills are made. `boards/kit` has the tables: `parts.csv`, `connections.csv`, `symbols.csv` with the electrical type of each pin, `items.csv` with what is
//! ordered, and `tracks.csv`, which the router wrote. Everything else is made from them by `cargo xtask kit`: the schematic, the board and
//! the libraries for KiCad, the bill of materials, the picture, and the files for a board house.
//!
//! * [`tables`], [`footprint`], [`geometry`]: the design.
//! * [`route`] finds the tracks, [`zone`] fills both sides with ground; [`board`] and [`copper`] hold the outcome.
//! * [`electrical`] checks the schematic and [`check`] the board; tests use KiCad too, if present.
//! * [`currents`] computes the currents into a side without power.
//! * [`schematic`], [`pcb`], [`fabrication`], [`silk`], [`picture`], [`bill`]: the generated files.

#![deny(unsafe_code)]
#![warn(missing_docs)]

pub mod bill;
pub mod board;
pub mod check;
pub mod copper;
pub mod currents;
pub mod electrical;
pub mod fabrication;
pub mod footprint;
pub mod geometry;
pub mod pcb;
pub mod picture;
pub mod route;
pub mod schematic;
pub mod silk;
pub mod tables;
pub mod zone;

use board::Routes;
use copper::Board;
use footprint::Footprint;
use tables::Design;

/// The file of the routes in `boards/kit`.
pub const TRACKS: &str = "tracks.csv";

/// Returns the files of `boards/kit-long` that are made from the tables, with their names: schematics, symbols and bills of the two boards.
///
/// # Errors
///
/// Names the table and the row that cannot be used.
pub fn files_of_long_cables(designs: &[Design; 2]) -> Result<Vec<(String, String)>, String> {
    let mut files = Vec::new();
    for (design, name) in designs.iter().zip(["hub", "node"]) {
        let schematic = schematic::schematic(design);
        files.push((format!("{name}/{name}.kicad_sch"), schematic));
        files.push((format!("{name}/kit.kicad_sym"), schematic::library(design)));
        files.push((format!("{name}/sym-lib-table"), pcb::libraries("sym")));
        files.push((format!("{name}/bom.csv"), bill::bill(design)?));
    }
    Ok(files)
}

/// Returns the files of `boards/kit` that are made from the tables and the routes, with their names.
///
/// # Errors
///
/// Names the table and the row that cannot be used.
pub fn files(design: &Design, routes: Routes) -> Result<Vec<(String, String)>, String> {
    let board = Board::new(design, routes);
    let mut files = vec![
        ("kit.kicad_pro".to_owned(), pcb::project()),
        ("kit.kicad_sch".to_owned(), schematic::schematic(design)),
        ("kit.kicad_sym".to_owned(), schematic::library(design)),
        ("kit.kicad_pcb".to_owned(), pcb::board(design, &board)),
        ("sym-lib-table".to_owned(), pcb::libraries("sym")),
        ("fp-lib-table".to_owned(), pcb::libraries("fp")),
        ("bom.csv".to_owned(), bill::bill(design)?),
        ("board.svg".to_owned(), picture::picture(design, &board)),
    ];
    for footprint in Footprint::all() {
        let name = format!("kit.pretty/{}.kicad_mod", footprint.name());
        files.push((name, pcb::footprint(footprint)));
    }
    Ok(files)
}
