//! `hwbarr run`: latencies of the hardware in virtual time, and of software barriers on the same
//! arrivals.

use crate::Failure;
use crate::measured;
use crate::options::{Hardware, Software, at_least_one};
use crate::tables::{Format, Table, Tool};
use barrier_board::tree::Tree;
use barrier_simulator::software::{ALGORITHMS, Model, Network};
use barrier_simulator::study::{Study, Sweep};
use barrier_simulator::virtual_time::{Distribution, Parameters, Phase, Protocol, Summary, Time};
use barrier_waveform::words::counted;
use clap::Args;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Run in virtual time, print latencies, and compare with software barriers.
#[derive(Args)]
pub struct Run {
    /// Number of nodes, 1 to 64; with --boards, of each leaf board.
    #[arg(short, long, default_value_t = 60)]
    nodes: usize,
    /// Number of barriers.
    #[arg(short = 'k', long, default_value_t = 1000, value_parser = at_least_one)]
    barriers: usize,
    /// Vary one parameter, as in nodes=2..60:2, port-time=0.5us..5us:0.5us, clock=1,10,100, cable=1..9:2, jitter=0,1us.
    #[arg(long, value_name = "AXIS=VALUES")]
    sweep: Option<Sweep>,
    #[command(flatten)]
    tool: Tool,
    #[command(flatten)]
    hardware: Hardware,
    #[command(flatten)]
    software: Software,
}

impl Run {
    pub fn execute(self) -> Result<(), Failure> {
        let parameters = self.hardware.parameters(self.nodes, self.barriers)?;
        let network = self.software.network();
        let text = match &self.sweep {
            None => {
                let study = Study::conduct(parameters.clone(), network, false)?;
                match self.tool.format() {
                    Format::Text => {
                        let mut text = report(&study);
                        // The arrivals depend only on the seed,
                        // so the runs differ only in the software's network.
                        for network in self.software.networks().into_iter().skip(1) {
                            let other = Study::conduct(parameters.clone(), network, false)?;
                            text += &rivals(&other);
                        }
                        if self.software.measured {
                            let here = measured::barrier(self.nodes as u64)?;
                            let _ = writeln!(text, "\n{}: {}", here.name(), here.mean);
                        }
                        text
                    }
                    Format::Csv => latencies(&study).to_csv(),
                    Format::Json => pretty(&study_json(&study)),
                }
            }
            Some(sweep) => {
                let studies = sweep.conduct(&parameters, network)?;
                let table = sweep_table(sweep, &studies);
                match self.tool.format() {
                    Format::Text => sweep_heading(sweep, &parameters, &network) + &table.to_text(),
                    Format::Csv => sweep_numbers(sweep, &studies).to_csv(),
                    Format::Json => pretty(&json!({
                        "sweep": sweep.axis.name(),
                        "unit": sweep.axis.unit(),
                        "studies": studies.iter().map(|(_, s)| study_json(s)).collect::<Vec<_>>(),
                    })),
                }
            }
        };
        crate::say(&text)
    }
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

/// Returns median, 99th percentile and maximum of a distribution as text.
fn three(d: &Distribution) -> [String; 3] {
    [d.median(), d.percentile(99.0), d.worst()].map(|time| time.to_string())
}

/// Describes in words how the parameters differ from the prototype; `None` if they do not.
pub fn cured(parameters: &Parameters) -> Option<String> {
    let Parameters {
        nodes,
        filter,
        reads,
        protocol,
        pull,
        channels,
        boards,
        trunk,
        fan_out,
        ..
    } = parameters;
    let mut parts = Vec::new();
    if *boards > 1 {
        let tree = Tree::new(*nodes, *boards);
        parts.push(format!(
            "boards in {} levels, {boards} at the bottom, {trunk} between two, {fan_out} from the last to the cables",
            tree.levels()
        ));
    }
    match channels {
        0 => {}
        1 => parts.push("version 2, one channel".to_owned()),
        n => parts.push(format!("version 2, {n} channels in turn")),
    }
    if *protocol != Protocol::Toggle {
        parts.push(format!("protocol {protocol}"));
    }
    if *filter > 1 {
        parts.push(format!("{filter} samples agree"));
    }
    if *reads > 1 {
        parts.push(format!("{reads} reads agree"));
    }
    if let Some(up) = pull {
        let level = if *up { "up" } else { "down" };
        parts.push(format!("wires pulled {level}"));
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Describes the delays of the cables' slow edges in words.
pub fn edges(parameters: &Parameters) -> String {
    let (edge, back) = (parameters.edge, parameters.edge_to_node());
    match edge == back {
        true => format!("edges {edge} to the threshold each way"),
        false => format!("edges {edge} to the threshold of the board and {back} to a node's"),
    }
}

/// Formats the hardware's results of a run, without a comparison.
pub fn hardware_report(parameters: &Parameters, summary: &Summary) -> String {
    let Parameters {
        nodes,
        barriers,
        arrivals,
        port_read,
        jitter,
        cable,
        receivers,
        fan_out,
        clock_hz,
        seed,
        ..
    } = parameters;
    let mut text = String::new();
    let mut line = |words: std::fmt::Arguments| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{words}");
    };
    line(format_args!(
        "{}, {}, arrivals {arrivals}, seed {seed}",
        counted(*nodes, "node"),
        counted(*barriers, "barrier")
    ));
    let jitter = match jitter {
        &Time::ZERO => String::new(),
        jitter => format!(" to {}", *port_read + *jitter),
    };
    line(format_args!(
        "port access {port_read}{jitter}, cable {cable} each way, clock {} MHz",
        *clock_hz as f64 / 1e6
    ));
    line(format_args!(
        "receivers {receivers}, buffers {fan_out}, {}",
        edges(parameters)
    ));
    if let Some(cures) = cured(parameters) {
        line(format_args!("{cures}"));
    }
    line(format_args!(
        "{} releases counted by the machine in {} of virtual time\n",
        summary.releases, summary.duration
    ));
    line(format_args!(
        "{:<34} {:>10} {:>10} {:>10}",
        "after the last node has entered", "median", "p99", "worst"
    ));
    let mut row = |name: &str, d: &Distribution| {
        let [median, p99, worst] = three(d);
        line(format_args!(
            "{name:<34} {median:>10} {p99:>10} {worst:>10}"
        ));
    };
    row("all nodes had left after", &summary.complete);
    row("a node has left after", &summary.every_node);
    row("the last node itself after", &summary.last_arriver);
    let phases = Phase::ALL.into_iter().zip(&summary.phases);
    // Phases that are always zero in this run (they need
    // a countermeasure or cascaded boards) are left out.
    for (phase, distribution) in phases.filter(|(_, d)| d.worst() > Time::ZERO) {
        row(&format!("  {}", phase.name()), distribution);
    }
    row("first to last entry (skew)", &summary.skew);
    text
}

/// Formats the results of a run and its comparison with software.
fn report(study: &Study) -> String {
    hardware_report(&study.parameters, &study.summary) + &rivals(study)
}

/// Formats the latencies of the software barriers on one network.
fn rivals(study: &Study) -> String {
    let mut text = String::new();
    let mut table = Table::new(
        std::iter::once("all nodes had left after".to_owned()).chain(
            Model::ALL
                .into_iter()
                .flat_map(|m| ["median", "p99", "worst"].map(|q| format!("{} {q}", m.name()))),
        ),
    );
    let cells = |name: &str, both: [&Distribution; 2]| -> Vec<Value> {
        let numbers = both.into_iter().flat_map(three).map(Value::from);
        std::iter::once(Value::from(name)).chain(numbers).collect()
    };
    let complete = &study.summary.complete;
    table.row(cells("this hardware", [complete; 2]));
    for rival in &study.software {
        let [log_p, log_gp] = &rival.latencies;
        table.row(cells(rival.algorithm.name, [log_p, log_gp]));
    }
    let _ = write!(
        text,
        "\nsoftware barriers on the same arrivals\n{}\n\n{}",
        study.network,
        table.to_text()
    );
    text
}

/// Returns a table of all distributions of a study, in nanoseconds.
fn latencies(study: &Study) -> Table {
    let mut table = Table::new(["what", "model", "median_ns", "p99_ns", "worst_ns"]);
    let mut row = |what: &str, model: &str, d: &Distribution| {
        let [median, p99, worst] = quantiles(d);
        table.row([what.into(), model.into(), median, p99, worst]);
    };
    let summary = &study.summary;
    row("all nodes", "hardware", &summary.complete);
    row("every node", "hardware", &summary.every_node);
    row("last arriver", "hardware", &summary.last_arriver);
    for (phase, distribution) in Phase::ALL.into_iter().zip(&summary.phases) {
        row(phase.name(), "hardware", distribution);
    }
    row("skew", "hardware", &summary.skew);
    for rival in &study.software {
        for (model, distribution) in Model::ALL.into_iter().zip(&rival.latencies) {
            row(rival.algorithm.name, model.name(), distribution);
        }
    }
    table
}

fn quantiles(d: &Distribution) -> [Value; 3] {
    [d.median(), d.percentile(99.0), d.worst()].map(ns)
}

fn ns(time: Time) -> Value {
    Value::from(time.ps() as f64 / 1000.0)
}

fn study_json(study: &Study) -> Value {
    let Parameters {
        nodes,
        barriers,
        ref arrivals,
        port_read,
        jitter,
        cable,
        clock_hz,
        seed,
        filter,
        reads,
        protocol,
        pull,
        channels,
        boards,
        trunk,
        fan_out,
        receivers,
        edge,
        edge_back,
        ..
    } = study.parameters;
    let Network {
        latency,
        overhead,
        gap,
        byte_gap,
        bytes,
    } = study.network;
    json!({
        "parameters": {
            "nodes": nodes,
            "barriers": barriers,
            "arrivals": arrivals.to_string(),
            "port_time_ns": ns(port_read),
            "jitter_ns": ns(jitter),
            "cable_ns": ns(cable),
            "clock_hz": clock_hz,
            "seed": seed,
            "filter": filter,
            "reads": reads,
            "protocol": protocol.to_string(),
            "pull": pull.map(|up| if up { "up" } else { "down" }),
            "channels": channels,
            "boards": boards,
            "trunk_ns": ns(trunk),
            "fan_out_ns": ns(fan_out),
            "receivers_ns": ns(receivers),
            "edge_ns": ns(edge),
            "edge_back_ns": ns(edge_back.unwrap_or(edge)),
        },
        "network": {
            "name": study.network.name(),
            "latency_ns": ns(latency),
            "overhead_ns": ns(overhead),
            "gap_ns": ns(gap),
            "byte_gap_ns": ns(byte_gap),
            "bytes": bytes,
        },
        "releases": study.summary.releases,
        "duration_ns": ns(study.summary.duration),
        "latencies": latencies(study).to_json(),
    })
}

fn sweep_heading(sweep: &Sweep, parameters: &Parameters, network: &Network) -> String {
    let Parameters {
        barriers,
        arrivals,
        seed,
        ..
    } = parameters;
    format!(
        "{} varies; {}, arrivals {arrivals}, seed {seed}\n\
         time from the last entry until all nodes had left: hardware, and software's medians under LogP\n\
         {network}\n\n",
        sweep.axis.name(),
        counted(*barriers, "barrier"),
    )
}

/// Returns the value of the swept parameter as text, with its unit.
fn label(sweep: &Sweep, value: f64) -> String {
    // Rounding to nine decimals removes the errors of binary fractions.
    let value = (value * 1e9).round() / 1e9;
    match sweep.axis.unit() {
        "" => value.to_string(),
        unit => format!("{value} {unit}"),
    }
}

fn sweep_table(sweep: &Sweep, studies: &[(f64, Study)]) -> Table {
    let columns = [sweep.axis.name(), "median", "p99", "worst"];
    let software = ALGORITHMS.iter().map(|algorithm| algorithm.name);
    let mut table = Table::new(columns.into_iter().chain(software));
    for (value, study) in studies {
        let hardware = three(&study.summary.complete).map(Value::from);
        let software = study
            .software
            .iter()
            .map(|rival| Value::from(rival.latencies[0].median().to_string()));
        let value = Value::from(label(sweep, *value));
        table.row(std::iter::once(value).chain(hardware).chain(software));
    }
    table
}

/// Returns a table with the medians of all columns of a sweep, in nanoseconds.
fn sweep_numbers(sweep: &Sweep, studies: &[(f64, Study)]) -> Table {
    let columns = [sweep.axis.name(), "median_ns", "p99_ns", "worst_ns"].map(str::to_owned);
    let software = ALGORITHMS.iter().flat_map(|algorithm| {
        Model::ALL.map(|model| format!("{} {} median_ns", algorithm.name, model.name()))
    });
    let mut table = Table::new(columns.into_iter().chain(software));
    for (value, study) in studies {
        let software = study
            .software
            .iter()
            .flat_map(|rival| rival.latencies.each_ref().map(|d| ns(d.median())));
        let value = Value::from((value * 1e9).round() / 1e9);
        table.row(
            std::iter::once(value)
                .chain(quantiles(&study.summary.complete))
                .chain(software),
        );
    }
    table
}
