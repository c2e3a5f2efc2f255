//! Generator of the frame format's marked regions in Markdown documents.

use super::Region;
use super::table::Format;

pub(super) fn lines(format: &Format, region: Region) -> Vec<String> {
    match region {
        Region::Format => layout(format),
        Region::Request | Region::Version => Vec::new(),
        Region::Operations => operations(format),
        Region::Statuses => statuses(format),
    }
}

fn layout(format: &Format) -> Vec<String> {
    let [request, reply] = format.layouts();
    let check = &format.check;
    vec![
        String::new(),
        "```".into(),
        format!(
            "{request}     {} bits, the highest bit of each first",
            format.frame_bits()
        ),
        reply,
        "```".into(),
        String::new(),
        format!(
            "The check is {} (polynomial {:#06x}, start {:#06x}).",
            check.name, check.polynomial, check.start
        ),
    ]
}

fn operations(format: &Format) -> Vec<String> {
    let head = [
        String::new(),
        "| operation | argument | value of the reply | effect |".into(),
        "|---|---|---|---|".into(),
    ];
    let rows = format.operations.iter().map(|o| {
        let cells = [&o.argument, &o.value, &o.effect];
        row(o.code, &o.name, &cells)
    });
    head.into_iter()
        .chain(rows)
        .chain([String::new()])
        .collect()
}

fn statuses(format: &Format) -> Vec<String> {
    let head = [
        String::new(),
        "| status | when | value |".into(),
        "|---|---|---|".into(),
    ];
    let rows = format.statuses.iter();
    let rows = rows.map(|s| row(s.code, &s.name, &[&s.condition, &s.value]));
    head.into_iter()
        .chain(rows)
        .chain([String::new()])
        .collect()
}

/// Returns a row of a table; an empty cell contains one blank.
fn row(code: u32, name: &str, cells: &[&String]) -> String {
    let cells = cells.iter().map(|cell| match cell.is_empty() {
        true => " |".to_owned(),
        false => format!(" {cell} |"),
    });
    format!("| {code} {name} |{}", cells.collect::<String>())
}
