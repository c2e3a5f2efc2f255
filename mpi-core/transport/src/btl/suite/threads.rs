//! Conformance test of two ranks that are threads; a failed assertion in one thread also ends the other.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use super::super::SendError;
use super::net::{Expect, Net, endpoint, mixed, send_numbered};

/// A failure flag that the threads of a test share. It is set when a thread panics.
pub struct Claims<'a>(pub &'a AtomicBool);

impl Claims<'_> {
    /// Panics if another thread has failed. Called repeatedly while a thread waits for another.
    pub fn hold(&self) {
        let failed = self.0.load(Ordering::Relaxed);
        assert!(!failed, "a claim of another thread has failed");
    }
}

impl Drop for Claims<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

/// Two ranks, each a thread, send and receive at full speed.
pub fn two_ranks_exchange_at_full_speed(net: Net) {
    two_ranks_exchange(net, 4_000);
}

/// Exchanges `count` messages in each direction.
pub fn two_ranks_exchange(net: Net, count: u64) {
    if net.btls.len() < 2 {
        return;
    }
    let max = net.from().info().limits.max_send;
    let procs = [net.procs[net.pair.0], net.procs[net.pair.1]];
    let failed = AtomicBool::new(false);
    let ended = AtomicU8::new(0);
    std::thread::scope(|s| {
        for (me, btl) in net.btls.into_iter().take(2).enumerate() {
            let (claims, ended) = (Claims(&failed), &ended);
            s.spawn(move || {
                let sink = Expect {
                    from: procs[1 - me],
                    next: Cell::new(0),
                    len: mixed(max),
                };
                let to = endpoint(&*btl, procs[1 - me]);
                let mut sent = 0;
                while sent < count || sink.next.get() < count {
                    if sent < count {
                        match send_numbered(&*btl, to, sent, (sink.len)(sent)) {
                            Ok(()) => sent += 1,
                            Err(error) => assert_eq!(error, SendError::WouldBlock),
                        }
                    }
                    if btl.progress(&sink) == 0 {
                        claims.hold();
                        std::thread::yield_now();
                    }
                }
                ended.fetch_add(1, Ordering::Relaxed);
                // A transport that retransmits lost messages may still have to do so for the other rank.
                while ended.load(Ordering::Relaxed) < 2 {
                    btl.progress(&sink);
                    claims.hold();
                    std::thread::yield_now();
                }
            });
        }
    });
}
