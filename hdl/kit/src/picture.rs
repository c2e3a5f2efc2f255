//! A drawing of the board for documents: both sides from above, in SVG.

use std::fmt::Write as _;

use crate::board::{SIZE, Side, VIA};
use crate::copper::Board;
use crate::fabrication;
use crate::geometry::{Point, Shape};
use crate::tables::Design;

/// Returns the SVG text of the drawing.
pub fn picture(design: &Design, board: &Board) -> String {
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"-1000 -1000 {} {}\" width=\"1200\" height=\"900\">\n\
         <title>The board of the desk kit: copper of the front in red, of the back in blue</title>\n\
         <rect x=\"0\" y=\"0\" width=\"{}\" height=\"{}\" fill=\"#f4f1e8\" stroke=\"#333\" stroke-width=\"200\"/>\n",
        SIZE.0 + 2000,
        SIZE.1 + 2000,
        SIZE.0,
        SIZE.1
    );
    for side in [Side::Back, Side::Front] {
        let colour = match side {
            Side::Front => "#c0392b",
            Side::Back => "#2c6fbb",
        };
        let _ = writeln!(
            text,
            "<g fill=\"{colour}\" stroke=\"{colour}\" stroke-linecap=\"round\" opacity=\"0.75\">"
        );
        for track in board.routes.tracks.iter().filter(|t| t.side == side) {
            draw(&mut text, &track.shape());
        }
        text.push_str("</g>\n");
    }
    text.push_str("<g fill=\"#b8860b\" stroke=\"none\">\n");
    for pad in board.pads.iter().filter(|pad| pad.size.0 > 0) {
        draw(&mut text, &pad.shape());
    }
    for via in &board.routes.vias {
        draw(&mut text, &via.shape());
    }
    text.push_str("</g>\n<g fill=\"#fff\" stroke=\"none\">\n");
    for pad in &board.pads {
        if let Some(drill) = pad.drill {
            draw(&mut text, &Shape::circle(pad.at, drill / 2));
        }
    }
    for via in &board.routes.vias {
        draw(&mut text, &Shape::circle(via.at, VIA.1 / 2));
    }
    text.push_str("</g>\n<g stroke=\"#222\" stroke-linecap=\"round\">\n");
    for stroke in fabrication::printed(design, board) {
        draw(&mut text, &stroke);
    }
    text + "</g>\n</svg>\n"
}

fn draw(text: &mut String, shape: &Shape) {
    let _ = match *shape {
        Shape::Line {
            from: Point { x, y },
            to,
            radius,
        } if to == Point::new(x, y) => {
            writeln!(text, "<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"/>")
        }
        Shape::Line { from, to, radius } => writeln!(
            text,
            "<path d=\"M{} {}L{} {}\" stroke-width=\"{}\"/>",
            from.x,
            from.y,
            to.x,
            to.y,
            2 * radius
        ),
        Shape::Rectangle { centre, half } => writeln!(
            text,
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>",
            centre.x - half.0,
            centre.y - half.1,
            2 * half.0,
            2 * half.1
        ),
    };
}
