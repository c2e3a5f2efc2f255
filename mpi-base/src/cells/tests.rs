//! Tests of cells; the members are values in one process and share one vector.

use super::*;

const SHORT: Ring = Ring {
    cell: LINE,
    depth: 8,
};
const LONG: Ring = Ring {
    cell: 2 * LINE,
    depth: 4,
};

fn board(members: u32, rings: &[Ring]) -> Vec<AtomicU64> {
    (0..words(members, rings))
        .map(|_| AtomicU64::new(0))
        .collect()
}

#[test]
fn what_one_shows_others_read_from_any_byte_on() {
    let memory = board(2, &[LONG]);
    let member = |me| Cells::new(&memory[..], me, 2, &[LONG]).unwrap();
    let (a, b) = (member(0), member(1));
    let data: Vec<u8> = (1..=21).collect();
    let cell_ring = cell_rings(2, &[LONG])[0];
    let [first, second] = [1, 2].map(|number| cell_ring.address(number));
    assert!(!b.seen(0, first));
    a.show(0, first, &data);
    assert!(b.seen(0, first) && !b.seen(0, second) && !b.seen(1, first));
    for at in 0..data.len() {
        let mut read = vec![0; data.len() - at];
        b.read(0, first, at, &mut read);
        assert_eq!(read, data[at..]);
        b.inspect(0, first, at..data.len(), |shown| {
            assert_eq!(shown, &data[at..]);
        });
    }
}

/// Data in the cache line of the number, and longer data; bytes after the data stay unchanged.
#[test]
fn data_of_every_length_are_shown_as_they_were() {
    let data: Vec<u8> = (0..200).map(|i| i as u8 | 1).collect();
    for len in 0..data.len() {
        let memory = board(2, &[LONG]);
        let member = |me| Cells::new(&memory[..], me, 2, &[LONG]).unwrap();
        let (a, b) = (member(0), member(1));
        let cell_ring = cell_rings(2, &[LONG])[0];
        let address = cell_ring.address(1);
        a.show(0, address, &data[..len]);
        let mut read = vec![7; data.len()];
        b.read(0, address, 0, &mut read);
        assert_eq!(read[..len], data[..len], "{len} bytes");
        assert!(read[len..].iter().all(|byte| *byte == 0), "{len} bytes");
    }
}

#[test]
fn a_cell_is_filled_in_parts_and_shown_at_once() {
    let memory = board(2, &[LONG]);
    let member = |me| Cells::new(&memory[..], me, 2, &[LONG]).unwrap();
    let (a, b) = (member(0), member(1));
    let cell_ring = cell_rings(2, &[LONG])[0];
    let address = cell_ring.address(1);
    a.fill(0, address, 16, &[7, 8, 9]);
    a.compose(0, address, 0..16, |buffer| buffer.fill(1));
    assert!(!b.seen(0, address));
    a.publish(0, address);
    assert!(b.seen(0, address));
    let mut read = [0; 19];
    b.read(0, address, 0, &mut read);
    assert_eq!(read[..16], [1; 16]);
    assert_eq!(read[16..], [7, 8, 9]);
}

#[test]
fn cells_are_used_again_when_all_have_finished_everything_before() {
    let rings = [SHORT, LONG];
    let memory = board(2, &rings);
    let member = |me| Cells::new(&memory[..], me, 2, &rings).unwrap();
    let (a, b) = (member(0), member(1));
    let tracks = cell_rings(2, &rings);
    for (cell_ring, Ring { depth, .. }) in tracks.iter().zip(rings) {
        let has_room = |number| a.has_room(cell_ring.address(number));
        assert!(has_room(depth) && !has_room(depth + 1));
    }
    // A longer result is in the other ring, which has fewer free cells.
    assert!(!a.has_room(tracks[0].address(LONG.depth + 1).with_result(&tracks[1])));
    // The operations finish in reverse order.
    for number in [3, 2, 1] {
        assert!(!a.has_room(tracks[1].address(LONG.depth + number)));
        a.finish(number);
        b.finish(number);
    }
    for (cell_ring, Ring { depth, .. }) in tracks.iter().zip(rings) {
        let has_room = |number| a.has_room(cell_ring.address(number));
        assert!(has_room(depth + 3) && !has_room(depth + 4));
    }
    assert!(b.has_finished(0, 3) && !b.has_finished(0, 4));
}

/// All operations in progress have separate cells in each ring.
/// All bytes of these cells can be written.
#[test]
fn no_two_cells_overlap() {
    for members in 1..4 {
        let rings = [SHORT, LONG];
        let memory = board(members, &rings);
        let cells = Cells::new(&memory[..], 0, members, &rings).unwrap();
        let mut all = Vec::new();
        let tracks = cell_rings(members, &rings);
        for (cell_ring, ring) in tracks.iter().zip(rings) {
            assert_eq!(cell_ring.capacity(), ring.cell - WORD);
            assert!(CellRing::capacities(ring.cell).1 > ring.cell);
            for number in 1..=ring.depth {
                let address = cell_ring.address(number);
                let of_members = |member| (CellOf::Of(member), address, cell_ring.capacity());
                all.extend((0..members).map(of_members));
                all.push((CellOf::Result, address, CellRing::capacities(ring.cell).1));
            }
        }
        for (i, (place, address, capacity)) in all.iter().enumerate() {
            cells.fill(*place, *address, 0, &vec![i as u8 + 1; *capacity]);
            cells.publish(*place, *address);
            cells.arrive(*address);
            cells.finish(address.number());
        }
        for (i, (place, address, capacity)) in all.iter().enumerate() {
            cells.inspect(*place, *address, 0..*capacity, |data| {
                assert!(data.iter().all(|byte| *byte == i as u8 + 1), "{i}");
            });
        }
    }
}

#[test]
fn the_last_to_arrive_is_told_so_and_sets_the_count_back() {
    let memory = board(3, &[SHORT]);
    let member = |me| Cells::new(&memory[..], me, 3, &[SHORT]).unwrap();
    let ranks = [member(0), member(1), member(2)];
    for number in 1..=3 * SHORT.depth {
        let cell_ring = cell_rings(3, &[SHORT])[0];
        let address = cell_ring.address(number);
        let last = (number % 3) as usize;
        for (i, rank) in ranks.iter().enumerate().filter(|(i, _)| *i != last) {
            assert!(!rank.arrive(address), "{i}");
            assert!(!rank.all_arrived(address));
        }
        assert!(ranks[last].arrive(address));
        assert!(ranks[0].all_arrived(address));
        ranks[last].forget_arrivals(address);
    }
}

/// An operation may finish before an earlier one if the ring is deep enough for both.
#[test]
fn whatever_may_be_under_way_may_end_in_any_order() {
    let deep = Ring {
        depth: DEEPEST_UNORDERED,
        ..SHORT
    };
    let memory = board(1, &[deep]);
    let cells = Cells::new(&memory[..], 0, 1, &[deep]).unwrap();
    assert!(cells.has_room(cell_rings(1, &[deep])[0].address(DEEPEST_UNORDERED)));
    for number in (1..=DEEPEST_UNORDERED).rev() {
        assert!(!cells.has_finished(0, 1));
        cells.finish(number);
    }
    assert!(cells.has_finished(0, DEEPEST_UNORDERED));
}

/// Each offer is claimed by one member, and the word of a claimed offer can have a new offer.
#[test]
fn an_offer_is_claimed_once() {
    let memory = board(2, &[SHORT]);
    let member = |me| Cells::new(&memory[..], me, 2, &[SHORT]).unwrap();
    let (a, b) = (member(0), member(1));
    let cell_ring = cell_rings(2, &[SHORT])[0];
    for first in [1, 1 + OFFERS] {
        let spots = || (first..first + OFFERS).map(|number| cell_ring.address(number));
        for address in spots() {
            assert!(!a.claim(1, address));
            b.fill(1, address, 0, &[address.number() as u8]);
            b.offer(address);
            assert!(!a.claim(0, address));
            a.finish(address.number());
            b.finish(address.number());
        }
        for address in spots() {
            assert!(a.claim(1, address) && !a.claim(1, address) && !b.claim(1, address));
            a.compose(1, address, 0..1, |byte| byte[0] += 100);
            a.publish(1, address);
            b.inspect(1, address, 0..1, |byte| {
                assert_eq!(byte, [address.number() as u8 + 100])
            });
        }
    }
}

#[test]
fn memory_that_is_too_small_is_refused() {
    let rings = [SHORT, LONG];
    let memory = board(2, &rings);
    let refused = |memory, me, rings: &[Ring]| Cells::new(memory, me, 2, rings).is_none();
    assert!(!refused(&memory[..], 0, &rings));
    assert!(refused(&memory[1..], 0, &rings));
    assert!(refused(&memory[..], 2, &rings));
    for depth in [0, 3, 2 * DEEPEST] {
        assert!(refused(&memory[..], 0, &[Ring { depth, ..SHORT }]));
    }
    for cell in [0, LINE - 8] {
        assert!(refused(&memory[..], 0, &[Ring { cell, ..SHORT }]));
    }
}

#[test]
fn data_beyond_their_room_are_cut() {
    let data: Vec<u8> = (0..200).collect();
    for buffer in [0, 5, 56, 57, 100] {
        let mut cell = vec![0; buffer];
        lay(&data, &mut cell);
        assert_eq!(cell, data[..buffer]);
    }
}

#[test]
fn how_long_data_are_travels_with_their_number() {
    let memory = board(2, &[LONG]);
    let member = |me| Cells::new(&memory[..], me, 2, &[LONG]).unwrap();
    let (a, b) = (member(0), member(1));
    let cell_ring = cell_rings(2, &[LONG])[0];
    let long = 1 << 20;
    for (number, bytes) in (1..).zip([0, 7, 65_664, long]) {
        let address = cell_ring.address(number);
        assert!(!b.seen(0, address));
        a.publish_of(0, address, bytes);
        assert!(b.seen(0, address) && !b.seen(0, cell_ring.address(number + 4)));
        assert_eq!(b.length(0, address, bytes), Ok(()));
        if bytes < long {
            assert_eq!(b.length(0, address, bytes + 1), Err(Some(bytes)));
        }
    }
    let address = cell_ring.address(5);
    a.publish(0, address);
    assert_eq!(
        b.length(0, address, 0),
        Err(None),
        "no rank has published a length"
    );
}
