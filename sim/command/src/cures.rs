//! `hwbarr faults --cures`: prints a table of hazards,
//! with a countermeasure (*cure*) and its cost for each.

use crate::Failure;
use crate::tables::{Format, Table, Tool};
use barrier_simulator::faults::campaign::Campaign;
use barrier_simulator::faults::cures::{CURES, cost};
use barrier_simulator::faults::known::KnownUnsafe;
use serde_json::{Value, json};

/// Runs the campaign with each cure and prints the table.
pub fn compare(
    campaign: &Campaign,
    known: &KnownUnsafe,
    threads: usize,
    tool: Tool,
) -> Result<(), Failure> {
    let hazards = barrier_simulator::faults::cures::compare(campaign, known, threads)?;
    let letters: Vec<String> = ('A'..).take(CURES.len()).map(String::from).collect();
    let columns = ["hazard", "place"].map(str::to_owned);
    let columns = columns.into_iter().chain(letters.iter().cloned());
    let mut table = Table::new(columns.chain(["cured by".to_owned()]));
    for hazard in &hazards {
        let cells = hazard.unsafe_cases.iter().map(|&cases| match cases {
            0 => Value::from("."),
            n => Value::from(n),
        });
        let cure = hazard.cure().map_or("nothing here", |cure| cure.name);
        let names = [hazard.fault.as_str(), hazard.place].map(Value::from);
        table.row(names.into_iter().chain(cells).chain([Value::from(cure)]));
    }
    let mut costs = Table::new([
        "",
        "all nodes had left after",
        "LUT4",
        "flip-flops",
        "options",
    ]);
    for (letter, cure) in letters.iter().zip(&CURES) {
        let cost = cost(cure)?;
        let latency = match tool.format() {
            Format::Text => Value::from(cost.latency.to_string()),
            _ => Value::from(cost.latency.ps() as f64 / 1000.0),
        };
        costs.row([
            Value::from(letter.as_str()),
            latency,
            Value::from(cost.luts),
            Value::from(cost.flip_flops),
            Value::from(cure.name),
        ]);
    }
    crate::say(&match tool.format() {
        Format::Text => format!(
            "unsafe outcomes of {} nodes, with each cure\n\n{}\nwhat each costs, 60 nodes\n\n{}",
            campaign.parameters.nodes,
            table.to_text(),
            costs.to_text()
        ),
        Format::Csv => table.to_csv() + &costs.to_csv(),
        Format::Json => format!(
            "{:#}\n",
            json!({"hazards": table.to_json(), "costs": costs.to_json()})
        ),
    })
}
