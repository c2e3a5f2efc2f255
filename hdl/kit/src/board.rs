//! The copper of a printed circuit board: placed pads, tracks and vias, and the design rules for them.

use std::fmt::Write as _;

use crate::footprint::Outline;
use crate::geometry::{Point, Shape};
use crate::tables::Design;

/// Width and height of the board, um.
pub const SIZE: (i64, i64) = (118_000, 88_000);
/// The net of the zones, the filled areas on both sides.
pub const GROUND: &str = "GND";
/// Minimum distance between copper of different nets, um.
pub const CLEARANCE: i64 = 200;
/// Minimum distance of copper from the edge of the board, um.
pub const EDGE_CLEARANCE: i64 = 500;
/// Minimum distance between the edges of two holes, um.
pub const HOLE_CLEARANCE: i64 = 250;
/// Minimum width of the ring of copper around a hole, um.
pub const RING: i64 = 150;
/// Diameter of a via and of its hole, um.
pub const VIA: (i64, i64) = (800, 400);
/// Minimum width of a track, um.
pub const THINNEST: i64 = 200;

/// A side of the board.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// The component side.
    Front,
    /// The solder side.
    Back,
}

/// Both sides, in the order of their indices.
pub const SIDES: [Side; 2] = [Side::Front, Side::Back];

impl Side {
    /// Returns KiCad's name of the copper layer on this side.
    pub const fn copper(self) -> &'static str {
        match self {
            Self::Front => "F.Cu",
            Self::Back => "B.Cu",
        }
    }
}

/// A pad of a part at its place on the board.
#[derive(Debug, Clone, PartialEq)]
pub struct Pad {
    /// The reference of the pad's part.
    pub part: String,
    /// The pin's number, 0 for the shell of a connector; `None` for a mounting hole.
    pub pin: Option<usize>,
    /// The pad's net; `None` for a pin that is not connected.
    pub net: Option<String>,
    /// The centre of the pad.
    pub at: Point,
    /// Width and height of the pad's copper after rotation, um; zero for a hole without copper.
    pub size: (i64, i64),
    /// The outline of the pad's copper.
    pub outline: Outline,
    /// The diameter of the pad's hole, um; `None` for a surface-mount pad (on the front only).
    pub drill: Option<i64>,
}

impl Pad {
    /// Returns true if the pad has copper on this side.
    pub fn is_on(&self, side: Side) -> bool {
        self.size.0 > 0 && (self.drill.is_some() || side == Side::Front)
    }

    /// Returns the outline of the pad's copper.
    pub fn shape(&self) -> Shape {
        match self.outline {
            Outline::Round => Shape::circle(self.at, self.size.0 / 2),
            Outline::Square => Shape::Rectangle {
                centre: self.at,
                half: (self.size.0 / 2, self.size.1 / 2),
            },
        }
    }

    /// Returns the pad's name for messages, such as `U1 pin 4`.
    pub fn name(&self) -> String {
        match self.pin {
            Some(pin) => format!("{} pin {pin}", self.part),
            None => format!("a hole of {}", self.part),
        }
    }
}

/// A straight piece of copper between two points.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Track {
    /// The net of the track.
    pub net: String,
    /// The side of the board on which the track is.
    pub side: Side,
    /// The first end of the track.
    pub from: Point,
    /// The second end of the track.
    pub to: Point,
    /// The width of the track, um.
    pub width: i64,
}

impl Track {
    /// Returns the outline of the track's copper.
    pub fn shape(&self) -> Shape {
        Shape::Line {
            from: self.from,
            to: self.to,
            radius: self.width / 2,
        }
    }
}

/// A plated hole that connects the copper of both sides.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Via {
    /// The net of the via.
    pub net: String,
    /// The centre of the via.
    pub at: Point,
}

impl Via {
    /// Returns the outline of the via's copper.
    pub fn shape(&self) -> Shape {
        Shape::circle(self.at, VIA.0 / 2)
    }
}

/// The tracks and vias of a board.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Routes {
    /// The tracks of the board.
    pub tracks: Vec<Track>,
    /// The vias of the board.
    pub vias: Vec<Via>,
}

impl Routes {
    /// Returns the routes as a table, one line for each track or via, lengths in um.
    pub fn table(&self) -> String {
        let mut text = "net,side,width,x,y,to x,to y\n".to_owned();
        for track in &self.tracks {
            let (from, to) = (track.from, track.to);
            let _ = writeln!(
                text,
                "{},{},{},{},{},{},{}",
                track.net,
                track.side.copper(),
                track.width,
                from.x,
                from.y,
                to.x,
                to.y
            );
        }
        for via in &self.vias {
            let _ = writeln!(text, "{},via,,{},{},,", via.net, via.at.x, via.at.y);
        }
        text
    }

    /// Reads the table that [`Routes::table`] writes.
    ///
    /// # Errors
    ///
    /// The error names the line that cannot be read.
    pub fn read(table: &str) -> Result<Self, String> {
        let mut routes = Self::default();
        for (number, line) in (2..).zip(table.lines().skip(1)) {
            let cells: Vec<_> = line.split(',').collect();
            let read = routes.add(&cells);
            read.ok_or_else(|| {
                format!("boards/kit/tracks.csv, line {number}: neither a track nor a via: {line}")
            })?;
        }
        Ok(routes)
    }

    fn add(&mut self, cells: &[&str]) -> Option<()> {
        let &[net, side, width, x, y, to_x, to_y] = cells else {
            return None;
        };
        let point = |x: &str, y: &str| Some(Point::new(x.parse().ok()?, y.parse().ok()?));
        let net = net.to_owned();
        if side == "via" {
            let at = point(x, y)?;
            self.vias.push(Via { net, at });
            return Some(());
        }
        self.tracks.push(Track {
            net,
            side: *SIDES.iter().find(|own| own.copper() == side)?,
            from: point(x, y)?,
            to: point(to_x, to_y)?,
            width: width.parse().ok()?,
        });
        Some(())
    }
}

/// Returns the pads of a design's parts.
pub fn pads(design: &Design) -> Vec<Pad> {
    let mut pads = Vec::new();
    for part in &design.parts {
        let Some(footprint) = part.footprint else {
            continue;
        };
        for pad in footprint.pads() {
            let net = pad.pin.and_then(|pin| design.net(&part.reference, pin));
            let size = match part.turn.rem_euclid(180) {
                0 => pad.size,
                _ => (pad.size.1, pad.size.0),
            };
            pads.push(Pad {
                part: part.reference.clone(),
                pin: pad.pin,
                net: net.map(str::to_owned),
                at: part.at.plus(pad.at.turned(part.turn)),
                size,
                outline: pad.outline,
                drill: pad.drill,
            });
        }
    }
    pads
}
