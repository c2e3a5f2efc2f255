//! Tests of the served board: of the hub without sockets, of clients and servers on the loopback
//! address that violate the protocol, and of the wires by the port suite.

mod hub;
mod peers;
mod pins;

use super::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// A server on a separate thread, stopped when it is dropped.
struct Served {
    address: Address,
    stop: Arc<AtomicBool>,
    /// While true, the server neither reads nor answers, like a stopped process.
    frozen: Arc<AtomicBool>,
    notices: Arc<Mutex<Vec<Notice>>>,
    thread: Option<JoinHandle<()>>,
}

impl Served {
    fn new(nodes: usize) -> Self {
        let mut server =
            Server::bind(nodes, "127.0.0.1:0").expect("a port on the loopback address");
        let address = server.address().into();
        let stop = Arc::new(AtomicBool::new(false));
        let frozen = Arc::new(AtomicBool::new(false));
        let notices = Arc::new(Mutex::new(Vec::new()));
        let (stopped, is_frozen, noted) = (stop.clone(), frozen.clone(), notices.clone());
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                if is_frozen.load(Ordering::Relaxed) {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                    continue;
                }
                let news = server.turn().expect("the system waits for sockets");
                noted
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .extend(news);
            }
        });
        Self {
            address,
            stop,
            frozen,
            notices,
            thread: Some(thread),
        }
    }

    fn view(&self) -> View {
        let mut observer = BoardObserver::connect(&self.address).expect("the server serves");
        observer.look().expect("the server answers")
    }

    fn notices(&self) -> Vec<Notice> {
        let notices = self.notices.lock();
        notices.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits for a notice that satisfies `what`;
    /// fails the test if none arrives within the time limit.
    fn noted(&self, what: impl Fn(&Notice) -> bool) -> Notice {
        for _ in 0..3000 {
            if let Some(notice) = self.notices().into_iter().find(&what) {
                return notice;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        panic!("not among {:?}", self.notices());
    }

    /// Stops the server: every connection ends.
    fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A server that failed has printed its error.
            let _ = thread.join();
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.end();
    }
}

/// Sets the flag when dropped, also if the test fails, so that loops which poll the flag end.
struct SetAtEnd<'a>(&'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
