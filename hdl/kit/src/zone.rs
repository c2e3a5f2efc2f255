//! Ground zones: copper polygons on a grid that fill the area left free by tracks and pads.

use std::collections::BTreeMap;

use crate::board::{EDGE_CLEARANCE, GROUND, Pad, Routes, SIZE, Side};
use crate::geometry::{Point, Shape};

/// The size of a grid cell, um.
const CELL: i64 = 250;
/// The distance of the zones from other nets' copper and from holes, um.
pub const ZONE_CLEARANCE: i64 = 300;
/// Half of the width of the four bridges from a ground pad to the zone, um.
const BRIDGE: i64 = 380;

const COLUMNS: usize = (SIZE.0 / CELL) as usize;
const ROWS: usize = (SIZE.1 / CELL) as usize;

/// One connected area of a zone's copper,
/// as one outline, to which holes are joined by cuts of zero width.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filled {
    /// The corners of the outline, in order; the last one is joined to the first.
    pub corners: Vec<Point>,
    /// The cells of the area as column and row, sorted.
    cells: Vec<(usize, usize)>,
}

impl Filled {
    /// Returns true if the copper overlaps this shape.
    pub fn meets(&self, shape: &Shape) -> bool {
        self.squares_near(shape, 0)
            .any(|square| square.distance(shape) == 0.0)
    }

    /// Returns the distance of the copper from a shape in um; `None` if it is `limit` or more.
    pub fn nearer_than(&self, shape: &Shape, limit: i64) -> Option<f64> {
        let distances = self.squares_near(shape, limit);
        let least = distances
            .map(|square| square.distance(shape))
            .fold(f64::MAX, f64::min);
        (least < limit as f64).then_some(least)
    }

    /// Returns the squares (cells) of the copper that may be within `reach` of a shape.
    fn squares_near(&self, shape: &Shape, reach: i64) -> impl Iterator<Item = Shape> {
        let (low, high) = shape.bounds();
        let reach = reach + CELL;
        let of = |coordinate: i64| (coordinate / CELL).max(0) as usize;
        let columns = of(low.x - reach)..=of(high.x + reach);
        let rows = of(low.y - reach)..=of(high.y + reach);
        let from = self.cells.partition_point(|cell| cell.0 < *columns.start());
        let to = self.cells.partition_point(|cell| cell.0 <= *columns.end());
        let cells = self.cells[from..to].iter();
        cells
            .filter(move |cell| rows.contains(&cell.1))
            .map(|cell| Shape::Rectangle {
                centre: centre(*cell),
                half: (CELL / 2, CELL / 2),
            })
    }

    /// Returns the area of the copper in square millimetres.
    pub fn area(&self) -> f64 {
        self.cells.len() as f64 * (CELL * CELL) as f64 / 1e6
    }
}

fn centre((column, row): (usize, usize)) -> Point {
    let middle = |index: usize| index as i64 * CELL + CELL / 2;
    Point::new(middle(column), middle(row))
}

/// A set of grid cells: one flag for each cell.
#[derive(Clone)]
struct Cells(Vec<bool>);

impl Cells {
    fn new(is_in: bool) -> Self {
        Self(vec![is_in; COLUMNS * ROWS])
    }

    /// Returns true if a cell is in the set; false for cells outside the board.
    fn has(&self, column: i64, row: i64) -> bool {
        let is_inside = (0..COLUMNS as i64).contains(&column) && (0..ROWS as i64).contains(&row);
        is_inside && self.0[row as usize * COLUMNS + column as usize]
    }

    fn set(&mut self, column: i64, row: i64, value: bool) {
        let is_inside = (0..COLUMNS as i64).contains(&column) && (0..ROWS as i64).contains(&row);
        if is_inside {
            self.0[row as usize * COLUMNS + column as usize] = value;
        }
    }

    /// Calls a function with each cell whose square is less than `distance` from a shape.
    fn near(shape: &Shape, distance: i64, mut found: impl FnMut(i64, i64)) {
        let (low, high) = shape.bounds();
        let reach = distance + CELL;
        for row in (low.y - reach) / CELL..=(high.y + reach) / CELL {
            for column in (low.x - reach) / CELL..=(high.x + reach) / CELL {
                let square = Shape::Rectangle {
                    centre: Point::new(column * CELL + CELL / 2, row * CELL + CELL / 2),
                    half: (CELL / 2, CELL / 2),
                };
                if square.distance(shape) < distance as f64 {
                    found(column, row);
                }
            }
        }
    }

    /// Returns the set without the areas that are narrower than two cells.
    fn opened(&self) -> Self {
        let mut opened = Self::new(false);
        for row in 0..ROWS as i64 - 1 {
            for column in 0..COLUMNS as i64 - 1 {
                let block = [(0, 0), (1, 0), (0, 1), (1, 1)];
                if block.iter().all(|(x, y)| self.has(column + x, row + y)) {
                    block
                        .iter()
                        .for_each(|(x, y)| opened.set(column + x, row + y, true));
                }
            }
        }
        opened
    }

    /// Removes the connected area that contains this cell, and returns its cells.
    fn take(&mut self, column: i64, row: i64) -> Vec<(usize, usize)> {
        let (mut taken, mut waiting) = (Vec::new(), vec![(column, row)]);
        while let Some((column, row)) = waiting.pop() {
            if !self.has(column, row) {
                continue;
            }
            self.set(column, row, false);
            taken.push((column as usize, row as usize));
            waiting.extend([
                (column + 1, row),
                (column - 1, row),
                (column, row + 1),
                (column, row - 1),
            ]);
        }
        taken.sort_unstable();
        taken
    }
}

/// Returns the ground zone of a side, without areas that touch no ground copper.
pub(crate) fn fill(pads: &[Pad], routes: &Routes, side: Side) -> Vec<Filled> {
    let mut free = free_cells(pads, routes, side).opened();
    let mut pieces = Vec::new();
    for row in 0..ROWS as i64 {
        for column in 0..COLUMNS as i64 {
            if free.has(column, row) {
                let cells = free.take(column, row);
                let corners = outline(&cells);
                pieces.push(Filled { corners, cells });
            }
        }
    }
    pieces.retain(|piece| is_grounded(pads, routes, side, piece));
    pieces
}

fn is_grounded(pads: &[Pad], routes: &Routes, side: Side, piece: &Filled) -> bool {
    let mut pads = pads
        .iter()
        .filter(|pad| pad.is_on(side) && pad.net.as_deref() == Some(GROUND));
    let mut vias = routes.vias.iter().filter(|via| via.net == GROUND);
    pads.any(|pad| piece.meets(&pad.shape())) || vias.any(|via| piece.meets(&via.shape()))
}

/// Returns the cells that keep the required distance from all copper except the ground's.
fn free_cells(pads: &[Pad], routes: &Routes, side: Side) -> Cells {
    let mut free = Cells::new(true);
    let margin = EDGE_CLEARANCE / CELL;
    for row in 0..ROWS as i64 {
        for column in 0..COLUMNS as i64 {
            let (right, low) = (COLUMNS as i64 - 1 - column, ROWS as i64 - 1 - row);
            if column.min(row).min(right).min(low) < margin {
                free.set(column, row, false);
            }
        }
    }
    let mut clear = |shape: &Shape, distance: i64| {
        Cells::near(shape, distance, |column, row| free.set(column, row, false));
    };
    for track in routes.tracks.iter().filter(|t| t.side == side) {
        if track.net != GROUND {
            clear(&track.shape(), ZONE_CLEARANCE);
        }
    }
    for via in routes.vias.iter().filter(|via| via.net != GROUND) {
        clear(&via.shape(), ZONE_CLEARANCE);
    }
    for pad in pads {
        if let Some(drill) = pad.drill.filter(|_| pad.size.0 == 0) {
            clear(&Shape::circle(pad.at, drill / 2), EDGE_CLEARANCE);
        }
    }
    let is_ground = |pad: &&Pad| pad.net.as_deref() == Some(GROUND);
    let pads = || pads.iter().filter(|pad| pad.is_on(side));
    for pad in pads().filter(|pad| !is_ground(pad)) {
        clear(&pad.shape(), ZONE_CLEARANCE);
    }
    for pad in pads().filter(is_ground) {
        relieve(&mut free, pad.at, &pad.shape());
    }
    free
}

/// Leaves only four bridges between a ground pad and the zone, so that the pad can be soldered.
fn relieve(free: &mut Cells, at: Point, shape: &Shape) {
    let mut ring = Vec::new();
    Cells::near(shape, ZONE_CLEARANCE, |column, row| {
        ring.push((column, row))
    });
    for (column, row) in ring {
        let (x, y) = (
            column * CELL + CELL / 2 - at.x,
            row * CELL + CELL / 2 - at.y,
        );
        if x.abs() > BRIDGE && y.abs() > BRIDGE {
            free.set(column, row, false);
        }
    }
}

/// The directions of an outline's steps: right, down, left, up. The copper is on the right of each step.
const STEPS: [(i64, i64); 4] = [(1, 0), (0, 1), (-1, 0), (0, -1)];

/// Returns the outline of a connected set of cells; cuts join its holes to the outer ring.
fn outline(cells: &[(usize, usize)]) -> Vec<Point> {
    let mut rings = rings(cells);
    // The outer ring is the ring that contains the leftmost corner.
    rings.sort_by_key(|ring| ring.iter().min().copied());
    let mut rings = rings.into_iter();
    let mut joined = rings.next().unwrap_or_default();
    for hole in rings {
        join(&mut joined, hole);
    }
    let scaled = |p: Point| Point::new(p.x * CELL, p.y * CELL);
    joined.into_iter().map(scaled).collect()
}

/// Returns the closed rings around a set of cells, corners only, in grid units.
fn rings(cells: &[(usize, usize)]) -> Vec<Vec<Point>> {
    let mut set = Cells::new(false);
    for (column, row) in cells {
        set.set(*column as i64, *row as i64, true);
    }
    // All edges of cells by their start point, as directions. The copper is on the right of each edge.
    // Two edges start at a point at which two cells touch only with their corners.
    let mut edges = BTreeMap::<Point, Vec<usize>>::new();
    for (column, row) in cells {
        let (x, y) = (*column as i64, *row as i64);
        let sides = [
            ((x, y - 1), Point::new(x, y), 0),
            ((x + 1, y), Point::new(x + 1, y), 1),
            ((x, y + 1), Point::new(x + 1, y + 1), 2),
            ((x - 1, y), Point::new(x, y + 1), 3),
        ];
        for ((nx, ny), from, direction) in sides {
            if !set.has(nx, ny) {
                edges.entry(from).or_default().push(direction);
            }
        }
    }
    let mut rings = Vec::new();
    while let Some((&start, _)) = edges.iter().next() {
        rings.push(ring(&mut edges, start));
    }
    rings
}

/// Removes one closed ring from the edges and returns its corners.
/// At a point with two edges it turns right, so cells that share only a corner stay separate.
fn ring(edges: &mut BTreeMap<Point, Vec<usize>>, start: Point) -> Vec<Point> {
    let (mut at, mut before, mut corners) = (start, None, Vec::new());
    while let Some(open) = edges.get_mut(&at) {
        let right = before.map(|d: usize| (d + 1) % 4);
        let index = open.iter().position(|d| Some(*d) == right).unwrap_or(0);
        let direction = open.swap_remove(index);
        if open.is_empty() {
            edges.remove(&at);
        }
        if before != Some(direction) {
            corners.push(at);
        }
        let (x, y) = STEPS[direction];
        at = Point::new(at.x + x, at.y + y);
        before = Some(direction);
        if at == start
            && edges
                .get(&at)
                .is_none_or(|open| !open.contains(&((direction + 1) % 4)))
        {
            break;
        }
    }
    corners
}

/// Joins a hole to the ring around it by a cut from the hole's leftmost corner to the left.
fn join(outer: &mut Vec<Point>, hole: Vec<Point>) {
    let Some(first) = (0..hole.len()).min_by_key(|i| hole[*i]) else {
        return;
    };
    let from = hole[first];
    // Finds the nearest vertical edge to the left of the hole.
    let edge = (0..outer.len()).filter_map(|i| {
        let (a, b) = (outer[i], outer[(i + 1) % outer.len()]);
        let spans = a.x == b.x && a.x < from.x && (a.y.min(b.y)..=a.y.max(b.y)).contains(&from.y);
        spans.then_some((a.x, i))
    });
    let Some((x, index)) = edge.max() else {
        return;
    };
    let end = Point::new(x, from.y);
    let around = hole[first..].iter().chain(&hole[..=first]).copied();
    let cut: Vec<_> = std::iter::once(end)
        .chain(around)
        .chain(std::iter::once(end))
        .collect();
    outer.splice(index + 1..index + 1, cut);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns twice the area that a polygon encloses.
    fn area(corners: &[Point]) -> i64 {
        let next = corners.iter().cycle().skip(1);
        let terms = corners.iter().zip(next).map(|(a, b)| a.x * b.y - b.x * a.y);
        terms.sum::<i64>().abs()
    }

    #[test]
    fn an_outline_encloses_the_cells_and_not_their_holes() {
        // A rectangle of seven by five cells with two holes in one row.
        // The second hole shares a corner with a third hole.
        let holes = [(2, 2), (4, 2), (5, 3)];
        let cells: Vec<_> = (0..7)
            .flat_map(|x| (0..5).map(move |y| (x, y)))
            .filter(|cell| !holes.contains(cell))
            .collect();
        let corners = outline(&cells);
        assert_eq!(area(&corners), 2 * cells.len() as i64 * CELL * CELL);
    }
}
