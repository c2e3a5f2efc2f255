//! Tests that a message for device memory is copied to the device while later bytes of the message arrive.

use super::{content, scratch};
use fake::{Fake, MEMORY};
use mpi_base::accelerator::twins::Registered;
use mpi_base::accelerator::{Accelerator, AcceleratorError, Direction, Flight, Memory, Strip};
use mpi_core::comm::Probed;
use mpi_core::datatype::Scratch;
use mpi_core::pml::{Config, Mode};
use mpi_core::request::{ANY_SOURCE, ANY_TAG};
use mpi_core::testing::Job;

#[path = "../../../../mpi-base/src/accelerator/fake.rs"]
mod fake;

/// The length of a message in bytes: several pieces and a rest.
const LEN: usize = (16 << 20) + 5;

/// The content of the receive buffer's last byte before the message arrives.
const EMPTY: u8 = 0xA5;

/// A receive buffer in host memory that represents device memory.
struct Target {
    twin: Registered,
    by: &'static Fake,
    host: Scratch,
    device: Vec<u8>,
}

impl Target {
    fn new(len: usize) -> Target {
        let host = scratch(len);
        host.all().unpack_at(0, &vec![EMPTY; len]);
        let start = host.all().ptr();
        let last = start.wrapping_add(len - 1).expose_provenance();
        let by = Fake::leaked(move || {
            let last = std::ptr::with_exposed_provenance::<u8>(last);
            // SAFETY: copies are started only while the buffer exists.
            unsafe { last.read_volatile() }
        });
        let mut device = vec![EMPTY; len];
        let all: (&'static dyn Accelerator, Memory) = (by, MEMORY);
        // SAFETY: the registration is dropped before the host memory, by the order of the fields.
        let twin = unsafe { Registered::new(all, device.as_mut_ptr(), start, len) };
        Target {
            twin,
            by,
            host,
            device,
        }
    }

    /// Checks the device's content after a message of `len` bytes. Returns true if the first copy started before the last byte arrived.
    fn holds(&self, at: usize, len: usize) -> bool {
        assert_eq!(self.twin.twin().land(0..len), Ok(()));
        assert_eq!(self.by.in_flight(), 0);
        let copies = self.by.take_started();
        let copied: usize = copies.iter().map(|copy| copy.len).sum();
        assert_eq!(copied, len, "each byte is copied once");
        assert!(self.device[..len] == content(at, len)[..]);
        assert!(self.device[len..].iter().all(|byte| *byte == EMPTY));
        copies.first().is_some_and(|copy| copy.seen == EMPTY)
    }
}

/// Sends messages from rank 1 to the device memory of rank 0, in each form of a receive.
fn receives(job: &Job) {
    // The arrival of the last byte changes it.
    assert_ne!(content(3, LEN)[LEN - 1], EMPTY);
    assert_ne!(content(3, LEN)[LEN / 2 - 1], EMPTY);
    job.run(|engine| {
        let world = engine.world().expect("a world");
        let to_rank_0 = |at, len| {
            let data = scratch(len);
            data.all().unpack_at(0, &content(at, len));
            let sent = (world.p2p()).send(data.all().as_send(), 0, 7, Mode::Standard);
            sent.expect("sent");
        };
        if engine.me() == 1 {
            (0..3).for_each(|_| to_rank_0(3, LEN));
            return;
        }
        // The receive is posted before the message arrives.
        let target = Target::new(LEN);
        let req = world.p2p().irecv(target.host.all(), ANY_SOURCE, ANY_TAG);
        engine.wait(&req.expect("posted")).expect("received");
        assert!(target.holds(3, LEN), "a receive");
        // A matched probe returns the message before the receive.
        let target = Target::new(LEN);
        let Ok(Probed::Message(message)) = world.probes().mprobe(1, 7) else {
            panic!("MPI_PROC_NULL");
        };
        let req = world.p2p().imrecv(message, target.host.all());
        engine.wait(&req).expect("received");
        assert!(target.holds(3, LEN), "a matched receive");
        // The message is longer than the buffer.
        let target = Target::new(LEN / 2);
        let received = world.p2p().recv(target.host.all(), 1, 7);
        assert!(received.is_err());
        assert!(target.holds(3, LEN / 2), "a truncated message");
        assert_eq!(engine.pml().protocol_errors(), 0);
    });
}

#[test]
fn a_single_copy_reaches_the_device_in_pieces() {
    let both_copy = Config {
        assist_min: 0,
        measure: true,
        ..Config::default()
    };
    for pml in [Config::default(), both_copy] {
        receives(&Job { pml, ..Job::of(2) });
    }
}

#[test]
fn fragments_reach_the_device_in_pieces() {
    let pml = Config {
        single_copy_min: u64::MAX,
        ..Config::default()
    };
    receives(&Job { pml, ..Job::of(2) });
}

#[test]
fn fragments_of_a_network_reach_the_device_in_pieces() {
    let job = Job {
        nodes: 2,
        ..Job::of(2)
    };
    // Fragments on several links would arrive in any order.
    receives(&job.with("btl_tcp_links", "1"));
}
