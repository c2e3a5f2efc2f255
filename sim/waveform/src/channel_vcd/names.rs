//! Names and widths of the signals in a version 2 waveform.

use crate::vcd::{RELEASES_BITS, arrived_bits};
use fpga_model::channels::MAX_CHANNELS;

/// The signal of the board's clock.
pub(crate) const CLK: &str = "clk";

/// The scope of the serial receiver, and the names of its text signals.
pub(crate) const SERIAL: &str = "serial";
pub(crate) const SERIAL_TEXTS: [&str; 4] = ["node", "phase", "request", "reply"];

/// The names of a node's serial lines, in the order of their numbers.
const SERIAL_LINES: [&str; 3] = ["clock", "data", "select"];

/// Returns the name of a channel's scope.
pub(crate) fn channel_scope(channel: usize) -> String {
    format!("channel{channel}")
}

/// Returns the signals of a channel: name, width in bits, label in a viewer.
pub(crate) fn channel_signals(nodes: usize) -> [(&'static str, u32, &'static str); 5] {
    let nodes = nodes as u32;
    [
        ("release", 1, "release"),
        (
            "arrived",
            arrived_bits(fpga_model::MAX_NODES),
            "nodes arrived",
        ),
        ("members", nodes, "members"),
        ("late", nodes, "late members"),
        ("releases", RELEASES_BITS, "barriers released"),
    ]
}

/// Returns the names of a node's signals, outward lines first.
pub(crate) fn node_signals() -> impl Iterator<Item = String> {
    let outward = (0..MAX_CHANNELS).map(|channel| format!("arrive{channel}"));
    let serial = SERIAL_LINES.into_iter().map(str::to_owned);
    let inward = (0..MAX_CHANNELS).map(|channel| format!("release{channel}"));
    outward.chain(serial).chain(inward)
}

/// Returns the range, such as `[6:0]`, that a viewer appends to the name of a vector.
pub(crate) fn range(width: u32) -> String {
    match width {
        1 => String::new(),
        width => format!("[{}:0]", width - 1),
    }
}
