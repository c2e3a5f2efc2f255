//! Generator of a SystemRDL 2.0 description of the registers, for PeakRDL and other tools.
//!
//! SystemRDL requires fields, so a register without fields gets one field of 32 bits.

use super::notice;
use super::table::{Access, Block, Map, Register};

pub(super) fn text(map: &Map) -> String {
    let mut lines = vec![
        format!("// {}", notice()),
        "addrmap barrier_regs #(".into(),
        "    longint unsigned N = 4,".into(),
        "    longint unsigned G = 1,".into(),
        "    longint unsigned STRIDE = 6".into(),
        ") {".into(),
        "    default regwidth = 32;".into(),
        "    default accesswidth = 32;".into(),
    ];
    for block in &map.blocks {
        lines.push(String::new());
        lines.extend(regfile(block));
    }
    lines.push("};".into());
    lines.join("\n") + "\n"
}

fn regfile(block: &Block) -> Vec<String> {
    let mut lines = vec![
        "    regfile {".into(),
        format!("        desc = \"{}\";", block.meaning),
    ];
    for register in &block.registers {
        lines.extend(reg(register));
    }
    let count = match block.count.as_str() {
        "1" => String::new(),
        parameter => format!("[{parameter}]"),
    };
    let stride = match block.stride.as_deref() {
        None => String::new(),
        Some("2^STRIDE") => " += (1 << STRIDE)".into(),
        Some(number) => format!(" += {number}"),
    };
    lines.push(format!(
        "    }} {}_r{count} @ {:#x}{stride};",
        block.name, block.base
    ));
    lines
}

fn reg(register: &Register) -> Vec<String> {
    let access = match register.access {
        Access::ReadOnly => "sw = r; hw = w;",
        Access::ReadWrite => "sw = rw; hw = r;",
        Access::WriteOnly => "sw = w; hw = r;",
        // An event in the cycle of a clear wins (`precedence = hw`); SystemRDL's default is the opposite.
        Access::WriteOneToClear => "sw = rw; hw = w; onwrite = woclr; hwset; precedence = hw;",
    };
    let mut lines = vec![
        "        reg {".into(),
        format!("            desc = \"{}\";", register.meaning),
    ];
    let reset = register.reset_value();
    let field = |name: &str, high: u32, low: u32| {
        let width = high - low;
        let reset = reset.map(|value| {
            let value = value >> low & u32::MAX >> (31 - width);
            format!(" = {value:#x}")
        });
        format!(
            "            field {{ {access} }} {name}[{high}:{low}]{};",
            reset.unwrap_or_default()
        )
    };
    match register.fields.as_slice() {
        [] => lines.push(field("VALUE", 31, 0)),
        // Each event bit is a separate field, because `hwset` applies to a whole field.
        fields if register.access == Access::WriteOneToClear => {
            for f in fields {
                let bits = f.low..=f.high;
                lines
                    .extend(bits.map(|bit| field(&format!("{}{}", f.name, bit - f.low), bit, bit)));
            }
        }
        fields => lines.extend(fields.iter().map(|f| field(&f.name, f.high, f.low))),
    }
    lines.push(format!(
        "        }} {} @ {:#x};",
        register.name, register.offset
    ));
    lines
}
