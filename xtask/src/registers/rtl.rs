//! Generator of address constants in Verilog and VHDL: the word index of each register in its block,
//! and the base address of each block after the first.

use super::table::{Block, Map};
use crate::regions::aligned;

pub(super) fn verilog(map: &Map) -> Vec<String> {
    let word = |name: &str, value: u32| {
        let head = format!("localparam [31:0] {name}");
        (head, format!("= 32'h{value:08x};"))
    };
    let mut lines = vec![
        word("IDENTITY", map.identity),
        word("VERSION", map.version_word()),
    ];
    lines.extend(later(map).map(|block| word(&base(block), block.base)));
    for block in &map.blocks {
        let bits = block.word_bits();
        let range = format!("[{}:0]", bits - 1);
        lines.extend(words(block).map(|(name, word)| {
            let head = format!("localparam {range:6} {name}");
            (head, format!("= {bits}'h{word:x};"))
        }));
    }
    aligned(lines)
}

pub(super) fn vhdl(map: &Map) -> Vec<String> {
    let word = |name: &str, value: u32| {
        let kind = ": std_logic_vector(31 downto 0)";
        (
            format!("constant {name}"),
            format!("{kind} := x\"{value:08x}\";"),
        )
    };
    let natural = |name: String, value: String| {
        (format!("constant {name}"), format!(": natural := {value};"))
    };
    let mut lines = vec![
        word("IDENTITY", map.identity),
        word("VERSION", map.version_word()),
    ];
    lines.extend(later(map).map(|block| natural(base(block), format!("16#{:04x}#", block.base))));
    for block in &map.blocks {
        lines.extend(words(block).map(|(name, word)| natural(name, word.to_string())));
    }
    aligned(lines)
}

/// Returns the blocks whose base address is not 0.
fn later(map: &Map) -> impl Iterator<Item = &Block> {
    map.blocks.iter().filter(|block| block.base != 0)
}

fn base(block: &Block) -> String {
    format!("{}_BASE", block.name.to_uppercase())
}

/// Returns the names of a block's registers, each with its word index in the block.
fn words(block: &Block) -> impl Iterator<Item = (String, u32)> {
    let prefix = block.name.to_uppercase();
    let registers = block.registers.iter();
    registers.map(move |register| (format!("{prefix}_{}", register.name), register.offset >> 2))
}
