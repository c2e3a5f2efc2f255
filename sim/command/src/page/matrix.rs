//! The overview table of a fault campaign: a row per fault and kind of place, a column per moment,
//! the worst outcome in each cell.

use super::svg::escape;
use barrier_simulator::faults::campaign::{Case, Class};
use barrier_simulator::faults::moments::Moment;
use std::fmt::Write as _;

/// Returns the overview table as HTML.
pub fn matrix(cases: &[Case]) -> String {
    let mut kinds: Vec<(&str, &str)> = Vec::new();
    for case in cases {
        let kind = (case.fault.as_str(), case.place.kind());
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    let mut table = String::from("<table class=\"matrix\"><tr><th>fault</th><th>at</th>");
    for moment in Moment::ALL {
        let _ = write!(table, "<th>{}</th>", moment.name());
    }
    table.push_str("</tr>");
    for (fault, place) in kinds {
        let _ = write!(
            table,
            "<tr><td>{}</td><td>{}</td>",
            escape(fault),
            escape(place.trim_start_matches("wire "))
        );
        for moment in Moment::ALL {
            let here = |case: &&Case| {
                (case.fault.as_str(), case.place.kind(), case.moment) == (fault, place, moment)
            };
            let cell: Vec<_> = cases.iter().filter(here).collect();
            match cell.iter().map(|case| case.class).max() {
                None => table.push_str("<td></td>"),
                Some(worst) => table.push_str(&entry(&cell, worst)),
            }
        }
        table.push_str("</tr>");
    }
    table.push_str("</table>");
    table
}

/// Returns the HTML of one cell. When opened, it shows the first case with the worst outcome:
/// the place, the message, and the documented reason if there is one.
fn entry(cell: &[&Case], worst: Class) -> String {
    let worst_cases = || cell.iter().filter(|case| case.class == worst);
    let count = match worst_cases().count() {
        all if all == cell.len() => String::new(),
        some => format!(" {some}/{}", cell.len()),
    };
    let said = worst_cases()
        .next()
        .filter(|case| !case.sentence.is_empty());
    let Some(case) = said else {
        return format!("<td class=\"cell {worst}\">{worst}{count}</td>");
    };
    let mut words = format!("{}: {}", case.place, case.sentence);
    if let Some(reason) = case.known {
        let _ = write!(words, " ({reason})");
    }
    format!(
        "<td class=\"cell {worst}\"><details><summary>{worst}{count}</summary>{}</details></td>",
        escape(&words)
    )
}
