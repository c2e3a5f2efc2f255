//! All copper of a board: pads, tracks, vias, and the ground zones around them.

use crate::board::{Pad, Routes, SIDES, pads};
use crate::tables::Design;
use crate::zone::{self, Filled};

/// A board with its copper.
#[derive(Debug, Clone)]
pub struct Board {
    /// The pads of all parts of the board.
    pub pads: Vec<Pad>,
    /// The tracks and vias of the board.
    pub routes: Routes,
    /// The copper of the ground zones, indexed by side.
    pub zones: [Vec<Filled>; 2],
}

impl Board {
    /// Returns the board of a design with these routes, and fills its ground zones.
    pub fn new(design: &Design, routes: Routes) -> Self {
        let pads = pads(design);
        let zones = SIDES.map(|side| zone::fill(&pads, &routes, side));
        Self {
            pads,
            routes,
            zones,
        }
    }
}
