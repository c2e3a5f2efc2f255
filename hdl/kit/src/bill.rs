//! The bill of materials: one row for each item that is ordered.

use std::fmt::Write as _;

use crate::tables::{Design, Item, Part};

/// Returns the bill as a table of comma-separated values.
///
/// # Errors
///
/// The error names the part whose item is missing in the table of items, or the item that no part needs.
pub fn bill(design: &Design) -> Result<String, String> {
    let mut text =
        "quantity,references,value,package,manufacturer,part number,alternative,note\n".to_owned();
    for part in &design.parts {
        let is_known = design.items.iter().any(|item| item.name == part.item);
        if !part.item.is_empty() && !is_known {
            return Err(format!(
                "{} is ordered as {:?}, which boards/{} does not have",
                part.reference, part.item, design.items_table
            ));
        }
    }
    for item in &design.items {
        let parts: Vec<_> = design
            .parts
            .iter()
            .filter(|p| p.item == item.name)
            .collect();
        let quantity = parts.len() + item.more;
        if quantity == 0 {
            return Err(format!(
                "boards/{}: nothing needs {:?}",
                design.items_table, item.name
            ));
        }
        let _ = writeln!(text, "{quantity},{}", row(item, &parts));
    }
    Ok(text)
}

fn row(item: &Item, parts: &[&Part]) -> String {
    let references: Vec<_> = parts.iter().map(|part| part.reference.as_str()).collect();
    let value = match (item.more, parts.first()) {
        (0, Some(part)) if parts.iter().all(|other| other.value == part.value) => &part.value,
        _ => &item.name,
    };
    let cells = [
        &references.join(" "),
        value,
        &item.package,
        &item.manufacturer,
        &item.number,
        &item.alternative,
        &item.note,
    ];
    let quoted = cells.map(|cell| match cell.contains(',') {
        true => format!("\"{cell}\""),
        false => cell.clone(),
    });
    quoted.join(",")
}
