//! The designs whose coverage is measured, each with its stimulus.

#[path = "channels/mod.rs"]
mod channels;
#[path = "register_traffic.rs"]
mod register_traffic;

use super::common::stimulus::{self, Edge};
use channels::LEASE_BITS;
use fpga_model::channels::{ChannelMachine, Pins};
use hdl::coverage::{Machine, Subject};
use hdl::play::{Play, Port, bit, bits, in_bits};
use hdl::register_claims::{BUSES, Bus};
use hdl::{
    CHANNEL_RTL, CHANNEL_TOP, CHANNEL_VHDL, EUREKA_RTL, EUREKA_TOP, EUREKA_VHDL, RTL, TOP, VHDL,
};
use register_traffic::{ADDRESS, GROUPS, NODES};

const N: usize = 4;
const FILTER: u16 = 4;
const CHANNELS: usize = 5;

const LEVEL: &[Machine] = &[Machine {
    register: "machine.level_q",
    states: 2,
    steps: 2,
}];
const FOUND: &[Machine] = &[Machine {
    register: "found_q",
    states: 2,
    steps: 2,
}];
/// The state machine of a frame's phases, in which the end of a session leads from each phase to
/// `receive`, and the counter of a line's filter.
const PHASES: &[Machine] = &[
    Machine {
        register: "frame.phase_q",
        states: 4,
        steps: 6,
    },
    Machine {
        register: "_line.run_q",
        states: 4,
        steps: 6,
    },
];
const AXI: &[Machine] = &[
    Machine {
        register: "front.bvalid_q",
        states: 2,
        steps: 2,
    },
    Machine {
        register: "front.rvalid_q",
        states: 2,
        steps: 2,
    },
];
const WISHBONE: &[Machine] = &[Machine {
    register: "front.second_q",
    states: 2,
    steps: 2,
}];

/// Returns all designs.
pub fn all() -> Vec<Subject> {
    let mut all = vec![toggle(10_000), eureka(10_000), channels(usize::MAX)];
    all.extend(BUSES.iter().map(registers));
    all
}

/// Returns all designs, each with a shorter stimulus.
pub fn short() -> Vec<Subject> {
    let mut all = vec![channels(25_000), toggle(2000), eureka(2000)];
    all.push(registers(&BUSES[0]));
    let all = all.into_iter().map(|subject| Subject {
        stimulus: subject
            .stimulus
            .split_inclusive('\n')
            .take(25_000)
            .collect(),
        ..subject
    });
    all.collect()
}

/// Returns version 1 with its stimulus of this number of edges.
pub fn toggle(edges: usize) -> Subject {
    let mut edges = stimulus::random(N, FILTER, edges);
    edges.extend(stimulus::directed(N, FILTER));
    Subject {
        name: "version 1",
        play: Play {
            top: TOP,
            parameters: vec![("N", N), ("FILTER", usize::from(FILTER))],
            inputs: vec![bit("rst_i"), bits("node_i", N)],
            outputs: vec![bits("node_o", N)],
        },
        verilog: RTL.to_vec(),
        vhdl: VHDL.to_vec(),
        stimulus: lines(&edges, |edge| in_bits(edge.inputs, N)),
        states: LEVEL,
    }
}

/// Returns the eureka line, with the stimulus of version 1 and a barrier that sometimes releases.
fn eureka(edges: usize) -> Subject {
    let edges = stimulus::random(N, FILTER, edges);
    let mut number = 0;
    Subject {
        name: "the eureka line",
        play: Play {
            top: EUREKA_TOP,
            parameters: vec![("N", N), ("FILTER", usize::from(FILTER))],
            inputs: vec![bit("rst_i"), bit("release_i"), bits("node_i", N)],
            outputs: vec![bit("found_o"), bits("first_o", N)],
        },
        verilog: EUREKA_RTL.to_vec(),
        vhdl: EUREKA_VHDL.to_vec(),
        stimulus: lines(&edges, |edge| {
            number += 1;
            in_bits(number / 50 % 2, 1) + &in_bits(edge.inputs, N)
        }),
        states: FOUND,
    }
}

fn lines(edges: &[Edge], mut rest: impl FnMut(&Edge) -> String) -> String {
    let line = |edge: &Edge| format!("{}{}\n", u8::from(edge.reset), rest(edge));
    edges.iter().map(line).collect()
}

fn channels(most: usize) -> Subject {
    let blank = ChannelMachine::new(N, CHANNELS).expect("a legal size");
    let blank = blank.with_lease_bits(LEASE_BITS);
    let mut edges = channels::random(blank, most.min(100_000));
    if edges.len() < most {
        let reset = channels::Edge {
            reset: true,
            pins: Pins::default(),
        };
        for script in [
            channels::directed,
            channels::every_channel,
            channels::saturating,
        ] {
            edges.push(reset);
            edges.extend(script(blank));
        }
    }
    let line = |edge: &channels::Edge| {
        let pins = edge.pins;
        let arrivals = pins.arrive[..CHANNELS].iter().rev();
        let arrivals: String = arrivals.map(|lines| in_bits(*lines, N)).collect();
        let serial = [pins.select, pins.clock, pins.data].map(|lines| in_bits(lines, N));
        format!("{}{arrivals}{}\n", u8::from(edge.reset), serial.concat())
    };
    Subject {
        name: "version 2",
        play: Play {
            top: CHANNEL_TOP,
            parameters: vec![
                ("N", N),
                ("C", CHANNELS),
                ("LEASE_BITS", LEASE_BITS as usize),
            ],
            inputs: vec![
                bit("rst_i"),
                bits("arrive_i", CHANNELS * N),
                bits("select_i", N),
                bits("clock_i", N),
                bits("data_i", N),
            ],
            outputs: vec![bits("release_o", CHANNELS), bits("last_o", N)],
        },
        verilog: CHANNEL_RTL.to_vec(),
        vhdl: CHANNEL_VHDL.to_vec(),
        stimulus: edges.iter().map(line).collect(),
        states: PHASES,
    }
}

fn registers(bus: &Bus) -> Subject {
    let (name, states, inputs, outputs): (_, &'static [Machine], Vec<Port>, Vec<Port>) =
        match bus.top {
            "barrier_apb" => (
                "registers, APB",
                &[],
                vec![
                    bit("psel_i"),
                    bit("penable_i"),
                    bit("pwrite_i"),
                    bits("paddr_i", ADDRESS),
                    bits("pwdata_i", 32),
                    bits("pstrb_i", 4),
                ],
                vec![bits("prdata_o", 32), bit("pready_o"), bit("pslverr_o")],
            ),
            "barrier_wishbone" => (
                "registers, Wishbone",
                WISHBONE,
                vec![
                    bit("cyc_i"),
                    bit("stb_i"),
                    bit("we_i"),
                    bits("adr_i", ADDRESS),
                    bits("dat_i", 32),
                    bits("sel_i", 4),
                ],
                vec![bits("dat_o", 32), bit("ack_o"), bit("err_o")],
            ),
            _ => (
                "registers, AXI4-Lite",
                AXI,
                vec![
                    bit("awvalid_i"),
                    bits("awaddr_i", ADDRESS),
                    bit("wvalid_i"),
                    bits("wdata_i", 32),
                    bits("wstrb_i", 4),
                    bit("bready_i"),
                    bit("arvalid_i"),
                    bits("araddr_i", ADDRESS),
                    bit("rready_i"),
                ],
                vec![
                    bit("awready_o"),
                    bit("wready_o"),
                    bit("bvalid_o"),
                    bits("bresp_o", 2),
                    bit("arready_o"),
                    bit("rvalid_o"),
                    bits("rdata_o", 32),
                    bits("rresp_o", 2),
                ],
            ),
        };
    let lines = NODES * GROUPS;
    let nodes = [bits("node_i", lines), bits("enter_i", lines)];
    let seen = [
        bits("level_o", GROUPS),
        bits("release_o", lines),
        bits("wake_o", NODES),
        bit("irq_o"),
        bit("start_o"),
        bits("start_time_o", 32),
    ];
    Subject {
        name,
        play: Play {
            top: bus.top,
            parameters: vec![
                ("ADDRESS", ADDRESS),
                ("N", NODES),
                ("G", GROUPS),
                ("SYNC", 3),
            ],
            inputs: [bit("rst_i")]
                .into_iter()
                .chain(inputs)
                .chain(nodes)
                .collect(),
            outputs: outputs.into_iter().chain(seen).collect(),
        },
        verilog: bus.rtl.to_vec(),
        vhdl: bus.vhdl.to_vec(),
        stimulus: register_traffic::inputs(bus.top),
        states,
    }
}
