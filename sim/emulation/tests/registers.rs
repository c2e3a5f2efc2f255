//! Tests of the ports `mem` and `uio` on an emulated register block:
//! the driver's suite, and sleeping until the interrupt.
#![cfg(target_os = "linux")]

use barrier_driver::ports::{self, BoxedIn, BoxedOut, WireError};
use barrier_driver::suite::Rig;
use barrier_emulation::registers::RegisterDevice;
use barrier_emulation::uio::Uios;
use std::path::PathBuf;
use tempfile::TempDir;

/// Returns true if this process may mount file systems; otherwise prints a message.
fn can_mount() -> bool {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("registers");
    let device = RegisterDevice::create(&file, 1, 1).expect("a device");
    match Uios::mount(&device) {
        Ok(_) => true,
        Err(e) => {
            eprintln!("SKIPPED: uio is not tested, this process may not mount /dev/fuse: {e}");
            false
        }
    }
}

/// A rig of a device and the mapped file with its registers.
struct Mapped {
    device: RegisterDevice,
    file: PathBuf,
    nodes: usize,
    _folder: TempDir,
}

impl Mapped {
    fn new(nodes: usize) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("registers");
        Self {
            device: RegisterDevice::create(&file, nodes, 2).expect("a device"),
            file,
            nodes,
            _folder: folder,
        }
    }

    fn options(&self, node: usize) -> String {
        format!("node={node},group=1,members=0-{}", self.nodes - 1)
    }
}

fn opened(text: &str) -> (BoxedOut, BoxedIn) {
    let wires = ports::open(text).expect("an idle node can be opened");
    (wires.out, wires.input)
}

impl Rig for Mapped {
    type Error = WireError;
    type Out = BoxedOut;
    type In = BoxedIn;

    fn build(nodes: usize) -> Self {
        Self::new(nodes)
    }

    fn wires(&self, node: usize) -> (BoxedOut, BoxedIn) {
        let file = self.file.display();
        opened(&format!("mem:{file},{}", self.options(node)))
    }

    fn releases(&self) -> u64 {
        self.device.releases()
    }
}

mod over_mem {
    use super::Mapped;

    barrier_driver::port_suite!(Mapped);
}

/// A rig of a mapped device and a file for the interrupt of each node.
struct WithInterrupts {
    // The files are declared first, so that they are unmounted before the device ends.
    files: Uios,
    mapped: Mapped,
}

impl Rig for WithInterrupts {
    type Error = WireError;
    type Out = BoxedOut;
    type In = BoxedIn;

    fn build(nodes: usize) -> Self {
        let mapped = Mapped::new(nodes);
        let files = Uios::mount(&mapped.device).expect("asked first");
        Self { files, mapped }
    }

    fn wires(&self, node: usize) -> (BoxedOut, BoxedIn) {
        let device = self.files.path(node);
        let (device, file) = (device.display(), self.mapped.file.display());
        let options = self.mapped.options(node);
        opened(&format!("uio:{device},registers={file},{options}"))
    }

    fn releases(&self) -> u64 {
        self.mapped.releases()
    }
}

#[test]
fn the_driver_keeps_its_claims_over_uio() {
    if !can_mount() {
        return;
    }
    use barrier_driver::suite;
    suite::no_rank_leaves_before_all_have_entered::<WithInterrupts>();
    suite::a_late_node_holds_everyone::<WithInterrupts>();
    suite::good_wires_pass_the_self_test::<WithInterrupts>();
}

#[test]
fn a_node_sleeps_until_its_interrupt() {
    if !can_mount() {
        return;
    }
    use barrier_driver::suite;
    suite::a_sleeper_is_woken_by_the_release::<WithInterrupts>();
    suite::a_sleep_has_a_limit_and_can_be_resumed::<WithInterrupts>();
}
