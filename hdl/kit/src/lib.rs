//! The desk kit: a circuit board that connects four nodes to an iCEstick, generated from tables.
//!
//! `boards/kit` has the tables: `parts.csv`, `connections.csv`, `symbols.csv` (the electrical type of each pin), `items.csv` (what is
//! ordered), and `tracks.csv`, which the router wrote. `cargo xtask kit` generates everything else: the schematic, the board and
//! the libraries for KiCad, the bill of materials, the picture, and the files for the manufacturer.
//! `boards/kit-long` has the tables of two boards for long cables, for which only schematics and bills are generated.
//!
//! * [`tables`], [`footprint`], [`geometry`]: the description of the design.
//! * [`route`] finds the tracks, [`zone`] fills both sides with ground; [`board`] and [`copper`] hold the results.
//! * [`electrical`] checks the schematic and [`check`] the board; tests also run KiCad's checks if KiCad is installed.
//! * [`currents`] computes the currents into unpowered parts.
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

/// Name of the file in `boards/kit` that contains the routes.
pub const TRACKS: &str = "tracks.csv";

/// Returns names and contents of the files generated in `boards/kit-long`: schematics, symbols and bills of both boards.
///
/// # Errors
///
/// The error names the table and the row that cannot be used.
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

/// Returns names and contents of the files generated in `boards/kit` from tables and routes.
///
/// # Errors
///
/// The error names the table and the row that cannot be used.
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
