//! The register block of the barrier behind a file that programs map, emulated by a thread.
//!
//! Levels are exact: the thread polls every node's ARRIVE in the mapped file, and writes LEVEL,
//! DONE and the registers of the node's group.
//! Differences from the hardware: a new member mask takes effect immediately, even if lines are
//! not at rest; limits and stamps are absent; the start pulse has registers but no line, and its
//! clock has 1 MHz and starts with the device; bit 31 of a node's INTR_STATE is always 1,
//! because a program's store that clears an event must change the value of the word.

use barrier_driver::registers::RegisterBlock;
use barrier_driver::registers::map::{self, Field, global, group, node};
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

/// Bit 31 of a node's INTR_STATE, which the emulation always sets.
/// A program writes only event bits, so the thread recognises a program's write by a clear bit 31.
const SHOWN: u32 = 1 << 31;

/// The frequency in Hz of the emulated clock, in whose cycles START is counted.
const CLOCK_HZ: u32 = 1_000_000;

/// Binary logarithm of the size of a node's page in bytes.
const STRIDE: u32 = 6;

/// The callback for each counted interrupt; its argument is the node.
pub(crate) type OnInterrupt = Box<dyn FnMut(usize) + Send>;

/// The emulated device; it ends when this value is dropped.
#[derive(Debug)]
pub struct RegisterDevice {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// The state that the emulating thread shares with the interrupt files.
pub(crate) struct Shared {
    nodes: usize,
    /// Number of interrupts of each node since the device was created.
    counts: Vec<AtomicU64>,
    /// For each node, true if its next interrupt is delivered.
    enabled: Vec<AtomicBool>,
    on_interrupt: Mutex<Option<OnInterrupt>>,
    is_over: AtomicBool,
    releases: AtomicU64,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a register block of {} nodes", self.nodes)
    }
}

impl RegisterDevice {
    /// Creates the file and emulates a block of `nodes` nodes (at most 64) and `groups` groups (at most 8) behind it.
    pub fn create(file: &Path, nodes: usize, groups: usize) -> io::Result<Self> {
        if !(1..=64).contains(&nodes) || !(1..=8).contains(&groups) {
            return Err(io::Error::other(format!(
                "a register block has 1 to 64 nodes and 1 to 8 groups, not {nodes} and {groups}"
            )));
        }
        std::fs::write(file, image(nodes, groups))?;
        let opened = File::options().read(true).write(true).open(file)?;
        let block = RegisterBlock::map(&opened, 0, "the emulated registers");
        let block = block.map_err(io::Error::other)?;
        let each = 0..nodes;
        let shared = Arc::new(Shared {
            nodes,
            counts: each.clone().map(|_| AtomicU64::new(0)).collect(),
            enabled: each.map(|_| AtomicBool::new(false)).collect(),
            on_interrupt: Mutex::new(None),
            is_over: AtomicBool::new(false),
            releases: AtomicU64::new(0),
        });
        let mut machine = Machine {
            block,
            shared: shared.clone(),
            levels: vec![false; groups],
            events: vec![0; nodes],
            created: Instant::now(),
            pulse_ends: 0,
        };
        let thread = thread::spawn(move || {
            while !machine.shared.is_over.load(Ordering::Relaxed) {
                machine.turn();
                thread::yield_now();
            }
        });
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// Returns the total number of releases of all groups.
    pub fn releases(&self) -> u64 {
        self.shared.releases.load(Ordering::Acquire)
    }

    pub(crate) fn shared(&self) -> Arc<Shared> {
        self.shared.clone()
    }
}

impl Drop for RegisterDevice {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The thread's panic message has been printed,
            // and the program fails because the device no longer responds.
            let _ = thread.join();
        }
    }
}

impl Shared {
    pub(crate) fn nodes(&self) -> usize {
        self.nodes
    }

    pub(crate) fn count(&self, node: usize) -> u64 {
        self.counts[node].load(Ordering::Acquire)
    }

    pub(crate) fn enable(&self, node: usize, on: bool) {
        self.enabled[node].store(on, Ordering::Release);
    }

    pub(crate) fn call_on_interrupt(&self, call: OnInterrupt) {
        *self
            .on_interrupt
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(call);
    }

    /// Handles a node's interrupt line while it is high:
    /// if the interrupt is enabled, counts one and disables it until the program enables it again.
    fn interrupt(&self, node: usize) {
        if !self.enabled[node].swap(false, Ordering::AcqRel) {
            return;
        }
        self.counts[node].fetch_add(1, Ordering::AcqRel);
        let mut call = self
            .on_interrupt
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(call) = call.as_mut() {
            call(node);
        }
    }
}

/// Returns the initial contents of the file, as after a reset.
fn image(nodes: usize, groups: usize) -> Vec<u8> {
    let page = 1_usize << STRIDE;
    let mut words = vec![0_u32; (node::BASE + nodes * page) / 4];
    words[(global::BASE + global::ID) / 4] = map::IDENTITY;
    words[(global::BASE + global::VERSION) / 4] = map::VERSION;
    words[(global::BASE + global::CAPS) / 4] = global::caps::PULSE.with(1);
    words[(global::BASE + global::CLOCK_HZ) / 4] = CLOCK_HZ;
    words[(global::BASE + global::SIZES) / 4] = global::sizes::N.with(nodes as u32)
        | global::sizes::G.with(groups as u32)
        | global::sizes::STRIDE.with(STRIDE);
    for number in 0..nodes {
        let first = node::BASE + number * page;
        words[(first + node::DONE) / 4] = Field::with(node::done::GROUP, u32::MAX >> (32 - groups));
        words[(first + node::INTR_STATE) / 4] = SHOWN;
    }
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// The state of the emulating thread.
struct Machine {
    block: RegisterBlock,
    shared: Arc<Shared>,
    levels: Vec<bool>,
    /// Pending events of each node, as the bits of INTR_STATE.
    events: Vec<u32>,
    created: Instant,
    /// The cycle in which the last start pulse ends.
    pulse_ends: u64,
}

impl Machine {
    fn turn(&mut self) {
        // The programs' clears are processed before the releases,
        // so a clear never removes a new event.
        for number in 0..self.shared.nodes {
            let written = self.of_node(number, node::INTR_STATE);
            if written & SHOWN == 0 {
                self.events[number] &= !written;
                self.show(number, node::INTR_STATE, self.events[number] | SHOWN);
            }
        }
        let arrivals: Vec<u32> = (0..self.shared.nodes)
            .map(|node| self.of_node(node, node::ARRIVE))
            .collect();
        let control = self.block.read(global::BASE + global::CTRL);
        let enabled = global::ctrl::ENABLE.of(control) == 1;
        for number in 0..self.levels.len() {
            self.serve_group(number, &arrivals, enabled);
        }
        for (number, arrival) in arrivals.iter().enumerate() {
            self.serve_node(number, *arrival);
        }
    }

    fn serve_group(&mut self, number: usize, arrivals: &[u32], enabled: bool) {
        let members = self.block.members(number as u32);
        let level = self.levels[number];
        let inside = |(node, arrival): (usize, &u32)| {
            let away = (arrival >> number & 1 == 1) != level;
            u64::from(away && members >> node & 1 == 1) << node
        };
        let arrived = arrivals.iter().enumerate().map(inside).sum::<u64>();
        let releases = enabled && members != 0 && arrived == members;
        if releases {
            self.levels[number] = !level;
            for (node, events) in self.events.iter_mut().enumerate() {
                if members >> node & 1 == 1 {
                    *events |= node::intr_state::RELEASE.with(1 << number);
                }
            }
            let count = RegisterBlock::group(number as u32, group::RELEASES);
            self.block
                .write(count, self.block.read(count).wrapping_add(1));
            self.start_pulse(number);
            self.shared.releases.fetch_add(1, Ordering::AcqRel);
        }
        let arrived = if releases { 0 } else { arrived };
        let status = group::status::LEVEL.with(u32::from(self.levels[number]))
            | group::status::BUSY.with(u32::from(arrived != 0));
        let place = |register| RegisterBlock::group(number as u32, register);
        self.block.write(place(group::ARRIVED0), arrived as u32);
        self.block
            .write(place(group::ARRIVED1), (arrived >> 32) as u32);
        self.block.write(place(group::STATUS), status);
    }

    /// Begins a pulse at a release of this group, if the group has pulses and no pulse is in progress.
    fn start_pulse(&mut self, group: usize) {
        let Some(pulse) = self.block.start_pulse() else {
            return;
        };
        let now = self.created.elapsed().as_micros() as u64;
        let begins = pulse.groups >> group & 1 == 1 && pulse.cycles > 0 && now >= self.pulse_ends;
        if begins {
            self.pulse_ends = now + u64::from(pulse.cycles);
            self.block.write(global::BASE + global::START, now as u32);
        }
    }

    fn serve_node(&mut self, number: usize, arrival: u32) {
        let levels = self.levels.iter().enumerate();
        let levels = levels.fold(0, |bits, (group, &level)| bits | u32::from(level) << group);
        let all = u32::MAX >> (32 - self.levels.len());
        self.show(number, node::LEVEL, levels);
        self.show(number, node::DONE, !(arrival ^ levels) & all);
        // This store may overwrite a program's concurrent store that clears events.
        // The program then gets one more interrupt for these events, and no event is lost.
        self.show(number, node::INTR_STATE, self.events[number] | SHOWN);
        if self.events[number] & self.of_node(number, node::INTR_ENABLE) != 0 {
            self.shared.interrupt(number);
        }
    }

    fn of_node(&self, number: usize, register: usize) -> u32 {
        self.block.read(self.block.node(number as u32, register))
    }

    fn show(&self, number: usize, register: usize, value: u32) {
        let address = self.block.node(number as u32, register);
        if self.block.read(address) != value {
            self.block.write(address, value);
        }
    }
}
