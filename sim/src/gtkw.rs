//! A save file that makes GTKWave show a waveform of [`vcd`](crate::vcd) at once: signals named by node, in groups.
//!
//! The format has no specification; the fields and trace flags are those of GTKWave's `analyzer.h` and of the files
//! that it writes itself (version 3.3).

use crate::vcd::{ARRIVED_BITS, RELEASES_BITS, TOP, node_scope};
use std::io;

/// GTKWave's `TR_*` flags, as the save file spells them: hexadecimal, for the lines that follow.
mod flags {
    pub(super) const BINARY: u32 = 0x28;
    pub(super) const DECIMAL: u32 = 0x24;
    pub(super) const GROUP_OPEN: u32 = 0x80_0200;
    pub(super) const GROUP_END: u32 = 0x100_0200;
}

/// One group for each kind of signal: title, signal in the node's scope, how a node's signal is called.
const GROUPS: [(&str, &str, &str); 3] = [
    ("in the barrier (enter to leave)", "inside", "in barrier"),
    ("wires to the barrier", "out", "to barrier"),
    ("wires from the barrier", "in", "from barrier"),
];

/// Writes the save file for the waveform in `dump_file`, which GTKWave looks for relative to where it is started.
pub fn write(mut sink: impl io::Write, dump_file: &str, nodes: usize) -> io::Result<()> {
    writeln!(sink, "[*] hwbarr: {nodes} nodes")?;
    writeln!(sink, "[dumpfile] \"{dump_file}\"")?;
    writeln!(sink, "[timestart] 0")?;
    writeln!(sink, "[size] 1600 1000")?;
    writeln!(sink, "[pos] -1 -1")?;
    writeln!(sink, "[treeopen] {TOP}.")?;
    writeln!(sink, "@{:x}", flags::DECIMAL)?;
    writeln!(
        sink,
        "+{{barriers released}} {TOP}.releases[{}:0]",
        RELEASES_BITS - 1
    )?;
    writeln!(
        sink,
        "+{{nodes arrived}} {TOP}.arrived[{}:0]",
        ARRIVED_BITS - 1
    )?;
    for (title, signal, name) in GROUPS {
        writeln!(sink, "@{:x}\n-{title}", flags::GROUP_OPEN)?;
        writeln!(sink, "@{:x}", flags::BINARY)?;
        for node in 0..nodes {
            writeln!(
                sink,
                "+{{node {node} {name}}} {TOP}.{}.{signal}",
                node_scope(node)
            )?;
        }
        writeln!(sink, "@{:x}\n-{title}", flags::GROUP_END)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn signals_are_named_and_grouped() {
        let mut out = Vec::new();
        super::write(&mut out, "wave.vcd", 2).expect("memory takes everything");
        insta::assert_snapshot!(String::from_utf8(out).expect("UTF-8"));
    }
}
