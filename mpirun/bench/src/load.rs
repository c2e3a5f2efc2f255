//! Busy loops beside the ranks, as another user's job or a compilation would be.
//!
//! They are threads of the process that starts the launchers: to the scheduler a thread is what a process is, and none is left behind.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;

/// Running busy loops; they end when it is dropped.
#[derive(Debug)]
pub struct Load {
    ended: Arc<AtomicBool>,
    loops: Vec<JoinHandle<()>>,
}

impl Load {
    /// Starts this number of loops.
    pub fn start(loops: usize) -> Load {
        let ended = Arc::new(AtomicBool::new(false));
        let compute = |_| {
            let ended = ended.clone();
            std::thread::spawn(move || {
                while !ended.load(Relaxed) {
                    std::hint::spin_loop();
                }
            })
        };
        Load {
            loops: (0..loops).map(compute).collect(),
            ended,
        }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.ended.store(true, Relaxed);
        for one in self.loops.drain(..) {
            // A loop does not panic.
            let _ = one.join();
        }
    }
}
