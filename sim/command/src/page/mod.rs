//! One self-contained HTML page about a run, a sweep or a campaign.
//!
//! The page has no external script, font, picture or link. Plots are inline SVG with tooltips and
//! texts for screen readers;
//! every plot has its numbers as a table; colours follow the reader's light or dark setting.
//! The page's script (`page.js`) zooms one waveform and saves charts as files; without the script
//! everything remains readable.
//! The page is well-formed XML, so programs can check and parse it.

mod chart;
mod matrix;
mod plots;
mod svg;
mod waveform;

pub use chart::Chart;

use barrier_board::event::Record;
use barrier_simulator::faults::campaign::Case;
use barrier_simulator::study::{Study, Sweep};
use barrier_simulator::virtual_time::{Distribution, Phase, Time};
use barrier_simulator::waves::Closeup;
use std::fmt::Write as _;
use svg::escape;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("page.js");

/// An HTML page under construction.
#[derive(Debug, Clone)]
pub struct Page {
    title: String,
    lead: String,
    body: String,
    charts: Vec<Chart>,
}

impl Page {
    /// Creates a page with a headline `title` and a line `lead` below it.
    pub fn new(title: &str, lead: &str) -> Self {
        Self {
            title: escape(title),
            lead: escape(lead),
            body: String::new(),
            charts: Vec::new(),
        }
    }

    /// Returns all plots added so far as separate charts.
    pub fn charts(&self) -> &[Chart] {
        &self.charts
    }

    /// Adds key figures: pairs of a value and its description.
    pub fn facts(&mut self, facts: &[(String, &str)]) {
        let item = |(value, what): &(String, &str)| {
            format!(
                "<li><b>{}</b><span>{}</span></li>",
                escape(value),
                escape(what)
            )
        };
        let items: String = facts.iter().map(item).collect();
        let _ = writeln!(self.body, "<ul class=\"facts\">{items}</ul>");
    }

    /// Adds a section with a title, an explanation, a plot or table,
    /// and the plot's numbers as a table.
    fn section(&mut self, title: &str, words: &str, plot: &str, numbers: Option<String>) {
        self.charts.extend(Chart::of(title, plot));
        let numbers = numbers.map_or(String::new(), |table| {
            format!(
                "<details><summary>numbers</summary><div class=\"scroll\">{table}</div></details>"
            )
        });
        let _ = writeln!(
            self.body,
            "<section><h2>{}</h2><p>{}</p><div class=\"scroll\">{plot}</div>{numbers}</section>",
            escape(title),
            escape(words)
        );
    }

    /// Adds the sections of one run, with the waveform of its first `barriers` barriers.
    pub fn study(&mut self, study: &Study, barriers: usize) {
        let Study {
            parameters,
            summary,
            record,
            software,
            network,
        } = study;
        let best = software.iter().map(|r| r.latencies[0].median()).min();
        let factor = best.map_or(0.0, |best| {
            best.us() / summary.complete.median().us().max(1e-9)
        });
        let (factor, compared) = match factor {
            ..1.0 => (1.0 / factor.max(1e-9), "slower"),
            _ => (factor, "faster"),
        };
        let network = network.name().unwrap_or("of the options");
        let than =
            format!("{compared} than the best software barrier under LogP, network {network}");
        self.facts(&[
            (
                svg::time(summary.complete.median()),
                "median until all nodes had left",
            ),
            (
                svg::time(summary.complete.percentile(99.0)),
                "99th percentile",
            ),
            (svg::time(summary.complete.worst()), "worst"),
            (format!("{} ×", svg::number(factor)), &than),
        ]);
        if !record.events.is_empty() {
            self.waveform(record, barriers);
        }
        self.section(
            "Where the time goes",
            "The way of the last arriver, from its call to its return: medians. \
             An access of the port takes longer than everything between the ports.",
            &plots::phases(summary),
            Some(distributions(
                Phase::ALL
                    .into_iter()
                    .map(Phase::name)
                    .zip(&summary.phases)
                    .filter(|(_, d)| d.worst() > Time::ZERO),
            )),
        );
        self.section(
            "Until all nodes had left",
            "From the last entry of a barrier until the last return, one sample for each barrier.",
            &plots::histogram(&summary.complete, "the latency until all nodes had left"),
            Some(distributions([
                ("all nodes had left after", &summary.complete),
                ("a node has left after", &summary.every_node),
                ("the last node itself after", &summary.last_arriver),
            ])),
        );
        self.section(
            "Late nodes",
            &format!(
                "How long after the first node each node enters, 10th to 90th percentile with the median; arrivals {}. \
                 No barrier can take this time back.",
                parameters.arrivals
            ),
            &plots::skew(&summary.entries),
            Some(distributions([("first to last entry (skew)", &summary.skew)])),
        );
        self.beside(study);
    }

    /// Adds the comparison of the hardware barrier with software barriers on this study's network.
    pub fn beside(&mut self, study: &Study) {
        let Study {
            network,
            summary,
            software,
            ..
        } = study;
        let rivals = software
            .iter()
            .flat_map(|r| [(r, 0, "LogP"), (r, 1, "LogGP")])
            .map(|(rival, model, name)| {
                let words = format!("{}, {name}", rival.algorithm.name);
                (words, &rival.latencies[model])
            });
        let hardware = std::iter::once(("this hardware".to_owned(), &summary.complete));
        self.section(
            &network.name().map_or("Beside software".to_owned(), |name| {
                format!("Beside software, {name}")
            }),
            &format!(
                "Until all nodes had left, on the same arrivals: full dots LogP, hollow dots LogGP, medians on a scale of factors. \
                 {network}."
            ),
            &plots::comparison(study),
            Some(distributions(hardware.chain(rivals))),
        );
    }

    /// Adds the mean time of a software barrier on this machine, measured for this page.
    pub fn measured(&mut self, what: &str, mean: Time, hardware: Time) {
        self.section(
            "Beside this machine",
            &format!(
                "{what}: {}, while this page was made. The hardware's median is {}.",
                svg::time(mean),
                svg::time(hardware)
            ),
            "",
            None,
        );
    }

    /// Adds a waveform with the levels of all wires.
    pub fn waveform(&mut self, record: &Record, barriers: usize) {
        let barriers_named = match barriers {
            1 => "The first barrier".to_owned(),
            n => format!("The first {n} barriers"),
        };
        let nodes = match waveform::shown(record.nodes) {
            1 => "each node's wire to the barrier".to_owned(),
            step => format!("the wire to the barrier of one node in {step}"),
        };
        self.section(
            "Waveform",
            &format!(
                "{barriers_named}: {nodes}, and above them the barrier's wire to all nodes. \
                 A band shows when the program is in the barrier; the barrier toggles when every wire has."
            ),
            &waveform::waveform(record, barriers),
            None,
        );
    }

    /// Adds a close-up of one release at the scale of the clock.
    pub fn closeup(&mut self, shown: &Closeup) {
        self.section(
            "One release",
            &format!(
                "The first release at the scale of the clock: what node {}, the last to come, writes, on its way through the \
                 cable and every flip-flop, until its own port could read the release. Where scripts run, the wheel zooms, \
                 dragging moves, and a click sets a mark from which times are told; zoomed out, the first barriers of the run \
                 are there, with some of the other nodes.",
                shown.node
            ),
            &waveform::closeup(shown),
            None,
        );
        // The JSON data is inserted at the end of the last section, which is the end of the body.
        let end = "</section>\n";
        if self.body.ends_with(end) {
            self.body.truncate(self.body.len() - end.len());
            let data = escape_script(&waveform::data(shown));
            let _ = write!(
                self.body,
                "<script type=\"application/json\">{data}</script>{end}"
            );
        }
    }

    /// Adds a plot of latencies over the swept parameter.
    pub fn sweep(&mut self, sweep: &Sweep, studies: &[(f64, Study)]) {
        let mut table = String::from("<table><tr>");
        let mut names = vec![sweep.axis.name(), "this hardware, median", "p99", "worst"];
        if let Some((_, study)) = studies.first() {
            names.extend(study.software.iter().map(|rival| rival.algorithm.name));
        }
        for name in names {
            let _ = write!(table, "<th>{}</th>", escape(name));
        }
        for (value, study) in studies {
            let complete = &study.summary.complete;
            let hardware = [
                complete.median(),
                complete.percentile(99.0),
                complete.worst(),
            ];
            let software = study.software.iter().map(|r| r.latencies[0].median());
            let _ = write!(table, "</tr><tr><td>{}</td>", svg::number(*value));
            for time in hardware.into_iter().chain(software) {
                let _ = write!(table, "<td>{}</td>", svg::time(time));
            }
        }
        table.push_str("</tr></table>");
        self.section(
            &format!("Sweep over {}", sweep.axis.name()),
            "Median time until all nodes had left, hardware and software under LogP, on a scale of factors.",
            &plots::sweep(sweep, studies),
            Some(table),
        );
    }

    /// Adds a table with the outcome of each kind of fault at each moment.
    pub fn campaign(&mut self, nodes: usize, cases: &[Case]) {
        self.section(
            "Faults",
            &format!(
                "{} cases with {nodes} nodes: each fault at each place and moment against the real driver. \
                 A cell is the worst outcome of that fault at that moment, and in how many of its cases; a click on one that is underlined tells why.",
                cases.len()
            ),
            &matrix::matrix(cases),
            None,
        );
    }

    /// Returns the finished page, with the date and the command that created it.
    pub fn finish(self, command: &str, day: &str) -> String {
        let (command, day) = (escape(command), escape(day));
        let Self {
            title, lead, body, ..
        } = self;
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\
             <title>{title}</title><style>\n{STYLE}</style></head>\n\
             <body><main><h1>{title}</h1><p>{lead}</p>\n{body}\
             <footer>Made by <code>{command}</code>, version {}, on {day}, in virtual time; the same command makes the same page, but for the day.</footer>\
             </main><script>\n{SCRIPT}</script></body></html>\n",
            env!("CARGO_PKG_VERSION")
        )
    }
}

/// Escapes the two characters that XML and a script in HTML treat differently.
fn escape_script(json: &str) -> String {
    json.replace('&', "\\u0026").replace('<', "\\u003c")
}

/// Returns table rows with median, 99th percentile and maximum of each distribution.
fn distributions<S: AsRef<str>>(
    rows: impl IntoIterator<Item = (S, impl std::borrow::Borrow<Distribution>)>,
) -> String {
    let mut table =
        String::from("<table><tr><th></th><th>median</th><th>p99</th><th>worst</th></tr>");
    for (name, distribution) in rows {
        let d: &Distribution = distribution.borrow();
        let times: [Time; 3] = [d.median(), d.percentile(99.0), d.worst()];
        let _ = write!(table, "<tr><td>{}</td>", escape(name.as_ref()));
        for time in times {
            let _ = write!(table, "<td>{}</td>", svg::time(time));
        }
        table.push_str("</tr>");
    }
    table.push_str("</table>");
    table
}

#[cfg(test)]
mod tests;
