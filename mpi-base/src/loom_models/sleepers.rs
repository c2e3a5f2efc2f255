//! A model of announced sleepers: no member sleeps through its news.

use loom::sync::Arc;
use loom::thread;

use super::check;
use crate::atomic::{AtomicU64, Ordering};
use crate::doorbell::{Doorbell, NAP};
use crate::sleepers::Sleepers;

/// SYNC POINT sleepers.bits: under loom a sleep has no timeout, so a lost wake-up never ends.
#[test]
fn a_publisher_that_reads_bits_wakes_whom_it_must() {
    check(|| {
        let shared = Arc::new((Doorbell::new(), AtomicU64::new(0), [AtomicU64::new(0)]));
        let publisher = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let (doorbell, news, bits) = &*shared;
                let sleepers = Sleepers::new(&bits[..], 2).expect("a word has two bits");
                news.store(1, Ordering::Release);
                sleepers.ring_each(|_| doorbell.ring());
            })
        };
        let (doorbell, news, bits) = &*shared;
        let sleepers = Sleepers::new(&bits[..], 2).expect("a word has two bits");
        sleepers.announce(1);
        while news.load(Ordering::Acquire) == 0 {
            doorbell.sleep(NAP, || news.load(Ordering::Acquire) != 0);
        }
        sleepers.withdraw(1);
        publisher.join().unwrap();
    });
}
