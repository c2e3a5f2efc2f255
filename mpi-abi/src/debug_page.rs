//! Message queues of this process for debuggers, on the [debug page](mpi_base::debug_page).
//!
//! Debuggers expect these names of variables. They read the variables and call no function here.
#![allow(unsafe_code, non_upper_case_globals)]

use crate::lane_tools;
use crate::state::state;
use mpi_base::clock::now_ns;
use mpi_base::debug_page::{self, DebugPage, Kind, Operation, PERIOD_NS};
use mpi_base::installation;
use mpi_core::Engine;
use mpi_core::comm::Comm;
use mpi_core::pml::{Key, Matching};
use mpi_core::request::Body;
use std::os::unix::ffi::OsStrExt as _;
use std::rc::Rc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

/// The debug page of this process.
#[unsafe(no_mangle)]
pub static portcullis_debug_page: DebugPage = DebugPage::new();

/// The NUL-terminated path of the debugger library that reads the page.
#[unsafe(no_mangle)]
pub static MPIR_dll_name: [AtomicU8; 1024] = [const { AtomicU8::new(0) }; 1024];

/// File name of the debugger library, in `PREFIX/lib/portcullis`.
const LIBRARY: &str = "libportcullis-queues.so";

/// Time of the last write of the page, in nanoseconds.
static WRITTEN_NS: AtomicU64 = AtomicU64::new(0);

/// Maximum number of listed operations. Longer lists are omitted, since they cost milliseconds.
const MOST: usize = 100_000;

/// Stores the path of the debugger library.
pub fn begin() {
    let Some(prefix) = installation::prefix() else {
        return;
    };
    let path = prefix.join("lib/portcullis").join(LIBRARY);
    let path = path.as_os_str().as_bytes();
    if path.len() < MPIR_dll_name.len() {
        for (to, byte) in MPIR_dll_name.iter().zip(path) {
            to.store(*byte, Relaxed);
        }
    }
}

/// Writes the page before a sleep of a long wait, at most once per [`PERIOD_NS`].
pub fn write_in_wait() {
    let now = now_ns();
    if now.saturating_sub(WRITTEN_NS.load(Relaxed)) < PERIOD_NS {
        return;
    }
    WRITTEN_NS.store(now, Relaxed);
    let engine = state().engines().engine().try_borrow();
    if let Some(engine) = engine.ok().and_then(|engine| engine.clone()) {
        write(&engine, now);
    }
}

/// Returns the communicators visible to the program, the predefined communicators first.
fn communicators() -> Vec<Comm> {
    let tables = state().tables();
    let predefined = [tables.world(), tables.myself()];
    let predefined = predefined
        .into_iter()
        .filter_map(|cell| cell.borrow().clone());
    let made = tables.comms().borrow();
    let all = predefined.chain(made.iter().map(|(_, object)| Rc::clone(object)));
    all.map(|object| object.comm.clone()).collect()
}

fn write(engine: &Engine, now: u64) {
    let comms = communicators();
    let numbers: Vec<u64> = comms.iter().map(|comm| comm.context().number()).collect();
    let index_of = |number: u64| numbers.iter().position(|known| *known == number);
    let mut operations = active(engine, index_of);
    lane_tools::each_engine(|engine| operations.extend(active(engine, index_of)));
    for (index, comm) in comms.iter().enumerate() {
        let mut messages = comm.p2p().unexpected();
        messages.extend(lane_tools::with_matching(comm, Matching::unexpected).unwrap_or_default());
        operations.extend(messages.into_iter().map(|(key, bytes)| {
            let mut message = of_key(key, Kind::Unexpected, (index, bytes));
            message.proc = message.peer.and_then(|peer| comm.peers().proc(peer));
            message
        }));
    }
    let shown = comms.iter().map(|comm| debug_page::Comm {
        number: comm.context().number(),
        rank: comm.rank(),
        size: comm.size(),
        members: comm.peers().iter().collect(),
        name: comm.name(),
    });
    portcullis_debug_page.write((now, engine.me()), shown, operations.iter());
}

/// Builds an operation from its match key, kind and size.
fn of_key(key: Key, kind: Kind, (comm, bytes): (usize, u64)) -> Operation {
    Operation {
        comm,
        kind,
        peer: u32::try_from(key.source()).ok(),
        proc: None,
        tag: (key.tag() >= 0).then(|| key.tag()),
        bytes,
        has_matched: false,
    }
}

/// Returns the active sends and receives, including those of collective operations.
fn active(engine: &Engine, index_of: impl Fn(u64) -> Option<usize>) -> Vec<Operation> {
    let pml = engine.pml();
    let mut operations = Vec::new();
    if let Some((context, key, bytes)) = pml.waits_here()
        && let Some(comm) = index_of(context.number())
    {
        operations.push(of_key(key, Kind::Receive, (comm, bytes)));
    }
    if pml.requests().live() > MOST {
        return operations;
    }
    for req in pml.requests().under_way() {
        let (kind, about) = match &*req.body.borrow() {
            Body::Send(send) => (Kind::Send, send.about()),
            Body::Recv(recv) => (Kind::Receive, recv.about()),
            _ => continue,
        };
        let Some(comm) = index_of(about.comm) else {
            continue;
        };
        operations.push(Operation {
            comm,
            kind,
            peer: u32::try_from(about.peer).ok(),
            proc: u32::try_from(about.proc).ok(),
            tag: (about.tag >= 0).then_some(about.tag),
            bytes: about.bytes,
            has_matched: kind == Kind::Receive && pml.incoming_from(&req).is_some(),
        });
    }
    operations
}
