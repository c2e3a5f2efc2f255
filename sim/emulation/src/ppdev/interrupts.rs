//! The interrupts of emulated ports: a rise of nACK while control bit 4 is set.
//!
//! A port is not notified when a board's wire changes, so the emulation polls the wire:
//! at each call of a program, and continuously in a thread while a program waits for an interrupt.
//! A pulse between two polls is missed. A barrier's wire has no such pulse:
//! the wire keeps its level until the nodes have entered the next barrier.

use super::{INTERRUPTS, ParallelPort, Register, State};
use fuser::{Errno, FileHandle, PollNotifier};
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Status bit of nACK.
const ACK: u8 = 1 << 6;

/// Polling interval while a program sleeps.
const PERIOD: Duration = Duration::from_micros(20);

/// Returns the level of nACK at a port.
pub(super) fn ack(port: &mut ParallelPort) -> bool {
    port.read(Register::Status) & ACK != 0
}

/// The ports, their files, and the condition variable
/// on which the polling thread waits until a program sleeps.
pub(super) struct Lines {
    state: Mutex<Watched>,
    changed: Condvar,
    /// Number of times that a program has started to sleep.
    sleeps: AtomicU64,
}

struct Watched {
    state: State,
    is_over: bool,
}

/// The locked state of the ports and files.
pub(super) struct InterruptsGuard<'l>(MutexGuard<'l, Watched>);

impl std::ops::Deref for InterruptsGuard<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        &self.0.state
    }
}

impl std::ops::DerefMut for InterruptsGuard<'_> {
    fn deref_mut(&mut self) -> &mut State {
        &mut self.0.state
    }
}

impl Lines {
    pub(super) fn new(state: State) -> Self {
        Self {
            state: Mutex::new(Watched {
                state,
                is_over: false,
            }),
            changed: Condvar::new(),
            sleeps: AtomicU64::new(0),
        }
    }

    pub(super) fn state(&self) -> InterruptsGuard<'_> {
        InterruptsGuard(self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Counts a program that starts to sleep, and wakes the thread, which then polls the ports.
    pub(super) fn has_sleepers(&self) {
        self.sleeps.fetch_add(1, Ordering::Relaxed);
        self.changed.notify_all();
    }

    /// Polls the ports and wakes sleepers until the [`Watcher`] is dropped.
    fn watch(&self) {
        let mut watched = self.state().0;
        while !watched.is_over {
            if watched.state.sleepers.is_empty() {
                let waited = self.changed.wait(watched);
                watched = waited.unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let woken = watched.state.wake();
            drop(watched);
            for sleeper in woken {
                // The call fails if the file has been closed; then no process sleeps on it.
                let _ = sleeper.notify();
            }
            thread::sleep(PERIOD);
            watched = self.state().0;
        }
    }
}

impl State {
    /// Polls nACK of this file's port, and counts a rise for the file that has claimed the port.
    pub(super) fn sample(&mut self, handle: FileHandle) {
        let Some(port) = self.opened.get(&handle).map(|file| file.port) else {
            return;
        };
        let high = ack(&mut self.ports[port]);
        let before = mem::replace(&mut self.acks[port], high);
        let rises = high && !before;
        if !rises || self.ports[port].read(Register::Control) & INTERRUPTS == 0 {
            return;
        }
        for file in self.opened.values_mut() {
            if file.port == port && file.claimed {
                file.interrupts += 1;
            }
        }
    }

    /// Answers `PPCLRIRQ`: returns and clears the interrupt count of the file.
    pub(super) fn take_interrupts(&mut self, handle: FileHandle) -> Result<u32, Errno> {
        let file = self.opened.get_mut(&handle).ok_or(Errno::EBADF)?;
        if !file.claimed {
            return Err(Errno::EINVAL);
        }
        Ok(mem::take(&mut file.interrupts))
    }

    /// Removes and returns the sleepers whose files are readable.
    fn wake(&mut self) -> Vec<PollNotifier> {
        let handles: Vec<_> = self.sleepers.keys().copied().collect();
        let mut woken = Vec::new();
        for handle in handles {
            self.sample(handle);
            if self
                .opened
                .get(&handle)
                .is_none_or(|file| file.interrupts > 0)
            {
                woken.extend(self.sleepers.remove(&handle));
            }
        }
        woken
    }
}

/// The thread that wakes sleeping programs; it ends when this value is dropped.
pub(super) struct Watcher {
    lines: Arc<Lines>,
    thread: Option<JoinHandle<()>>,
}

impl Watcher {
    pub(super) fn of(lines: Arc<Lines>) -> Self {
        let watched = lines.clone();
        Self {
            lines,
            thread: Some(thread::spawn(move || watched.watch())),
        }
    }
}

impl Watcher {
    /// Returns the number of times that a program has started to sleep on a file.
    pub(super) fn sleeps(&self) -> u64 {
        self.lines.sleeps.load(Ordering::Relaxed)
    }
}

impl std::fmt::Debug for Watcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the thread that wakes sleepers")
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.lines.state().0.is_over = true;
        self.lines.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // The thread's panic message has been printed,
            // and the test fails because a wake-up is missing.
            let _ = thread.join();
        }
    }
}
