//! Tests of event rings. A test that compares times
//! sets the ring's times and the linear map of its clock.

use super::*;

fn event(number: u64) -> Event {
    Event {
        peer: -1,
        tag: 7,
        comm: 8 << 32,
        bytes: 1 << 33,
        number,
        ..Event::new(EventKind::Received, 1000 + number)
    }
}

fn sent(at: u64) -> Event {
    Event {
        extra: 5,
        ..Event {
            kind: EventKind::Sent,
            at,
            ..event(1)
        }
    }
}

fn call(began: u64, until: u64) -> Event {
    Event {
        until,
        call: 17,
        thread: 3,
        ..Event::new(EventKind::Call, began)
    }
}

/// Creates a player for an event ring, with a clock whose ticks are nanoseconds.
fn in_ns(fd: &impl AsFd, ring: &EventRing) -> Player {
    let (from, to) = (Moment { ticks: 1, ns: 1 }, Moment { ticks: 9, ns: 9 });
    let (place, cells) = ring.head.place();
    ring.head.tell(place, cells, Some(from));
    let player = Player::new(fd).unwrap();
    Player {
        line: Some(Line::between(from, to)),
        ..player
    }
}

#[test]
fn an_event_ring_outlives_its_rank_and_keeps_the_latest_events() {
    let fd = Node::create(2).unwrap();
    let node = Node::attach(&fd, 1).unwrap();
    let ring = node.event_ring(4).unwrap();
    assert!(node.event_ring(4).is_none(), "a rank has one event ring");
    (1..=6).for_each(|number| ring.write(&event(number)));
    let player = in_ns(&fd, &ring);
    drop((ring, node));
    let played = player.play(1).unwrap();
    assert_eq!(played.lost, 2);
    assert_eq!(played.events, (3..=6).map(event).collect::<Vec<_>>());
    assert_eq!(player.play(0), None);
    assert_eq!(player.play(2), None);
}

#[test]
fn a_call_shares_a_cell_with_the_message_that_came_last_in_it() {
    let fd = Node::create(1).unwrap();
    let node = Node::attach(&fd, 0).unwrap();
    let ring = node.event_ring(4).unwrap();
    let received = Event {
        at: 2500,
        ..event(1)
    };
    ring.write(&sent(1000));
    ring.write_call(17, 1000, 1500, 3);
    ring.write(&received);
    ring.write_call(17, 2000, 3000, 3);
    // The latest cell already has a merged call, so this call occupies a cell of its own.
    ring.write_call(17, 3100, 3200, 3);
    let played = in_ns(&fd, &ring).play(0).unwrap();
    let all = [
        sent(1000),
        call(1000, 1500),
        received,
        call(2000, 3000),
        call(3100, 3200),
    ];
    assert_eq!((played.events, played.lost), (all.to_vec(), 0));
}

#[test]
fn a_call_does_not_join_what_was_before_it_or_was_sent_later_than_it_began() {
    let fd = Node::create(1).unwrap();
    let node = Node::attach(&fd, 0).unwrap();
    let ring = node.event_ring(8).unwrap();
    let mut all = Vec::new();
    for (message, call) in [(event(1), call(1002, 1010)), (sent(1025), call(1020, 1030))] {
        ring.write(&message);
        ring.write_call(call.call, call.at, call.until, call.thread);
        all.extend([message, call]);
    }
    assert_eq!(in_ns(&fd, &ring).play(0).unwrap().events, all);
}

#[test]
fn the_first_call_of_an_event_ring_and_the_first_after_its_end_find_their_cells() {
    let fd = Node::create(1).unwrap();
    let node = Node::attach(&fd, 0).unwrap();
    let ring = node.event_ring(2).unwrap();
    ring.write_call(17, 10, 11, 3);
    ring.write(&sent(20));
    // The latest message is in the last cell of the ring.
    ring.write_call(17, 20, 21, 3);
    let all = [call(10, 11), sent(20), call(20, 21)];
    assert_eq!(in_ns(&fd, &ring).play(0).unwrap().events, all);
}

#[test]
fn times_that_are_played_are_the_kernels() {
    let fd = Node::create(1).unwrap();
    let before = Moment::now().ns;
    let node = Node::attach(&fd, 0).unwrap();
    let ring = node.event_ring(2).unwrap();
    ring.write_call(17, ring.now(), ring.now(), 3);
    std::thread::sleep(std::time::Duration::from_millis(5));
    let [call] = Player::new(&fd).unwrap().play(0).unwrap().events[..] else {
        panic!("one event");
    };
    let after = Moment::now().ns;
    // The error of a moment in ns is less than this, unless each of its readings was interrupted.
    const ERROR: u64 = 1_000_000;
    assert!(call.at + ERROR >= before && call.at <= call.until && call.until <= after + ERROR);
}

#[test]
fn a_place_outside_the_ranks_arena_is_not_believed() {
    let fd = Node::create(2).unwrap();
    let node = Node::attach(&fd, 0).unwrap();
    let ring = node.event_ring(4).unwrap();
    ring.write(&event(1));
    let player = Player::new(&fd).unwrap();
    assert!(player.play(0).is_some());
    for place in [0, 64, u64::MAX, 1 << 45] {
        ring.head.tell(place, 4, None);
        assert_eq!(player.play(0), None);
    }
}
