//! Claims about the files, from tapes made by hand; that real jobs fill such tapes is shown by `tests/tests/trace.rs`.

use super::*;
use serde_json::Value;

fn lane(rank: u32, events: Vec<Event>) -> Lane {
    let tape = Played { events, lost: 0 };
    Lane {
        rank,
        host: "node1".into(),
        tape,
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

fn two_ranks() -> Trace {
    let sender = vec![sent(1500, 1, 5, 1), sent(1600, 1, 6, 1), call(1000, 2000)];
    // The second message is received first, and a third has lost its sender.
    let receiver = vec![
        received(2500, 0, 6, 1),
        received(2600, 0, 5, 1),
        received(2700, 0, 5, 2),
        call(2000, 3000),
    ];
    Trace {
        lanes: vec![lane(0, sender), lane(1, receiver)],
    }
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
    chrome::write(&two_ranks(), &mut out).unwrap();
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
    vcd::write(&two_ranks(), &mut out).unwrap();
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
