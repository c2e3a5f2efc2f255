//! Claims about barrier version 1, and mutants that must be refuted; [`formal`](crate::formal) decides them.

use crate::formal::{Claim, Mutant};
use crate::fpga::Family;
use crate::source::{Source, source};

/// The module with the contract of the barrier without a filter.
pub const CONTRACT: Source = source!("toggle/formal/toggle_contract.v");
/// The module with the contract of the barrier with its filter.
pub const FILTERED: Source = source!("toggle/formal/filter_contract.v");
/// The module with the contract of the filter alone.
pub const FILTER_ALONE: Source = source!("shared/formal/filter_alone.v");
/// The module with assumptions about the nodes of a barrier and with the assertions that follow from them.
pub const PROTOCOL: Source = source!("toggle/formal/toggle_protocol.v");

/// Mutants of [`Design::toggle_barrier`](crate::formal::Design::toggle_barrier), each with a claim that must refute it.
pub const MUTANTS: &[(Mutant, Claim)] = &[
    (
        Mutant {
            fault: "it rises without the last node",
            file: "toggle_machine.v",
            from: "&level_i;",
            to: "&level_i[N-2:0];",
        },
        CLAIMED_AT_4,
    ),
    (
        Mutant {
            fault: "it falls without the first node",
            file: "toggle_machine.v",
            from: "~|level_i;",
            to: "~|level_i[N-1:1];",
        },
        CLAIMED_AT_4,
    ),
    (
        Mutant {
            fault: "any node that goes low is enough",
            file: "toggle_machine.v",
            from: "~|level_i;",
            to: "~&level_i;",
        },
        CLAIMED_AT_4,
    ),
    (
        Mutant {
            fault: "it toggles once and never again",
            file: "toggle_machine.v",
            from: "level_q <= ~level_q;",
            to: "level_q <= 1'b1;",
        },
        CONTRACT_AT_60,
    ),
    (
        Mutant {
            fault: "one node in sixty is not looked at",
            file: "toggle_machine.v",
            from: "&level_i;",
            to: "&(level_i | ({{N-1{1'b0}}, 1'b1} << 42));",
        },
        CONTRACT_AT_60,
    ),
    (
        Mutant {
            fault: "the second synchroniser stage is missing",
            file: "synchroniser.v",
            from: "stage2_q <= stage1_q;",
            to: "stage2_q <= level_i;",
        },
        CONTRACT_AT_60,
    ),
    (
        Mutant {
            fault: "the wires of two nodes are short-circuited",
            file: "toggle_barrier.v",
            from: ".level_i (node_i)",
            to: ".level_i ({node_i[N-1:2], {2{node_i[1] | node_i[0]}}})",
        },
        CLAIMED_AT_4,
    ),
    (
        Mutant {
            fault: "the last wire to the nodes stays low",
            file: "toggle_barrier.v",
            from: "{N{level}};",
            to: "{1'b0, {N-1{level}}};",
        },
        CONTRACT_AT_60,
    ),
    (
        Mutant {
            fault: "a filtered level needs one sample less",
            file: "level_filter.v",
            from: "LAST = SAMPLES - 1;",
            to: "LAST = SAMPLES - 2;",
        },
        FILTERED_AT_4,
    ),
    (
        Mutant {
            fault: "a filter of 17 to 32 samples has a count that is one bit short",
            file: "level_filter.v",
            from: "SAMPLES <=  32 ? 5",
            to: "SAMPLES <=  32 ? 4",
        },
        FILTER_OF_32,
    ),
    (
        Mutant {
            fault: "a filter of more than 128 samples has a count that is one bit short",
            file: "level_filter.v",
            from: "SAMPLES <= 128 ? 7 : 8;",
            to: "SAMPLES <= 128 ? 7 : 7;",
        },
        FILTER_OF_256,
    ),
    (
        Mutant {
            fault: "the filter counts samples that are not in a row",
            file: "level_filter.v",
            from: "count_q + 1'b1 : {BITS{1'b0}};",
            to: "count_q + 1'b1 : turns ? {BITS{1'b0}} : count_q;",
        },
        FILTERED_AT_4,
    ),
    (
        Mutant {
            fault: "the filter passes on every sample",
            file: "level_filter.v",
            from: "turns ? level_i[n] : held_q;",
            to: "level_i[n];",
        },
        FILTERED_AT_4,
    ),
    (
        Mutant {
            fault: "the filter holds the first level indefinitely",
            file: "level_filter.v",
            from: "held_q  <= level_o[n];",
            to: "held_q  <= level_o[n] || held_q;",
        },
        FILTERED_AT_4,
    ),
    (
        Mutant {
            fault: "a reset leaves the filter's levels",
            file: "level_filter.v",
            from: "                    held_q  <= 1'b0;\n",
            to: "",
        },
        FILTERED_AT_4,
    ),
    (
        Mutant {
            fault: "the filter is not in the way",
            file: "toggle_barrier.v",
            from: ".SAMPLES(FILTER)",
            to: ".SAMPLES(1)",
        },
        FILTERED_AT_4,
    ),
    (
        Mutant {
            fault: "the VHDL filter needs one sample less",
            file: "level_filter.vhd",
            from: "when count_q = SAMPLES - 1 else",
            to: "when count_q = SAMPLES - 2 else",
        },
        FILTERED_VHDL,
    ),
    (
        Mutant {
            fault: "the VHDL falls when one node is low",
            file: "toggle_machine.vhd",
            from: "any_high(level_i)",
            to: "all_high(level_i)",
        },
        VHDL_AT_60,
    ),
    (
        Mutant {
            fault: "the VHDL synchronises over one stage only",
            file: "synchroniser.vhd",
            from: "stage2_q <= stage1_q;",
            to: "stage2_q <= level_i;",
        },
        VHDL_AT_60,
    ),
];

/// The contract of the barrier at the size of the prototype, 60 nodes.
pub const CONTRACT_AT_60: Claim = Claim::Asserts {
    module: CONTRACT,
    parameters: &[("N", 60)],
};

/// The contract of the barrier with a filter of four samples.
pub const FILTERED_AT_4: Claim = Claim::Asserts {
    module: FILTERED,
    parameters: &[("N", 4), ("FILTER", 4)],
};

/// The contract of the filter alone, with 32 samples, the maximum of a 5-bit counter.
pub const FILTER_OF_32: Claim = Claim::Asserts {
    module: FILTER_ALONE,
    parameters: &[("FILTER", 32)],
};

/// The contract of the filter alone, with 256 samples, the maximum of `FILTER`.
pub const FILTER_OF_256: Claim = Claim::Asserts {
    module: FILTER_ALONE,
    parameters: &[("FILTER", 256)],
};

/// The VHDL of the filtered barrier is equivalent to the Verilog.
pub const FILTERED_VHDL: Claim = Claim::VhdlIsVerilog {
    parameters: &[("N", 60), ("FILTER", 4)],
};

/// The protocol with its lemmas, for four nodes: a small size, with several other nodes for each node.
pub const PROTOCOL_AT_4: Claim = Claim::Asserts {
    module: PROTOCOL,
    parameters: &[("N", 4)],
};

/// The protocol without its lemmas, for mutants: a mutant that violates only a lemma violates no claim.
pub const CLAIMED_AT_4: Claim = Claim::Asserts {
    module: PROTOCOL,
    parameters: &[("N", 4), ("LEMMAS", 0)],
};

/// The VHDL is equivalent to the Verilog at the size of the prototype.
pub const VHDL_AT_60: Claim = Claim::VhdlIsVerilog {
    parameters: &[("N", 60)],
};

/// Hazards that no hardware can prevent, as claims that must be refuted.
/// The driver's fence and self-test protect against them.
pub const HAZARDS: &[(&str, Claim)] = &[(
    "a node whose wire falls when it reboots is taken for arrived",
    Claim::Asserts {
        module: PROTOCOL,
        parameters: &[("N", 4), ("LEMMAS", 0), ("REBOOTS", 1)],
    },
)];

/// Claims whose proofs take long; only tests with `--long` prove them.
pub const LONG_CLAIMS: &[(&str, Claim)] = &[
    (
        "60 nodes, four samples agree: a level is what they say, and the machine toggles when all levels differ from it",
        Claim::Asserts {
            module: FILTERED,
            parameters: &[("N", 60), ("FILTER", 4)],
        },
    ),
    (
        "16 nodes behind a filter of four samples: no node leaves before all have entered, then all leave",
        Claim::Asserts {
            module: PROTOCOL,
            parameters: &[("N", 16), ("FILTER", 4)],
        },
    ),
    (
        "the VHDL is the Verilog, 60 nodes, four samples agree",
        FILTERED_VHDL,
    ),
    (
        "the iCE40 netlist is the Verilog, 60 nodes, four samples agree",
        Claim::NetlistIsVerilog {
            family: Family::Ice40,
            parameters: &[("N", 60), ("FILTER", 4)],
        },
    ),
    (
        "the ECP5 netlist is the Verilog, 60 nodes, four samples agree",
        Claim::NetlistIsVerilog {
            family: Family::Ecp5,
            parameters: &[("N", 60), ("FILTER", 4)],
        },
    ),
    (
        "60 nodes: no node leaves before all have entered, then all leave",
        Claim::Asserts {
            module: PROTOCOL,
            parameters: &[("N", 60)],
        },
    ),
    (
        "the filter of 256 samples passes on what they agree on",
        FILTER_OF_256,
    ),
    (
        "the filter of 128 samples passes on what they agree on",
        Claim::Asserts {
            module: FILTER_ALONE,
            parameters: &[("FILTER", 128)],
        },
    ),
    (
        "the ECP5 netlist is the Verilog, 60 nodes",
        Claim::NetlistIsVerilog {
            family: Family::Ecp5,
            parameters: &[("N", 60)],
        },
    ),
    (
        "the Gowin netlist is the Verilog, 60 nodes",
        Claim::NetlistIsVerilog {
            family: Family::Gowin,
            parameters: &[("N", 60)],
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

/// Claims about version 1 that must be proved, each with a sentence that states it.
pub const CLAIMS: &[(&str, Claim)] = &[
    (
        "the machine toggles exactly when all 60 synchronised wires differ from it",
        CONTRACT_AT_60,
    ),
    (
        "4 nodes: no node leaves before all have entered, then all leave",
        PROTOCOL_AT_4,
    ),
    (
        "16 nodes: no node leaves before all have entered, then all leave",
        Claim::Asserts {
            module: PROTOCOL,
            parameters: &[("N", 16)],
        },
    ),
    (
        "8 nodes, four samples agree: a level is what they say, and the machine toggles when all levels differ from it",
        Claim::Asserts {
            module: FILTERED,
            parameters: &[("N", 8), ("FILTER", 4)],
        },
    ),
    (
        "the filter of 32 samples passes on what they agree on",
        FILTER_OF_32,
    ),
    (
        "4 nodes behind a filter of four samples: no node leaves before all have entered, then all leave",
        Claim::Asserts {
            module: PROTOCOL,
            parameters: &[("N", 4), ("FILTER", 4)],
        },
    ),
    (
        "the VHDL is the Verilog, 4 nodes, 128 samples agree",
        Claim::VhdlIsVerilog {
            parameters: &[("N", 4), ("FILTER", 128)],
        },
    ),
    (
        "the iCE40 netlist is the Verilog, 8 nodes, four samples agree",
        Claim::NetlistIsVerilog {
            family: Family::Ice40,
            parameters: &[("N", 8), ("FILTER", 4)],
        },
    ),
    (
        "16 nodes, three synchroniser stages: the machine toggles exactly when all synchronised wires differ from it",
        Claim::Asserts {
            module: CONTRACT,
            parameters: &[("N", 16), ("SYNC", 3)],
        },
    ),
    (
        "16 nodes of the same clock: the machine toggles at the next edge exactly when all wires differ from it",
        Claim::Asserts {
            module: CONTRACT,
            parameters: &[("N", 16), ("SYNC", 0)],
        },
    ),
    (
        "the VHDL is the Verilog, 4 nodes, three synchroniser stages",
        Claim::VhdlIsVerilog {
            parameters: &[("N", 4), ("SYNC", 3)],
        },
    ),
    (
        "the VHDL is the Verilog, 4 nodes of the same clock",
        Claim::VhdlIsVerilog {
            parameters: &[("N", 4), ("SYNC", 0)],
        },
    ),
    ("the VHDL is the Verilog, 60 nodes", VHDL_AT_60),
    (
        "the VHDL is the Verilog, one node",
        Claim::VhdlIsVerilog {
            parameters: &[("N", 1)],
        },
    ),
    (
        "the ECP5 netlist is the Verilog, 8 nodes, four samples agree",
        Claim::NetlistIsVerilog {
            family: Family::Ecp5,
            parameters: &[("N", 8), ("FILTER", 4)],
        },
    ),
    (
        "the filter of 129 samples, whose count has 8 bits, passes on what they agree on",
        Claim::Asserts {
            module: FILTER_ALONE,
            parameters: &[("FILTER", 129)],
        },
    ),
    (
        "the Gowin netlist is the Verilog, 8 nodes",
        Claim::NetlistIsVerilog {
            family: Family::Gowin,
            parameters: &[("N", 8)],
        },
    ),
];
