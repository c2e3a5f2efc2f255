//! Claims about barrier version 2, and mutants that must be refuted; [`formal`](crate::formal) decides them.
//!
//! Three statements together make the design safe:
//!
//! 1. whatever a node requests, a request changes the set of members of at most one channel,
//!    whatever the state of the other channels is. The requesting node is an old or new member.
//!    Either the lines of all old and new members are at the channel's level,
//!    or the removed members are late in a barrier and all other members wait (`channel_rules`);
//! 2. in a channel whose members change only in this way, no member leaves a barrier before all
//!    have entered it, and then every member leaves it,
//!    whatever the levels of other nodes' lines are (`channel_protocol`);
//! 3. the channels share only the strobes that statement 1 is about:
//!    `channel_barrier` gives each channel its own synchroniser and machine.
//!
//! A separate claim states which pulses on a serial line pass its filter (`channel_line_contract`).

use crate::formal::{Claim, Design, Mutant, texts};
use crate::fpga::Family;
use crate::source::{CHANNEL_RTL, CHANNEL_TOP, CHANNEL_VHDL, Source, source};

/// The module with assertions about requests (statement 1): which node may change the members or the time limit of which channel, and when.
pub const RULES: Source = source!("channels/formal/channel_rules.v");
/// The module with assumptions about the nodes of a channel and with the assertions that follow from them.
pub const PROTOCOL: Source = source!("channels/formal/channel_protocol.v");
/// The contract of a serial line's filter: which pulses pass.
pub const LINE: Source = source!("channels/formal/channel_line_contract.v");

/// The RTL of version 2 without mutations.
pub fn design() -> Design {
    Design {
        top: CHANNEL_TOP,
        verilog: texts(&CHANNEL_RTL),
        vhdl: texts(&CHANNEL_VHDL),
    }
}

const fn rules(parameters: &'static [(&'static str, usize)]) -> Claim {
    Claim::Asserts {
        module: RULES,
        parameters,
    }
}

const fn protocol(parameters: &'static [(&'static str, usize)]) -> Claim {
    Claim::Asserts {
        module: PROTOCOL,
        parameters,
    }
}

const LINE_CONTRACT: Claim = Claim::Asserts {
    module: LINE,
    parameters: &[],
};

/// Claims that must be proved, each with a sentence that states it.
pub const CLAIMS: &[(&str, Claim)] = &[
    (
        "a pulse that covers three clock edges or fewer is nothing, one that covers four or more always counts",
        LINE_CONTRACT,
    ),
    (
        "8 nodes, 5 channels: members change only at rest, or are dropped when overdue, by a member, and other channels do not matter",
        rules(&[("N", 8), ("C", 5), ("WATCHED", 3)]),
    ),
    (
        "8 nodes, 2 channels: members are dropped by a majority",
        rules(&[("N", 8), ("C", 2), ("MAJORITY", 1)]),
    ),
    (
        "4 nodes, any members, changing or dropped: no node leaves before all have entered, then all leave, and no release is early",
        protocol(&[("N", 4)]),
    ),
    (
        "the VHDL of version 2 is the Verilog, 2 nodes, 2 channels",
        VHDL_AT_2,
    ),
];

/// Claims whose proofs take long; only tests with `--long` prove them.
pub const LONG_CLAIMS: &[(&str, Claim)] = &[
    (
        "60 nodes, 5 channels: members change only at rest, or are dropped when overdue, by a member, and other channels do not matter",
        rules(&[("N", 60), ("C", 5), ("WATCHED", 3)]),
    ),
    (
        "the VHDL of version 2 is the Verilog, 3 nodes, 2 channels",
        Claim::VhdlIsVerilog {
            parameters: &[("N", 3), ("C", 2)],
        },
    ),
    (
        "16 nodes, 2 channels: members are dropped by a majority",
        rules(&[("N", 16), ("C", 2), ("MAJORITY", 1)]),
    ),
    (
        "the iCE40 netlist of version 2 is the Verilog, 2 nodes, 2 channels",
        Claim::NetlistIsVerilog {
            family: Family::Ice40,
            parameters: &[("N", 2), ("C", 2)],
        },
    ),
    (
        "64 nodes, 2 channels: the same where no bit of a mask is left over",
        rules(&[("N", 64), ("C", 2), ("WATCHED", 0)]),
    ),
    (
        "60 nodes, any members, changing or dropped: no node leaves before all have entered, then all leave, and no release is early",
        protocol(&[("N", 60)]),
    ),
    (
        "the VHDL of version 2 is the Verilog, 4 nodes, 5 channels",
        Claim::VhdlIsVerilog {
            parameters: &[("N", 4), ("C", 5)],
        },
    ),
    (
        "the iCE40 netlist of version 2 is the Verilog, 3 nodes, 2 channels",
        Claim::NetlistIsVerilog {
            family: Family::Ice40,
            parameters: &[("N", 3), ("C", 2)],
        },
    ),
    (
        "the iCE40 netlist of version 2 is the Verilog, 4 nodes, 5 channels",
        Claim::NetlistIsVerilog {
            family: Family::Ice40,
            parameters: &[("N", 4), ("C", 5)],
        },
    ),
];

/// Claims without the hardware's rule about changes of members; they must be refuted.
pub const HAZARDS: &[(&str, Claim)] = &[(
    "a line left over by a dead job is an arrival, unless members change only at rest",
    protocol(&[("N", 4), ("RULE", 0), ("LEMMAS", 0)]),
)];

const RULES_AT_4: Claim = rules(&[("N", 4), ("C", 3), ("MAJORITY", 1)]);
const CLAIMED_AT_4: Claim = protocol(&[("N", 4), ("LEMMAS", 0)]);

/// The VHDL equals the Verilog, at a small size, which is enough to refute the mutants.
const VHDL_AT_2: Claim = Claim::VhdlIsVerilog {
    parameters: &[("N", 2), ("C", 2)],
};

macro_rules! mutants {
    ($($claim:ident $file:literal $fault:literal: $from:literal => $to:literal;)*) => {
        &[$((Mutant { fault: $fault, file: $file, from: $from, to: $to }, $claim)),*]
    };
}

/// Mutants of [`design`], each with a claim that must refute it.
pub const MUTANTS: &[(Mutant, Claim)] = mutants! {
    CLAIMED_AT_4 "channel_machine.v" "one member's arrival is enough":
        "arrived == mask_q" => "(|arrived)";
    CLAIMED_AT_4 "channel_machine.v" "a channel without members counts as reached by all":
        "(|mask_q) && arrived" => "arrived";
    CLAIMED_AT_4 "channel_machine.v" "the first node can never be a member":
        "{N{level_q}}) & mask_q;" => "{N{level_q}}) & {mask_q[N-1:1], 1'b1};";
    CLAIMED_AT_4 "channel_machine.v" "a time limit that runs out opens the barrier":
        "arrived == mask_q" => "(arrived == mask_q || |late_q)";
    CLAIMED_AT_4 "channel_machine.v" "nodes that are no members are late":
        "<= mask_q & ~arrived;" => "<= ~arrived;";
    RULES_AT_4 "channel_command.v" "a new member need not rest":
        "not_idle & (mask | argument)" => "not_idle & mask";
    RULES_AT_4 "channel_command.v" "an old member need not rest":
        "not_idle & (mask | argument)" => "not_idle & argument";
    RULES_AT_4 "channel_command.v" "a taken channel can be taken":
        "if ((|argument) && (|mask))" => "if (1'b0)";
    RULES_AT_4 "channel_command.v" "a frame with a wrong check is carried out":
        "if (!right_i)" => "if (1'b0)";
    RULES_AT_4 "channel_command.v" "one request changes all channels":
        "execute_i && set_mask  && channel == k;" => "execute_i && set_mask;";
    RULES_AT_4 "channel_command.v" "any node sets a time limit":
        "end else if (!member) begin" => "end else if (1'b0) begin";
    RULES_AT_4 "channel_command.v" "any node takes and returns a channel":
        "if ((|concerned) && !(|(concerned & me)))" => "if (1'b0)";
    RULES_AT_4 "channel_command.v" "the rest of channel 0 is taken for that of the others":
        "not_idle_i[c*N +: N];" => "not_idle_i[0 +: N];";
    RULES_AT_4 "channel_command.v" "nodes that do not exist become members":
        "if (|not_nodes) begin" => "if (1'b0) begin";
    CLAIMED_AT_4 "channel_machine.v" "a member that is dropped is one still":
        "else if (set_mask_i || drop_i)\n            mask_q" => "else if (set_mask_i)\n            mask_q";
    RULES_AT_4 "channel_command.v" "the others are dropped instead":
        "value  = arrived;\n                    status" => "value  = argument;\n                    status";
    CLAIMED_AT_4 "channel_machine.v" "a late release is counted as early":
        "toggled2_q <= toggled1_q && !(|arrived) && !rst_i;" => "toggled2_q <= toggled2_q || (toggled1_q && !(|arrived) && !rst_i);";
    RULES_AT_4 "channel_command.v" "members are dropped before the limit has run out":
        "awaited = overdue && argument" => "awaited = argument";
    RULES_AT_4 "channel_command.v" "members that wait are dropped":
        "argument == (mask & ~arrived);" => "argument != mask;";
    RULES_AT_4 "channel_command.v" "members are dropped while others are out":
        "argument == (mask & ~arrived);" => "~|(argument & ~(mask & ~arrived));";
    RULES_AT_4 "channel_command.v" "a half drops the other half":
        "drop   = awaited && stay > go;" => "drop   = awaited && stay >= go;";
    RULES_AT_4 "channel_command.v" "a node that is no member drops members":
        "if (!member) begin\n                    status = NOT_MEMBER;\n                    value  = mask;\n                end else begin\n                    value  = arrived;" => "if (1'b0) begin\n                end else begin\n                    value  = arrived;";
    RULES_AT_4 "channel_command.v" "one request drops members of all channels":
        "execute_i && drop      && channel == k;" => "execute_i && drop;";
    RULES_AT_4 "channel_command.v" "the limit of channel 0 is taken for that of the others":
        "overdue_i[c];" => "overdue_i[0];";
    LINE_CONTRACT "channel_line.v" "three samples are enough":
        "run_q == 2'd3" => "run_q == 2'd2";
    LINE_CONTRACT "channel_line.v" "samples that differ need not follow each other":
        "differs ? run_q + 2'd1 : 2'd0" => "differs ? run_q + 2'd1 : run_q";
    LINE_CONTRACT "channel_line.v" "a line that has risen never counts":
        "level_q <= stage2_q;" => "level_q <= 1'b0;";
    VHDL_AT_2 "channel_machine.vhd" "in VHDL a channel without members counts as reached by all":
        "any_high(mask_q) and not any_high(missing)" => "not any_high(missing)";
    VHDL_AT_2 "channel_barrier.vhd" "in VHDL channel 0 has no members after power-on":
        "return '1';" => "return '0';";
    VHDL_AT_2 "channel_machine.vhd" "in VHDL one member's arrival is enough":
        "not any_high(missing)" => "any_high(arrived)";
};
