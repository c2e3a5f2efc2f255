//! Models of cells: no cell is overwritten while it is read, and each offer is claimed once.

use loom::sync::Arc;
use loom::thread;

use super::check;
use crate::atomic::{AtomicU64, Ordering, fence};
use crate::cells::{self, CellAddress, CellOf, Cells, Ring};

/// Two rings: one with space for two operations, and one with space for one operation.
const RINGS: [Ring; 2] = [
    Ring {
        cell: cells::LINE,
        depth: 2,
    },
    Ring {
        cell: cells::LINE,
        depth: 1,
    },
];

fn cells() -> Arc<Vec<AtomicU64>> {
    let words = cells::words(2, &RINGS);
    Arc::new((0..words).map(|_| AtomicU64::new(0)).collect())
}

fn member(memory: &[AtomicU64], me: u32) -> Cells<&[AtomicU64]> {
    Cells::new(memory, me, 2, &RINGS).unwrap()
}

fn wait_until(done: impl Fn() -> bool) {
    while !done() {
        thread::yield_now();
    }
}

fn read_word(
    cells: &Cells<&[AtomicU64]>,
    cell: impl Into<CellOf> + Copy,
    address: CellAddress<'_>,
) -> u64 {
    let mut word = [0; 8];
    cells.read(cell, address, 0, &mut word);
    u64::from_ne_bytes(word)
}

/// SYNC POINT cells.shown, cells.finished: each member publishes a value and reads the other
/// member's value of the same operation.
#[test]
fn a_cell_holds_its_data_until_all_have_read_them() {
    check(|| {
        let memory = cells();
        let run = |memory: Arc<Vec<AtomicU64>>, me: u32| {
            let cells = member(&memory, me);
            for number in 1..=2u64 {
                let cell_rings = cells::cell_rings(2, &RINGS);
                let address = cell_rings[1].address(number);
                wait_until(|| cells.has_room(address));
                cells.show(me, address, &(10 * number + u64::from(me)).to_ne_bytes());
                cells.prefetch().next(address);
                let other = 1 - me;
                wait_until(|| cells.seen(other, address));
                let read = read_word(&cells, other, address);
                assert_eq!(read, 10 * number + u64::from(other));
                cells.finish(number);
            }
        };
        let theirs = memory.clone();
        let other = thread::spawn(move || run(theirs, 1));
        run(memory, 0);
        other.join().unwrap();
    });
}

/// One member publishes without waiting for the other's data, in cells of two rings.
#[test]
fn a_rank_that_runs_ahead_writes_no_cell_that_is_still_read() {
    check(|| {
        let memory = cells();
        // The third operation uses the same cell as the first; the second operation uses the other ring.
        let cell_ring = |number: u64| cells::cell_rings(2, &RINGS)[usize::from(number == 2)];
        let giver = {
            let memory = memory.clone();
            thread::spawn(move || {
                let cells = member(&memory, 0);
                for number in 1..=3u64 {
                    let cell_ring = cell_ring(number);
                    let address = cell_ring.address(number);
                    wait_until(|| cells.has_room(address));
                    cells.show(0, address, &(7 * number).to_ne_bytes());
                    cells.finish(number);
                }
            })
        };
        let cells = member(&memory, 1);
        for number in 1..=3u64 {
            let cell_ring = cell_ring(number);
            let address = cell_ring.address(number);
            wait_until(|| cells.seen(0, address));
            assert_eq!(read_word(&cells, 0, address), 7 * number);
            cells.finish(number);
        }
        giver.join().unwrap();
    });
}

/// SYNC POINT cells.offered: either the second member completes its own cell,
/// or the first member claims the offered cell and completes it, but not both.
#[test]
fn an_offer_is_taken_up_by_one_of_two() {
    check(|| {
        let memory = cells();
        let add = |cells: &Cells<&[AtomicU64]>, address: CellAddress<'_>| {
            let before = read_word(cells, 0, address);
            let sum = read_word(cells, 1, address) + before;
            cells.show(1, address, &sum.to_ne_bytes());
        };
        let first = {
            let memory = memory.clone();
            thread::spawn(move || {
                let cells = member(&memory, 0);
                for number in 1..=2u64 {
                    let cell_rings = cells::cell_rings(2, &RINGS);
                    let address = cell_rings[1].address(number);
                    wait_until(|| cells.has_room(address));
                    cells.show(0, address, &(10 * number).to_ne_bytes());
                    cells.finish(number);
                    fence(Ordering::SeqCst);
                    if cells.claim(1, address) {
                        add(&cells, address);
                    }
                }
            })
        };
        let cells = member(&memory, 1);
        for number in 1..=2u64 {
            let cell_rings = cells::cell_rings(2, &RINGS);
            let address = cell_rings[1].address(number);
            wait_until(|| cells.has_room(address));
            cells.fill(1, address, 0, &number.to_ne_bytes());
            let goes_on = cells.seen(0, address) || {
                cells.offer(address);
                cells.seen(0, address) && cells.claim(1, address)
            };
            match goes_on {
                true => add(&cells, address),
                false => wait_until(|| cells.seen(1, address)),
            }
            assert_eq!(read_word(&cells, 1, address), 11 * number);
            cells.finish(number);
        }
        first.join().unwrap();
    });
}

/// SYNC POINT cells.arrivals: the last member to arrive computes for both,
/// and the counter of arrivals is reset for the next operation.
#[test]
fn the_last_to_arrive_has_what_all_show_and_all_have_its_result() {
    check(|| {
        let memory = cells();
        let run = |memory: Arc<Vec<AtomicU64>>, me: u32| {
            let cells = member(&memory, me);
            for number in 1..=2u64 {
                let cell_rings = cells::cell_rings(2, &RINGS);
                let address = cell_rings[0].address(number).with_result(&cell_rings[1]);
                wait_until(|| cells.has_room(address));
                cells.show(me, address, &(number << me).to_ne_bytes());
                if cells.arrive(address) {
                    cells.forget_arrivals(address);
                    let sum = read_word(&cells, 0, address) + read_word(&cells, 1, address);
                    cells.show(CellOf::Result, address, &sum.to_ne_bytes());
                } else {
                    wait_until(|| cells.seen(CellOf::Result, address));
                }
                assert_eq!(read_word(&cells, CellOf::Result, address), 3 * number);
                cells.finish(number);
            }
        };
        let theirs = memory.clone();
        let other = thread::spawn(move || run(theirs, 1));
        run(memory, 0);
        other.join().unwrap();
    });
}
