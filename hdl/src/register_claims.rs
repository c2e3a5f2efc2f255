//! Claims about the register block and its buses, and mutants that must be refuted; [`formal`](crate::formal) decides them.

use crate::formal::{Claim, Design, Mutant, texts};
use crate::source::{
    APB_RTL, APB_VHDL, AXI4LITE_RTL, AXI4LITE_VHDL, REGISTER_RTL, REGISTER_TOP, REGISTER_VHDL,
    Source, WISHBONE_RTL, WISHBONE_VHDL, source,
};

/// The module with the assertions about [`REGISTER_RTL`].
pub const CONTRACT: Source = source!("registers/formal/regs_contract.v");

/// The register block alone, without a bus protocol.
pub fn design() -> Design {
    Design {
        top: REGISTER_TOP,
        verilog: texts(&REGISTER_RTL),
        vhdl: texts(&REGISTER_VHDL),
    }
}

/// A bus: the register block with its front (the adapter from the bus protocol to the register
/// block, such as `apb_front`), and the claims about the front.
#[derive(Debug, Clone, Copy)]
pub struct Bus {
    /// The name of the top module, which connects the front with the register block.
    pub top: &'static str,
    /// The name of the front's module.
    pub front: &'static str,
    /// The files of `top`; the second one is the front.
    pub rtl: &'static [Source],
    /// The files of `top` in VHDL-93, in analysis order; the last but one is the front.
    pub vhdl: &'static [Source],
    contract: Source,
    mutants: &'static [Mutant],
}

/// All bus protocols.
pub const BUSES: [Bus; 3] = [
    Bus {
        top: "barrier_axi4lite",
        front: "axi4lite_front",
        rtl: &AXI4LITE_RTL,
        vhdl: &AXI4LITE_VHDL,
        contract: source!("registers/formal/axi4lite_contract.v"),
        mutants: AXI4LITE_MUTANTS,
    },
    Bus {
        top: "barrier_wishbone",
        front: "wishbone_front",
        rtl: &WISHBONE_RTL,
        vhdl: &WISHBONE_VHDL,
        contract: source!("registers/formal/wishbone_contract.v"),
        mutants: WISHBONE_MUTANTS,
    },
    Bus {
        top: "barrier_apb",
        front: "apb_front",
        rtl: &APB_RTL,
        vhdl: &APB_VHDL,
        contract: source!("registers/formal/apb_contract.v"),
        mutants: APB_MUTANTS,
    },
];

impl Bus {
    /// Returns the front together with the register block.
    pub fn design(&self) -> Design {
        Design {
            top: self.top,
            verilog: texts(self.rtl),
            vhdl: texts(self.vhdl),
        }
    }

    /// Returns the front without the register block, whose answers are free inputs.
    pub fn front_alone(&self) -> Design {
        Design {
            top: self.front,
            verilog: texts(&self.rtl[1..2]),
            vhdl: texts(&self.vhdl[self.vhdl.len() - 2..self.vhdl.len() - 1]),
        }
    }

    /// Returns the claims about the front, each with a sentence that states it.
    pub fn claims(&self) -> [(&'static str, Claim); 2] {
        [
            ("the front keeps the contract of its bus", self.kept()),
            (
                "the front in VHDL is the Verilog",
                Claim::VhdlIsVerilog {
                    parameters: &[("ADDRESS", 13)],
                },
            ),
        ]
    }

    /// Returns mutants of the front, each with the claim that must refute it.
    pub fn mutants(&self) -> Vec<(Mutant, Claim)> {
        let all = self.mutants.iter();
        all.map(|mutant| (*mutant, self.kept())).collect()
    }

    /// Returns the module with the assertions about the front.
    pub fn contract(&self) -> Source {
        self.contract
    }

    fn kept(&self) -> Claim {
        Claim::Asserts {
            module: self.contract,
            parameters: &[],
        }
    }
}

const AT_2: Claim = Claim::Asserts {
    module: CONTRACT,
    parameters: &[("N", 2), ("G", 2)],
};

/// For mutants of the start pulse: their counter-examples are long, and one node suffices.
const AT_1: Claim = Claim::Asserts {
    module: CONTRACT,
    parameters: &[("N", 1), ("G", 1)],
};

const VHDL_AT_2: Claim = Claim::VhdlIsVerilog {
    parameters: &[("N", 2), ("G", 1)],
};

/// Claims about the register block that must be proved, each with a sentence that states it.
pub const CLAIMS: &[(&str, Claim)] = &[
    (
        "the register block in VHDL is the Verilog, 1 node, 1 group",
        Claim::VhdlIsVerilog {
            parameters: &[("N", 1), ("G", 1)],
        },
    ),
    (
        "2 nodes, 2 groups, wires of the same clock: every group is a toggle machine, and no event and no arrival is lost",
        AT_2,
    ),
    (
        "1 node, 1 group, three synchroniser stages, pages of 4096 bytes: the same",
        Claim::Asserts {
            module: CONTRACT,
            parameters: &[("N", 1), ("G", 1), ("SYNC", 3), ("STRIDE", 12)],
        },
    ),
];

/// Claims whose proofs take long; only tests with `--long` prove them.
pub const LONG_CLAIMS: &[(&str, Claim)] = &[
    (
        "the register block in VHDL is the Verilog, 2 nodes, 1 group",
        VHDL_AT_2,
    ),
    (
        "3 nodes, 2 groups, wires of the same clock: every group is a toggle machine, and no event and no arrival is lost",
        Claim::Asserts {
            module: CONTRACT,
            parameters: &[("N", 3), ("G", 2)],
        },
    ),
    (
        "2 nodes, 1 group, three synchroniser stages, pages of 4096 bytes: the same",
        Claim::Asserts {
            module: CONTRACT,
            parameters: &[("N", 2), ("G", 1), ("SYNC", 3), ("STRIDE", 12)],
        },
    ),
    (
        "8 nodes, 2 groups, two synchroniser stages: every group is a toggle machine, and no event and no arrival is lost",
        Claim::Asserts {
            module: CONTRACT,
            parameters: &[("N", 8), ("G", 2), ("SYNC", 2)],
        },
    ),
    (
        "31 nodes, 1 group: the same",
        Claim::Asserts {
            module: CONTRACT,
            parameters: &[("N", 31), ("G", 1)],
        },
    ),
    (
        "the register block in VHDL is the Verilog, 3 nodes, 2 groups, wires of the same clock, without stamps",
        Claim::VhdlIsVerilog {
            parameters: &[("N", 3), ("G", 2), ("SYNC", 0), ("STAMPS", 0)],
        },
    ),
    (
        "the register block in VHDL is the Verilog, 33 nodes, 1 group",
        Claim::VhdlIsVerilog {
            parameters: &[("N", 33), ("G", 1), ("SYNC", 3), ("STRIDE", 12)],
        },
    ),
];

macro_rules! mutants {
    ($($claim:ident $file:literal $fault:literal: $from:literal => $to:literal;)*) => {
        &[$((Mutant { fault: $fault, file: $file, from: $from, to: $to }, $claim)),*]
    };
}

/// Mutants of [`design`], each with a claim that must refute it.
pub const MUTANTS: &[(Mutant, Claim)] = mutants! {
    AT_2 "barrier_regs.v" "an event of the block in the cycle of its clear is lost":
        "(intr_q & ~cleared) | tested | events;" => "(intr_q | tested | events) & ~cleared;";
    AT_2 "barrier_regs.v" "an event of a node in the cycle of its clear is lost":
        "(node_intr_q & ~node_cleared) | node_tested | node_events;" => "(node_intr_q | node_tested | node_events) & ~node_cleared;";
    AT_2 "barrier_regs.v" "a clear clears the events of all nodes":
        "clears = node_write[n] && node_word" => "clears = (|node_write) && node_word";
    AT_2 "barrier_regs.v" "a pulse in the cycle of a store is lost":
        "stored ^ toggled;" => "stored | toggled;";
    AT_2 "barrier_regs.v" "members change in the middle of a barrier":
        "sets_mask = (sets_low || sets_high) && at_rest;" => "sets_mask = sets_low || sets_high;";
    AT_2 "barrier_regs.v" "a new member need not rest":
        "(members | wanted[N-1:0]));" => "members);";
    AT_2 "barrier_regs.v" "a refused write is answered as done":
        "!writable || refused);" => "!writable);";
    AT_2 "barrier_regs.v" "nodes that are no members are released":
        "members & {N{releases[g] && !rst_i}};" => "{N{releases[g] && !rst_i}};";
    AT_2 "barrier_regs.v" "the members of group 0 get the events of every group":
        "releases[k] && mask[k*N+i];" => "releases[k] && mask[i];";
    AT_2 "barrier_regs.v" "a store enters all groups by the bit of group 0":
        "stores ? wdata_i[g] :" => "stores ? wdata_i[0] :";
    AT_2 "barrier_regs.v" "a block that is not enabled releases":
        "(enable_q ? line[g*N +: N] : {N{level[g]}})" => "(line[g*N +: N])";
    AT_2 "barrier_regs.v" "a write of some bytes is carried out":
        "wire whole = &wstrb_i;" => "wire whole = |wstrb_i;";
    AT_2 "barrier_regs.v" "a wire does not count":
        "line = arrive_q ^ wires;" => "line = arrive_q | wires;";
    AT_2 "barrier_regs.v" "a reset leaves the block enabled":
        "            enable_q      <= 1'b0;\n" => "";
    AT_2 "barrier_regs.v" "an event that is not enabled wakes":
        "|(node_intr_q[16*n +: 16] & node_enable_q[16*n +: 16]);" => "|node_intr_q[16*n +: 16];";
    AT_1 "start_pulse.v" "a pulse is one cycle too long":
        "left != 16'd0) ^ invert_i" => "left_q != 16'd0 || left != 16'd0) ^ invert_i";
    AT_1 "start_pulse.v" "a release during a pulse begins another":
        "        if (idle)\n" => "        if (idle || release_i)\n";
    AT_1 "start_pulse.v" "the line is active low only in a reset":
        "^ invert_i);" => ");";
    AT_1 "barrier_regs.v" "every group starts":
        "(releases & pulse_q[17 +: G])" => "releases";
    AT_1 "barrier_regs.v" "the stamp is of the last release, also without a pulse":
        "else if (begins)" => "else if (|releases)";
    AT_2 "barrier_regs.v" "DONE is of the register without the wire":
        "line[k*N+i] == level[k];" => "arrive_q[k*N+i] == level[k];";
    VHDL_AT_2 "barrier_regs.vhd" "in VHDL an event of a node in the cycle of its clear is lost":
        "(node_intr_q(16 * k + 15 downto 16 * k) and not cleared) or tested or happened;" =>
        "(node_intr_q(16 * k + 15 downto 16 * k) or tested or happened) and not cleared;";
};

const AXI4LITE_MUTANTS: &[Mutant] = &[
    Mutant {
        fault: "a response is overwritten by that of the next write",
        file: "axi4lite_front.v",
        from: "(!bvalid_q || bready_i) && !rst_i;",
        to: "!rst_i;",
    },
    Mutant {
        fault: "a read response is lost if the master is not ready",
        file: "axi4lite_front.v",
        from: "reads || (rvalid_q && !rready_i);",
        to: "reads;",
    },
    Mutant {
        fault: "a write is taken with the data of another one",
        file: "axi4lite_front.v",
        from: "writes = awvalid_i && wvalid_i &&",
        to: "writes = awvalid_i &&",
    },
    Mutant {
        fault: "the data change while the response waits",
        file: "axi4lite_front.v",
        from: "        if (reads) begin",
        to: "        begin",
    },
    Mutant {
        fault: "a response is there right after a reset",
        file: "axi4lite_front.v",
        from: "            bvalid_q <= 1'b0;\n",
        to: "            bvalid_q <= bvalid_q;\n",
    },
    Mutant {
        fault: "an error is EXOKAY",
        file: "axi4lite_front.v",
        from: "{rerror_q, 1'b0};",
        to: "{1'b0, rerror_q};",
    },
];

const WISHBONE_MUTANTS: &[Mutant] = &[
    Mutant {
        fault: "a write is repeated in each cycle of STB",
        file: "wishbone_front.v",
        from: "write_o = ends && we_i;",
        to: "write_o = asks && we_i;",
    },
    Mutant {
        fault: "the end comes after the master has withdrawn",
        file: "wishbone_front.v",
        from: "ends  = asks && second_q && !rst_i;",
        to: "ends  = second_q && !rst_i;",
    },
    Mutant {
        fault: "the next transfer ends in its first cycle",
        file: "wishbone_front.v",
        from: "second_q <= asks && !second_q && !rst_i;",
        to: "second_q <= asks && !rst_i;",
    },
    Mutant {
        fault: "an error has both ends",
        file: "wishbone_front.v",
        from: "ack_o = ends && !error;",
        to: "ack_o = ends;",
    },
];

const APB_MUTANTS: &[Mutant] = &[
    Mutant {
        fault: "a write has its effect in SETUP too",
        file: "apb_front.v",
        from: "write_o = access && pwrite_i;",
        to: "write_o = psel_i && pwrite_i;",
    },
    Mutant {
        fault: "a read returns the error of a write",
        file: "apb_front.v",
        from: "(pwrite_i ? werror_i : rerror_i);",
        to: "werror_i;",
    },
    Mutant {
        fault: "an error is there without an access",
        file: "apb_front.v",
        from: "pslverr_o = access && (",
        to: "pslverr_o = (",
    },
];
