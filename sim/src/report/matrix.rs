//! A campaign at a glance: faults down, moments across, the worst outcome in each cell.

use super::svg::escape;
use crate::faults::campaign::{Case, Class};
use crate::faults::moments::Moment;
use std::fmt::Write as _;

/// The table.
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

/// One cell, with the sentence of its first worst case for whoever points at it.
fn entry(cell: &[&Case], worst: Class) -> String {
    let worst_cases = || cell.iter().filter(|case| case.class == worst);
    let count = match worst_cases().count() {
        all if all == cell.len() => String::new(),
        some => format!(" {some}/{}", cell.len()),
    };
    let says = worst_cases().next().map_or("", |case| &case.sentence);
    format!(
        "<td class=\"cell {worst}\" title=\"{}\">{worst}{count}</td>",
        escape(says)
    )
}
