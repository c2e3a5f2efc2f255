//! A doorbell for a process that sleeps in `poll`, because it also waits for file descriptors.
//!
//! No system call waits for a futex and for sockets, so such a process sleeps in `poll`,
//! and is woken by a datagram to its socket (`crate::ring_socket`).
//! The number that identifies the socket is in the doorbell's shared memory.
//!
//! The protocol is that of [`crate::doorbell`]. A lost datagram, as after a change of the network
//! namespace, delays the wake-up by at most one `NAP`.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvFlags, recv};

use crate::doorbell::{Doorbell, LONGEST};
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
    /// Returns true if only the limit has ended the sleep.
    ///
    /// The caller owns the first doorbell, and is the only thread that watches the others.
    pub fn sleep(
        &self,
        own: &Doorbell,
        watched: &[&Doorbell],
        limit: impl FnOnce() -> Duration,
        descriptors: &[BorrowedFd<'_>],
        news: impl FnOnce() -> bool,
    ) -> bool {
        let poll = || self.poll(limit().min(LONGEST), descriptors);
        let timed_out = own.sleep_polling(watched, self.tag, news, poll);
        // The datagrams carry no data and are discarded: the caller polls its event sources.
        let mut rings = 0;
        let mut byte = [0];
        while recv(self.socket.as_fd(), &mut byte, RecvFlags::DONTWAIT).is_ok() {
            rings += 1;
        }
        timed_out && rings == 0
    }

    /// Sleeps until a descriptor or the socket is readable. Returns true after the limit.
    fn poll(&self, limit: Duration, descriptors: &[BorrowedFd<'_>]) -> bool {
        let mut all = vec![PollFd::new(&self.socket, PollFlags::IN)];
        all.extend(descriptors.iter().map(|fd| PollFd::new(fd, PollFlags::IN)));
        let limit = Timespec {
            tv_sec: limit.as_secs() as i64,
            tv_nsec: limit.subsec_nanos().into(),
        };
        // After a signal or a timeout the caller polls, as after a ring of the doorbell.
        poll(&mut all, Some(&limit)) == Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doorbell::tests::{publish, see_all};
    use crate::doorbell::{FENCE, NAP, POLLING, SLEEPING, WATCHED};
    use crate::ring_socket::ring;
    use std::sync::atomic::AtomicU32;

    #[test]
    fn a_ring_wakes_a_process_that_waits_for_descriptors() {
        const ROUNDS: u32 = 100;
        let (doorbell, descriptor) = (Doorbell::new(), DescriptorDoorbell::new().unwrap());
        let other = Doorbell::new();
        let (reader, _writer) = rustix::pipe::pipe().unwrap();
        let (news, seen) = (AtomicU32::new(0), [AtomicU32::new(0)]);
        let all_seen = std::thread::scope(|s| {
            let process = s.spawn(|| {
                see_all((&news, &seen[0]), ROUNDS, |has_news| {
                    let descriptors = [reader.as_fd()];
                    descriptor.sleep(&other, &[&doorbell], || LONGEST, &descriptors, has_news)
                })
            });
            // A ring of either doorbell wakes the process.
            publish(&news, &seen, ROUNDS, |round| {
                [&doorbell, &other][round as usize % 2].ring();
            });
            process.join().unwrap()
        });
        assert!(all_seen, "a ring has not ended a sleep");
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
        let all_seen = std::thread::scope(|s| {
            let owner = s.spawn(|| {
                let sleep = |has_news: &dyn Fn() -> bool| doorbell.sleep(LONGEST, has_news);
                see_all((&news, &seen[0]), ROUNDS, sleep)
            });
            let watcher = s.spawn(|| {
                let (descriptor, own) = (DescriptorDoorbell::new().unwrap(), Doorbell::new());
                see_all((&news, &seen[1]), ROUNDS, |has_news| {
                    descriptor.sleep(&own, &[&doorbell], || LONGEST, &[], has_news)
                })
            });
            publish(&news, &seen, ROUNDS, |_| doorbell.ring());
            [owner, watcher].map(|thread| thread.join().unwrap())
        });
        assert_eq!(all_seen, [true; 2], "a ring has not ended a sleep");
        assert_eq!(doorbell.wishes() & !FENCE, 0);
    }

    #[test]
    fn a_sleep_that_neither_a_ring_nor_a_descriptor_ends_reports_its_limit() {
        let (own, watched) = (Doorbell::new(), Doorbell::new());
        let descriptor = DescriptorDoorbell::new().unwrap();
        let sleep = |limit, news: &dyn Fn()| {
            descriptor.sleep(
                &own,
                &[&watched],
                || limit,
                &[],
                || {
                    news();
                    false
                },
            )
        };
        assert!(sleep(Duration::from_millis(1), &|| {}));
        assert!(!sleep(LONGEST, &|| own.ring()));
        assert!(!sleep(LONGEST, &|| watched.ring()));
        assert!(sleep(Duration::from_millis(1), &|| {}));
    }

    #[test]
    fn a_readable_descriptor_ends_the_sleep_and_a_ring_left_over_is_dropped() {
        let (doorbell, descriptor) = (Doorbell::new(), DescriptorDoorbell::new().unwrap());
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        rustix::io::write(&writer, b"x").unwrap();
        ring(descriptor.tag);
        for _ in 0..1000 {
            let timed_out =
                descriptor.sleep(&doorbell, &[], || LONGEST, &[reader.as_fd()], || false);
            assert!(!timed_out);
        }
        let mut byte = [0];
        assert!(recv(descriptor.socket.as_fd(), &mut byte, RecvFlags::DONTWAIT).is_err());
    }
}
