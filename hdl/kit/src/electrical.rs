//! The electrical rule check of the schematic: which pins may drive a net together, and which pins a net needs.
//!
//! The rules are the errors (not the warnings) of KiCad's check with its default table.

use std::collections::BTreeMap;

use crate::tables::{Design, PinType};

/// Pairs of pin types that must not be connected to the same net.
const FIGHTS: [(PinType, PinType); 6] = [
    (PinType::Output, PinType::Output),
    (PinType::Output, PinType::PowerOut),
    (PinType::Output, PinType::OpenCollector),
    (PinType::PowerOut, PinType::PowerOut),
    (PinType::TriState, PinType::PowerOut),
    (PinType::OpenCollector, PinType::PowerOut),
];

/// Returns the violations, one sentence each.
pub fn violations(design: &Design) -> Vec<String> {
    let mut found = Vec::new();
    let mut nets = BTreeMap::<&str, Vec<(String, PinType)>>::new();
    for part in &design.parts {
        for (number, pin) in design.pins(part) {
            let name = format!("{} pin {number} {}", part.reference, pin.name);
            match design.net(&part.reference, number) {
                Some(net) => nets.entry(net).or_default().push((name, pin.kind)),
                // A pin of a cable connector may be unconnected; an input of a chip must not.
                None if pin.kind == PinType::Input && part.reference.starts_with('U') => {
                    found.push(format!("{name} is an input that nothing drives"));
                }
                None if pin.kind == PinType::PowerIn => {
                    found.push(format!("{name} has no supply"));
                }
                None => {}
            }
        }
    }
    for (net, pins) in &nets {
        found.extend(of_net(net, pins));
    }
    found
}

fn of_net(net: &str, pins: &[(String, PinType)]) -> Vec<String> {
    let mut found = Vec::new();
    for (index, (one, kind)) in pins.iter().enumerate() {
        for (other, others) in &pins[index + 1..] {
            if FIGHTS.contains(&(*kind, *others)) || FIGHTS.contains(&(*others, *kind)) {
                found.push(format!(
                    "{net}: {one} ({}) and {other} ({}) drive against each other",
                    kind.name(),
                    others.name()
                ));
            }
        }
    }
    let has = |kinds: &[PinType]| pins.iter().any(|(_, kind)| kinds.contains(kind));
    if has(&[PinType::PowerIn]) && !has(&[PinType::PowerOut]) {
        found.push(format!("{net}: it supplies pins and nothing supplies it"));
    }
    let drivers = [
        PinType::Output,
        PinType::PowerOut,
        PinType::TriState,
        PinType::Bidirectional,
        PinType::Passive,
        PinType::OpenCollector,
    ];
    if has(&[PinType::Input]) && !has(&drivers) {
        found.push(format!("{net}: it has inputs and no driver"));
    }
    found
}
