//! The router: finds tracks and vias on a grid for every net except the ground.
//! The method is Lee's algorithm with negotiated congestion (PathFinder).
//!
//! Every net is routed as if it could cross other nets, at a cost. The cost of a crossing rises with each pass, and cells where nets
//! crossed earlier keep a higher cost (the history cost), until no net crosses another. Before that, each ground pad without a hole gets a via.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use crate::board::{
    self, EDGE_CLEARANCE, GROUND, HOLE_CLEARANCE, Pad, Routes, SIDES, SIZE, Track, VIA, Via,
};
use crate::geometry::{Point, Shape};
use crate::tables::Design;

/// The distance between grid points, um.
const GRID: i64 = 250;
/// The minimum distance that the router keeps between nets, um.
/// It exceeds [`CLEARANCE`](crate::board::CLEARANCE), because diagonal tracks pass near corners of the grid.
const KEPT: i64 = 250;
/// The number of passes after which the router returns an error.
const PASSES: u32 = 60;
/// The cost of a step from one grid point to the next along an axis.
const STEP: u32 = 10;
const DIAGONAL: u32 = 14;
const VIA_PRICE: u32 = 100;
/// The cost of a step on the back, in tenths of the cost on the front; higher, so that the back remains a ground plane.
const BACK_TENTHS: u32 = 16;

const COLUMNS: usize = (SIZE.0 / GRID) as usize + 1;
const ROWS: usize = (SIZE.1 / GRID) as usize + 1;
const CELLS: usize = COLUMNS * ROWS;

/// Returns the width of a net's tracks, um; supply nets have wider ones.
pub fn width(net: &str) -> i64 {
    match net.starts_with('+') {
        true => 500,
        false => 300,
    }
}

/// Finds the routes of a design.
///
/// # Errors
///
/// The error names the nets that could not be routed.
pub fn route(design: &Design) -> Result<Routes, String> {
    let pads = board::pads(design);
    let mut router = Router {
        ground: Routes::default(),
        nets: Vec::new(),
        past: vec![0; 2 * CELLS],
        pads,
    };
    router.leave_ground_pads()?;
    let names = design.net_names();
    router.nets = names
        .iter()
        .filter(|name| **name != GROUND)
        .map(|name| (name.to_string(), Routes::default()))
        .collect();
    // Nets with the smallest bounding boxes are routed first, because they can avoid others the least.
    let spans: BTreeMap<_, _> = names.iter().map(|n| (*n, router.span(n))).collect();
    router
        .nets
        .sort_by_key(|(name, _)| (spans[name.as_str()], name.clone()));
    for pass in 0..PASSES {
        let crossing = router.pass(pass)?;
        if crossing.is_empty() {
            return Ok(router.finished());
        }
    }
    Err(format!(
        "the router has crossings left after {PASSES} passes, of {}: move their parts in boards/kit/parts.csv",
        router.crossings().join(", ")
    ))
}

/// The index of a grid cell: first the cells of the front, row by row, then those of the back.
type Cell = usize;

fn cell(side: usize, column: i64, row: i64) -> Option<Cell> {
    let is_inside = (0..COLUMNS as i64).contains(&column) && (0..ROWS as i64).contains(&row);
    is_inside.then_some(side * CELLS + row as usize * COLUMNS + column as usize)
}

fn place(cell: Cell) -> (usize, i64, i64) {
    let within = cell % CELLS;
    (
        cell / CELLS,
        (within % COLUMNS) as i64,
        (within / COLUMNS) as i64,
    )
}

fn point(cell: Cell) -> Point {
    let (_, column, row) = place(cell);
    Point::new(column * GRID, row * GRID)
}

struct Router {
    pads: Vec<Pad>,
    /// The vias beside the ground pads, and the tracks from the pads to these vias.
    ground: Routes,
    /// Each net except the ground: its name and its current routes.
    nets: Vec<(String, Routes)>,
    /// The history cost of each cell, for crossings in earlier passes.
    past: Vec<u32>,
}

/// The costs for routing one net: the cells forbidden for tracks and vias, and the cost of all other cells.
struct Prices {
    is_shut: Vec<bool>,
    is_shut_for_via: Vec<bool>,
    crossing: Vec<u32>,
}

impl Router {
    /// Returns half of the perimeter of the bounding box of a net's pads.
    fn span(&self, net: &str) -> i64 {
        let of_net = || self.pads.iter().filter(|p| p.net.as_deref() == Some(net));
        let extent = |of: fn(&Pad) -> i64| {
            of_net().map(of).max().unwrap_or(0) - of_net().map(of).min().unwrap_or(0)
        };
        extent(|pad| pad.at.x) + extent(|pad| pad.at.y)
    }

    /// Adds a via beside every surface-mount ground pad, and a track to the via.
    fn leave_ground_pads(&mut self) -> Result<(), String> {
        let of_ground = |pad: &&Pad| pad.net.as_deref() == Some(GROUND) && pad.drill.is_none();
        let pads: Vec<_> = self.pads.iter().filter(of_ground).cloned().collect();
        for pad in pads {
            let prices = self.prices(GROUND, 0);
            let starts = self.cells_of(&pad);
            let is_end = |at: Cell| {
                let (_, column, row) = place(at);
                let via = Shape::circle(point(at), VIA.0 / 2);
                let free =
                    |side| cell(side, column, row).is_some_and(|c| !prices.is_shut_for_via[c]);
                pad.shape().distance(&via) > 100.0 && free(0) && free(1)
            };
            let path = search(&prices, &self.past, &starts, is_end, |_| 0, false)
                .ok_or_else(|| format!("{} has no place for a via to the ground", pad.name()))?;
            let end = path.last().map_or(pad.at, |cell| point(*cell));
            self.ground.add_path(GROUND, &path);
            self.ground.vias.push(Via {
                net: GROUND.to_owned(),
                at: end,
            });
        }
        Ok(())
    }

    /// Routes every net that crosses another, or all nets in the first pass;
    /// returns the nets that still cross another.
    fn pass(&mut self, pass: u32) -> Result<Vec<String>, String> {
        let crossing = self.crossings();
        for index in 0..self.nets.len() {
            let name = self.nets[index].0.clone();
            if pass > 0 && !crossing.contains(&name) {
                continue;
            }
            self.nets[index].1 = Routes::default();
            self.nets[index].1 = self.route_net(&name, pass)?;
        }
        let crossing = self.crossings();
        self.remember();
        Ok(crossing)
    }

    /// Returns the names of the nets whose copper is too close to another net.
    fn crossings(&self) -> Vec<String> {
        let mut found = Vec::new();
        for (index, (name, routes)) in self.nets.iter().enumerate() {
            for (other, others) in &self.nets[index + 1..] {
                if meet(routes, others) {
                    found.extend([name.clone(), other.clone()]);
                }
            }
        }
        found.sort();
        found.dedup();
        found
    }

    /// Raises the history cost of the cells where nets cross after this pass.
    fn remember(&mut self) {
        let mut used = vec![0u16; 2 * CELLS];
        for (_, routes) in &self.nets {
            let mut own = Vec::new();
            for (side, shape) in copper(routes) {
                near(side, &shape, KEPT, |cell| own.push(cell));
            }
            own.sort_unstable();
            own.dedup();
            own.iter().for_each(|cell| used[*cell] += 1);
        }
        for (past, used) in self.past.iter_mut().zip(&used) {
            *past += u32::from(used.saturating_sub(1)) * 4;
        }
    }

    /// Returns the cells at which a track of a pad's net may begin.
    fn cells_of(&self, pad: &Pad) -> Vec<Cell> {
        let mut cells = Vec::new();
        for side in SIDES.iter().filter(|side| pad.is_on(**side)) {
            near(*side as usize, &pad.shape(), 1, |cell| cells.push(cell));
        }
        cells
    }

    /// Returns the costs of the cells for a net in a pass.
    fn prices(&self, net: &str, pass: u32) -> Prices {
        let half = width(net) / 2;
        let mut prices = Prices {
            is_shut: vec![false; 2 * CELLS],
            is_shut_for_via: vec![false; 2 * CELLS],
            crossing: vec![0; 2 * CELLS],
        };
        prices.shut_edges(half);
        for pad in &self.pads {
            let is_own = pad.net.as_deref() == Some(net);
            for side in SIDES {
                if pad.is_on(side) && !is_own {
                    prices.shut(side as usize, &pad.shape(), KEPT, half);
                }
                if let Some(drill) = pad.drill {
                    let hole = Shape::circle(pad.at, drill / 2);
                    let side = side as usize;
                    // A via must also keep the minimum distance from the hole of a pad of its own net.
                    let apart = HOLE_CLEARANCE + VIA.1 / 2;
                    near(side, &hole, apart, |c| prices.is_shut_for_via[c] = true);
                    if pad.size.0 == 0 {
                        prices.shut(side, &hole, EDGE_CLEARANCE, half);
                    }
                }
            }
            // A via in a surface-mount pad would draw the solder away.
            if pad.drill.is_none() {
                near(0, &pad.shape(), VIA.0 / 2, |c| {
                    prices.is_shut_for_via[c] = true
                });
            }
        }
        if net != GROUND {
            for (side, shape) in copper(&self.ground) {
                prices.shut(side, &shape, KEPT, half);
            }
        } else {
            for via in &self.ground.vias {
                let hole = Shape::circle(via.at, VIA.1 / 2);
                let apart = HOLE_CLEARANCE + VIA.1 / 2;
                (0..2).for_each(|s| near(s, &hole, apart, |c| prices.is_shut_for_via[c] = true));
            }
        }
        let price = STEP * (2 + pass * 2);
        for (other, routes) in &self.nets {
            if other != net {
                for (side, shape) in copper(routes) {
                    near(side, &shape, KEPT + half, |cell| {
                        prices.crossing[cell] += price;
                    });
                }
            }
        }
        prices
    }

    /// Connects the pads of a net by a tree of tracks and vias.
    fn route_net(&self, net: &str, pass: u32) -> Result<Routes, String> {
        let prices = self.prices(net, pass);
        let of_net = |pad: &&Pad| pad.net.as_deref() == Some(net);
        let mut open: Vec<_> = self.pads.iter().filter(of_net).collect();
        let mut routes = Routes::default();
        let mut reached = self.cells_of(open.remove(0));
        while !open.is_empty() {
            let ends: BTreeMap<Cell, usize> = open
                .iter()
                .enumerate()
                .flat_map(|(index, pad)| self.cells_of(pad).into_iter().map(move |c| (c, index)))
                .collect();
            let boxed: Vec<_> = open.iter().map(|pad| pad.shape().bounds()).collect();
            let left = |cell: Cell| {
                let at = point(cell);
                let distances = boxed.iter().map(|(low, high)| {
                    let apart = |v: i64, low: i64, high: i64| (low - v).max(v - high).max(0);
                    let (x, y) = (apart(at.x, low.x, high.x), apart(at.y, low.y, high.y));
                    (x.max(y) / GRID * i64::from(STEP)) as u32
                });
                distances.min().unwrap_or(0)
            };
            let is_end = |cell: Cell| ends.contains_key(&cell);
            let path =
                search(&prices, &self.past, &reached, is_end, left, true).ok_or_else(|| {
                    format!(
                        "{net} cannot be routed to {}: move parts in boards/kit/parts.csv",
                        open.iter().map(|p| p.name()).collect::<Vec<_>>().join(", ")
                    )
                })?;
            let found = path.last().and_then(|cell| ends.get(cell)).copied();
            let pad = open.remove(found.unwrap_or(0));
            routes.add_path(net, &path);
            reached.extend(path);
            reached.extend(self.cells_of(pad));
        }
        Ok(routes)
    }

    fn finished(self) -> Routes {
        let mut routes = self.ground;
        for (_, own) in self.nets {
            routes.tracks.extend(own.tracks);
            routes.vias.extend(own.vias);
        }
        routes.tracks.sort();
        routes.vias.sort();
        routes
    }
}

impl Prices {
    fn shut_edges(&mut self, half: i64) {
        for cell in 0..2 * CELLS {
            let at = point(cell);
            let apart = at.x.min(at.y).min(SIZE.0 - at.x).min(SIZE.1 - at.y);
            self.is_shut[cell] = apart < EDGE_CLEARANCE + half;
            self.is_shut_for_via[cell] = apart < EDGE_CLEARANCE + VIA.0 / 2;
        }
    }

    /// Forbids the cells at which a track of half width `half`, or a via, would be closer to the shape
    /// than `distance`.
    fn shut(&mut self, side: usize, shape: &Shape, distance: i64, half: i64) {
        near(side, shape, distance + half, |cell| {
            self.is_shut[cell] = true;
        });
        near(side, shape, distance + VIA.0 / 2, |cell| {
            self.is_shut_for_via[cell] = true;
        });
    }
}

/// Returns the copper shapes of routes, each with the index of its side.
fn copper(routes: &Routes) -> Vec<(usize, Shape)> {
    let tracks = routes.tracks.iter();
    let tracks = tracks.map(|track| (track.side as usize, track.shape()));
    let vias = routes.vias.iter();
    let vias = vias.flat_map(|via| [(0, via.shape()), (1, via.shape())]);
    tracks.chain(vias).collect()
}

fn meet(one: &Routes, other: &Routes) -> bool {
    let others = copper(other);
    copper(one).iter().any(|(side, shape)| {
        others.iter().any(|(other_side, other)| {
            let may_be_near = shape.may_be_within(other, board::CLEARANCE);
            side == other_side && may_be_near && shape.distance(other) < board::CLEARANCE as f64
        })
    })
}

/// Calls a function with each cell of a side whose point is closer to a shape than `distance`.
fn near(side: usize, shape: &Shape, distance: i64, mut found: impl FnMut(Cell)) {
    let (low, high) = shape.bounds();
    for row in (low.y - distance) / GRID..=(high.y + distance) / GRID + 1 {
        for column in (low.x - distance) / GRID..=(high.x + distance) / GRID + 1 {
            let at = Shape::circle(Point::new(column * GRID, row * GRID), 0);
            if at.distance(shape) < distance as f64
                && let Some(cell) = cell(side, column, row)
            {
                found(cell);
            }
        }
    }
}

/// Finds the cheapest path from any start cell to an end cell (A*);
/// `left` returns a lower bound of the cost from a cell to the end.
fn search(
    prices: &Prices,
    past: &[u32],
    starts: &[Cell],
    is_end: impl Fn(Cell) -> bool,
    left: impl Fn(Cell) -> u32,
    with_vias: bool,
) -> Option<Vec<Cell>> {
    let mut best = vec![u32::MAX; 2 * CELLS];
    let mut before = vec![usize::MAX; 2 * CELLS];
    let mut open = BinaryHeap::new();
    for start in starts.iter().filter(|start| !prices.is_shut[**start]) {
        best[*start] = 0;
        open.push(Reverse((left(*start), *start)));
    }
    while let Some(Reverse((price, at))) = open.pop() {
        if price > best[at].saturating_add(left(at)) {
            continue;
        }
        if is_end(at) {
            return Some(path(&before, at));
        }
        for (next, step) in steps(prices, at, with_vias) {
            let dearer = prices.crossing[next] + past[next];
            let price = best[at] + step + dearer;
            if price < best[next] {
                best[next] = price;
                before[next] = at;
                open.push(Reverse((price + left(next), next)));
            }
        }
    }
    None
}

/// Returns the neighbours of cell `at`, each with the cost of the step.
fn steps(prices: &Prices, at: Cell, with_vias: bool) -> Vec<(Cell, u32)> {
    let (side, column, row) = place(at);
    let mut found = Vec::with_capacity(9);
    for (x, y) in [
        (1, 0),
        (1, 1),
        (0, 1),
        (-1, 1),
        (-1, 0),
        (-1, -1),
        (0, -1),
        (1, -1),
    ] {
        let price = match x == 0 || y == 0 {
            true => STEP,
            false => DIAGONAL,
        };
        let price = match side {
            0 => price,
            _ => price * BACK_TENTHS / 10,
        };
        let next = cell(side, column + x, row + y);
        found.extend(
            next.filter(|next| !prices.is_shut[*next])
                .map(|n| (n, price)),
        );
    }
    let other = cell(1 - side, column, row);
    let is_free = |cell: &Cell| !prices.is_shut_for_via[*cell] && !prices.is_shut_for_via[at];
    found.extend(
        other
            .filter(|other| with_vias && is_free(other))
            .map(|other| (other, VIA_PRICE)),
    );
    found
}

fn path(before: &[usize], end: Cell) -> Vec<Cell> {
    let mut path = vec![end];
    let mut at = end;
    while before[at] != usize::MAX {
        at = before[at];
        path.push(at);
    }
    path.reverse();
    path
}

impl Routes {
    /// Adds a path of cells to the routes as tracks and vias.
    fn add_path(&mut self, net: &str, path: &[Cell]) {
        let mut from = 0;
        for index in 1..path.len() {
            let (side, ..) = place(path[index]);
            let (before, ..) = place(path[index - 1]);
            if side != before {
                self.add_track(net, path[from], path[index - 1]);
                self.vias.push(Via {
                    net: net.to_owned(),
                    at: point(path[index]),
                });
                from = index;
            } else if index + 1 == path.len()
                || direction(path, index) != direction(path, index + 1)
            {
                self.add_track(net, path[from], path[index]);
                from = index;
            }
        }
    }

    fn add_track(&mut self, net: &str, from: Cell, to: Cell) {
        if from != to {
            self.tracks.push(Track {
                net: net.to_owned(),
                side: SIDES[place(from).0],
                from: point(from),
                to: point(to),
                width: width(net),
            });
        }
    }
}

/// Returns the direction of the step that ends at this index of a path.
fn direction(path: &[Cell], index: usize) -> (usize, i64, i64) {
    let (side, column, row) = place(path[index]);
    let (_, before, above) = place(path[index - 1]);
    (side, column - before, row - above)
}
