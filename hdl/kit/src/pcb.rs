//! Writer of KiCad's board file (KiCad 6 and later) and of the library of its footprints.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::board::{CLEARANCE, EDGE_CLEARANCE, GROUND, SIDES, SIZE, Side, VIA};
use crate::copper::Board;
use crate::footprint::{Footprint, Outline, PadOf};
use crate::geometry::Point;
use crate::schematic;
use crate::tables::{Design, Part};
use crate::zone::ZONE_CLEARANCE;

const LAYERS: &str = r#"  (layers
    (0 "F.Cu" signal) (31 "B.Cu" signal)
    (34 "B.Paste" user) (35 "F.Paste" user) (36 "B.SilkS" user "B.Silkscreen") (37 "F.SilkS" user "F.Silkscreen")
    (38 "B.Mask" user) (39 "F.Mask" user) (44 "Edge.Cuts" user) (46 "B.CrtYd" user "B.Courtyard") (47 "F.CrtYd" user "F.Courtyard")
    (48 "B.Fab" user) (49 "F.Fab" user)
  )
  (setup (pad_to_mask_clearance 0.05))
"#;

/// Returns the board in the format of KiCad 6.
pub fn board(design: &Design, board: &Board) -> String {
    let mut text = format!(
        "(kicad_pcb (version 20211014) (generator hwbarr)\n  (general (thickness 1.6))\n  (paper \"A4\")\n{LAYERS}  (net 0 \"\")\n"
    );
    let names: Vec<_> = design.net_names().into_iter().map(str::to_owned).collect();
    let names = names.into_iter().chain(unconnected(design));
    let numbers: BTreeMap<String, usize> = names.zip(1..).collect();
    for (name, number) in &numbers {
        let _ = writeln!(text, "  (net {number} \"{name}\")");
    }
    let net = |name: &str| numbers.get(name).copied().unwrap_or(0);
    let (symbols, mut ids) = (schematic::identifiers(design), Identifiers(0));
    for part in &design.parts {
        if let Some(kind) = part.footprint {
            let path = symbols.get(&part.reference);
            placed(&mut text, design, part, kind, path, &net, &mut ids);
        }
    }
    let corners = corners(0);
    for (index, from) in corners.iter().enumerate() {
        let to = corners[(index + 1) % 4];
        let _ = writeln!(
            text,
            "  (gr_line (start {}) (end {}) (layer \"Edge.Cuts\") (width 0.1) (tstamp {}))",
            mm(*from),
            mm(to),
            ids.next()
        );
    }
    for (at, size, words) in crate::silk::legends(design) {
        let _ = writeln!(
            text,
            "  (gr_text \"{words}\" (at {}) (layer \"F.SilkS\") (tstamp {}) {})",
            mm(at),
            ids.next(),
            font(size)
        );
    }
    for track in &board.routes.tracks {
        let _ = writeln!(
            text,
            "  (segment (start {}) (end {}) (width {}) (layer \"{}\") (net {}) (tstamp {}))",
            mm(track.from),
            mm(track.to),
            length(track.width),
            track.side.copper(),
            net(&track.net),
            ids.next()
        );
    }
    for via in &board.routes.vias {
        let _ = writeln!(
            text,
            "  (via (at {}) (size {}) (drill {}) (layers \"F.Cu\" \"B.Cu\") (net {}) (tstamp {}))",
            mm(via.at),
            length(VIA.0),
            length(VIA.1),
            net(&via.net),
            ids.next()
        );
    }
    for side in SIDES {
        zone(&mut text, board, side, net(GROUND), &mut ids);
    }
    text + ")\n"
}

/// Returns KiCad's name of the net of a part's pin; KiCad also names nets of unconnected pins.
fn net_of(design: &Design, part: &Part, number: usize) -> Option<String> {
    if let Some(net) = design.net(&part.reference, number) {
        return Some(net.to_owned());
    }
    let (_, pin) = design.pins(part).find(|(own, _)| *own == number)?;
    let (part, name) = (&part.reference, &pin.name);
    Some(format!("unconnected-({part}-{name}-Pad{number})"))
}

fn unconnected(design: &Design) -> Vec<String> {
    let mut names = Vec::new();
    for part in design.parts.iter().filter(|part| part.footprint.is_some()) {
        let open = design
            .pins(part)
            .filter(|(number, _)| design.net(&part.reference, *number).is_none());
        names.extend(open.filter_map(|(number, _)| net_of(design, part, number)));
    }
    names
}

/// Returns the library file of a footprint.
pub fn footprint(kind: Footprint) -> String {
    let mut text = format!(
        "(footprint \"{}\" (version 20211014) (generator hwbarr) (layer \"F.Cu\")\n  (attr {})\n",
        kind.name(),
        attributes(kind)
    );
    let mut ids = Identifiers(0);
    texts(&mut text, kind, "REF**", kind.name(), 0, &mut ids);
    for pad in kind.pads() {
        let _ = writeln!(text, "  {})", pad_text(&pad, 0, &mut ids));
    }
    text + ")\n"
}

/// Returns KiCad's project file, which contains the design rules.
pub fn project() -> String {
    let rule = |name: &str, um: i64| format!("        \"{name}\": {}", length(um));
    let rules = [
        rule("min_clearance", CLEARANCE),
        rule("min_copper_edge_clearance", EDGE_CLEARANCE),
        rule("min_hole_to_hole", crate::board::HOLE_CLEARANCE),
        rule("min_hole_clearance", CLEARANCE),
        rule("min_track_width", crate::board::THINNEST),
        rule("min_through_hole_diameter", 300),
        rule("min_via_annular_width", crate::board::RING),
        rule("min_via_diameter", 600),
    ];
    format!(
        "{{\n  \"board\": {{\n    \"design_settings\": {{\n      \"rules\": {{\n{}\n      }}\n    }}\n  }},\n  \
         \"meta\": {{ \"filename\": \"kit.kicad_pro\", \"version\": 1 }},\n  \
         \"net_settings\": {{\n    \"classes\": [\n      {{ \"name\": \"Default\", \"clearance\": {}, \"track_width\": 0.3, \"via_diameter\": {}, \"via_drill\": {} }}\n    ]\n  }}\n}}\n",
        rules.join(",\n"),
        length(CLEARANCE),
        length(VIA.0),
        length(VIA.1),
    )
}

/// Returns KiCad's library table for symbols (`sym`) or for footprints (`fp`).
pub fn libraries(kind: &str) -> String {
    let file = match kind {
        "sym" => "kit.kicad_sym",
        _ => "kit.pretty",
    };
    format!(
        "({kind}_lib_table\n  (lib (name \"kit\")(type \"KiCad\")(uri \"${{KIPRJMOD}}/{file}\")(options \"\")(descr \"The desk kit\"))\n)\n"
    )
}

/// A counter from which deterministic identifiers are made, so that the file is reproducible.
struct Identifiers(usize);

impl Identifiers {
    fn next(&mut self) -> String {
        self.0 += 1;
        format!("00000000-0000-4000-9000-{:012x}", self.0)
    }
}

/// Converts a length from um to mm.
pub(crate) fn length(um: i64) -> String {
    let sign = if um < 0 { "-" } else { "" };
    let (whole, rest) = (um.abs() / 1000, um.abs() % 1000);
    let text = format!("{sign}{whole}.{rest:03}");
    let short = text.trim_end_matches('0').trim_end_matches('.');
    short.to_owned()
}

fn mm(at: Point) -> String {
    format!("{} {}", length(at.x), length(at.y))
}

/// Returns the corners of the board, moved inwards by a margin.
fn corners(margin: i64) -> [Point; 4] {
    let (right, low) = (SIZE.0 - margin, SIZE.1 - margin);
    [
        Point::new(margin, margin),
        Point::new(right, margin),
        Point::new(right, low),
        Point::new(margin, low),
    ]
}

fn font(size: i64) -> String {
    let size = length(size);
    format!("(effects (font (size {size} {size}) (thickness 0.15)))")
}

fn attributes(kind: Footprint) -> &'static str {
    match kind {
        Footprint::HoleM3 => "board_only exclude_from_pos_files exclude_from_bom",
        Footprint::TestPoint => "exclude_from_pos_files exclude_from_bom",
        _ if kind.is_on_surface() => "smd",
        _ => "through_hole",
    }
}

fn placed(
    text: &mut String,
    design: &Design,
    part: &Part,
    kind: Footprint,
    path: Option<&String>,
    net: &impl Fn(&str) -> usize,
    ids: &mut Identifiers,
) {
    let _ = writeln!(
        text,
        "  (footprint \"kit:{}\" (layer \"F.Cu\") (tstamp {}) (at {} {})",
        kind.name(),
        ids.next(),
        mm(part.at),
        part.turn
    );
    if let Some(path) = path {
        let _ = writeln!(text, "    (path \"/{path}\")");
    }
    let _ = writeln!(text, "    (attr {})", attributes(kind));
    texts(text, kind, &part.reference, &part.value, part.turn, ids);
    for pad in kind.pads() {
        let name = pad.pin.and_then(|pin| net_of(design, part, pin));
        let _ = write!(text, "    {}", pad_text(&pad, part.turn, ids));
        if let Some(name) = name {
            let _ = write!(text, " (net {} \"{name}\")", net(&name));
        }
        text.push_str(")\n");
    }
    text.push_str("  )\n");
}

/// Writes the reference, the value, the body outline and the courtyard of a footprint.
fn texts(
    text: &mut String,
    kind: Footprint,
    reference: &str,
    value: &str,
    turn: i64,
    ids: &mut Identifiers,
) {
    let is_upright = match turn.rem_euclid(180) {
        0 => 0,
        _ => 90,
    };
    let _ = writeln!(
        text,
        "    (fp_text reference \"{reference}\" (at {} {is_upright}) (layer \"F.SilkS\") {} (tstamp {}))",
        mm(kind.label()),
        font(1000),
        ids.next()
    );
    let _ = writeln!(
        text,
        "    (fp_text value \"{value}\" (at {} {is_upright}) (layer \"F.Fab\") hide {} (tstamp {}))",
        mm(kind.label()),
        font(1000),
        ids.next()
    );
    let (low, high) = kind.body();
    for layer in ["F.SilkS", "F.CrtYd"] {
        let (width, more) = match layer {
            "F.SilkS" => ("0.12", 0),
            _ => ("0.05", 150),
        };
        let (low, high) = (
            Point::new(low.x - more, low.y - more),
            Point::new(high.x + more, high.y + more),
        );
        let around = [
            low,
            Point::new(high.x, low.y),
            high,
            Point::new(low.x, high.y),
        ];
        for index in 0..4 {
            let _ = writeln!(
                text,
                "    (fp_line (start {}) (end {}) (layer \"{layer}\") (width {width}) (tstamp {}))",
                mm(around[index]),
                mm(around[(index + 1) % 4]),
                ids.next()
            );
        }
    }
}

/// Returns the text of a pad without the closing parenthesis, so that the caller can append its net.
fn pad_text(pad: &PadOf, turn: i64, ids: &mut Identifiers) -> String {
    let number = pad.pin.map_or(String::new(), |pin| pin.to_string());
    let kind = match (pad.drill, pad.size.0) {
        (None, _) => "smd",
        (Some(_), 0) => "np_thru_hole",
        (Some(_), _) => "thru_hole",
    };
    let outline = match pad.outline {
        Outline::Round => "circle",
        Outline::Square => "rect",
    };
    let size = match pad.size.0 {
        0 => (pad.drill.unwrap_or(0), pad.drill.unwrap_or(0)),
        _ => pad.size,
    };
    let drill = pad.drill.map(|drill| format!(" (drill {})", length(drill)));
    let layers = match pad.drill {
        Some(_) => "\"*.Cu\" \"*.Mask\"",
        None => "\"F.Cu\" \"F.Paste\" \"F.Mask\"",
    };
    format!(
        "(pad \"{number}\" {kind} {outline} (at {} {turn}) (size {} {}){} (layers {layers}) (tstamp {})",
        mm(pad.at),
        length(size.0),
        length(size.1),
        drill.unwrap_or_default(),
        ids.next()
    )
}

fn zone(text: &mut String, board: &Board, side: Side, net: usize, ids: &mut Identifiers) {
    let points = |points: &[Point]| {
        let each = points.iter().map(|at| format!("(xy {})", mm(*at)));
        let each: Vec<_> = each.collect();
        each.chunks(8)
            .map(|line| format!("        {}\n", line.join(" ")))
            .collect::<String>()
    };
    let layer = side.copper();
    let _ = writeln!(
        text,
        "  (zone (net {net}) (net_name \"{GROUND}\") (layer \"{layer}\") (tstamp {}) (hatch edge 0.508)\n    \
         (connect_pads (clearance {}))\n    (min_thickness 0.25) (filled_areas_thickness no)\n    \
         (fill yes (thermal_gap {}) (thermal_bridge_width 0.5))\n    (polygon (pts\n{}    ))",
        ids.next(),
        length(ZONE_CLEARANCE),
        length(ZONE_CLEARANCE),
        points(&corners(EDGE_CLEARANCE))
    );
    for filled in &board.zones[side as usize] {
        let _ = writeln!(
            text,
            "    (filled_polygon (layer \"{layer}\") (pts\n{}    ))",
            points(&filled.corners)
        );
    }
    text.push_str("  )\n");
}
