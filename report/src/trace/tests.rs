//! Tests of trace files from hand-made event rings; `tests/tests/trace.rs` tests real jobs.

use super::lane::Lane;
use super::*;
use mpi_base::node::Played;
use serde_json::Value;

fn lane(rank: u32, events: Vec<Event>) -> Lane {
    let played = Played { events, lost: 0 };
    Lane {
        rank,
        host: "node1".into(),
        played,
        ..Lane::default()
    }
}

fn sent(at: u64, to: i32, tag: i32, number: u64) -> Event {
    Event {
        peer: to,
        tag,
        number,
        bytes: 8,
        ..Event::new(EventKind::Sent, at)
    }
}

fn received(at: u64, from: i32, tag: i32, number: u64) -> Event {
    Event {
        peer: from,
        tag,
        number,
        bytes: 8,
        ..Event::new(EventKind::Received, at)
    }
}

fn call(at: u64, until: u64) -> Event {
    Event {
        until,
        call: 1,
        thread: 77,
        ..Event::new(EventKind::Call, at)
    }
}

/// Returns the names of the two MPI calls of these tests.
fn name(call: u16) -> String {
    ["MPI_Bsend", "MPI_Bsend_c"][usize::from(call) - 1].into()
}

fn two_ranks() -> Trace {
    let sender = vec![sent(1500, 1, 5, 1), sent(1600, 1, 6, 1), call(1000, 2000)];
    // The second message is received first; the third message has no send event.
    let receiver = vec![
        received(2500, 0, 6, 1),
        received(2600, 0, 5, 1),
        received(2700, 0, 5, 2),
        call(2000, 3000),
    ];
    Trace {
        lanes: vec![lane(0, sender), lane(1, receiver)],
        ..Trace::default()
    }
}

/// Returns a trace of two hosts that send a message each; the second host's clock is `late` behind.
fn two_hosts(late: u64) -> Trace {
    let first = vec![sent(10_000, 1, 5, 1), received(12_000, 1, 6, 1)];
    let second = vec![
        received(10_500 - late, 0, 5, 1),
        sent(11_500 - late, 0, 6, 1),
        call(9_000 - late, 11_600 - late),
    ];
    let mut trace = Trace {
        lanes: vec![lane(0, first), lane(1, second)],
        ..Trace::default()
    };
    for (lane, other) in [(0, 1), (1, 0)] {
        for event in &mut trace.lanes[lane].played.events {
            // The source rank in the communicator (MPI_COMM_WORLD) equals the index of the lane.
            event.extra = lane as u64;
            event.peer = other;
        }
    }
    trace.lanes[1].host = "node2".into();
    trace
}

fn forward(trace: &Trace) -> bool {
    let arrows = trace.arrows();
    assert!(!arrows.is_empty());
    let mut pairs = arrows
        .iter()
        .map(|a| (trace.event(a.from), trace.event(a.to)));
    pairs.all(|(from, to)| from.at <= to.at)
}

#[test]
fn a_message_finds_its_receive_by_what_both_have_counted() {
    let arrows = two_ranks().arrows();
    let pairs: Vec<_> = arrows
        .iter()
        .map(|arrow| (arrow.from.1, arrow.to.1))
        .collect();
    assert_eq!(pairs, [(1, 0), (0, 1)]);
}

#[test]
fn the_json_has_slices_and_arrows_in_microseconds() {
    let mut out = Vec::new();
    chrome::write(&two_ranks(), name, &mut out).unwrap();
    let json: Value = serde_json::from_slice(&out).unwrap();
    let events = json["traceEvents"].as_array().unwrap();
    let of = |ph: &str| events.iter().filter(|e| e["ph"] == ph).collect::<Vec<_>>();
    assert_eq!((of("s").len(), of("f").len(), of("i").len()), (2, 2, 1));
    assert_eq!(of("X")[0]["ts"], 0.0);
    assert_eq!(of("X")[0]["dur"], 1.0);
    assert_eq!(of("X")[1]["pid"], 1);
    let tag_5 = of("s").into_iter().find(|e| e["args"]["tag"] == 5).unwrap();
    let its_end = of("f")
        .into_iter()
        .find(|e| e["id"] == tag_5["id"])
        .unwrap();
    assert_eq!(its_end["args"]["tag"], 5);
}

#[test]
fn the_waveform_has_a_scope_for_each_rank() {
    let mut out = Vec::new();
    vcd::write(&two_ranks(), name, &mut out).unwrap();
    let mut parser = ::vcd::Parser::new(out.as_slice());
    let header = parser.parse_header().unwrap();
    let line = header
        .find_var(&["job", "rank_1", "received"])
        .unwrap()
        .code;
    let mut toggles = 0;
    for command in parser {
        if let ::vcd::Command::ChangeScalar(id, _) = command.unwrap() {
            toggles += usize::from(id == line);
        }
    }
    assert_eq!(toggles, 4, "the beginning and three messages");
}

#[test]
fn a_host_whose_clock_is_late_is_moved_as_a_whole() {
    let mut trace = two_hosts(3000);
    assert!(!forward(&trace));
    let before = trace.lanes[1].played.events.clone();
    trace.align();
    assert!(forward(&trace));
    let by = trace.lanes[1].played.events[0].at - before[0].at;
    for (old, new) in before.iter().zip(&trace.lanes[1].played.events) {
        assert_eq!(new.at - old.at, by);
    }
    let untouched = two_hosts(0);
    let mut aligned = untouched.clone();
    aligned.align();
    assert_eq!(
        aligned.lanes[1].played.events,
        untouched.lanes[1].played.events
    );
}

#[test]
fn messages_that_contradict_every_clock_still_go_forward_and_calls_keep_their_order() {
    let mut trace = two_hosts(0);
    // The reply is received before its request is sent:
    // shifting hosts cannot put both messages in order.
    trace.lanes[0].played.events[1].at = 10_050;
    trace.lanes[0].played.events.push(call(10_040, 10_060));
    trace.lanes[0].played.events.push(call(10_070, 10_080));
    trace.align();
    assert!(forward(&trace));
    let calls = &trace.lanes[0].played.events[2..];
    assert!(calls[0].at <= calls[0].until && calls[0].until <= calls[1].at);
    assert!(calls[1].at <= calls[1].until);
}
