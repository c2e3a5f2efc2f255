//! Tests of the desk kit: its generated files are up to date, the board obeys the design rules,
//! and KiCad and other programs can read the files.

use barrier_kit::board::{Routes, Side, Track};
use barrier_kit::copper::Board;
use barrier_kit::geometry::Point;
use barrier_kit::tables::{Design, PinType};
use barrier_kit::{
    TRACKS, bill, check, currents, electrical, fabrication, files, files_of_long_cables, route,
};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../boards/kit")
}

fn design() -> Design {
    Design::kit().expect("readable tables")
}

fn routes() -> Routes {
    let table = std::fs::read_to_string(folder().join(TRACKS)).expect("a table of routes");
    Routes::read(&table).expect("routes")
}

/// Returns the routes without the longest track, so that a net is cut.
fn cut() -> Routes {
    let mut routes = routes();
    let length = |t: &Track| (t.to.x - t.from.x).abs() + (t.to.y - t.from.y).abs();
    let tracks = routes.tracks.iter().map(length);
    let longest = (0..).zip(tracks).max_by_key(|(_, length)| *length);
    routes.tracks.remove(longest.expect("tracks").0);
    routes
}

#[test]
fn every_file_is_that_of_the_tables() {
    for (name, wanted) in files(&design(), routes()).expect("files") {
        let found = std::fs::read_to_string(folder().join(&name)).unwrap_or_default();
        assert!(
            found == wanted,
            "boards/kit/{name} is not that of the tables: cargo xtask kit"
        );
    }
}

fn long_cables() -> [Design; 2] {
    Design::long_cables().expect("readable tables")
}

#[test]
fn the_files_for_long_cables_are_those_of_their_tables_and_keep_the_electrical_rules() {
    let folder = folder().join("../kit-long");
    for (name, wanted) in files_of_long_cables(&long_cables()).expect("files") {
        let found = std::fs::read_to_string(folder.join(&name)).unwrap_or_default();
        assert!(
            found == wanted,
            "boards/kit-long/{name} is not that of the tables: cargo xtask kit"
        );
    }
    for mut design in long_cables() {
        assert_eq!(electrical::violations(&design), Vec::<String>::new());
        // Joins the two wires of each pair into one net.
        for (_, net) in design.nets.iter_mut() {
            *net = net.replace("OUT0N", "OUT0P").replace("OUTN", "OUTP");
            *net = net.replace("BACK0N", "BACK0P");
        }
        let found = electrical::violations(&design);
        let is_found = found.iter().any(|line| line.contains("drive against"));
        assert!(is_found, "{found:?}");
    }
}

/// A level is not inverted by a cable pair: the driver's output Y is connected to the receiver's input A.
#[test]
fn each_pair_of_a_long_cable_ends_at_the_right_wires() {
    let [hub, node] = long_cables();
    let pin = |design: &Design, net: &str, part: &str| {
        let mut pins = design.nets.iter();
        let found = pins.find(|((reference, _), own)| reference == part && *own == net);
        found.map(|((_, pin), _)| *pin).expect(net)
    };
    let name = |design: &Design, part: &str, number: usize| {
        let part = design.parts.iter().find(|p| p.reference == part);
        let pins = &design.symbols[&part.expect("a part").symbol];
        pins[&number].name.clone()
    };
    for number in 0..4 {
        let terminals = if number < 2 { "J3" } else { "J4" };
        let first = number % 2 * 5;
        for (wire, at) in [("OUT{}P", 1), ("OUT{}N", 2), ("BACK{}P", 3), ("BACK{}N", 4)] {
            let at_hub = wire.replace("{}", &number.to_string());
            let at_node = wire.replace("{}", "");
            assert_eq!(pin(&hub, &at_hub, terminals), first + at, "{at_hub}");
            assert_eq!(pin(&node, &at_node, "J2"), at, "{at_node}");
            let is_out = wire.starts_with("OUT");
            let (of_hub, of_node) = if is_out { ("U1", "U1") } else { ("U2", "U2") };
            let hub_pin = name(&hub, of_hub, pin(&hub, &at_hub, of_hub));
            let node_pin = name(&node, of_node, pin(&node, &at_node, of_node));
            let (driver, receiver) = if is_out {
                (node_pin, hub_pin)
            } else {
                (hub_pin, node_pin)
            };
            let ends = (driver.chars().last(), receiver.chars().last());
            let wanted = if wire.ends_with('P') {
                ('Y', 'A')
            } else {
                ('Z', 'B')
            };
            assert_eq!(ends, (Some(wanted.0), Some(wanted.1)), "{at_hub}");
        }
    }
}

#[test]
fn each_net_joins_pins_that_there_are_and_no_part_is_left_out() {
    let design = design();
    let mut joined: BTreeMap<&str, usize> = BTreeMap::new();
    let mut used = BTreeSet::new();
    for ((reference, pin), net) in &design.nets {
        let part = design.parts.iter().find(|p| p.reference == *reference);
        let part = part.unwrap_or_else(|| panic!("{net}: there is no {reference}"));
        assert!(
            design.pins(part).any(|(number, _)| number == *pin),
            "{net}: {reference} has no pin {pin}"
        );
        *joined.entry(net).or_default() += 1;
        used.insert(reference.as_str());
    }
    assert!(joined.values().all(|pins| *pins > 1), "{joined:?}");
    let with_pins = design.parts.iter().filter(|part| !part.symbol.is_empty());
    assert_eq!(used.len(), with_pins.count());
    for part in &design.parts {
        let Some(footprint) = part.footprint else {
            continue;
        };
        let of_symbol: BTreeSet<_> = design.pins(part).map(|(number, _)| number).collect();
        let of_footprint: BTreeSet<_> = footprint.pads().iter().filter_map(|p| p.pin).collect();
        assert_eq!(of_symbol, of_footprint, "{}", part.reference);
    }
}

#[test]
fn a_row_that_cannot_be_read_is_named() {
    let error = Routes::read("head\nGND,F.Cu,300,0,0,1,x\n").expect_err("x is no length");
    assert!(
        error.starts_with("boards/kit/tracks.csv, line 2:"),
        "{error}"
    );
}

#[test]
fn the_schematic_keeps_its_electrical_rules_and_each_planted_fault_is_found() {
    let sound = design();
    assert_eq!(electrical::violations(&sound), Vec::<String>::new());
    let passive = |design: &Design| {
        let pins = design.symbols.values().flat_map(BTreeMap::values);
        pins.filter(|pin| pin.kind == PinType::Passive).count()
    };
    // The number of passive pins of the symbols: two each for resistor, capacitor and terminal,
    // one each for test point and for a connector's shell.
    assert_eq!(passive(&sound), 8);
    let planted = |change: &dyn Fn(&mut Design), sentence: &str| {
        let mut broken = design();
        change(&mut broken);
        let found = electrical::violations(&broken);
        assert!(
            found.iter().any(|line| line.contains(sentence)),
            "{sentence}: {found:?}"
        );
    };
    let pin = |part: &str, pin: usize| (part.to_owned(), pin);
    planted(
        &|design| {
            design.nets.insert(pin("U3", 16), "DRIVE0".to_owned());
        },
        "U3 pin 16 1Y2 (output) and U3 pin 18 1Y1 (output) drive against each other",
    );
    planted(
        &|design| {
            design.nets.remove(&pin("FLG1", 1));
        },
        "+5V: it supplies pins and nothing supplies it",
    );
    planted(
        &|design| {
            design.nets.insert(pin("U1", 2), "+3V3".to_owned());
        },
        "drive against each other",
    );
    planted(
        &|design| {
            design.nets.remove(&pin("U2", 13));
        },
        "U2 pin 13 6A is an input that nothing drives",
    );
    planted(
        &|design| {
            design.nets.remove(&pin("J2", 10));
            design.nets.remove(&pin("R5", 1));
            design.nets.remove(&pin("R10", 1));
            design.nets.remove(&pin("TP1", 1));
        },
        "RELEASE: it has inputs and no driver",
    );
}

#[test]
fn the_board_keeps_its_design_rules() {
    let board = Board::new(&design(), routes());
    assert_eq!(check::violations(&board), Vec::<String>::new());
    // The ground plane under the circuit is one connected area, except corners that pads cut off.
    let back = board.zones[Side::Back as usize].iter();
    let areas: Vec<_> = back.map(|zone| zone.area()).collect();
    let whole: f64 = areas.iter().sum();
    assert!(areas.iter().any(|area| *area > 0.95 * whole), "{areas:?}");
}

/// Plants faults in routes or tables; the check must report each.
#[test]
fn each_fault_planted_on_the_board_is_found() {
    let found = |board: &Board, sentence: &str| {
        let found = check::violations(board);
        assert!(
            found.iter().any(|line| line.contains(sentence)),
            "{sentence}: {found:?}"
        );
    };
    let track = |net: &str, from: (i64, i64), to: (i64, i64), width| Track {
        net: net.to_owned(),
        side: Side::Front,
        from: Point::new(from.0, from.1),
        to: Point::new(to.0, to.1),
        width,
    };
    let whole = Board::new(&design(), routes());
    let mut board = whole.clone();
    board.routes = cut();
    found(&board, "is not connected to");

    let mut board = whole.clone();
    let crossing = track("PICO", (20_000, 20_000), (100_000, 60_000), 300);
    board.routes.tracks.push(crossing);
    found(&board, "short: ");
    found(&board, "the ground on F.Cu is 0 um from");

    let mut board = whole.clone();
    let edge = track("PICO", (300, 20_000), (300, 21_000), 150);
    board.routes.tracks.push(edge);
    found(&board, "from the edge of the board");
    found(&board, "is 150 um wide");

    let mut board = whole.clone();
    let pad = board.pads.iter().find(|pad| pad.drill.is_some());
    let mut beside = pad.expect("a pad with a hole").clone();
    beside.at.x += 1100;
    beside.size = (1200, 1200);
    board.pads.push(beside);
    found(&board, "a ring of 100 um");
    found(&board, "the holes of ");

    // Without the ground plane the ground pads are not connected to each other.
    let mut board = whole;
    board.zones = [Vec::new(), Vec::new()];
    found(&board, "GND: ");
}

/// Routing takes seconds, so a shorter test only checks whether the stored routes are valid.
#[test]
#[ignore = "long: cargo xtask test --long"]
fn the_routes_are_those_that_the_router_finds() {
    let found = route::route(&design()).expect("routes");
    assert_eq!(
        found.table(),
        routes().table(),
        "boards/kit/tracks.csv is not the router's: cargo xtask kit --route"
    );
}

#[test]
fn the_files_for_the_board_house_have_every_pad_and_hole_once() {
    let design = design();
    let board = Board::new(&design, routes());
    let files: BTreeMap<_, _> = fabrication::files(&design, &board).into_iter().collect();
    let flashes = |name: &str| files[name].lines().filter(|l| l.ends_with("D03*")).count();
    let pads = |side| board.pads.iter().filter(|pad| pad.is_on(side)).count();
    let vias = board.routes.vias.len();
    assert_eq!(flashes("kit-F_Cu.gtl"), pads(Side::Front) + vias);
    assert_eq!(flashes("kit-B_Cu.gbl"), pads(Side::Back) + vias);
    assert_eq!(flashes("kit-F_Mask.gts"), pads(Side::Front));
    let holes = |name: &str| files[name].lines().filter(|l| l.starts_with('X')).count();
    assert_eq!(holes("kit-PTH.drl"), pads(Side::Back) + vias);
    assert_eq!(holes("kit-NPTH.drl"), 4);
    for (name, text) in &files {
        let is_ended = text.ends_with("M02*\n") || text.ends_with("M30\n");
        assert!(is_ended || name.ends_with(".csv"), "{name}");
    }
}

#[test]
fn the_bill_has_what_a_kit_needs_with_part_numbers() {
    let design = design();
    let bill = bill::bill(&design).expect("a bill");
    for needed in [
        "4,J3 J4 J5 J6,",
        "4,,printer cable,DB25 plug to DB25 plug",
        "1,,FPGA board,,Lattice,ICE40HX1K-STICK-EVN",
        "8,R6 R7 R8 R9 R15 R16 R17 R18,220,",
        "1,,board,118 x 88 mm",
    ] {
        assert!(bill.contains(&format!("\n{needed}")), "{needed}\n{bill}");
    }
    let mut unknown = design;
    unknown.parts[0].item = "a thing".to_owned();
    let error = bill::bill(&unknown).expect_err("an unknown item");
    assert!(error.contains("items.csv does not have"), "{error}");
}

/// The currents must agree with the table of [WIRING.md] and be below the limits of the parts.
#[test]
fn no_side_without_power_is_fed_more_than_its_parts_stand() {
    let cases = currents::cases(&design()).expect("resistors");
    for case in &cases {
        assert!(case.milliamperes() < case.limit, "{case:?}");
    }
    let document = include_str!("../../boards/WIRING.md");
    for row in currents::table(&cases).lines() {
        assert!(document.contains(row), "WIRING.md lacks {row}");
    }
    // With R6 of 33 ohms, as in an earlier design, the current exceeds a limit.
    let mut former = design();
    for part in &mut former.parts {
        if part.reference == "R6" {
            part.value = "33".to_owned();
        }
    }
    let cases = currents::cases(&former).expect("resistors");
    assert!(cases[0].milliamperes() > cases[0].limit);
}

/// Compares connector pins, pins of the FPGA board and values with the .pcf files and WIRING.md.
#[test]
fn the_tables_agree_with_the_boards_pins_and_the_wiring() {
    let pins = include_str!("../../boards/kit/kit_top.pcf");
    let whole = include_str!("../../boards/icestick/icestick_top.pcf");
    for line in pins.lines().filter(|line| line.starts_with("set_io")) {
        assert!(
            whole.contains(&format!("{line}\n")),
            "the iCEstick has no {line}"
        );
    }
    let said = |reference: &str, pin, net: &str| {
        assert_eq!(design().net(reference, pin), Some(net), "{reference} {pin}");
    };
    // icestick_top.pcf: "Nodes 0 to 7 are positions 3 to 10 of header J1", "position 10, is the way out".
    for node in 0..4 {
        assert!(pins.contains(&format!("set_io node_i[{node}] ")));
        said("J1", 3 + node, &format!("NODE{node}"));
        let connector = format!("J{}", 3 + node);
        said(&connector, 2, &format!("OUT{node}"));
        said(&connector, 10, &format!("IN{node}"));
        (18..=25).for_each(|pin| said(&connector, pin, "GND"));
        said(&format!("J{}", 8 + node), 1, &format!("OUT{node}"));
        said(&format!("J{}", 8 + node), 2, &format!("BACK{node}"));
    }
    // Nodes 4 to 7 are on a second board of the kit.
    (4..8).for_each(|node| assert!(pins.contains(&format!("set_io node_i[{node}] "))));
    said("J2", 10, "RELEASE");
    // The table in WIRING.md: receivers and the return path.
    let document = include_str!("../../boards/WIRING.md");
    let ways = [
        ("U1", 1, 4, 18),
        ("U1", 5, 8, 16),
        ("U1", 11, 12, 14),
        ("U2", 1, 4, 12),
    ];
    for (node, (chip, first, last, back)) in ways.into_iter().enumerate() {
        said(chip, first, &format!("RX{node}"));
        said(chip, last, &format!("NODE{node}"));
        said("U3", back, &format!("DRIVE{node}"));
        let row = format!(
            "| {node} | J{}, pin 2 | {chip}, {first} to {last} | {} | U3, {back}, to pin 10 |\n",
            3 + node,
            3 + node
        );
        assert!(document.contains(&row), "{row}");
    }
    let wiring = include_str!("../../boards/WIRING.md");
    for (value, sentence) in [
        ("10k", "**Pull-ups** of 10 kΩ"),
        ("2.2k", "A pull-down of 2.2 kΩ at the output pin"),
        ("220", "220 ohms"),
        ("74LVC14A", "two inverters of a 74LVC14A in a row"),
        ("74HCT244", "a 74HCT244 at 5 V"),
    ] {
        assert!(wiring.contains(sentence), "{sentence}");
        assert!(
            design().parts.iter().any(|part| part.value == value),
            "{value}"
        );
    }
}

/// Runs `kicad-cli` in folder `into`; returns `None` if it is not installed.
fn kicad(into: &Path, arguments: &[&str]) -> Option<Output> {
    let mut command = Command::new("kicad-cli");
    let command = command.env("HOME", into).current_dir(into);
    let output = command.args(arguments).output();
    if output.is_err() {
        println!(
            "skipped: kicad-cli is not installed; Debian's backports have it in the package kicad"
        );
    }
    output.ok()
}

/// Writes KiCad's project with these routes to a folder, so that KiCad does not write into the source tree.
fn project(into: &Path, routes: Routes) {
    for (name, text) in files(&design(), routes).expect("files") {
        let path = into.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }
}

/// This test needs `kicad-cli`; for Debian 12 it is in the backports.
#[test]
fn kicad_reads_the_schematic_and_finds_the_nets_of_the_table_and_a_planted_short() {
    let folder = tempfile::tempdir().expect("a folder");
    let into = folder.path();
    project(into, routes());
    let list = [
        "sch",
        "export",
        "netlist",
        "--output",
        "kit.net",
        "kit.kicad_sch",
    ];
    let Some(made) = kicad(into, &list) else {
        return;
    };
    assert!(made.status.success(), "{made:?}");
    let check = [
        "sch",
        "erc",
        "--severity-error",
        "--exit-code-violations",
        "--output",
        "erc.rpt",
        "kit.kicad_sch",
    ];
    let report = || std::fs::read_to_string(into.join("erc.rpt")).unwrap_or_default();
    let checked = kicad(into, &check).expect("the same program");
    assert!(checked.status.success(), "{}", report());
    let list = std::fs::read_to_string(into.join("kit.net")).expect("a list of nets");
    let mut wanted: BTreeMap<String, BTreeSet<(String, usize)>> = BTreeMap::new();
    for (pin, net) in design().nets {
        if !pin.0.starts_with("FLG") {
            wanted.entry(net).or_default().insert(pin);
        }
    }
    assert_eq!(of_kicad(&list), wanted);

    let sheet = into.join("kit.kicad_sch");
    let text = std::fs::read_to_string(&sheet).expect("a schematic");
    let shorted = text.replace("\"DRIVE1\"", "\"DRIVE0\"");
    std::fs::write(&sheet, shorted).expect("a schematic");
    let checked = kicad(into, &check).expect("the same program");
    assert!(!checked.status.success(), "the short of two outputs passes");
    assert!(report().contains("pin_to_pin"), "{}", report());
}

#[test]
fn kicad_finds_no_fault_of_the_board_and_a_planted_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let into = folder.path();
    project(into, routes());
    let check = [
        "pcb",
        "drc",
        "--severity-error",
        "--schematic-parity",
        "--exit-code-violations",
        "--output",
        "drc.rpt",
        "kit.kicad_pcb",
    ];
    let report = || std::fs::read_to_string(into.join("drc.rpt")).unwrap_or_default();
    let Some(checked) = kicad(into, &check) else {
        return;
    };
    assert!(checked.status.success(), "{}", report());

    project(into, cut());
    let checked = kicad(into, &check).expect("the same program");
    assert!(!checked.status.success(), "a missing track passes");
}

/// Returns each net of a KiCad netlist that connects at least two pins, with its pins.
fn of_kicad(list: &str) -> BTreeMap<String, BTreeSet<(String, usize)>> {
    let mut nets = BTreeMap::<_, BTreeSet<_>>::new();
    let quoted = |text: &str, key: &str| {
        let (_, rest) = text.split_once(&format!("({key} \""))?;
        rest.split_once('"').map(|(word, _)| word.to_owned())
    };
    for net in list.split("(net ").skip(1) {
        let Some(name) = quoted(net, "name") else {
            continue;
        };
        for node in net.split("(node ").skip(1) {
            let (Some(part), Some(pin)) = (quoted(node, "ref"), quoted(node, "pin")) else {
                continue;
            };
            let pin = pin.parse().expect("a number");
            nets.entry(name.clone()).or_default().insert((part, pin));
        }
    }
    nets.retain(|name, _| !name.starts_with("unconnected"));
    nets
}
