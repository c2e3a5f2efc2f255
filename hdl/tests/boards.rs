//! The board's bitstream is built, and its clock is met with room.

mod common;

use common::or_skip;
use hdl::fpga;

#[test]
fn every_target_becomes_a_bitstream_that_meets_its_clock() {
    for target in fpga::TARGETS {
        let folder = tempfile::tempdir().expect("a folder");
        let Some(report) = or_skip(target.name, fpga::build(target, folder.path())) else {
            return;
        };
        println!("{}: {report:?}", target.name);
        assert!(report.bytes > 0);
        assert!(
            report.fmax_mhz.min(report.icetime_mhz) > target.clock_mhz,
            "{}: {report:?}",
            target.name
        );
        assert!(
            report.flip_flops >= 121,
            "two stages for 60 wires and the machine: {report:?}"
        );
    }
}
