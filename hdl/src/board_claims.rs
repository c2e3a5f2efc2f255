//! Claims about cascaded boards and about a board's start pulse, and mutants of both; [`formal`](crate::formal) decides them.
//!
//! For any number of boards and levels, the proofs replace other boards by contracts;
//! for small sizes, all boards are RTL.

use crate::formal::{Claim, Design, Mutant};
use crate::source::{Source, source};
use crate::toggle_claims::PROTOCOL;

/// A board below another one; the contract of the root board replaces the root.
pub const BELOW: Source = source!("toggle/formal/board_below.v");
/// A root with boards below it, all as RTL.
pub const WHOLE: Source = source!("toggle/formal/boards_whole.v");

/// The start pulse has its width for any input, and the second pin has the inverse.
pub const START: Claim = Claim::Asserts {
    module: source!("boards/formal/level_pulse_contract.v"),
    parameters: &[],
};

/// The modules that make a board's start pulse.
pub fn start_design() -> Design {
    let sources = [
        source!("boards/level_pulse.v"),
        source!("shared/rtl/start_pulse.v"),
    ];
    Design {
        top: "level_pulse",
        verilog: crate::formal::texts(&sources),
        vhdl: Vec::new(),
    }
}

/// Mutants of [`start_design`], each of which must violate [`START`].
pub const START_MUTANTS: &[Mutant] = &[
    Mutant {
        fault: "only a rise of the level starts a pulse",
        file: "level_pulse.v",
        from: "level_i ^ level_q;",
        to: "level_i & ~level_q;",
    },
    Mutant {
        fault: "the other pin has the same polarity",
        file: "level_pulse.v",
        from: ".invert_i  (1'b1)",
        to: ".invert_i  (1'b0)",
    },
    Mutant {
        fault: "a pulse is one cycle too short",
        file: "start_pulse.v",
        from: "width_i & {16{release_i}};",
        to: "(width_i & {16{release_i}}) >> 1;",
    },
];

const BELOW_AT_4: Claim = Claim::Asserts {
    module: BELOW,
    parameters: &[("N", 4), ("LEMMAS", 0)],
};

/// Claims that must be proved, each with a sentence that states it.
pub const CLAIMS: &[(&str, Claim)] = &[
    (
        "the root's contract, 16 boards below it: it releases when all have announced, and not before",
        Claim::Asserts {
            module: PROTOCOL,
            parameters: &[("N", 16)],
        },
    ),
    (
        "a board's contract, 16 nodes or boards below it: to the board above it is a node that keeps the protocol",
        Claim::Asserts {
            module: BELOW,
            parameters: &[("N", 16)],
        },
    ),
    (
        "4 boards of 8 nodes under one, all as RTL: no node leaves before all have entered",
        Claim::Asserts {
            module: WHOLE,
            parameters: &[("B", 4), ("N", 8)],
        },
    ),
];

/// Claims whose proofs take long; only tests with `--long` prove them.
pub const LONG_CLAIMS: &[(&str, Claim)] = &[
    (
        "the root's contract, 60 boards below it: it releases when all have announced, and not before",
        Claim::Asserts {
            module: PROTOCOL,
            parameters: &[("N", 60)],
        },
    ),
    (
        "a board's contract, 60 nodes or boards below it: to the board above it is a node that keeps the protocol",
        Claim::Asserts {
            module: BELOW,
            parameters: &[("N", 60)],
        },
    ),
];

/// Mutants of a board, each with the claim that it must violate.
pub const MUTANTS: &[(Mutant, Claim)] = &[
    (
        Mutant {
            fault: "a board announces without its last node",
            file: "toggle_machine.v",
            from: "&level_i;",
            to: "&level_i[N-2:0];",
        },
        BELOW_AT_4,
    ),
    (
        Mutant {
            fault: "a board announces when any node has left",
            file: "toggle_machine.v",
            from: "~|level_i;",
            to: "~&level_i;",
        },
        BELOW_AT_4,
    ),
    (
        Mutant {
            fault: "a board never announces a second time",
            file: "toggle_machine.v",
            from: "level_q <= ~level_q;",
            to: "level_q <= 1'b1;",
        },
        BELOW_AT_4,
    ),
    (
        Mutant {
            fault: "a board under a board sees one node twice",
            file: "toggle_barrier.v",
            from: ".level_i (node_i)",
            to: ".level_i ({node_i[N-1:2], {2{node_i[0]}}})",
        },
        Claim::Asserts {
            module: WHOLE,
            parameters: &[("B", 2), ("N", 2), ("LEMMAS", 0)],
        },
    ),
];

/// Wrong ways to connect boards, each with a claim that must then be refuted.
pub const HAZARDS: &[(&str, Claim)] = &[(
    "nodes that read their own board's output instead of the root's leave before all have entered",
    Claim::Asserts {
        module: BELOW,
        parameters: &[("N", 4), ("LEMMAS", 0), ("READS_OWN", 1)],
    },
)];
