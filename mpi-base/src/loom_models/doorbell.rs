//! Models of the doorbell: no wake-up is lost.

use loom::sync::Arc;
use loom::thread;

use super::{check, ring};
use crate::atomic::{AtomicU64, Ordering};
use crate::doorbell::{Doorbell, NAP};
use crate::inbox::Inbox;
use crate::ring::Polled;

/// Another thread publishes news and rings; this thread waits for the news by `sleep`.
fn news_end_every(sleep: impl Fn(&Doorbell, &AtomicU64) + Send + Sync + 'static) {
    check(move || {
        let shared = Arc::new((Doorbell::new(), AtomicU64::new(0)));
        let sender = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let (doorbell, news) = &*shared;
                news.store(1, Ordering::Release);
                doorbell.ring();
            })
        };
        let (doorbell, news) = &*shared;
        while news.load(Ordering::Acquire) == 0 {
            sleep(doorbell, news);
        }
        sender.join().unwrap();
    });
}

/// SYNC POINT doorbell.sleep: a sleep has no timeout under loom,
/// so a lost wake-up blocks the model.
#[test]
fn no_wake_up_is_lost() {
    news_end_every(|doorbell, news| {
        doorbell.sleep(NAP, || news.load(Ordering::Acquire) != 0);
    });
}

/// SYNC POINT doorbell.sleep, doorbell.socket: a ring of the published socket ends a sleep in `poll`.
#[test]
fn no_wake_up_of_a_poller_is_lost() {
    news_end_every(|doorbell, news| {
        let some = || news.load(Ordering::Acquire) != 0;
        doorbell.sleep_polling(&[], 7, some, || {
            while !doorbell.take_rung(7) {
                thread::yield_now();
            }
            false
        });
    });
}

/// SYNC POINT doorbell.sleep, doorbell.socket: a ring of a doorbell wakes its owner and its watcher.
#[test]
fn no_wake_up_of_a_watcher_is_lost() {
    check(|| {
        let shared = Arc::new((Doorbell::new(), AtomicU64::new(0)));
        let sender = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                shared.1.store(1, Ordering::Release);
                shared.0.ring();
            })
        };
        let owner = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let (doorbell, news) = &*shared;
                while news.load(Ordering::Acquire) == 0 {
                    doorbell.sleep(NAP, || news.load(Ordering::Acquire) != 0);
                }
            })
        };
        let (doorbell, news) = &*shared;
        let own = Doorbell::new();
        let mut sender = Some(sender);
        let some = || news.load(Ordering::Acquire) != 0;
        own.sleep_polling(&[doorbell], 7, some, || {
            sender.take().unwrap().join().unwrap();
            assert!(doorbell.take_rung_watcher(7), "the watcher was not woken");
            false
        });
        if let Some(sender) = sender {
            sender.join().unwrap();
        }
        owner.join().unwrap();
    });
}

/// SYNC POINT doorbell.sleep, where the news is a message in a ring, as in the sm transport.
#[test]
fn a_sleeper_wakes_for_a_message() {
    check(|| {
        let inbox = Arc::new(Inbox::new());
        let (mut tx, mut rx) = ring(4, 0);
        let sender = {
            let inbox = Arc::clone(&inbox);
            thread::spawn(move || {
                assert_eq!(tx.push_word(1, [0; 2], 5), Ok(()));
                inbox.notify_lightly(0);
            })
        };
        while rx.pop(|_| ()) == Polled::Empty {
            inbox.doorbell().sleep(NAP, || rx.is_ready());
        }
        sender.join().unwrap();
    });
}
