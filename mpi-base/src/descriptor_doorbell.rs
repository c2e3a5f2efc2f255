//! A doorbell for a process that sleeps in `poll`, because it also waits for file descriptors.
//!
//! No system call waits for a futex and for sockets, so such a process sleeps in `poll`,
//! and is woken by a datagram to its socket (`crate::ring_socket`).
//! The number that identifies the socket is in the doorbell's shared memory.
//!
//! The protocol is that of [`crate::doorbell`]. A lost datagram, as after a change of the network
//! namespace, delays the wake-up by at most one [`NAP`].

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvFlags, recv};

use crate::doorbell::{Doorbell, NAP};
use crate::ring_socket::listen;

/// The datagram socket whose datagrams wake one process.
#[derive(Debug)]
pub struct DescriptorDoorbell {
    socket: OwnedFd,
    tag: u64,
}

impl DescriptorDoorbell {
    /// Binds a socket under a new random name.
    pub fn new() -> io::Result<DescriptorDoorbell> {
        let (socket, tag) = listen()?;
        Ok(DescriptorDoorbell { socket, tag })
    }

    /// Sleeps until one of the doorbells is rung or a descriptor is readable, unless `news` returns true.
    /// `news` must poll every source that rings one of the doorbells. Afterwards, `limit` returns the maximum duration.
    ///
    /// The caller owns the first doorbell, and is the only thread that watches the others.
    pub fn sleep(
        &self,
        own: &Doorbell,
        watched: &[&Doorbell],
        limit: impl FnOnce() -> Duration,
        descriptors: &[BorrowedFd<'_>],
        news: impl FnOnce() -> bool,
    ) {
        own.sleep_polling(watched, self.tag, news, || {
            self.poll(limit().min(NAP), descriptors);
        });
        // The datagrams carry no data and are discarded: the caller polls its event sources.
        let mut byte = [0];
        while recv(self.socket.as_fd(), &mut byte, RecvFlags::DONTWAIT).is_ok() {}
    }

    fn poll(&self, limit: Duration, descriptors: &[BorrowedFd<'_>]) {
        let mut all = vec![PollFd::new(&self.socket, PollFlags::IN)];
        all.extend(descriptors.iter().map(|fd| PollFd::new(fd, PollFlags::IN)));
        let limit = Timespec {
            tv_sec: limit.as_secs() as i64,
            tv_nsec: limit.subsec_nanos().into(),
        };
        // After a signal or a timeout the caller polls, as after a ring of the doorbell.
        let _ = poll(&mut all, Some(&limit));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doorbell::{FENCE, POLLING, SLEEPING, WATCHED};
    use crate::ring_socket::ring;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Instant;

    #[test]
    fn a_ring_wakes_a_process_that_waits_for_descriptors() {
        let (doorbell, descriptor) = (Doorbell::new(), DescriptorDoorbell::new().unwrap());
        let other = Doorbell::new();
        let (reader, _writer) = rustix::pipe::pipe().unwrap();
        let news = AtomicU32::new(0);
        std::thread::scope(|s| {
            s.spawn(|| {
                for round in 1..=100 {
                    while news.load(Ordering::Acquire) < round {
                        let done = || news.load(Ordering::Acquire) >= round;
                        descriptor.sleep(&other, &[&doorbell], || NAP, &[reader.as_fd()], done);
                    }
                }
            });
            for round in 1..=100 {
                news.store(round, Ordering::Release);
                // A ring of either doorbell wakes the process.
                [&doorbell, &other][round as usize % 2].ring();
                std::thread::yield_now();
            }
        });
        assert_eq!((doorbell.wishes() | other.wishes()) & !FENCE, 0);
    }

    #[test]
    fn while_a_process_sleeps_all_its_doorbells_are_marked() {
        let doorbells = [Doorbell::new(), Doorbell::new(), Doorbell::new()];
        let [own, watched @ ..] = doorbells.each_ref();
        let descriptor = DescriptorDoorbell::new().unwrap();
        let mut were_set = false;
        let all_are_marked = || {
            were_set = own.wishes() & !FENCE == SLEEPING | POLLING
                && watched
                    .iter()
                    .all(|doorbell| doorbell.wishes() & WATCHED != 0);
            true
        };
        descriptor.sleep(own, &watched, || NAP, &[], all_are_marked);
        assert!(were_set);
        let wishes = || doorbells.iter().map(|doorbell| doorbell.wishes() & !FENCE);
        assert!(wishes().all(|wishes| wishes == 0));
    }

    /// The owner of a doorbell and a thread that watches it sleep and wake in any order.
    #[test]
    fn a_ring_wakes_the_owner_and_the_watcher() {
        const ROUNDS: u32 = 100;
        let doorbell = Doorbell::new();
        let (news, seen) = (AtomicU32::new(0), [AtomicU32::new(0), AtomicU32::new(0)]);
        let waits = |round, who: usize, sleep: &dyn Fn(&dyn Fn() -> bool)| {
            let is_new = || news.load(Ordering::Acquire) >= round;
            while !is_new() {
                sleep(&is_new);
            }
            seen[who].store(round, Ordering::Release);
        };
        std::thread::scope(|s| {
            s.spawn(|| {
                for round in 1..=ROUNDS {
                    waits(round, 0, &|is_new| doorbell.sleep(NAP, is_new));
                }
            });
            s.spawn(|| {
                let (descriptor, own) = (DescriptorDoorbell::new().unwrap(), Doorbell::new());
                for round in 1..=ROUNDS {
                    let limit = || NAP;
                    waits(round, 1, &|is_new| {
                        descriptor.sleep(&own, &[&doorbell], limit, &[], is_new);
                    });
                }
            });
            for round in 1..=ROUNDS {
                news.store(round, Ordering::Release);
                doorbell.ring();
                while seen.iter().any(|seen| seen.load(Ordering::Acquire) < round) {
                    std::thread::yield_now();
                }
            }
        });
        assert_eq!(doorbell.wishes() & !FENCE, 0);
    }

    #[test]
    fn a_readable_descriptor_ends_the_sleep_and_a_ring_left_over_is_dropped() {
        let (doorbell, descriptor) = (Doorbell::new(), DescriptorDoorbell::new().unwrap());
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        rustix::io::write(&writer, b"x").unwrap();
        ring(descriptor.tag);
        // Without the readable descriptor, each sleep would last up to [`NAP`].
        let begin = Instant::now();
        for _ in 0..1000 {
            descriptor.sleep(&doorbell, &[], || NAP, &[reader.as_fd()], || false);
        }
        assert!(begin.elapsed() < 1000 * NAP);
        let mut byte = [0];
        assert!(recv(descriptor.socket.as_fd(), &mut byte, RecvFlags::DONTWAIT).is_err());
    }
}
