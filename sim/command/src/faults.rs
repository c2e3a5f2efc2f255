//! `hwbarr faults`: a fault campaign that prints a table and sets the exit code.

use crate::Failure;
use crate::cures;
use crate::options::Cures;
use crate::run::cured;
use crate::tables::{Format, Table, Tool};
use barrier_simulator::faults::campaign::{Campaign, Case, Class};
use barrier_simulator::faults::catalogue::catalogue;
use barrier_simulator::faults::known::KnownUnsafe;
use barrier_simulator::virtual_time::{Parameters, Time};
use barrier_waveform::words::counted;
use clap::Args;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Inject a fault into each wire, node and clock at each moment, and report the driver's reaction.
#[derive(Args)]
pub struct Faults {
    /// Number of nodes, 2 to 64.
    #[arg(short, long, default_value_t = 4)]
    nodes: usize,
    /// Only faults whose names contain this text.
    #[arg(long, value_name = "WORDS")]
    only: Option<String>,
    /// Duration of a glitch.
    #[arg(
        long,
        value_name = "TIME,...",
        value_delimiter = ',',
        default_value = "20ns,100ns,5us"
    )]
    glitch: Vec<Time>,
    /// Duration of the pulse that an edge of a neighbouring wire induces.
    #[arg(
        long,
        value_name = "TIME,...",
        value_delimiter = ',',
        default_value = "20ns,200ns"
    )]
    crosstalk: Vec<Time>,
    /// Number of nodes, counted from the last, that are late once in the self-test; all if not given.
    #[arg(long, value_name = "NODES")]
    late: Option<usize>,
    /// Print every case, not only the unsafe ones.
    #[arg(long)]
    all: bool,
    /// Also fail on unsafe outcomes that are documented.
    #[arg(long)]
    strict: bool,
    /// Number of threads; the number of processors if not given.
    #[arg(long)]
    threads: Option<usize>,
    /// Seed of the random numbers.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Repeat the campaign with each cure, and print which unsafe outcomes it cures and what it costs.
    #[arg(long, conflicts_with_all = ["all", "strict", "filter", "reads", "protocol", "pull", "channels", "boards"])]
    cures: bool,
    #[command(flatten)]
    tool: Tool,
    #[command(flatten)]
    own: Cures,
}

impl Faults {
    pub fn execute(self) -> Result<(), Failure> {
        if self.nodes < 2 {
            return Err("a campaign needs at least 2 nodes: one to break and one to notice".into());
        }
        let known = if self.strict {
            KnownUnsafe::none()
        } else {
            KnownUnsafe::shipped()?
        };
        let cured = self.own.apply(Parameters::new(self.nodes, 0))?;
        let mut campaign = Campaign::new(cured.nodes, self.seed);
        campaign.cure(&cured);
        campaign.sizes.glitches = self.glitch;
        campaign.sizes.crosstalk = self.crosstalk;
        campaign.only = self.only;
        if let Some(late) = self.late {
            campaign.plan.late_nodes = late;
        }
        let threads = self.threads.unwrap_or_else(|| {
            std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
        });
        if self.cures {
            return cures::compare(&campaign, &known, threads, self.tool);
        }
        let cases = campaign.run(&known, threads)?;
        if cases.is_empty() {
            return Err(format!(
                "no fault has '{}' in its name: there are {}",
                campaign.only.unwrap_or_default(),
                catalogue(&campaign.sizes)
                    .iter()
                    .map(|kind| kind.name.as_str())
                    .collect::<Vec<_>>()
                    .join(", ")
            )
            .into());
        }
        let text = match self.tool.format() {
            Format::Text => report(&campaign, &cases, self.all),
            Format::Csv => table(&cases).to_csv(),
            Format::Json => format!(
                "{:#}\n",
                json!({ "nodes": campaign.parameters.nodes, "cases": table(&cases).to_json() })
            ),
        };
        crate::say(&text)?;
        let undocumented = cases
            .iter()
            .filter(|case| case.class == Class::Unsafe && case.known.is_none())
            .count();
        match undocumented {
            0 => Ok(()),
            n => Err(format!("{n} unsafe outcomes are not on the documented list").into()),
        }
    }
}

/// Returns a table of all cases with all fields of each case.
fn table(cases: &[Case]) -> Table {
    let mut table = Table::new([
        "fault", "place", "moment", "at_ns", "class", "sentence", "known",
    ]);
    for case in cases {
        table.row([
            case.fault.as_str().into(),
            case.place.to_string().into(),
            case.moment.name().into(),
            Value::from(case.at.ns()),
            case.class.name().into(),
            case.sentence.as_str().into(),
            case.known.map_or(Value::Null, Value::from),
        ]);
    }
    table
}

fn report(campaign: &Campaign, cases: &[Case], all: bool) -> String {
    let mut text = format!(
        "{}, {}: every fault at every place at every moment of the protocol\n{}\n",
        counted(campaign.parameters.nodes, "node"),
        counted(cases.len(), "case"),
        cured(&campaign.parameters).map_or(String::new(), |cures| cures + "\n"),
    );
    text.push_str(&counts(cases).to_text());
    let mut section = |title: &str, cases: Vec<String>| {
        if !cases.is_empty() {
            // Writing to a String cannot fail.
            let _ = write!(text, "\n{title}\n{}\n", cases.join("\n"));
        }
    };
    section("what the driver says", sentences(cases));
    section("unsafe, documented", groups(cases, true));
    section("UNSAFE, NOT DOCUMENTED", groups(cases, false));
    if all {
        let line = |case: &Case| {
            let Case {
                fault,
                place,
                moment,
                at,
                class,
                sentence,
                ..
            } = case;
            format!(
                "{class:<8}  {fault}, {place}, {} ({at})  {sentence}",
                moment.name()
            )
        };
        section("every case", cases.iter().map(line).collect());
    }
    text
}

/// Returns a table that counts the outcomes of each class, by kind of fault and kind of place.
fn counts(cases: &[Case]) -> Table {
    let columns = ["fault", "place"].into_iter();
    let mut table = Table::new(columns.chain(Class::ALL.map(Class::name)));
    let mut kinds: Vec<(&str, &str)> = Vec::new();
    for case in cases {
        let kind = (case.fault.as_str(), case.place.kind());
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    let count = |kind: Option<(&str, &str)>, class| {
        let here = |case: &&Case| {
            case.class == class
                && kind.is_none_or(|kind| (case.fault.as_str(), case.place.kind()) == kind)
        };
        match cases.iter().filter(here).count() {
            0 => Value::from("."),
            n => Value::from(n),
        }
    };
    for kind in kinds {
        let names = [kind.0, kind.1].map(Value::from).into_iter();
        table.row(names.chain(Class::ALL.map(|class| count(Some(kind), class))));
    }
    let names = ["all", ""].map(Value::from).into_iter();
    table.row(names.chain(Class::ALL.map(|class| count(None, class))));
    table
}

/// Returns each message of the drivers once, with its first case and the number of its cases.
fn sentences(cases: &[Case]) -> Vec<String> {
    let mut seen: Vec<(String, &Case, usize)> = Vec::new();
    for case in cases {
        if matches!(case.class, Class::Safe | Class::Unsafe) {
            continue;
        }
        // Messages that differ only in their digits are counted as one message.
        let words = case.sentence.replace(|c: char| c.is_ascii_digit(), "");
        match seen.iter_mut().find(|(seen, _, _)| *seen == words) {
            Some((_, _, count)) => *count += 1,
            None => seen.push((words, case, 1)),
        }
    }
    seen.iter()
        .map(|(_, case, count)| {
            let Case {
                class,
                sentence,
                fault,
                place,
                ..
            } = case;
            format!("{class}, {count} times, first by {fault}, {place}:\n    {sentence}")
        })
        .collect()
}

/// Returns the unsafe outcomes, grouped by fault and kind of place.
/// Each group has its number of cases, the moments, the reason, and its first case's message.
fn groups(cases: &[Case], documented: bool) -> Vec<String> {
    let mut groups: Vec<(&Case, usize, Vec<&str>)> = Vec::new();
    for case in cases {
        if case.class != Class::Unsafe || case.known.is_some() != documented {
            continue;
        }
        let moment = case.moment.name();
        let same = |first: &Case| {
            (&first.fault, first.place.kind(), first.known)
                == (&case.fault, case.place.kind(), case.known)
        };
        match groups.iter_mut().find(|(first, ..)| same(first)) {
            None => groups.push((case, 1, vec![moment])),
            Some((_, count, moments)) => {
                *count += 1;
                if !moments.contains(&moment) {
                    moments.push(moment);
                }
            }
        }
    }
    let line = |(first, count, moments): &(&Case, usize, Vec<&str>)| {
        let Case {
            fault,
            place,
            sentence,
            known,
            ..
        } = first;
        let reason = known.map_or(String::new(), |reason| format!("\n    why: {reason}"));
        format!(
            "{fault}, {}, {count} times ({}){reason}\n    first: {sentence}",
            place.kind(),
            moments.join("; ")
        )
    };
    groups.iter().map(line).collect()
}
