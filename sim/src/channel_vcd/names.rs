//! What the signals of the waveform are called, and how wide they are.

use crate::vcd::{RELEASES_BITS, arrived_bits};
use fpga_model::channels::MAX_CHANNELS;

/// The board's clock, as the waveform names it.
pub(crate) const CLK: &str = "clk";

/// The scope of the serial side, and its texts.
pub(crate) const SERIAL: &str = "serial";
pub(crate) const SERIAL_TEXTS: [&str; 4] = ["node", "phase", "request", "reply"];

/// The lines of a node beside the arrivals, in the order of their numbers.
const SERIAL_LINES: [&str; 3] = ["clock", "data", "select"];

/// The name of a channel's scope.
pub(crate) fn channel_scope(channel: usize) -> String {
    format!("channel{channel}")
}

/// The signals of a channel: name, width, and how a reader calls it.
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

/// The signals of a node, outward ones first.
pub(crate) fn node_signals() -> impl Iterator<Item = String> {
    let outward = (0..MAX_CHANNELS).map(|channel| format!("arrive{channel}"));
    let serial = SERIAL_LINES.into_iter().map(str::to_owned);
    let inward = (0..MAX_CHANNELS).map(|channel| format!("release{channel}"));
    outward.chain(serial).chain(inward)
}

/// The range that a reader appends to the name of a vector.
pub(crate) fn range(width: u32) -> String {
    match width {
        1 => String::new(),
        width => format!("[{}:0]", width - 1),
    }
}
