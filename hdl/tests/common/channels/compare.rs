//! Writes stimuli in the testbenches' format, and compares a trace with the model.

use super::{Coverage, Edge, LEASE_BITS, apply};
use fpga_model::channels::{Channel, ChannelMachine, Line, Pins};
use std::fmt::Write as _;

/// Returns the stimulus in the testbenches' format.
pub fn text(edges: &[Edge], machine: &ChannelMachine) -> String {
    let identity = machine.identity();
    let (nodes, channels) = (usize::from(identity.nodes), usize::from(identity.channels));
    edges.iter().fold(String::new(), |mut text, edge| {
        let Pins {
            arrive,
            select,
            clock,
            data,
        } = edge.pins;
        let (reset, arrive) = (u8::from(edge.reset), hex(&arrive[..channels], nodes));
        let _ = writeln!(text, "{reset} {arrive} {select:x} {clock:x} {data:x}");
        text
    })
}

/// Compares each edge and each flip-flop of a trace with the model.
pub fn compare(
    what: &str,
    blank: ChannelMachine,
    edges: &[Edge],
    trace: &str,
    coverage: &mut Coverage,
) {
    let identity = blank.identity();
    let (nodes, channels) = (usize::from(identity.nodes), usize::from(identity.channels));
    let mut machine = blank;
    let mut compared = 0;
    for (number, (edge, line)) in edges.iter().zip(trace.lines()).enumerate() {
        let before = machine;
        apply(&mut machine, edge);
        coverage.note(&before, edge, &machine);
        let expected = state(&machine, nodes, channels);
        let seen: Vec<_> = line.split_whitespace().collect();
        assert_eq!(seen.len(), expected.len(), "{what}: fields of the trace");
        for ((name, model), rtl) in expected.iter().zip(seen) {
            assert_eq!(
                rtl,
                model,
                "{what}: {name} of {nodes} nodes, {channels} channels after edge {}",
                number + 1
            );
        }
        compared += 1;
    }
    assert_eq!(
        compared,
        edges.len(),
        "{what}: the trace of {nodes} nodes is cut short"
    );
    println!("{what}: {nodes} nodes, {channels} channels, {compared} edges agree");
}

/// Formats a number of any width like Verilog's `%h`; `words` have `bits` bits each, the lowest first.
fn hex(words: &[u64], bits: usize) -> String {
    let digits = (words.len() * bits).div_ceil(4);
    let (mut text, mut rest, mut there) = (vec![b'0'; digits], 0u128, 0);
    let mut words = words.iter();
    for place in text.iter_mut().rev() {
        while there < 4
            && let Some(&word) = words.next()
        {
            rest |= u128::from(word) << there;
            there += bits;
        }
        *place = b"0123456789abcdef"[(rest & 15) as usize];
        rest >>= 4;
        there = there.saturating_sub(4);
    }
    text.into_iter().map(char::from).collect()
}

fn line(line: Line) -> u64 {
    let [stage1, stage2, level] = [line.stage1, line.stage2, line.level].map(u64::from);
    stage1 << 4 | stage2 << 3 | level << 2 | u64::from(line.run)
}

/// Returns the names of the fields of a trace line, each with the model's value.
fn state(machine: &ChannelMachine, nodes: usize, channels: usize) -> Vec<(&'static str, String)> {
    let of = |field: fn(&Channel) -> u64, bits| {
        let words: Vec<u64> = (0..channels)
            .filter_map(|number| machine.channel(number))
            .map(field)
            .collect();
        hex(&words, bits)
    };
    let s = machine.serial();
    let one = |value: u64, bits| hex(&[value], bits);
    vec![
        ("release", one(u64::from(machine.releases()), channels)),
        ("last line", one(machine.last_line(), nodes)),
        ("stage1", of(|c| c.stage1, nodes)),
        ("stage2", of(|c| c.stage2, nodes)),
        ("mask", of(|c| c.mask, nodes)),
        ("late", of(|c| c.late, nodes)),
        ("limit", of(|c| u64::from(c.limit), 32)),
        ("count", of(|c| u64::from(c.count), 32)),
        ("expired", of(|c| u64::from(c.expired), 8)),
        ("early", of(|c| u64::from(c.early), 8)),
        ("overdue", of(|c| u64::from(c.overdue), 1)),
        ("toggled1", of(|c| u64::from(c.toggled1), 1)),
        ("toggled2", of(|c| u64::from(c.toggled2), 1)),
        ("select1", one(s.select1, nodes)),
        ("select2", one(s.select2, nodes)),
        ("grant", one(s.grant, nodes)),
        ("blocked", one(s.blocked, nodes)),
        ("age", one(u64::from(s.age), LEASE_BITS as usize)),
        ("select line", one(line(s.select), 5)),
        ("clock line", one(line(s.clock), 5)),
        ("data line", one(line(s.data), 5)),
        (
            "was",
            one(u64::from(s.select_was) << 1 | u64::from(s.clock_was), 2),
        ),
        ("phase", one(s.phase as u64, 2)),
        ("count of bits", one(u64::from(s.count), 7)),
        ("check", one(u64::from(s.check), 16)),
        (
            "shift",
            hex(
                &[s.shift as u64 & 0xf_ffff_ffff, (s.shift >> 36) as u64],
                36,
            ),
        ),
    ]
}
