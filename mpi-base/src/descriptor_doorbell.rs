//! Where a process hears its doorbell while it waits for descriptors.
//!
//! A futex cannot be waited for together with sockets, so such a process sleeps in `poll` and is woken by a datagram.
//! Its socket ([`crate::ring_socket`]) is named by a number that the bell holds in shared memory.
//!
//! The protocol is the bell's ([`crate::doorbell`]); a ring that is lost, as by a process that left the network namespace, costs one [`NAP`](crate::doorbell::NAP).

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvFlags, recv};

use crate::doorbell::Doorbell;
use crate::ring_socket::listen;

/// One process's socket for rings.
#[derive(Debug)]
pub struct DescriptorDoorbell {
    socket: OwnedFd,
    tag: u64,
}

impl DescriptorDoorbell {
    /// A socket under a new name.
    pub fn new() -> io::Result<DescriptorDoorbell> {
        let (socket, tag) = listen()?;
        Ok(DescriptorDoorbell { socket, tag })
    }

    /// Sleeps until one of the bells is rung or one of the descriptors is readable; else as [`Doorbell::sleep`].
    ///
    /// A process has more than one bell where it shares memory with processes of other jobs.
    pub fn sleep(
        &self,
        bells: &[&Doorbell],
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
        self.sleep_on(bells, limit, &mut sleep);
        // The reason for a ring is found by looking, so the rings themselves are dropped.
        let mut byte = [0];
        while recv(self.socket.as_fd(), &mut byte, RecvFlags::DONTWAIT).is_ok() {}
    }

    /// Every bell knows of the sleep before `sleep` looks for news and sleeps.
    fn sleep_on(&self, bells: &[&Doorbell], limit: Duration, sleep: &mut dyn FnMut(Duration)) {
        match bells {
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
        // A signal and the time limit mean the same to the caller: look again.
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
        let (bell, ear) = (Doorbell::new(), DescriptorDoorbell::new().unwrap());
        let other = Doorbell::new();
        let (reader, _writer) = rustix::pipe::pipe().unwrap();
        let news = AtomicU32::new(0);
        std::thread::scope(|s| {
            s.spawn(|| {
                for round in 1..=100 {
                    while news.load(Ordering::Acquire) < round {
                        let done = || news.load(Ordering::Acquire) >= round;
                        ear.sleep(&[&other, &bell], NAP, &[reader.as_fd()], done);
                    }
                }
            });
            for round in 1..=100 {
                news.store(round, Ordering::Release);
                // Whichever of its bells is rung, the process wakes.
                [&bell, &other][round as usize % 2].ring();
                std::thread::yield_now();
            }
        });
        assert_eq!((bell.wishes(), other.wishes()), (0, 0));
    }

    #[test]
    fn while_a_process_sleeps_all_its_bells_say_so() {
        let bells = [Doorbell::new(), Doorbell::new(), Doorbell::new()];
        let ear = DescriptorDoorbell::new().unwrap();
        let sleeping = |bell: &Doorbell| bell.wishes() & (SLEEPING | POLLING) == SLEEPING | POLLING;
        let mut said = false;
        ear.sleep(&bells.each_ref(), NAP, &[], || {
            said = bells.iter().all(sleeping);
            true
        });
        assert!(said);
        assert!(bells.iter().all(|bell| bell.wishes() == 0));
    }

    #[test]
    fn a_readable_descriptor_ends_the_sleep_and_a_ring_left_over_is_dropped() {
        let (bell, ear) = (Doorbell::new(), DescriptorDoorbell::new().unwrap());
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        rustix::io::write(&writer, b"x").unwrap();
        ring(ear.tag);
        // Each sleep would last an hour if it were not for the descriptor; the limit of a nap is the bell's.
        let begin = Instant::now();
        for _ in 0..1000 {
            ear.sleep(&[&bell], NAP, &[reader.as_fd()], || false);
        }
        assert!(begin.elapsed() < 1000 * NAP);
        let mut byte = [0];
        assert!(recv(ear.socket.as_fd(), &mut byte, RecvFlags::DONTWAIT).is_err());
    }
}
