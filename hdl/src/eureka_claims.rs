//! Claims about the eureka line, and mutants that must be refuted; [`formal`](crate::formal) decides them.

use crate::formal::{Claim, Design, Mutant, texts};
use crate::fpga::Family;
use crate::source::{EUREKA_RTL, EUREKA_TOP, EUREKA_VHDL, Source, source};

/// The module with the assertions about [`EUREKA_RTL`].
pub const CONTRACT: Source = source!("toggle/formal/eureka_contract.v");

/// The RTL of the eureka line without mutations.
pub fn design() -> Design {
    Design {
        top: EUREKA_TOP,
        verilog: texts(&EUREKA_RTL),
        vhdl: texts(&EUREKA_VHDL),
    }
}

const AT_4: Claim = Claim::Asserts {
    module: CONTRACT,
    parameters: &[("N", 4)],
};

const VHDL_AT_60: Claim = Claim::VhdlIsVerilog {
    parameters: &[("N", 60)],
};

/// Claims that must be proved, each with a sentence that states it.
pub const CLAIMS: &[(&str, Claim)] = &[
    (
        "60 nodes: the line rises when a node has said so and falls when the barrier has released, and exactly one is told that it was first",
        Claim::Asserts {
            module: CONTRACT,
            parameters: &[("N", 60)],
        },
    ),
    (
        "4 nodes behind a filter of four samples: the same of what the samples agree on",
        Claim::Asserts {
            module: CONTRACT,
            parameters: &[("N", 4), ("FILTER", 4)],
        },
    ),
    ("the VHDL is the Verilog, 60 nodes", VHDL_AT_60),
    (
        "the VHDL is the Verilog, 8 nodes, four samples agree",
        Claim::VhdlIsVerilog {
            parameters: &[("N", 8), ("FILTER", 4)],
        },
    ),
    (
        "the iCE40 netlist is the Verilog, 8 nodes",
        Claim::NetlistIsVerilog {
            family: Family::Ice40,
            parameters: &[("N", 8)],
        },
    ),
];

/// Claims whose proofs take long; only tests with `--long` prove them.
pub const LONG_CLAIMS: &[(&str, Claim)] = &[
    (
        "the VHDL is the Verilog, 60 nodes, four samples agree",
        Claim::VhdlIsVerilog {
            parameters: &[("N", 60), ("FILTER", 4)],
        },
    ),
    (
        "the iCE40 netlist is the Verilog, 60 nodes",
        Claim::NetlistIsVerilog {
            family: Family::Ice40,
            parameters: &[("N", 60)],
        },
    ),
];

/// Mutants, each with a claim that must refute it.
pub const MUTANTS: &[(Mutant, Claim)] = &[
    (
        Mutant {
            fault: "the last node is not heard",
            file: "eureka_machine.v",
            from: "any_high = |level_i;",
            to: "any_high = |level_i[N-2:0];",
        },
        AT_4,
    ),
    (
        Mutant {
            fault: "all nodes have to say so",
            file: "eureka_machine.v",
            from: "any_high = |level_i;",
            to: "any_high = &level_i;",
        },
        AT_4,
    ),
    (
        Mutant {
            fault: "all that come at one edge are told that they were first",
            file: "eureka_machine.v",
            from: "level_i & (~level_i + 1'b1);",
            to: "level_i;",
        },
        AT_4,
    ),
    (
        Mutant {
            fault: "a later node with a lower number is first",
            file: "eureka_machine.v",
            from: "end else if (!found_q) begin",
            to: "end else if (any_high) begin",
        },
        AT_4,
    ),
    (
        Mutant {
            fault: "it stays high indefinitely",
            file: "eureka_machine.v",
            from: "if (rst_i || over) begin",
            to: "if (rst_i) begin",
        },
        AT_4,
    ),
    (
        Mutant {
            fault: "a reset is not one",
            file: "eureka_machine.v",
            from: "if (rst_i || over) begin",
            to: "if (over) begin",
        },
        AT_4,
    ),
    (
        Mutant {
            fault: "it falls when a node lowers its wire, before all have heard",
            file: "eureka_machine.v",
            from: "if (rst_i || over) begin",
            to: "if (rst_i || over || !any_high) begin",
        },
        AT_4,
    ),
    (
        Mutant {
            fault: "only every other release clears it",
            file: "eureka_machine.v",
            from: "release_i != release_q;",
            to: "release_i && !release_q;",
        },
        AT_4,
    ),
    (
        Mutant {
            fault: "the wires of two nodes are exchanged on the way back",
            file: "eureka_line.v",
            from: ".first_o   (first_o)",
            to: ".first_o   ({first_o[N-1:2], first_o[0], first_o[1]})",
        },
        AT_4,
    ),
    (
        Mutant {
            fault: "the filter is not in the way",
            file: "eureka_line.v",
            from: ".SAMPLES(FILTER)",
            to: ".SAMPLES(1)",
        },
        Claim::Asserts {
            module: CONTRACT,
            parameters: &[("N", 4), ("FILTER", 4)],
        },
    ),
    (
        Mutant {
            fault: "the VHDL takes the highest for the first",
            file: "barrier_logic.vhd",
            from: "for n in 0 to bits'high loop",
            to: "for n in bits'high downto 0 loop",
        },
        VHDL_AT_60,
    ),
    (
        Mutant {
            fault: "the VHDL forgets which node was first",
            file: "eureka_machine.vhd",
            from: "elsif found_q = '0' then",
            to: "else",
        },
        VHDL_AT_60,
    ),
];
