//! Tests of the hub with a simulated network and clock.

use super::super::board::{Channels, Toggle};
use super::super::frame::{
    CHANNELS_VERSION, Eureka, GREETING, Greeting, REPLY, REQUEST, Refusal, Reply, Request, Role,
    VERSION,
};
use super::super::hub::{GRACE, HELLO, Hub, OBSERVERS_MAX, WITHOUT_ROLE_MAX};
use super::*;
use proptest::prelude::*;
use std::time::Duration;

const NOW: Duration = Duration::from_secs(1);

fn hub_of(nodes: usize) -> Hub {
    Hub::new(Toggle::new(nodes).expect("a legal count"))
}

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

/// Removes the greeting and the pending replies from the client's output, and returns the replies.
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
    hub.receive(id, &hello(Role::Node(node)), NOW);
    assert!(matches!(replies(hub, id)[..], [Reply::Welcome(_)]));
    id
}

#[test]
fn the_writer_that_completes_a_barrier_is_answered_with_the_release_and_the_others_are_notified() {
    let mut hub = hub_of(3);
    let nodes: Vec<_> = (0..3).map(|n| node(&mut hub, n)).collect();
    for (count, id) in nodes.iter().enumerate() {
        hub.receive(*id, &Request::Write { high: true }.encode(), NOW);
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

/// Returns the eureka line as this client receives it.
fn eureka(hub: &mut Hub, id: u64, request: Request) -> Eureka {
    hub.receive(id, &request.encode(), NOW);
    match replies(hub, id).pop() {
        Some(Reply::Eureka(eureka)) => eureka,
        reply => panic!("{reply:?}"),
    }
}

#[test]
fn what_a_dead_node_has_found_stays_found_until_the_release_and_its_wire_falls() {
    let mut hub = hub_of(2);
    let [finder, other] = [0, 1].map(|n| node(&mut hub, n));
    let found = Eureka {
        found: true,
        first: 0b01,
    };
    assert_eq!(eureka(&mut hub, other, Request::Hear), Eureka::default());
    assert_eq!(eureka(&mut hub, finder, Request::Say { high: true }), found);
    hub.end(finder, Ended::Closed, NOW);
    assert_eq!(eureka(&mut hub, other, Request::Hear), found);
    let next = node(&mut hub, 0);
    for id in [next, other] {
        hub.receive(id, &Request::Write { high: true }.encode(), NOW);
    }
    // If the wire were still high, the line would rise again after the release.
    assert_eq!(eureka(&mut hub, other, Request::Hear), Eureka::default());
}

#[test]
fn an_observer_reads_the_line_and_cannot_write_it_and_version_2_has_none() {
    let mut hub = hub_of(2);
    let observer = hub.arrive(peer(), NOW);
    hub.receive(observer, &hello(Role::BoardObserver), NOW);
    assert_eq!(eureka(&mut hub, observer, Request::Hear), Eureka::default());
    hub.receive(observer, &Request::Say { high: true }.encode(), NOW);
    assert_eq!(
        replies(&mut hub, observer),
        [Reply::Refused(Refusal::OnlyLooks)]
    );
    for request in [Request::Hear, Request::Say { high: true }] {
        let mut hub = Hub::new(Channels::new(2).expect("a legal count"));
        let id = hub.arrive(peer(), NOW);
        let greeting = Greeting {
            version: CHANNELS_VERSION,
            word: 0,
        };
        hub.receive(id, &greeting.encode(), NOW);
        replies(&mut hub, id);
        hub.receive(id, &request.encode(), NOW);
        assert_eq!(replies(&mut hub, id), [Reply::Refused(Refusal::Malformed)]);
    }
}

#[test]
fn frames_may_come_in_pieces_and_several_at_once() {
    let mut hub = hub_of(1);
    let id = hub.arrive(peer(), NOW);
    let mut bytes = hello(Role::Node(0)).to_vec();
    bytes.extend(Request::Look.encode());
    bytes.extend(Request::Write { high: true }.encode());
    bytes.extend(Request::Disconnect.encode());
    for byte in &bytes[..20] {
        hub.receive(id, &[*byte], NOW);
    }
    hub.receive(id, &bytes[20..], NOW);
    let said = replies(&mut hub, id);
    assert!(
        matches!(
            said[..],
            [
                Reply::Welcome(_),
                Reply::Answer(_),
                Reply::Answer(view),
                Reply::Disconnected
            ] if view.board.releases == 1
        ),
        "{said:?}"
    );
    assert_eq!(hub.connected_nodes(), 0);
}

#[test]
fn silent_clients_are_dropped_after_a_while_and_nodes_stay() {
    let mut hub = hub_of(1);
    let silent = hub.arrive(peer(), NOW);
    let half = hub.arrive(peer(), NOW);
    hub.receive(half, &hello(Role::Node(0))[..5], NOW);
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
fn observers_are_counted_and_the_rest_rejected() {
    let mut hub = hub_of(2);
    let mut look = |_| {
        let id = hub.arrive(peer(), NOW);
        hub.receive(id, &hello(Role::BoardObserver), NOW);
        replies(&mut hub, id).remove(0)
    };
    assert!(
        (0..OBSERVERS_MAX)
            .map(&mut look)
            .all(|reply| matches!(reply, Reply::Welcome(_)))
    );
    let observers = OBSERVERS_MAX as u8;
    assert_eq!(look(0), Reply::Refused(Refusal::Crowded { observers }));
}

#[test]
fn another_version_is_noted_and_not_answered() {
    let mut hub = hub_of(2);
    let id = hub.arrive(peer(), NOW);
    let mut greeting = hello(Role::Node(0));
    greeting[6] = 9;
    hub.receive(id, &greeting, NOW);
    assert!(replies(&mut hub, id).is_empty() && hub.is_leaving(id));
    assert_eq!(
        hub.notices()[0].to_string(),
        "10.0.0.7:4711 was rejected: it speaks version 9 and this server version 1"
    );
}

#[test]
fn a_flood_drops_no_client_that_has_time_left_for_its_hello() {
    let mut hub = hub_of(2);
    let node = hub.arrive(peer(), NOW);
    let crowd: Vec<_> = (1..WITHOUT_ROLE_MAX)
        .map(|_| hub.arrive(peer(), NOW))
        .collect();
    assert!(!hub.can_accept(NOW), "newcomers wait");
    // A client that is being disconnected is replaced before all others.
    hub.receive(crowd[9], b"GET / HT", NOW);
    assert!(hub.can_accept(NOW));
    hub.arrive(peer(), NOW);
    assert!(!hub.has(crowd[9]) && hub.has(node) && !hub.can_accept(NOW));
    // After the grace period the oldest client without a greeting is replaced, but never a node.
    let late = NOW + GRACE;
    hub.receive(node, &hello(Role::Node(0)), late);
    hub.arrive(peer(), late);
    assert!(hub.has(node) && hub.has(crowd[0]) && hub.can_accept(late));
    hub.arrive(peer(), late);
    assert!(hub.has(node) && !hub.has(crowd[0]));
}

/// A random event of the property test.
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
    let index = 0..12usize;
    let request = prop_oneof![
        Just(Request::Look),
        any::<bool>().prop_map(|high| Request::Write { high }),
        (any::<bool>(), 0..4u64).prop_map(|(high, seen)| Request::Withdraw { high, seen }),
        Just(Request::Disconnect),
    ];
    prop_oneof![
        3 => Just(Act::Arrive),
        3 => (index.clone(), prop_oneof![0..4u8, Just(200), Just(255)]).prop_map(|(index, word)| Act::Hello(index, word)),
        12 => (index.clone(), request).prop_map(|(index, request)| Act::Ask(index, request)),
        1 => (index.clone(), proptest::collection::vec(any::<u8>(), 0..40)).prop_map(|(index, bytes)| Act::Rubbish(index, bytes)),
        2 => index.clone().prop_map(Act::Read),
        1 => index.prop_map(Act::End),
        1 => (0..3000u64).prop_map(Act::Pass),
    ]
}

proptest! {
    /// Checks the guarantees of the module's head with three nodes and clients that connect, disconnect and send any bytes.
    #[test]
    fn whatever_clients_do_the_barrier_holds_and_the_server_stays_small(acts in proptest::collection::vec(act(), 1..400)) {
        let mut hub = hub_of(3);
        let (mut ids, mut now) = (vec![], NOW);
        let mut last = hub.view(None, now).board;
        for act in acts {
            let of = |index: usize| ids.get(index % ids.len().max(1)).copied();
            match act {
                Act::Arrive => if hub.can_accept(now) {
                    ids.push(hub.arrive(peer(), now));
                },
                Act::Hello(index, word) => if let Some(id) = of(index) {
                    hub.receive(id, &Greeting { version: VERSION, word }.encode(), now);
                },
                Act::Ask(index, request) => if let Some(id) = of(index) {
                    hub.receive(id, &request.encode(), now);
                },
                Act::Rubbish(index, bytes) => if let Some(id) = of(index) {
                    hub.receive(id, &bytes, now);
                },
                Act::Read(index) => if let Some(id) = of(index) {
                    hub.outgoing(id).map(std::mem::take);
                },
                Act::End(index) => if let Some(id) = of(index) {
                    hub.end(id, Ended::Closed, now);
                },
                Act::Pass(ms) => {
                    now += Duration::from_millis(ms);
                    hub.sweep(now);
                }
            }
            ids.retain(|id| hub.has(*id));
            let board = hub.view(None, now).board;
            if board.releases != last.releases {
                // One request changes one wire, so the two other nodes were already in the barrier.
                prop_assert_eq!(board.releases, last.releases + 1);
                prop_assert!((last.inputs ^ last.outputs).count_ones() >= 2, "left before all had entered");
                prop_assert_eq!(board.inputs, board.outputs);
            }
            prop_assert!(board.inputs ^ board.outputs != 0b111, "all have entered and no node is released");
            last = board;
            prop_assert!(hub.connected_nodes() <= 3 && ids.len() <= WITHOUT_ROLE_MAX + OBSERVERS_MAX + 3);
            for id in &ids {
                prop_assert!(hub.waiting(*id) <= 4096 + REPLY + REQUEST);
            }
        }
    }
}

/// A client of a version 2 board whose frames the test encodes itself:
/// its ID at the hub, and the release counters that it has received last.
struct Speaker {
    id: u64,
    seen: u64,
}

const SELECT: u8 = 1 << 7;

impl Speaker {
    fn joins(hub: &mut Hub, node: u8) -> Speaker {
        let id = hub.arrive(peer(), NOW);
        let hello = Greeting {
            version: CHANNELS_VERSION,
            word: node,
        };
        hub.receive(id, &hello.encode(), NOW);
        assert!(matches!(replies(hub, id)[..], [Reply::Welcome(_)]));
        Speaker { id, seen: 0 }
    }

    fn drives(&self, hub: &mut Hub, levels: u8, now: Duration) {
        let seen = self.seen;
        hub.receive(self.id, &Request::Drive { levels, seen }.encode(), now);
    }

    /// Returns the levels of this node's lines in the one pending reply.
    fn hears(&mut self, hub: &mut Hub) -> u64 {
        let view = match replies(hub, self.id)[..] {
            [Reply::Answer(view) | Reply::Released(view)] => view,
            ref others => panic!("one reply, not {others:?}"),
        };
        self.seen = view.board.outputs;
        view.board.inputs
    }
}

fn channels(nodes: u8) -> (Hub, Vec<Speaker>) {
    let mut hub = Hub::new(Channels::new(nodes.into()).expect("a legal count"));
    let speakers = (0..nodes).map(|n| Speaker::joins(&mut hub, n)).collect();
    (hub, speakers)
}

/// The bit of channel 0's release line, the first inward line;
/// all nodes are members after power-on.
const RELEASE: u64 = 1 << 8;

#[test]
fn nodes_of_version_2_are_notified_of_a_release_and_read_their_own_lines() {
    let (mut hub, mut nodes) = channels(2);
    nodes[0].drives(&mut hub, 1, NOW);
    assert_eq!(nodes[0].hears(&mut hub), 1);
    nodes[1].drives(&mut hub, 1, NOW);
    assert_eq!(nodes[1].hears(&mut hub), RELEASE | 1);
    assert_eq!(nodes[0].hears(&mut hub), RELEASE | 1);
    assert_eq!(hub.releases(), 1);
}

#[test]
fn an_arrival_that_was_used_is_not_withdrawn() {
    let (mut hub, mut nodes) = channels(2);
    nodes[0].drives(&mut hub, 1, NOW);
    assert_eq!(nodes[0].hears(&mut hub), 1);
    nodes[1].drives(&mut hub, 1, NOW);
    // Node 0 withdraws before it has received the release;
    // if the server set the line low, that would be an arrival.
    nodes[0].drives(&mut hub, 0, NOW);
    let signal = replies(&mut hub, nodes[0].id);
    let [Reply::Released(_), Reply::Answer(view)] = signal[..] else {
        panic!("{signal:?}");
    };
    assert_eq!(view.board.inputs, RELEASE | 1);
}

#[test]
fn a_second_programmer_waits_and_a_dead_one_releases_the_receiver() {
    let (mut hub, mut nodes) = channels(3);
    nodes[2].drives(&mut hub, SELECT, NOW);
    nodes[2].hears(&mut hub);
    for node in [1, 0] {
        nodes[node].drives(&mut hub, SELECT, NOW);
        assert!(replies(&mut hub, nodes[node].id).is_empty());
    }
    nodes[2].drives(&mut hub, 0, NOW);
    nodes[2].hears(&mut hub);
    assert_eq!(nodes[1].hears(&mut hub) as u8, SELECT);
    assert!(replies(&mut hub, nodes[0].id).is_empty());
    hub.end(nodes[1].id, Ended::Closed, NOW);
    assert_eq!(nodes[0].hears(&mut hub) as u8, SELECT);
}

#[test]
fn a_speaker_that_falls_silent_is_cut_off_when_others_wait() {
    let (mut hub, mut nodes) = channels(2);
    nodes[1].drives(&mut hub, SELECT, NOW);
    nodes[1].hears(&mut hub);
    hub.sweep(NOW + Duration::from_secs(60));
    assert!(hub.has(nodes[1].id), "no node waits");
    let later = NOW + Duration::from_secs(61);
    nodes[0].drives(&mut hub, SELECT, later);
    hub.sweep(later);
    assert!(!hub.has(nodes[1].id));
    assert_eq!(nodes[0].hears(&mut hub) as u8, SELECT);
}

#[test]
fn a_request_of_the_other_version_means_nothing() {
    let (mut hub, nodes) = channels(1);
    hub.receive(nodes[0].id, &Request::Write { high: true }.encode(), NOW);
    let signal = replies(&mut hub, nodes[0].id);
    assert_eq!(signal, [Reply::Refused(Refusal::Malformed)]);
    let mut hub = hub_of(1);
    let id = node(&mut hub, 0);
    let drive = Request::Drive { levels: 1, seen: 0 };
    hub.receive(id, &drive.encode(), NOW);
    assert_eq!(replies(&mut hub, id), [Reply::Refused(Refusal::Malformed)]);
}
