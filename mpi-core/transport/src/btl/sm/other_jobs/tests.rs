//! Tests of shared memory between jobs: admission of callers, disconnecting, reconnecting, and the loss of a peer.

use super::*;
use crate::btl::suite::{self, Keep, Net, Nothing, courses, endpoint, send_numbered};
use crate::universe::{Name, job_number};
use mpi_base::doorbell::NAP;
use mpi_base::node::Node;
use proptest::prelude::*;

/// The number of each process at the other one. Each process is the only one of its job.
const OTHER: ProcId = 1;

fn universe(job: &str) -> Arc<Universe> {
    Arc::new(Universe::new(job_number(job), 0, 1))
}

fn introduce(to: &Universe, whom: &Universe) -> ProcId {
    let name = Universe::name(whom, 0).unwrap();
    let proc = to.introduce(name, whom.own_card()).unwrap();
    to.hold([proc].into_iter());
    proc
}

fn pair() -> [(OtherJobs, Arc<Universe>); 2] {
    let universes = ["a", "b"].map(universe);
    let all = universes.map(|universe| {
        let btl = OtherJobs::open(&Params::default(), &universe).unwrap();
        (btl, universe)
    });
    assert_eq!(introduce(&all[0].1, &all[1].1), OTHER);
    assert_eq!(introduce(&all[1].1, &all[0].1), OTHER);
    all
}

mod of_two_jobs {
    crate::btl_suite!(|| {
        let [(a, _), (b, _)] = super::pair();
        super::Net {
            btls: vec![Box::new(a), Box::new(b)],
            procs: vec![super::OTHER, super::OTHER],
            pair: (0, 1),
        }
    });
}

/// A sink that records lost peers and the messages that arrive.
#[derive(Default)]
struct Watch {
    keep: Keep,
    lost: RefCell<Vec<(ProcId, String)>>,
}

impl Sink for Watch {
    fn deliver(&self, from: ProcId, am: Am, header: Header, payload: &[u8]) {
        self.keep.deliver(from, am, header, payload);
    }

    fn lost(&self, peer: ProcId, why: &str) {
        self.lost.borrow_mut().push((peer, why.into()));
    }
}

fn until(btl: &OtherJobs, sink: &dyn Sink, done: impl Fn() -> bool) {
    for _ in 0..100 * ASK {
        if done() {
            return;
        }
        btl.progress(sink);
    }
    panic!("it has not happened in {} looks", 100 * ASK);
}

fn come(from: &OtherJobs, to: &OtherJobs, proc: ProcId, count: u64) {
    let sink = Watch::default();
    for n in 0..count {
        send_numbered(from, endpoint(from, proc), n, 100).unwrap();
    }
    until(to, &sink, || sink.keep.len() as u64 == count);
}

#[test]
fn both_may_begin_at_the_same_time() {
    let [(a, _), (b, _)] = pair();
    for btl in [&a, &b] {
        send_numbered(btl, endpoint(btl, OTHER), 7, 100).unwrap();
    }
    for btl in [&a, &b] {
        let sink = Watch::default();
        until(btl, &sink, || sink.keep.len() == 1);
    }
    come(&a, &b, OTHER, 20);
    come(&b, &a, OTHER, 20);
}

#[test]
fn what_a_process_has_written_is_delivered_before_it_is_lost() {
    let [(a, _), (b, _)] = pair();
    for n in 0..20 {
        send_numbered(&a, endpoint(&a, OTHER), n, 100).unwrap();
    }
    // Closes the segment without a disconnect message, like a killed process.
    drop(a);
    let sink = Watch::default();
    until(&b, &sink, || !sink.lost.borrow().is_empty());
    assert_eq!(sink.keep.len(), 20);
    assert_eq!(sink.lost.borrow()[0].0, OTHER);
    let said = &sink.lost.borrow()[0].1;
    assert!(
        said.contains("rank 0 of this job and rank 0 of another"),
        "{said}"
    );
    let sent = b.send(Endpoint(OTHER), 0, [0; 2], Payload::Bytes(&[]));
    assert_eq!(sent, Err(SendError::PeerGone));
}

fn links(of: &OtherJobs, proc: ProcId) -> usize {
    of.peers.known(proc).map_or(0, Peer::links)
}

#[test]
fn a_process_that_parts_is_not_lost_and_may_come_again() {
    let [(a, of_a), (b, of_b)] = pair();
    let mut proc = OTHER;
    for _ in 0..50 {
        come(&a, &b, proc, 3);
        come(&b, &a, OTHER, 3);
        // One process disconnects; the other still uses the connection and may still send.
        assert_eq!(of_a.release([proc].into_iter()), [proc]);
        a.disconnect(proc);
        let sink = Watch::default();
        until(&b, &sink, || links(&b, OTHER) == 1);
        assert_eq!((sink.keep.len(), sink.lost.borrow().len()), (0, 0));
        come(&b, &a, OTHER, 3);
        proc = introduce(&of_a, &of_b);
    }
}

#[test]
fn a_goodbye_of_the_slower_side_does_not_end_what_the_faster_one_has_begun_anew() {
    let [(a, of_a), (b, of_b)] = pair();
    come(&a, &b, OTHER, 3);
    come(&b, &a, OTHER, 3);
    of_a.release([OTHER].into_iter());
    a.disconnect(OTHER);
    let again = introduce(&of_a, &of_b);
    // The new connection arrives while the other process still uses the first one. The first one ends only later.
    come(&a, &b, again, 3);
    of_b.release([OTHER].into_iter());
    b.disconnect(OTHER);
    let slower = introduce(&of_b, &of_a);
    for _ in 0..3 {
        come(&b, &a, slower, 3);
        come(&a, &b, again, 3);
    }
    // The first segment is closed after each process has confirmed that it has read all messages.
    // Each process has created a segment since, the slower one because the first segment was still open.
    until(&a, &Nothing, || {
        b.progress(&Nothing);
        links(&a, again) == 2 && links(&b, slower) == 2
    });
}

#[test]
fn nothing_is_begun_with_a_process_that_no_communicator_names() {
    let [(a, of_a), (b, of_b)] = pair();
    come(&a, &b, OTHER, 1);
    of_b.release([OTHER].into_iter());
    b.disconnect(OTHER);
    assert_eq!(of_b.foreign(), 1, "its memory is still open");
    assert!(matches!(b.reach(OTHER), Reach::No(why) if why.contains("no communicator")));
    of_a.release([OTHER].into_iter());
    a.disconnect(OTHER);
    until(&b, &Nothing, || of_b.foreign() == 0);
    until(&a, &Nothing, || of_a.foreign() == 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn every_encounter_has_its_own_messages_and_its_own_end(course in courses()) {
        suite::every_encounter_has_its_own_messages_and_its_own_end(open, course);
    }
}

fn open(universe: &Arc<Universe>) -> Box<dyn Btl> {
    Box::new(OtherJobs::open(&Params::default(), universe).unwrap())
}

#[test]
fn a_segment_of_the_peer_becomes_the_outlet_only_after_the_peer_has_read_the_earlier_outlet() {
    use suite::Act::{Meet, Part, Poll, Send};
    let (a, b) = (false, true);
    // At the end, b has disconnected in a's second segment, which a has not read,
    // and a's third segment is open. In a's table, the third one precedes the second one.
    let course = [
        (a, Meet),
        (a, Send),
        (a, Part),
        (a, Meet),
        (a, Send),
        (b, Poll(70)),
        (b, Meet),
        (a, Part),
        (a, Meet),
        (b, Send),
        (a, Poll(70)),
        (b, Send),
        (a, Send),
        (b, Poll(70)),
        (b, Part),
        (b, Meet),
        (b, Send),
    ];
    suite::every_encounter_has_its_own_messages_and_its_own_end(open, course.into());
}

#[test]
fn what_was_written_before_parting_comes_though_the_next_memory_is_there_already() {
    let [(a, of_a), (b, of_b)] = pair();
    for n in 0..3 {
        send_numbered(&a, endpoint(&a, OTHER), n, 100).unwrap();
    }
    of_a.release([OTHER].into_iter());
    a.disconnect(OTHER);
    let again = introduce(&of_a, &of_b);
    for n in 3..5 {
        send_numbered(&a, endpoint(&a, again), n, 100).unwrap();
    }
    // The other process polls only now, and finds two segments of the same process.
    let sink = Watch::default();
    until(&b, &sink, || sink.keep.len() == 5);
    let numbers = sink.keep.0.borrow();
    let numbers: Vec<u64> = numbers.iter().map(|(header, _)| header[0]).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4]);
    assert!(sink.lost.borrow().is_empty());
}

#[test]
fn a_caller_that_no_communicator_names_is_forgotten_when_it_has_gone() {
    let [(a, of_a), _others] = pair();
    let known = of_a.foreign();
    let of_c = universe("c");
    let c = OtherJobs::open(&Params::default(), &of_c).unwrap();
    let to = introduce(&of_c, &of_a);
    come(&c, &a, to, 3);
    assert_eq!(of_a.foreign(), known + 1);
    c.shutdown();
    until(&a, &Nothing, || of_a.foreign() == known);
}

#[test]
fn a_stranger_and_memory_that_is_none_are_turned_away() {
    let [(a, of_a), (b, _)] = pair();
    let entry = Entry::decode(&of_a.own_card().get(KEY).unwrap()).unwrap();
    let name = Name::new(job_number("c"), 3).0;
    let memory = mpi_base::mem::memfd("none", 4096).unwrap();
    let other = Entry::decode(&{
        let mut bytes = entry.encode();
        bytes[20] ^= 1;
        bytes
    });
    let whole = Node::create_with(2, link::sizes()).unwrap();
    for (entry, memory) in [(entry, &memory), (other.unwrap(), &whole)] {
        let socket = meeting::call(entry, name, memory.as_fd()).unwrap();
        let sink = Watch::default();
        until(&a, &sink, || meeting::end(socket.as_fd()).is_some());
        assert_eq!((sink.keep.len(), sink.lost.borrow().len()), (0, 0));
    }
    // A caller whose name belongs to this job itself is rejected.
    let own = meeting::call(entry, Name::new(job_number("a"), 0).0, whole.as_fd()).unwrap();
    until(&a, &Nothing, || meeting::end(own.as_fd()).is_some());
    come(&b, &a, OTHER, 3);
}

#[test]
fn a_process_of_another_node_is_not_reached() {
    let [(a, of_a), (_, of_b)] = pair();
    let mut card = of_b.own_card();
    let mut bytes = card.get(KEY).unwrap();
    bytes[0] ^= 1;
    card.put(KEY, &bytes).unwrap();
    let far = of_a.introduce(Name::new(9, 0), card).unwrap();
    of_a.hold([far].into_iter());
    assert_eq!(a.reach(far), Reach::No("it runs on another node".into()));
}

#[test]
fn a_process_that_has_left_is_not_reached_until_it_comes_back() {
    let [(a, _), (b, _)] = pair();
    come(&a, &b, OTHER, 1);
    b.shutdown();
    let sink = Watch::default();
    until(&a, &sink, || {
        a.peers.known(OTHER).is_some_and(|p| p.links() == 0)
    });
    assert!(sink.lost.borrow().is_empty());
    assert!(matches!(a.reach(OTHER), Reach::No(why) if why.contains("is not reached")));
    b.progress(&Nothing);
    come(&a, &b, OTHER, 1);
}

#[test]
fn what_a_process_writes_after_it_has_come_back_does_not_overtake_what_it_wrote_before() {
    let [(a, _), (b, of_b)] = pair();
    let meet_again = || {
        of_b.release([OTHER].into_iter());
        b.disconnect(OTHER);
        of_b.hold([OTHER].into_iter());
    };
    // Both processes create a segment, and b disconnects in its own, so b's first slot becomes free.
    for btl in [&a, &b] {
        send_numbered(btl, endpoint(btl, OTHER), 0, 100).unwrap();
    }
    let sink = Watch::default();
    until(&a, &sink, || links(&a, OTHER) == 2);
    until(&b, &sink, || links(&b, OTHER) == 2);
    meet_again();
    until(&a, &sink, || links(&a, OTHER) == 1);
    until(&b, &sink, || links(&b, OTHER) == 1);
    // Now b disconnects in a's segment, too, so b's next message needs a new segment, which gets the first slot.
    send_numbered(&b, endpoint(&b, OTHER), 1, 100).unwrap();
    meet_again();
    send_numbered(&a, endpoint(&a, OTHER), 1, 100).unwrap();
    a.shutdown();
    a.progress(&sink);
    send_numbered(&b, endpoint(&b, OTHER), 2, 100).unwrap();
    until(&a, &sink, || links(&a, OTHER) == 1);
    send_numbered(&a, endpoint(&a, OTHER), 2, 100).unwrap();
    let sink = Watch::default();
    until(&b, &sink, || sink.keep.len() == 2);
    let numbers = sink.keep.0.borrow();
    let numbers: Vec<u64> = numbers.iter().map(|(header, _)| header[0]).collect();
    assert_eq!(numbers, [1, 2]);
}

#[test]
fn a_process_that_sleeps_is_woken_by_memory_of_another_job() {
    use mpi_base::descriptor_doorbell::DescriptorDoorbell;
    use mpi_base::doorbell::Doorbell;
    let [(a, _), (b, _)] = pair();
    come(&a, &b, OTHER, 1);
    come(&b, &a, OTHER, 1);
    let rounds = 200;
    let play = |btl: OtherJobs, begins: bool| {
        let (own, descriptor) = (Doorbell::new(), DescriptorDoorbell::new().unwrap());
        let sink = Watch::default();
        for round in 0..rounds {
            if begins || round > 0 {
                send_numbered(&btl, Endpoint(OTHER), round, 8).unwrap();
            }
            let heard = round as usize + 1;
            while sink.keep.len() < heard {
                if btl.progress(&sink) == 0 {
                    let (mut descriptors, mut inboxes) = (Vec::new(), Vec::new());
                    btl.descriptors(&mut descriptors);
                    btl.doorbells(&mut inboxes);
                    assert!(!inboxes.is_empty(), "no doorbell would ring");
                    let watched: Vec<_> = inboxes.iter().map(|inbox| inbox.doorbell()).collect();
                    descriptor.sleep(&own, &watched, || NAP, &descriptors, || btl.pending());
                }
            }
        }
        if !begins {
            send_numbered(&btl, Endpoint(OTHER), rounds, 8).unwrap();
        }
        btl
    };
    std::thread::scope(|s| {
        let a = s.spawn(|| play(a, true));
        let b = s.spawn(|| play(b, false));
        // The transports live until both processes have received all messages.
        let _both = (a.join().unwrap(), b.join().unwrap());
    });
}
