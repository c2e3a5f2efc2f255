//! The desk kit: schematic and bill of materials agree with the tables, the tables agree with the board's pins and
//! [WIRING.md], and other programs read the files.

use hdl::kit::{self, Part};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("boards/kit")
}

#[test]
fn schematic_and_bill_of_materials_are_those_of_the_tables() {
    let files = [
        ("kit.kicad_sch", kit::schematic()),
        ("bom.csv", kit::bill()),
    ];
    for (name, wanted) in files {
        let path = folder().join(name);
        if std::env::var_os("KIT_UPDATE").is_some() {
            std::fs::write(&path, &wanted).expect("written");
        }
        let found = std::fs::read_to_string(&path).expect(name);
        assert!(
            found == wanted,
            "{name} is not that of the tables: KIT_UPDATE=1 cargo test -p hdl --test kit"
        );
    }
}

#[test]
fn each_net_joins_pins_that_there_are_and_no_part_is_left_out() {
    let (parts, nets) = (kit::parts(), kit::nets());
    let rows = kit::CONNECTIONS.text.lines().count() - 1;
    assert_eq!(nets.len(), rows, "a pin is in one net, once");
    let pins: BTreeMap<&str, usize> = parts
        .iter()
        .map(
            |Part {
                 reference, pins, ..
             }| (reference.as_str(), *pins),
        )
        .collect();
    assert_eq!(pins.len(), parts.len(), "a reference is one part");
    let mut joined: BTreeMap<&str, usize> = BTreeMap::new();
    let mut used = BTreeSet::new();
    for ((part, pin), net) in &nets {
        let there = pins.get(part.as_str()).copied().unwrap_or(0);
        assert!((1..=there).contains(pin), "{net}: {part} has no pin {pin}");
        *joined.entry(net).or_default() += 1;
        used.insert(part.as_str());
    }
    assert!(joined.values().all(|pins| *pins > 1), "{joined:?}");
    assert_eq!(used.len(), parts.len());
}

/// Headers of the board, pins of the connector and values, as the other documents have them.
#[test]
fn the_tables_agree_with_the_boards_pins_and_the_wiring() {
    let pins = include_str!("../boards/kit/kit_top.pcf");
    let whole = include_str!("../boards/icestick/icestick_top.pcf");
    for line in pins.lines().filter(|line| line.starts_with("set_io")) {
        assert!(
            whole.contains(&format!("{line}\n")),
            "the iCEstick has no {line}"
        );
    }
    let said = |reference: &str, pin, net: &str| {
        let nets = kit::nets();
        assert_eq!(
            nets.get(&(reference.to_owned(), pin)).map(String::as_str),
            Some(net)
        );
    };
    // "Nodes 0 to 7 are positions 3 to 10 of header J1", "position 10, is the way out".
    for node in 0..4 {
        assert!(pins.contains(&format!("set_io node_i[{node}] ")));
        said("J1", 3 + node, &format!("NODE{node}"));
        let connector = format!("J{}", 3 + node);
        said(&connector, 2, &format!("OUT{node}"));
        said(&connector, 10, &format!("IN{node}"));
        said(&connector, 18, "GND");
    }
    said("J2", 10, "RELEASE");
    // The document's table: receivers and the return path.
    let document = include_str!("../boards/WIRING.md");
    let ways = [
        ("U1", 1, 4, 18),
        ("U1", 5, 8, 16),
        ("U1", 11, 12, 14),
        ("U2", 1, 4, 12),
    ];
    for (node, (chip, first, last, back)) in ways.into_iter().enumerate() {
        said(chip, first, &format!("OUT{node}"));
        said(chip, last, &format!("NODE{node}"));
        said("U3", back, &format!("DRIVE{node}"));
        let row = format!(
            "| {node} | J{}, pin 2 | {chip}, {first} to {last} | {} | U3, {back}, to pin 10 |\n",
            3 + node,
            3 + node
        );
        assert!(document.contains(&row), "{row}");
    }
    let wiring = include_str!("../boards/WIRING.md");
    for (value, sentence) in [
        ("10k", "**Pull-ups** of 10 kΩ"),
        ("2.2k", "A pull-down of 2.2 kΩ at the output pin"),
        ("33", "**Series resistors** of 33 to 47 ohms"),
        ("74LVC14A", "two inverters of a 74LVC14A in a row"),
        ("74HCT244", "a 74HCT244 at 5 V"),
    ] {
        assert!(wiring.contains(sentence), "{sentence}");
        assert!(
            kit::parts().iter().any(|part| part.value == value),
            "{value}"
        );
    }
}

/// Debian 12 has a KiCad with a command line in its backports.
#[test]
fn kicad_reads_the_schematic_finds_the_nets_of_the_table_and_no_error() {
    let into = tempfile::tempdir().expect("a folder");
    let schematic = folder().join("kit.kicad_sch");
    let list = into.path().join("kit.net");
    let kicad = |arguments: &[&str]| {
        let mut command = Command::new("kicad-cli");
        let command = command.env("HOME", into.path()).current_dir(into.path());
        command
            .arg("sch")
            .args(arguments)
            .arg(&schematic)
            .output()
            .ok()
    };
    let Some(made) = kicad(&["export", "netlist", "--output", "kit.net"]) else {
        println!(
            "skipped: kicad-cli is not installed; Debian's backports have it in the package kicad"
        );
        return;
    };
    assert!(made.status.success(), "{made:?}");
    let checked = kicad(&[
        "erc",
        "--severity-error",
        "--exit-code-violations",
        "--output",
        "erc.rpt",
    ]);
    let report = std::fs::read_to_string(into.path().join("erc.rpt")).unwrap_or_default();
    assert!(
        checked.is_some_and(|checked| checked.status.success()),
        "{report}"
    );
    let list = std::fs::read_to_string(list).expect("a list of nets");
    let found = of_kicad(&list);
    let mut wanted: BTreeMap<String, BTreeSet<(String, usize)>> = BTreeMap::new();
    for (pin, net) in kit::nets() {
        wanted.entry(net).or_default().insert(pin);
    }
    assert_eq!(found, wanted);
}

/// Returns the nets in KiCad's list that connect at least two pins.
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
