//! Tests of the register block in use: bus masters of one chip, and the driver on the Verilated RTL.

mod common;

use barrier_driver::ports::{self, BoxedIn, BoxedOut, BoxedWires, PortError, WireError};
use barrier_driver::registers::map::node;
use barrier_driver::registers::{RegisterBlock, StartPulse};
use barrier_driver::suite::{self, Rig};
use common::{cache, each, or_skip};
use hdl::formal::Mutant;
use hdl::masters::{self, Way};
use hdl::register_claims::BUSES;
use hdl::register_device::Playing;

/// The masters pass barriers in every [`Way`], no bus access returns an error, and each release causes a start pulse.
#[test]
fn masters_on_one_bus_pass_barriers_and_a_sleeper_wakes_two_cycles_after_the_last_arrival() {
    let wishbone = BUSES[1].design();
    let cases = [
        (2, Way::Poll),
        (8, Way::Poll),
        (4, Way::Wake),
        (8, Way::Pulse),
    ];
    each(&cases, |&(masters, way)| {
        let folder = tempfile::tempdir().expect("a folder");
        let seen = masters::play(&wishbone, masters, way, folder.path());
        let Some(seen) = or_skip("masters on one bus", seen) else {
            return;
        };
        println!("{masters} masters, {way:?}: {seen:?}");
        assert_eq!((seen.barriers, seen.early, seen.errors), (500, 0, 0));
        let width = masters::PULSE_WIDTH;
        assert_eq!((seen.pulses, seen.pulse_width), (500, (width, width)));
        assert_eq!(seen.pulse_begins, (2, 2));
        match way {
            Way::Poll => assert_eq!(seen.least, 4),
            Way::Wake | Way::Pulse => assert_eq!((seen.least, seen.most), (2, 2)),
        }
    });
}

#[test]
fn the_masters_notice_a_barrier_that_releases_them_early() {
    let any_arrival = Mutant {
        fault: "one member's arrival is enough",
        file: "channel_machine.v",
        from: "arrived == mask_q",
        to: "(|arrived)",
    };
    let broken = BUSES[1].design().mutated(any_arrival).expect("one place");
    let folder = tempfile::tempdir().expect("a folder");
    let seen = masters::play(&broken, 4, Way::Wake, folder.path());
    if let Some(seen) = or_skip("masters on a broken barrier", seen) {
        assert!(seen.early > 0, "{seen:?}");
    }
}

const NODES: usize = 8;

/// A simulated device of [`NODES`] nodes; nodes 0 to `nodes - 1` are the members.
struct Device {
    playing: Playing,
    nodes: usize,
}

fn device() -> Option<Playing> {
    let device = Playing::start(&[("N", NODES), ("G", 2)], &cache());
    or_skip("the driver on the Verilated register block", device)
}

fn open(device: &Playing, options: &str) -> Result<BoxedWires, PortError> {
    ports::open(&format!("mem:{},{options}", device.file().display()))
}

impl Rig for Device {
    type Error = WireError;
    type Out = BoxedOut;
    type In = BoxedIn;

    fn build(nodes: usize) -> Device {
        let playing = device().expect("it was compiled a moment ago");
        Device { playing, nodes }
    }

    fn wires(&self, node: usize) -> (BoxedOut, BoxedIn) {
        let options = format!("node={node},members=0-{}", self.nodes - 1);
        let wires = open(&self.playing, &options).expect("an idle node can be opened");
        (wires.out, wires.input)
    }

    fn releases(&self) -> u64 {
        self.playing.releases()
    }
}

#[test]
fn the_driver_keeps_its_claims_on_the_verilated_registers() {
    if device().is_none() {
        return;
    }
    suite::no_rank_leaves_before_all_have_entered::<Device>();
    suite::every_barrier_is_one_release::<Device>();
    suite::a_late_node_holds_everyone::<Device>();
    suite::open_clears_what_an_aborted_job_left::<Device>();
    suite::closing_withdraws_an_arrival::<Device>();
    suite::a_panic_withdraws_an_arrival::<Device>();
    suite::a_wait_has_a_limit_and_can_be_resumed::<Device>();
    suite::good_wires_pass_the_self_test::<Device>();
}

#[test]
fn the_driver_programs_the_start_pulse_and_reads_the_time_of_its_release() {
    let Some(device) = device() else {
        return;
    };
    let opened = std::fs::File::options()
        .read(true)
        .write(true)
        .open(device.file());
    let file = opened.expect("the device's file");
    let block = RegisterBlock::map(&file, 0, "the block").expect("a block");
    let wanted = StartPulse {
        groups: 1,
        cycles: 1000,
        is_inverted: true,
    };
    block.set_start_pulse(wanted);
    assert_eq!(block.start_time(), 0, "no release yet");
    // A barrier with one member releases as soon as that node enters.
    let _claimed = open(&device, "node=3,members=3").expect("an idle node");
    block.write(block.node(3, node::ARRIVE), 1);
    while block.start_time() == 0 {
        std::thread::yield_now();
    }
    assert_eq!(device.releases(), 1);
    assert_eq!(block.start_pulse(), Some(wanted));
}

#[test]
fn a_node_that_cannot_take_part_is_refused_with_the_reason() {
    let Some(device) = device() else {
        return;
    };
    let refused = |options: &str, reason: &str| {
        let error = open(&device, options).expect_err(options).to_string();
        assert!(error.contains(reason), "{options}: {error}");
    };
    refused("node=0", "its group 0 has the members 0x0");
    refused("node=8", "has 8 nodes and 2 groups, counted from 0");
    refused("node=0,group=2", "has 8 nodes and 2 groups");
    refused(
        "node=0,members=1-3",
        "members= does not name the node itself",
    );
    refused("node=0,members=x", "is not a list of nodes such as 0-3+6");
    refused("group=0", "node= is missing");
    refused("node=0,out=D0", "it has no key \"out\"");
    let first = open(&device, "node=0,members=0-1").expect("it is idle");
    refused("node=0,members=0-1", "is in use by another process");
    drop(first);
    open(&device, "node=0").expect("the lock is gone with its holder");
    let channels = ports::open_channels(&format!("mem:{},node=0", device.file().display()));
    let error = channels.expect_err("no channels").to_string();
    assert!(error.contains("groups instead of channels"), "{error}");
}

#[test]
fn a_file_that_is_no_register_block_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("other");
    let open = || {
        let text = format!("mem:{},node=0", path.display());
        ports::open(&text).expect_err("no registers").to_string()
    };
    assert!(open().contains("there is no such file"), "{}", open());
    std::fs::write(&path, [0; 64]).expect("a file");
    assert!(open().contains("it has 64 bytes"), "{}", open());
    std::fs::write(&path, [0xff; 8192]).expect("a file");
    assert!(
        open().contains("every bit of its first register"),
        "{}",
        open()
    );
    std::fs::write(&path, [7; 8192]).expect("a file");
    assert!(open().contains("reads 0x07070707"), "{}", open());
}
