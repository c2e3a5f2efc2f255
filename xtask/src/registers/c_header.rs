//! Generator of a C header with addresses and fields as macros,
//! without types, so that assembler sources can include it.

use super::notice;
use super::table::{Block, Map};
use crate::regions::aligned;

pub(super) fn text(map: &Map) -> String {
    let mut lines = vec![
        format!("/* The registers of barrier_regs: {}. */", notice()),
        "#ifndef BARRIER_REGS_H".into(),
        "#define BARRIER_REGS_H".into(),
        String::new(),
    ];
    lines.extend(aligned(vec![
        define("BARRIER_IDENTITY", format!("0x{:08X}u", map.identity)),
        define("BARRIER_VERSION", format!("0x{:08X}u", map.version_word())),
    ]));
    for block in &map.blocks {
        lines.push(String::new());
        lines.push(format!("/* {} */", block.meaning));
        lines.extend(aligned(defines(block)));
    }
    lines.push(String::new());
    lines.push("#endif".into());
    lines.join("\n") + "\n"
}

fn defines(block: &Block) -> Vec<(String, String)> {
    let prefix = format!("BARRIER_{}", block.name.to_uppercase());
    let mut lines = vec![define(
        &format!("{prefix}_BASE"),
        format!("0x{:X}u", block.base),
    )];
    if let Some(stride) = block.stride.as_deref().filter(|s| s.starts_with("0x")) {
        lines.push(define(&format!("{prefix}_STRIDE"), format!("{stride}u")));
    }
    for register in &block.registers {
        let name = format!("{prefix}_{}", register.name);
        lines.push(define(&name, format!("0x{:02X}u", register.offset)));
        for field in &register.fields {
            let mask = u32::MAX >> (31 - (field.high - field.low)) << field.low;
            let name = format!("{name}_{}", field.name);
            lines.push(define(&format!("{name}_MASK"), format!("0x{mask:08X}u")));
            lines.push(define(&format!("{name}_SHIFT"), field.low.to_string()));
        }
    }
    lines
}

fn define(name: &str, value: String) -> (String, String) {
    (format!("#define {name}"), value)
}
