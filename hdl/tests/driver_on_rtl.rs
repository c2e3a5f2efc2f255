//! The driver's suite against the RTL: the same claims that every port keeps.

mod common;

use barrier_driver::suite::{self, Rig};
use common::or_skip;
use hdl::cosim::{PINS, RtlBoard, RtlPin};
use hdl::verilator;
use std::collections::HashMap;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

struct Rtl(RtlBoard);

/// The RTL of so many nodes, translated once.
fn shared_object(nodes: usize) -> Option<PathBuf> {
    static MADE: Mutex<Option<HashMap<usize, PathBuf>>> = Mutex::new(None);
    let mut made = MADE.lock().expect("no panic in here");
    let made = made.get_or_insert_default();
    if let Some(file) = made.get(&nodes) {
        return Some(file.clone());
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("rtl-{nodes}"));
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = verilator::shared_object(nodes, &PINS, &folder);
    let file = or_skip("the driver on the RTL", file)?;
    made.insert(nodes, file.clone());
    Some(file)
}

impl Rig for Rtl {
    type Error = Infallible;
    type Out = RtlPin;
    type In = RtlPin;

    fn build(nodes: usize) -> Rtl {
        let file = shared_object(nodes).expect("Verilator was there a moment ago");
        // SAFETY: made from our own sources.
        Rtl(unsafe { RtlBoard::load(&file, 1) }.expect("a barrier"))
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
    if shared_object(2).is_none() {
        return;
    }
    suite::nobody_leaves_before_all_have_entered::<Rtl>();
    suite::every_barrier_is_one_release::<Rtl>();
    suite::a_late_node_holds_everyone::<Rtl>();
    suite::open_clears_what_an_aborted_job_left::<Rtl>();
    suite::closing_withdraws_an_arrival::<Rtl>();
    suite::a_panic_withdraws_an_arrival::<Rtl>();
    suite::a_wait_has_a_limit_and_can_be_resumed::<Rtl>();
    suite::good_wires_pass_the_self_test::<Rtl>();
}
