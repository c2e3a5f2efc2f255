//! Tests that the timing diagrams in `timing/` agree with the model at each clock edge.
//!
//! The diagrams are WaveDrom's JSON. A column is a clock period that starts with the rising edge: the column of a
//! flip-flop shows its value after that edge, and the column of a pin shows what the next edge samples.

use fpga_model::filter::FilteredMachine;
use serde_json::Value;
use std::path::Path;

/// Returns the level of a wave in each column; a dot repeats the previous level.
fn levels(wave: &str) -> Vec<bool> {
    let mut last = false;
    wave.chars()
        .map(|c| {
            last = match c {
                '0' => false,
                '1' => true,
                '.' => last,
                other => panic!("{other} is no level"),
            };
            last
        })
        .collect()
}

#[test]
fn every_diagram_is_what_the_model_does() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("toggle/timing");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a file");
        let drawn: Value = serde_json::from_str(&text).expect("JSON");
        compare(&path.display().to_string(), &drawn);
        assert!(
            path.with_extension("svg").is_file(),
            "{}: its picture is missing",
            path.display()
        );
        seen += 1;
    }
    assert!(seen >= 3, "{seen} diagrams");
}

fn compare(name: &str, drawn: &Value) {
    let signals: Vec<(&str, &str)> = drawn["signal"]
        .as_array()
        .expect("signals")
        .iter()
        .filter_map(|signal| Some((signal["name"].as_str()?, signal["wave"].as_str()?)))
        .collect();
    let number = |signal: &str| -> usize {
        let digits: String = signal.chars().filter(char::is_ascii_digit).collect();
        // In stage1_q[0], the last digit is the node's number.
        digits[digits.len().saturating_sub(1)..]
            .parse()
            .unwrap_or(0)
    };
    let pins: Vec<(usize, Vec<bool>)> = signals
        .iter()
        .filter(|(signal, _)| signal.starts_with("node_i["))
        .map(|(signal, wave)| (number(signal), levels(wave)))
        .collect();
    let samples = drawn["filter"].as_u64().expect("how many samples agree") as u16;
    let mut machine = FilteredMachine::new(pins.len(), samples).expect("a legal size");
    let columns = pins[0].1.len();
    let mut checked = 0;
    for column in 0..columns {
        if column > 0 {
            let inputs = pins.iter().fold(0, |inputs, (node, levels)| {
                inputs | u64::from(levels[column - 1]) << node
            });
            machine.step(inputs);
        }
        for (signal, wave) in &signals {
            let registers = machine.registers();
            let word = match signal.split(['[', '_']).next() {
                Some("stage1") => registers.stage1,
                Some("stage2") => registers.stage2,
                Some("arrived") => machine.seen(),
                Some("node") if *signal == "node_o" => registers.output,
                _ => continue,
            };
            let shown = levels(wave)[column];
            let is = word >> number(signal) & 1 == 1;
            assert_eq!(shown, is, "{name}: {signal} in column {column}");
            checked += 1;
        }
    }
    assert!(checked >= columns, "{name}: nothing to compare");
}
