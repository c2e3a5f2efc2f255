//! Tests that read back the waveform of a short session of version 2.

use super::*;
use barrier_board::event::LineChange;
use fpga_model::channels::frame::{Body, FRAME_BITS, Operation};

/// A sequence of line changes; between two changes the board has time to sample the first one.
struct Script {
    at_ps: u64,
    changes: Vec<LineChange>,
}

impl Script {
    fn set(&mut self, node: usize, line: usize, high: bool) {
        self.at_ps += 1_000_000;
        self.changes.push(LineChange {
            at_ps: self.at_ps,
            node,
            line,
            high,
        });
    }

    /// Sends a request over a node's serial lines, and then the clock pulses that read the reply.
    fn ask(&mut self, node: usize, body: Body) {
        let [clock, data, select] = [5, 6, 7];
        self.set(node, select, true);
        for place in (0..2 * FRAME_BITS).rev() {
            let request = place.checked_sub(FRAME_BITS);
            if let Some(place) = request {
                self.set(node, data, body.frame() >> place & 1 == 1);
            }
            self.set(node, clock, true);
            self.set(node, clock, false);
        }
        self.set(node, select, false);
    }
}

fn waveform() -> String {
    let mut script = Script {
        at_ps: 0,
        changes: Vec::new(),
    };
    script.ask(
        1,
        Body {
            code: Operation::SetMask as u8,
            channel: 2,
            value: 0b11,
        },
    );
    script.set(0, 2, true);
    script.set(1, 2, true);
    let record = ChannelRecord {
        nodes: 2,
        changes: script.changes,
        dropped: 0,
    };
    let mut out = Vec::new();
    write(&mut out, &record).expect("memory takes everything");
    String::from_utf8(out).expect("the format is ASCII")
}

#[test]
fn a_channel_is_asked_for_in_text_and_releases_its_members() {
    let text = waveform();
    let mut parser = vcd::Parser::new(text.as_bytes());
    let header = parser.parse_header().expect("a header");
    let id = |path: &[&str]| header.find_var(path).expect("declared").code;
    let request = id(&[TOP, SERIAL, "request"]);
    let reply = id(&[TOP, SERIAL, "reply"]);
    let releases = id(&[TOP, "channel2", "releases"]);
    let inward = id(&[TOP, "node00", "release2"]);
    let mut seen = Vec::new();
    for command in parser {
        match command.expect("well-formed") {
            vcd::Command::ChangeString(code, text) if code == request || code == reply => {
                seen.push(text);
            }
            vcd::Command::ChangeVector(code, value) if code == releases => {
                seen.push(format!("releases {value}"));
            }
            vcd::Command::ChangeScalar(code, value) if code == inward => {
                seen.push(format!("node 0 reads {value}"));
            }
            _ => {}
        }
    }
    let seen: Vec<_> = seen.iter().map(String::as_str).collect();
    assert_eq!(
        seen,
        [
            "releases 0",
            "-",
            "-",
            "node 0 reads 0",
            "SetMask:2:0x3",
            "Done:0x3",
            "releases 1",
            "node 0 reads 1",
        ]
    );
}

#[test]
fn what_the_board_does_it_does_at_an_edge_of_its_clock_to_the_picosecond() {
    let text = waveform();
    let mut parser = vcd::Parser::new(text.as_bytes());
    let header = parser.parse_header().expect("a header");
    let id = |path: &[&str]| header.find_var(path).expect("declared").code;
    let clk = id(&[TOP, CLK]);
    let release = id(&[TOP, "channel2", "release"]);
    let (mut now, mut rises, mut released) = (0, Vec::new(), Vec::new());
    for command in parser {
        match command.expect("well-formed") {
            vcd::Command::Timestamp(at) => now = at,
            vcd::Command::ChangeScalar(code, vcd::Value::V1) if code == clk => rises.push(now),
            vcd::Command::ChangeScalar(code, vcd::Value::V1) if code == release => {
                released.push(now);
            }
            _ => {}
        }
    }
    let [at] = released[..] else {
        panic!("one release, not {released:?}");
    };
    assert!(rises.contains(&at), "{at}");
    // Edges k and k + 1 of 25.175 MHz are 39.722 ns apart, rounded up to a picosecond.
    for at in rises {
        assert_eq!(CLOCK.time_of(CLOCK.edges_until(at)), at);
    }
}

#[test]
fn times_grow_and_every_value_is_a_change() {
    let text = waveform();
    let parser = vcd::Parser::new(text.as_bytes());
    let (mut now, mut last) = (0, std::collections::HashMap::new());
    for command in parser {
        match command.expect("well-formed") {
            vcd::Command::Timestamp(at) => {
                assert!(at > now || at == 0, "{at} after {now}");
                now = at;
            }
            vcd::Command::ChangeScalar(id, value) => {
                assert_ne!(last.insert(id, value), Some(value), "at {now}");
            }
            _ => {}
        }
    }
    assert!(now > 0);
}
