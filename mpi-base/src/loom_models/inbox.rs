//! Models of the inbox: no sender that announced itself, marked its ring or found no space is missed.

use loom::sync::Arc;
use loom::thread;

use super::{check, ring};
use crate::atomic::{AtomicU64, Ordering};
use crate::bitmap::ones;
use crate::doorbell::NAP;
use crate::inbox::Inbox;
use crate::ring::{Full, Polled};

/// SYNC POINT bitmap.word: one sender sends two messages; the second may find the bit still set.
#[test]
fn a_marked_ring_is_never_forgotten() {
    check(|| {
        let shared = Arc::new((Inbox::new(), AtomicU64::new(0)));
        shared.0.doorbell().ask_for_marks();
        let sender = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                for n in 1..=2 {
                    shared.1.store(n, Ordering::Release);
                    shared.0.notify(1);
                }
            })
        };
        let (inbox, news) = &*shared;
        let mut seen = 0;
        while seen < 2 {
            // The value is read only after its mark has been taken, as the owner reads a ring.
            for _ in ones(inbox.take_news(0)) {
                seen = news.load(Ordering::Acquire);
            }
            if seen < 2 {
                inbox.doorbell().sleep(NAP, || inbox.any_news(1));
            }
        }
        sender.join().unwrap();
    });
}

/// The owner changes from polling all rings to polling only marked rings:
/// one more poll of all rings finds messages sent before the sender saw the request for marks.
#[test]
fn nothing_is_lost_when_the_owner_begins_to_ask_for_marks() {
    check(|| {
        let shared = Arc::new((Inbox::new(), AtomicU64::new(0)));
        let sender = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                shared.1.store(1, Ordering::Release);
                shared.0.notify(1);
            })
        };
        let (inbox, news) = &*shared;
        inbox.doorbell().ask_for_marks();
        let mut seen = news.load(Ordering::Acquire);
        while seen == 0 {
            for _ in ones(inbox.take_news(0)) {
                seen = news.load(Ordering::Acquire);
            }
            if seen == 0 {
                inbox.doorbell().sleep(NAP, || inbox.any_news(1));
            }
        }
        sender.join().unwrap();
    });
}

/// SYNC POINT inbox.calls: an owner that polls only the counter `calls` finds an announced sender.
#[test]
fn an_announced_sender_is_found() {
    check(|| {
        let inbox = Arc::new(Inbox::new());
        let sender = {
            let inbox = Arc::clone(&inbox);
            thread::spawn(move || {
                inbox.announce(3);
                inbox.notify(3);
            })
        };
        while inbox.calls() == 0 {
            inbox.doorbell().sleep(NAP, || inbox.calls() != 0);
        }
        assert_eq!(inbox.senders(0), 1 << 3);
        sender.join().unwrap();
    });
}

/// A sender that found no space is rung or finds the space itself, whichever side polls first.
#[test]
fn a_sender_that_wants_space_is_rung_or_sees_it() {
    check(|| {
        let owner = Arc::new(Inbox::new());
        let waiting = Arc::new(Inbox::new());
        let (mut tx, mut rx) = ring(4, 0);
        for n in 0..4 {
            assert_eq!(tx.push_word(0, [0; 2], n), Ok(()));
        }
        let sender = {
            let (owner, waiting) = (Arc::clone(&owner), Arc::clone(&waiting));
            thread::spawn(move || {
                while tx.push_word(0, [0; 2], 4) == Err(Full) {
                    waiting.doorbell().sleep(NAP, || {
                        owner.want_space(7);
                        owner.notify(7);
                        tx.has_cell()
                    });
                }
                owner.notify(7);
            })
        };
        let (mut calls, mut got) = (0, 0);
        while got < 5 {
            if rx.pop(|_| ()) == Polled::Got(()) {
                got += 1;
                continue;
            }
            rx.give_back();
            if owner.calls() != calls {
                calls = owner.calls();
                for _ in ones(owner.take_wants_space(0)) {
                    waiting.doorbell().ring();
                }
                continue;
            }
            owner
                .doorbell()
                .sleep(NAP, || rx.is_ready() || owner.calls() != calls);
        }
        sender.join().unwrap();
    });
}
