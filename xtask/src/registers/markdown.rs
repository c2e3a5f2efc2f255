//! Generator of the register tables in the document, one table per block.

use super::table::{Block, Map};

pub(super) fn lines(map: &Map) -> Vec<String> {
    let [major, minor, patch] = map.version;
    let mut lines = vec![
        String::new(),
        format!(
            "Version {major}.{minor}.{patch}; ID reads {:#010x}.",
            map.identity
        ),
    ];
    for block in &map.blocks {
        lines.push(String::new());
        lines.extend(table(block));
    }
    lines.push(String::new());
    lines
}

fn table(block: &Block) -> Vec<String> {
    let place = match &block.stride {
        None => format!("`{}`, at {:#06x}", block.name, block.base),
        Some(stride) => format!(
            "`{}` k, at {:#06x} + {stride} k, k = 0 to {} - 1",
            block.name, block.base, block.count
        ),
    };
    let mut lines = vec![
        format!("{place}: {}", block.meaning),
        String::new(),
        "| offset | register | access | after reset | meaning |".into(),
        "|---|---|---|---|---|".into(),
    ];
    for register in &block.registers {
        let fields = register.fields.iter().map(|field| {
            let bits = match field.high == field.low {
                true => field.low.to_string(),
                false => format!("{}:{}", field.high, field.low),
            };
            format!(" {bits} {}: {}", field.name, field.meaning)
        });
        lines.push(format!(
            "| {:#04x} | {} | {} | {} | {}{} |",
            register.offset,
            register.name,
            register.access.name(),
            register.reset,
            register.meaning,
            fields.collect::<String>()
        ));
    }
    lines
}
