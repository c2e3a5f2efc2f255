//! The design rule check of a board: clearances, shorts, unconnected pads, holes.
//! It shares no code with the router and the zones.

use crate::board::{
    CLEARANCE, EDGE_CLEARANCE, GROUND, HOLE_CLEARANCE, RING, SIDES, SIZE, Side, THINNEST, VIA,
};
use crate::copper::Board;
use crate::geometry::{Point, Shape};

/// A piece of copper (pad, track or via) with its net.
struct Copper<'a> {
    name: String,
    net: Option<&'a str>,
    /// The sides of the board on which the copper is.
    sides: Vec<Side>,
    shape: Shape,
}

/// A hole with the copper around it.
struct Hole {
    name: String,
    shape: Shape,
    /// Diameter of the copper around the hole; zero for a hole without copper.
    copper: i64,
    drill: i64,
}

/// Returns the violations of the design rules, one sentence each.
pub fn violations(board: &Board) -> Vec<String> {
    let (copper, holes) = (copper(board), holes(board));
    let mut found = Vec::new();
    found.extend(too_near(&copper));
    found.extend(zones_too_near(board, &copper));
    found.extend(near_the_edge(&copper));
    found.extend(bad_holes(&copper, &holes));
    for track in &board.routes.tracks {
        if track.width < THINNEST {
            found.push(format!(
                "a track of {} is {} um wide, less than {THINNEST} um",
                track.net, track.width
            ));
        }
    }
    found.extend(unconnected(board, &copper));
    found
}

fn copper(board: &Board) -> Vec<Copper<'_>> {
    let pads = board.pads.iter().filter(|pad| pad.size.0 > 0);
    let pads = pads.map(|pad| Copper {
        name: pad.name(),
        net: pad.net.as_deref(),
        sides: SIDES.into_iter().filter(|side| pad.is_on(*side)).collect(),
        shape: pad.shape(),
    });
    let at = |p: Point| format!("at {:.2}, {:.2} mm", p.x as f64 / 1e3, p.y as f64 / 1e3);
    let tracks = board.routes.tracks.iter().map(|track| Copper {
        name: format!("a track of {} {}", track.net, at(track.from)),
        net: Some(&track.net),
        sides: vec![track.side],
        shape: track.shape(),
    });
    let vias = board.routes.vias.iter().map(|via| Copper {
        name: format!("a via of {} {}", via.net, at(via.at)),
        net: Some(&via.net),
        sides: SIDES.to_vec(),
        shape: via.shape(),
    });
    pads.chain(tracks).chain(vias).collect()
}

fn holes(board: &Board) -> Vec<Hole> {
    let pads = board.pads.iter().filter_map(|pad| {
        let drill = pad.drill?;
        Some(Hole {
            name: pad.name(),
            shape: Shape::circle(pad.at, drill / 2),
            copper: pad.size.0.min(pad.size.1),
            drill,
        })
    });
    let vias = board.routes.vias.iter().map(|via| Hole {
        name: format!("a via of {}", via.net),
        shape: Shape::circle(via.at, VIA.1 / 2),
        copper: VIA.0,
        drill: VIA.1,
    });
    pads.chain(vias).collect()
}

/// Returns a violation for each pair of copper pieces that are too close, unless both belong to one net.
fn too_near(copper: &[Copper<'_>]) -> Vec<String> {
    let mut found = Vec::new();
    for (index, one) in copper.iter().enumerate() {
        for other in &copper[index + 1..] {
            let is_same = one.net.is_some() && one.net == other.net;
            let may_be_near = one.shape.may_be_within(&other.shape, CLEARANCE);
            if is_same || !may_be_near || !one.sides.iter().any(|side| other.sides.contains(side)) {
                continue;
            }
            let apart = one.shape.distance(&other.shape);
            if apart == 0.0 {
                found.push(format!("short: {} and {}", one.name, other.name));
            } else if apart < CLEARANCE as f64 {
                found.push(format!(
                    "{} and {} are {apart:.0} um apart, less than {CLEARANCE} um",
                    one.name, other.name
                ));
            }
        }
    }
    found
}

fn zones_too_near(board: &Board, copper: &[Copper<'_>]) -> Vec<String> {
    let mut found = Vec::new();
    for piece in copper.iter().filter(|piece| piece.net != Some(GROUND)) {
        for side in &piece.sides {
            for zone in &board.zones[*side as usize] {
                if let Some(apart) = zone.nearer_than(&piece.shape, CLEARANCE) {
                    found.push(format!(
                        "the ground on {} is {apart:.0} um from {}, less than {CLEARANCE} um",
                        side.copper(),
                        piece.name
                    ));
                }
            }
        }
    }
    found
}

fn near_the_edge(copper: &[Copper<'_>]) -> Vec<String> {
    let apart = |piece: &Copper<'_>| {
        let (low, high) = piece.shape.bounds();
        let right = (SIZE.0 - high.x).min(SIZE.1 - high.y);
        low.x.min(low.y).min(right)
    };
    let near = copper.iter().filter(|piece| apart(piece) < EDGE_CLEARANCE);
    near.map(|piece| {
        format!(
            "{} is {} um from the edge of the board, less than {EDGE_CLEARANCE} um",
            piece.name,
            apart(piece)
        )
    })
    .collect()
}

fn bad_holes(copper: &[Copper<'_>], holes: &[Hole]) -> Vec<String> {
    let mut found = Vec::new();
    for (index, hole) in holes.iter().enumerate() {
        let ring = (hole.copper - hole.drill) / 2;
        if hole.copper > 0 && ring < RING {
            found.push(format!(
                "{} has a ring of {ring} um, less than {RING} um",
                hole.name
            ));
        }
        for other in &holes[index + 1..] {
            let apart = hole.shape.distance(&other.shape);
            if apart < HOLE_CLEARANCE as f64 {
                found.push(format!(
                    "the holes of {} and {} are {apart:.0} um apart, less than {HOLE_CLEARANCE} um",
                    hole.name, other.name
                ));
            }
        }
        if hole.copper == 0 {
            let near = copper
                .iter()
                .filter(|piece| piece.shape.distance(&hole.shape) < HOLE_CLEARANCE as f64);
            found.extend(near.map(|piece| format!("{} is too near to {}", piece.name, hole.name)));
        }
    }
    found
}

/// Sets of connected copper pieces (union-find).
struct Sets(Vec<usize>);

impl Sets {
    fn root(&mut self, mut index: usize) -> usize {
        while self.0[index] != index {
            self.0[index] = self.0[self.0[index]];
            index = self.0[index];
        }
        index
    }

    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.root(one), self.root(other));
        self.0[one] = other;
    }
}

/// Returns a violation for each copper piece that is not connected to the rest of its net.
fn unconnected(board: &Board, copper: &[Copper<'_>]) -> Vec<String> {
    let zones: Vec<_> = SIDES
        .into_iter()
        .flat_map(|side| board.zones[side as usize].iter().map(move |z| (side, z)))
        .collect();
    let mut sets = Sets((0..copper.len() + zones.len()).collect());
    for (index, one) in copper.iter().enumerate() {
        for (ahead, other) in copper[index + 1..].iter().enumerate() {
            let is_same = one.net.is_some() && one.net == other.net;
            if !is_same || !one.shape.may_be_within(&other.shape, 0) {
                continue;
            }
            let is_joint = one.sides.iter().any(|side| other.sides.contains(side));
            if is_joint && one.shape.distance(&other.shape) == 0.0 {
                sets.join(index, index + 1 + ahead);
            }
        }
        if one.net == Some(GROUND) {
            for (number, (side, zone)) in zones.iter().enumerate() {
                if one.sides.contains(side) && zone.meets(&one.shape) {
                    sets.join(index, copper.len() + number);
                }
            }
        }
    }
    let mut found = Vec::new();
    let mut first = std::collections::BTreeMap::new();
    for (index, piece) in copper.iter().enumerate() {
        let Some(net) = piece.net else { continue };
        let root = sets.root(index);
        let (known, name) = first.entry(net).or_insert((root, piece.name.clone()));
        if *known != root {
            found.push(format!("{net}: {} is not connected to {name}", piece.name));
        }
    }
    found
}
