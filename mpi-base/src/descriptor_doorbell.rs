//! A doorbell for a process that sleeps in `poll`, because it also waits for file descriptors.
//!
//! No system call waits for a futex and for sockets, so such a process sleeps in `poll`,
//! and is woken by a datagram to its socket (`crate::ring_socket`).
//! The number that identifies the socket is in the doorbell's shared memory.
//!
//! The protocol is that of [`crate::doorbell`]. A lost datagram, as after a change of the network
//! namespace, delays the wake-up by at most one [`NAP`](crate::doorbell::NAP).

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvFlags, recv};

use crate::doorbell::Doorbell;
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

    /// Sleeps until one of the doorbells is rung, a descriptor is readable, or `limit` has passed;
    /// otherwise as [`Doorbell::sleep`].
    ///
    /// A process that shares memory with processes of other jobs has more than one doorbell.
    pub fn sleep(
        &self,
        doorbells: &[&Doorbell],
        limit: Duration,
        descriptors: &[BorrowedFd<'_>],
        news: impl FnOnce() -> bool,
    ) {
        let mut news = Some(news);
        let mut sleep = |limit: Duration| {
            if news.take().is_some_and(|news| !news()) {
                self.poll(limit, descriptors);
            }
        };
        self.sleep_on(doorbells, limit, &mut sleep);
        // The datagrams carry no data and are discarded: the caller polls its event sources.
        let mut byte = [0];
        while recv(self.socket.as_fd(), &mut byte, RecvFlags::DONTWAIT).is_ok() {}
    }

    /// Marks every doorbell as sleeping; then calls `sleep`, which polls for events and sleeps.
    fn sleep_on(&self, doorbells: &[&Doorbell], limit: Duration, sleep: &mut dyn FnMut(Duration)) {
        match doorbells {
            [] => sleep(limit),
            [first, rest @ ..] => first.sleep_polling(
                self.tag,
                limit,
                || false,
                |limit| self.sleep_on(rest, limit, sleep),
            ),
        }
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
    use crate::doorbell::{NAP, POLLING, SLEEPING};
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
                        descriptor.sleep(&[&other, &doorbell], NAP, &[reader.as_fd()], done);
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
        assert_eq!((doorbell.wishes(), other.wishes()), (0, 0));
    }

    #[test]
    fn while_a_process_sleeps_all_its_doorbells_are_marked() {
        let doorbells = [Doorbell::new(), Doorbell::new(), Doorbell::new()];
        let descriptor = DescriptorDoorbell::new().unwrap();
        let sleeping =
            |doorbell: &Doorbell| doorbell.wishes() & (SLEEPING | POLLING) == SLEEPING | POLLING;
        let mut were_set = false;
        descriptor.sleep(&doorbells.each_ref(), NAP, &[], || {
            were_set = doorbells.iter().all(sleeping);
            true
        });
        assert!(were_set);
        assert!(doorbells.iter().all(|doorbell| doorbell.wishes() == 0));
    }

    #[test]
    fn a_readable_descriptor_ends_the_sleep_and_a_ring_left_over_is_dropped() {
        let (doorbell, descriptor) = (Doorbell::new(), DescriptorDoorbell::new().unwrap());
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        rustix::io::write(&writer, b"x").unwrap();
        ring(descriptor.tag);
        // Without the readable descriptor, each sleep would last up to [`NAP`](crate::doorbell::NAP).
        let begin = Instant::now();
        for _ in 0..1000 {
            descriptor.sleep(&[&doorbell], NAP, &[reader.as_fd()], || false);
        }
        assert!(begin.elapsed() < 1000 * NAP);
        let mut byte = [0];
        assert!(recv(descriptor.socket.as_fd(), &mut byte, RecvFlags::DONTWAIT).is_err());
    }
}
