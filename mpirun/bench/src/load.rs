//! Busy loops that run beside the ranks, like another user's job or a compilation.
//!
//! The loops are threads of the process that starts the launchers.
//! The scheduler treats threads like processes, and threads end with their process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;

/// A set of running busy loops, which end when the set is dropped.
#[derive(Debug)]
pub struct Load {
    ended: Arc<AtomicBool>,
    loops: Vec<JoinHandle<()>>,
}

impl Load {
    /// Starts `loops` busy loops.
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
            // A loop never panics, so the result is always `Ok`.
            let _ = one.join();
        }
    }
}
