//! The boards' bitstreams are built, and their clocks are met with room.
//!
//! `cargo xtask fpga` builds the targets without a board too.

mod common;

use common::{each, or_skip};
use hdl::fpga;

#[test]
fn every_board_gets_a_bitstream_that_meets_its_clock() {
    let boards: Vec<_> = fpga::TARGETS
        .iter()
        .filter(|target| target.pins.is_some())
        .collect();
    each(&boards, |target| {
        let folder = tempfile::tempdir().expect("a folder");
        let Some(report) = or_skip(target.name, fpga::build(target, folder.path())) else {
            return;
        };
        println!("{}: {report:?}", target.name);
        assert!(report.bytes > 0);
        let slowest = report.fmax_mhz.min(report.icetime_mhz.unwrap_or(f64::MAX));
        assert!(slowest > target.clock_mhz, "{}: {report:?}", target.name);
        assert!(
            report.flip_flops > 2 * target.wires,
            "two stages for each of {} wires, and the machine: {report:?}",
            target.wires
        );
    });
}
