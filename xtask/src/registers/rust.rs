//! Generator of Rust constants for addresses and fields, with one module per block.

use super::table::{Block, Map, Register};

pub(super) fn lines(map: &Map) -> Vec<String> {
    let mut lines = vec![
        "/// What the register ID reads.".into(),
        format!("pub const IDENTITY: u32 = {};", grouped(map.identity)),
        "/// The version of the description: major, minor, patch, in bits 23:16, 15:8 and 7:0."
            .into(),
        format!("pub const VERSION: u32 = {};", grouped(map.version_word())),
    ];
    for block in &map.blocks {
        lines.push(String::new());
        lines.extend(module(block));
    }
    lines
}

fn module(block: &Block) -> Vec<String> {
    let whose = match &block.stride {
        None => "these registers".to_owned(),
        Some(_) => format!("the registers of {} 0", block.name),
    };
    let mut lines = vec![
        format!("/// {}", block.meaning),
        format!("pub mod {} {{", block.name),
        format!("    /// Address of {whose}, in bytes."),
        format!("    pub const BASE: usize = {:#x};", block.base),
    ];
    if let Some(stride) = block.stride.as_deref().filter(|s| s.starts_with("0x")) {
        lines.push(format!(
            "    /// Bytes from the registers of one {} to those of the next.",
            block.name
        ));
        lines.push(format!("    pub const STRIDE: usize = {stride};"));
    }
    for register in &block.registers {
        lines.push(format!("    /// {}", register.meaning));
        lines.push(format!(
            "    pub const {}: usize = {:#x};",
            register.name, register.offset
        ));
    }
    for register in block.registers.iter().filter(|r| !r.fields.is_empty()) {
        lines.push(String::new());
        lines.extend(fields(register));
    }
    lines.push("}".into());
    lines
}

fn fields(register: &Register) -> Vec<String> {
    let name = register.name.to_lowercase();
    let mut lines = vec![
        format!("    /// Fields of `{}`.", register.name),
        format!("    pub mod {name} {{"),
        "        use super::super::Field;".into(),
        String::new(),
    ];
    for field in &register.fields {
        lines.push(format!("        /// {}", field.meaning));
        lines.push(format!(
            "        pub const {}: Field = Field::new({}, {});",
            field.name, field.high, field.low
        ));
    }
    lines.push("    }".into());
    lines
}

/// Formats a number with the separators that clippy requires: `0x5241_4254`.
fn grouped(value: u32) -> String {
    format!("0x{:04x}_{:04x}", value >> 16, value & 0xffff)
}
