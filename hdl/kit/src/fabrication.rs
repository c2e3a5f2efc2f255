//! The files for the manufacturer: Gerber X2 for each layer, Excellon for the holes, positions of the surface-mount parts.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::board::{SIDES, SIZE, Side, VIA};
use crate::copper::Board;
use crate::footprint::Outline;
use crate::geometry::{Point, Shape};
use crate::pcb;
use crate::silk;
use crate::tables::Design;

/// The distance between the solder mask and a pad, um.
const MASK_MARGIN: i64 = 50;
/// The width of the silk screen's lines, um.
const SILK: i64 = 150;

/// Returns the files for the manufacturer, each as name and contents.
pub fn files(design: &Design, board: &Board) -> Vec<(String, String)> {
    let mut files = Vec::new();
    let mut add = |name: &str, text: String| files.push((format!("kit-{name}"), text));
    for side in SIDES {
        let (name, number) = match side {
            Side::Front => ("F_Cu.gtl", "Copper,L1,Top"),
            Side::Back => ("B_Cu.gbl", "Copper,L2,Bot"),
        };
        add(name, copper(board, side, number));
        let (name, kind) = match side {
            Side::Front => ("F_Mask.gts", "Soldermask,Top"),
            Side::Back => ("B_Mask.gbs", "Soldermask,Bot"),
        };
        add(name, mask(board, side, kind));
    }
    add("F_Paste.gtp", paste(board));
    add("F_Silkscreen.gto", silk_screen(design, board));
    add("Edge_Cuts.gm1", edge());
    add("PTH.drl", drill(board, true));
    add("NPTH.drl", drill(board, false));
    add("positions.csv", positions(design));
    files
}

struct Gerber {
    function: String,
    is_negative: bool,
    /// The number of each aperture, by its definition.
    apertures: BTreeMap<String, usize>,
    body: String,
    chosen: usize,
}

impl Gerber {
    fn new(function: &str, is_negative: bool) -> Self {
        Self {
            function: function.to_owned(),
            is_negative,
            apertures: BTreeMap::new(),
            body: String::new(),
            chosen: 0,
        }
    }

    fn choose(&mut self, definition: String) {
        let next = self.apertures.len() + 10;
        let number = *self.apertures.entry(definition).or_insert(next);
        if number != self.chosen {
            let _ = writeln!(self.body, "D{number}*");
            self.chosen = number;
        }
    }

    fn at(&mut self, at: Point, operation: &str) {
        // In Gerber files y grows upwards, and the unit is the nanometre.
        let (x, y) = (at.x * 1000, (SIZE.1 - at.y) * 1000);
        let _ = writeln!(self.body, "X{x}Y{y}{operation}*");
    }

    fn shape(&mut self, shape: &Shape) {
        match *shape {
            Shape::Line { from, to, radius } => {
                self.choose(format!("C,{}", pcb::length(2 * radius)));
                if from == to {
                    self.at(from, "D03");
                } else {
                    self.at(from, "D02");
                    self.at(to, "D01");
                }
            }
            Shape::Rectangle { centre, half } => {
                self.choose(format!(
                    "R,{}X{}",
                    pcb::length(2 * half.0),
                    pcb::length(2 * half.1)
                ));
                self.at(centre, "D03");
            }
        }
    }

    fn region(&mut self, corners: &[Point]) {
        let Some(first) = corners.first() else {
            return;
        };
        self.body.push_str("G36*\n");
        self.at(*first, "D02");
        for corner in corners[1..].iter().chain([first]) {
            self.at(*corner, "D01");
        }
        self.body.push_str("G37*\n");
    }

    fn text(self) -> String {
        let polarity = match self.is_negative {
            true => "Negative",
            false => "Positive",
        };
        let mut text = format!(
            "%TF.GenerationSoftware,Portcullis,hwbarr,kit*%\n%TF.FileFunction,{}*%\n%TF.FilePolarity,{polarity}*%\n%FSLAX46Y46*%\n%MOMM*%\nG01*\n%LPD*%\n",
            self.function
        );
        let mut apertures: Vec<_> = self.apertures.iter().collect();
        apertures.sort_by_key(|(_, number)| **number);
        for (definition, number) in apertures {
            let _ = writeln!(text, "%ADD{number}{definition}*%");
        }
        text + &self.body + "M02*\n"
    }
}

fn copper(board: &Board, side: Side, function: &str) -> String {
    let mut gerber = Gerber::new(function, false);
    for filled in &board.zones[side as usize] {
        gerber.region(&filled.corners);
    }
    for pad in board.pads.iter().filter(|pad| pad.is_on(side)) {
        gerber.shape(&pad.shape());
    }
    for track in board.routes.tracks.iter().filter(|t| t.side == side) {
        gerber.shape(&track.shape());
    }
    for via in &board.routes.vias {
        gerber.shape(&via.shape());
    }
    gerber.text()
}

/// Returns the layer of the solder mask's openings: pads with their margins. Vias remain covered.
fn mask(board: &Board, side: Side, function: &str) -> String {
    let mut gerber = Gerber::new(function, true);
    for pad in board.pads.iter().filter(|pad| pad.is_on(side)) {
        gerber.shape(&grown(&pad.shape(), MASK_MARGIN));
    }
    gerber.text()
}

fn paste(board: &Board) -> String {
    let mut gerber = Gerber::new("Paste,Top", false);
    let pads = board.pads.iter();
    for pad in pads.filter(|pad| pad.drill.is_none() && pad.outline == Outline::Square) {
        gerber.shape(&pad.shape());
    }
    gerber.text()
}

fn grown(shape: &Shape, margin: i64) -> Shape {
    match *shape {
        Shape::Line { from, to, radius } => Shape::Line {
            from,
            to,
            radius: radius + margin,
        },
        Shape::Rectangle { centre, half } => Shape::Rectangle {
            centre,
            half: (half.0 + margin, half.1 + margin),
        },
    }
}

/// Returns the layer of the silk screen, without lines that would be on a pad.
fn silk_screen(design: &Design, board: &Board) -> String {
    let mut gerber = Gerber::new("Legend,Top", false);
    for stroke in printed(design, board) {
        gerber.shape(&stroke);
    }
    gerber.text()
}

/// Returns the lines of the silk screen that do not touch a pad.
pub fn printed(design: &Design, board: &Board) -> Vec<Shape> {
    let strokes = silk::strokes(design).into_iter();
    let shapes = strokes.map(|(from, to)| Shape::Line {
        from,
        to,
        radius: SILK / 2,
    });
    let pads: Vec<_> = board
        .pads
        .iter()
        .filter(|pad| pad.is_on(Side::Front))
        .map(|pad| grown(&pad.shape(), MASK_MARGIN))
        .collect();
    shapes
        .filter(|shape| pads.iter().all(|pad| pad.distance(shape) > 0.0))
        .collect()
}

fn edge() -> String {
    let mut gerber = Gerber::new("Profile,NP", false);
    let corners = [(0, 0), (SIZE.0, 0), SIZE, (0, SIZE.1)].map(|(x, y)| Point::new(x, y));
    for index in 0..4 {
        gerber.shape(&Shape::Line {
            from: corners[index],
            to: corners[(index + 1) % 4],
            radius: 50,
        });
    }
    gerber.text()
}

/// Returns the drill file of the plated or unplated holes, by diameter.
fn drill(board: &Board, is_plated: bool) -> String {
    let mut holes = BTreeMap::<i64, Vec<Point>>::new();
    for pad in &board.pads {
        if let Some(drill) = pad.drill.filter(|_| (pad.size.0 > 0) == is_plated) {
            holes.entry(drill).or_default().push(pad.at);
        }
    }
    if is_plated {
        let vias = board.routes.vias.iter().map(|via| via.at);
        holes.entry(VIA.1).or_default().extend(vias);
    }
    let function = match is_plated {
        true => "Plated,1,2,PTH",
        false => "NonPlated,1,2,NPTH",
    };
    let mut text = format!("M48\n; #@! TF.FileFunction,{function}\nFMAT,2\nMETRIC\n");
    for (index, drill) in (1..).zip(holes.keys()) {
        let _ = writeln!(text, "T{index}C{}", millimetres(*drill));
    }
    text.push_str("%\nG90\nG05\n");
    for (index, places) in (1..).zip(holes.values()) {
        let _ = writeln!(text, "T{index}");
        for at in places {
            let _ = writeln!(
                text,
                "X{}Y{}",
                millimetres(at.x),
                millimetres(SIZE.1 - at.y)
            );
        }
    }
    text + "M30\n"
}

fn millimetres(um: i64) -> String {
    format!("{:.3}", um as f64 / 1000.0)
}

/// Returns the positions of the surface-mount parts, for a pick-and-place machine.
fn positions(design: &Design) -> String {
    let mut text = "Ref,Val,Package,PosX,PosY,Rot,Side\n".to_owned();
    for part in &design.parts {
        let Some(footprint) = part.footprint else {
            continue;
        };
        if footprint.is_on_surface() && !part.item.is_empty() {
            let _ = writeln!(
                text,
                "{},{},{},{},{},{},top",
                part.reference,
                part.value,
                footprint.name(),
                millimetres(part.at.x),
                millimetres(SIZE.1 - part.at.y),
                part.turn
            );
        }
    }
    text
}
