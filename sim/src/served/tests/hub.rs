//! The hub, with a network and a clock of the test's making.

use super::super::frame::{
    GREETING, Greeting, REPLY, REQUEST, Refusal, Reply, Request, Role, VERSION,
};
use super::super::hub::{GRACE, HELLO, Hub, ONLOOKERS, STRANGERS};
use super::*;
use proptest::prelude::*;
use std::time::Duration;

const NOW: Duration = Duration::from_secs(1);

fn peer() -> std::net::SocketAddr {
    ([10, 0, 0, 7], 4711).into()
}

fn hello(role: Role) -> [u8; GREETING] {
    let word = role.to_word();
    Greeting {
        version: VERSION,
        word,
    }
    .encode()
}

/// The replies that wait for a guest, after its greeting; they are taken.
fn replies(hub: &mut Hub, id: u64) -> Vec<Reply> {
    let bytes = hub.outgoing(id).map(std::mem::take).unwrap_or_default();
    let greeted = bytes.len() % REPLY;
    let frames = bytes[greeted..].chunks_exact(REPLY);
    frames
        .map(|frame| Reply::decode(frame.try_into().expect("whole")).expect("ours"))
        .collect()
}

fn node(hub: &mut Hub, node: u8) -> u64 {
    let id = hub.arrive(peer(), NOW);
    hub.hear(id, &hello(Role::Node(node)), NOW);
    assert!(matches!(replies(hub, id)[..], [Reply::Welcome(_)]));
    id
}

#[test]
fn the_writer_that_completes_a_barrier_is_answered_with_the_release_and_the_others_are_told() {
    let mut hub = Hub::new(3).expect("a legal count");
    let nodes: Vec<_> = (0..3).map(|n| node(&mut hub, n)).collect();
    for (count, id) in nodes.iter().enumerate() {
        hub.hear(*id, &Request::Write { high: true }.encode(), NOW);
        let [Reply::Answer(view)] = replies(&mut hub, *id)[..] else {
            panic!("one answer");
        };
        assert_eq!(view.board.releases, u64::from(count == 2));
    }
    for id in &nodes[..2] {
        assert!(hub.has_news(*id));
        assert!(
            matches!(replies(&mut hub, *id)[..], [Reply::Released(view)] if view.board.outputs == 0b111)
        );
    }
    assert!(!hub.has_news(nodes[2]));
}

#[test]
fn frames_may_come_in_pieces_and_several_at_once() {
    let mut hub = Hub::new(1).expect("a legal count");
    let id = hub.arrive(peer(), NOW);
    let mut bytes = hello(Role::Node(0)).to_vec();
    bytes.extend(Request::Look.encode());
    bytes.extend(Request::Write { high: true }.encode());
    bytes.extend(Request::Goodbye.encode());
    for byte in &bytes[..20] {
        hub.hear(id, &[*byte], NOW);
    }
    hub.hear(id, &bytes[20..], NOW);
    let said = replies(&mut hub, id);
    assert!(
        matches!(
            said[..],
            [
                Reply::Welcome(_),
                Reply::Answer(_),
                Reply::Answer(view),
                Reply::Farewell
            ] if view.board.releases == 1
        ),
        "{said:?}"
    );
    assert_eq!(hub.seated(), 0);
}

#[test]
fn whoever_says_nothing_is_gone_after_a_while_and_nodes_stay() {
    let mut hub = Hub::new(1).expect("a legal count");
    let silent = hub.arrive(peer(), NOW);
    let half = hub.arrive(peer(), NOW);
    hub.hear(half, &hello(Role::Node(0))[..5], NOW);
    let node = node(&mut hub, 0);
    assert_eq!(hub.deadline(), Some(NOW + HELLO));
    hub.sweep(NOW + HELLO);
    assert_eq!(
        [silent, half, node].map(|id| hub.has(id)),
        [false, false, true]
    );
    assert_eq!(hub.deadline(), None);
}

#[test]
fn onlookers_are_counted_and_the_rest_turned_away() {
    let mut hub = Hub::new(2).expect("a legal count");
    let mut look = |_| {
        let id = hub.arrive(peer(), NOW);
        hub.hear(id, &hello(Role::Onlooker), NOW);
        replies(&mut hub, id).remove(0)
    };
    assert!(
        (0..ONLOOKERS)
            .map(&mut look)
            .all(|reply| matches!(reply, Reply::Welcome(_)))
    );
    let onlookers = ONLOOKERS as u8;
    assert_eq!(look(0), Reply::Refused(Refusal::Crowded { onlookers }));
}

#[test]
fn another_version_is_noted_and_not_answered() {
    let mut hub = Hub::new(2).expect("a legal count");
    let id = hub.arrive(peer(), NOW);
    let mut greeting = hello(Role::Node(0));
    greeting[6] = 9;
    hub.hear(id, &greeting, NOW);
    assert!(replies(&mut hub, id).is_empty() && hub.is_leaving(id));
    assert_eq!(
        hub.notices()[0].to_string(),
        "10.0.0.7:4711 was turned away: it speaks version 9 and this server version 1"
    );
}

#[test]
fn a_flood_pushes_nobody_out_who_still_has_time_to_say_hello() {
    let mut hub = Hub::new(2).expect("a legal count");
    let node = hub.arrive(peer(), NOW);
    let crowd: Vec<_> = (1..STRANGERS).map(|_| hub.arrive(peer(), NOW)).collect();
    assert!(!hub.has_room(NOW), "newcomers wait");
    // Whoever has had its last word goes first.
    hub.hear(crowd[9], b"GET / HT", NOW);
    assert!(hub.has_room(NOW));
    hub.arrive(peer(), NOW);
    assert!(!hub.has(crowd[9]) && hub.has(node) && !hub.has_room(NOW));
    // And after the grace the oldest of those that say nothing, but not a node.
    let late = NOW + GRACE;
    hub.hear(node, &hello(Role::Node(0)), late);
    hub.arrive(peer(), late);
    assert!(hub.has(node) && hub.has(crowd[0]) && hub.has_room(late));
    hub.arrive(peer(), late);
    assert!(hub.has(node) && !hub.has(crowd[0]));
}

/// What can happen to a server.
#[derive(Debug, Clone)]
enum Act {
    Arrive,
    Hello(usize, u8),
    Ask(usize, Request),
    Rubbish(usize, Vec<u8>),
    Read(usize),
    End(usize),
    Pass(u64),
}

fn act() -> impl Strategy<Value = Act> {
    let who = 0..12usize;
    let request = prop_oneof![
        Just(Request::Look),
        any::<bool>().prop_map(|high| Request::Write { high }),
        (any::<bool>(), 0..4u64).prop_map(|(high, seen)| Request::Withdraw { high, seen }),
        Just(Request::Goodbye),
    ];
    prop_oneof![
        3 => Just(Act::Arrive),
        3 => (who.clone(), prop_oneof![0..4u8, Just(200), Just(255)]).prop_map(|(who, word)| Act::Hello(who, word)),
        12 => (who.clone(), request).prop_map(|(who, request)| Act::Ask(who, request)),
        1 => (who.clone(), proptest::collection::vec(any::<u8>(), 0..40)).prop_map(|(who, bytes)| Act::Rubbish(who, bytes)),
        2 => who.clone().prop_map(Act::Read),
        1 => who.prop_map(Act::End),
        1 => (0..3000u64).prop_map(Act::Pass),
    ]
}

proptest! {
    /// Three nodes, guests that come and go and send anything: the promise of the module's head.
    #[test]
    fn whatever_guests_do_the_barrier_holds_and_the_server_stays_small(acts in proptest::collection::vec(act(), 1..400)) {
        let mut hub = Hub::new(3).expect("a legal count");
        let (mut ids, mut now) = (vec![], NOW);
        let mut last = hub.view(now).board;
        for act in acts {
            let of = |who: usize| ids.get(who % ids.len().max(1)).copied();
            match act {
                Act::Arrive => if hub.has_room(now) {
                    ids.push(hub.arrive(peer(), now));
                },
                Act::Hello(who, word) => if let Some(id) = of(who) {
                    hub.hear(id, &Greeting { version: VERSION, word }.encode(), now);
                },
                Act::Ask(who, request) => if let Some(id) = of(who) {
                    hub.hear(id, &request.encode(), now);
                },
                Act::Rubbish(who, bytes) => if let Some(id) = of(who) {
                    hub.hear(id, &bytes, now);
                },
                Act::Read(who) => if let Some(id) = of(who) {
                    hub.outgoing(id).map(std::mem::take);
                },
                Act::End(who) => if let Some(id) = of(who) {
                    hub.end(id, Ended::Closed);
                },
                Act::Pass(ms) => {
                    now += Duration::from_millis(ms);
                    hub.sweep(now);
                }
            }
            ids.retain(|id| hub.has(*id));
            let board = hub.view(now).board;
            if board.releases != last.releases {
                // One request changes one wire, so the two others were in the barrier before it.
                prop_assert_eq!(board.releases, last.releases + 1);
                prop_assert!((last.inputs ^ last.outputs).count_ones() >= 2, "left before all had entered");
                prop_assert_eq!(board.inputs, board.outputs);
            }
            prop_assert!(board.inputs ^ board.outputs != 0b111, "all have entered and nobody is released");
            last = board;
            prop_assert!(hub.seated() <= 3 && ids.len() <= STRANGERS + ONLOOKERS + 3);
            for id in &ids {
                prop_assert!(hub.waiting(*id) <= 4096 + REPLY + REQUEST);
            }
        }
    }
}
