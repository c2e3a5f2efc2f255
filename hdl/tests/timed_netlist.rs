//! The netlist of a board's device with place-and-route delays has the same outputs as the RTL.

mod common;
#[allow(
    dead_code,
    unused_imports,
    reason = "the stimuli alone, without the comparison"
)]
#[path = "common/subjects.rs"]
mod subjects;

use common::or_skip;
use hdl::fpga::{ICESTICK, Target};
use hdl::{coverage, timed_netlist};

/// Played at half the iCEstick's clock period of 40 ns, and at a period below the longest path.
#[test]
fn the_netlist_with_delays_does_what_the_rtl_does_until_the_clock_is_too_fast() {
    let subject = subjects::toggle(1500);
    let folder = tempfile::tempdir().expect("a folder");
    let rtl = or_skip(
        subject.name,
        coverage::verilog_trace(&subject, folder.path()),
    );
    let target: &Target = &ICESTICK;
    let at = |period: usize| {
        let folder = tempfile::tempdir().expect("a folder");
        let trace = timed_netlist::played(
            &subject.play,
            &subject.verilog,
            target,
            &subject.stimulus,
            period,
            folder.path(),
        );
        or_skip("the netlist with delays", trace)
    };
    let (Some(rtl), Some(slow), Some(fast)) = (rtl, at(20_000), at(2_000)) else {
        return;
    };
    let differ = |trace: &str| {
        trace
            .lines()
            .zip(rtl.lines())
            .filter(|(one, other)| one != other)
            .count()
    };
    assert_eq!(slow.lines().count(), rtl.lines().count());
    assert_eq!(differ(&slow), 0, "at 50 MHz");
    assert!(differ(&fast) > 0, "at 500 MHz the delays must be seen");
}
