//! `cargo xtask kit`: writes the files of the desk kit, for KiCad and for the manufacturer.

use std::fs;
use std::path::Path;

use barrier_kit::board::Routes;
use barrier_kit::copper::Board;
use barrier_kit::tables::Design;
use barrier_kit::{TRACKS, check, electrical, fabrication, files, files_of_long_cables, route};

use crate::workspace;

/// The options of `cargo xtask kit`.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Also route the board again, after parts were moved or nets changed
    #[arg(long)]
    route: bool,
}

/// Writes the files of `hdl/boards/kit`, and those for the manufacturer into `target/kit`.
pub fn run(options: &Options) -> Result<(), String> {
    let folder = workspace::root().join("hdl/boards/kit");
    let design = Design::kit()?;
    refuse("the schematic", &electrical::violations(&design))?;
    let long = Design::long_cables()?;
    for (design, name) in long
        .iter()
        .zip(["the board at the iCEstick", "the board at a PC"])
    {
        refuse(name, &electrical::violations(design))?;
    }
    for (name, text) in files_of_long_cables(&long)? {
        write(
            &workspace::root().join("hdl/boards/kit-long").join(name),
            &text,
        )?;
    }
    let tracks = folder.join(TRACKS);
    if options.route {
        write(&tracks, &route::route(&design)?.table())?;
    }
    let table = fs::read_to_string(&tracks)
        .map_err(|e| format!("{} cannot be read: {e}", tracks.display()))?;
    let routes = Routes::read(&table)?;
    let board = Board::new(&design, routes.clone());
    for (name, text) in files(&design, routes)? {
        write(&folder.join(name), &text)?;
    }
    refuse("the board", &check::violations(&board))?;
    let fabrication_files = workspace::target().join("kit");
    for (name, text) in fabrication::files(&design, &board) {
        write(&fabrication_files.join(name), &text)?;
    }
    println!(
        "the files in {} are what a board house wants: two layers, 118 x 88 mm, smallest track 0.3 mm, smallest hole 0.4 mm",
        fabrication_files.display()
    );
    Ok(())
}

fn refuse(of: &str, violations: &[String]) -> Result<(), String> {
    match violations {
        [] => Ok(()),
        _ => Err(format!("{of} breaks its rules:\n{}", violations.join("\n"))),
    }
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    let written = path.parent().map_or(Ok(()), fs::create_dir_all);
    written
        .and_then(|()| fs::write(path, text))
        .map_err(|e| format!("{} cannot be written: {e}", path.display()))?;
    println!("wrote {}", path.display());
    Ok(())
}
