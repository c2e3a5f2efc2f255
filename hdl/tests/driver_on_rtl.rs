//! The driver's test suite on the simulated RTL, with the same claims as for every other port.

mod common;

use barrier_driver::suite::{self, Rig};
use common::{cache, or_skip, tool_errors};
use hdl::cosim::{RtlBoard, RtlPin};
use std::convert::Infallible;

struct Rtl(RtlBoard);

impl Rig for Rtl {
    type Error = Infallible;
    type Out = RtlPin;
    type In = RtlPin;

    fn build(nodes: usize) -> Rtl {
        Rtl(RtlBoard::build(nodes, 1, &cache()).expect("Verilator was there a moment ago"))
    }

    fn wires(&self, node: usize) -> (RtlPin, RtlPin) {
        self.0.wires(node)
    }

    fn releases(&self) -> u64 {
        self.0.releases()
    }
}

#[test]
fn the_driver_keeps_its_claims_on_the_rtl() {
    let there = RtlBoard::build(2, 1, &cache()).map(drop);
    if or_skip("the driver on the RTL", tool_errors(there)).is_none() {
        return;
    }
    suite::no_rank_leaves_before_all_have_entered::<Rtl>();
    suite::every_barrier_is_one_release::<Rtl>();
    suite::a_late_node_holds_everyone::<Rtl>();
    suite::open_clears_what_an_aborted_job_left::<Rtl>();
    suite::closing_withdraws_an_arrival::<Rtl>();
    suite::a_panic_withdraws_an_arrival::<Rtl>();
    suite::a_wait_has_a_limit_and_can_be_resumed::<Rtl>();
    suite::good_wires_pass_the_self_test::<Rtl>();
}
