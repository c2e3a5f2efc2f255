//! Tests of a node's memory; the ranks are threads or values of one process.
#![allow(unsafe_code)]

use super::head::Head;
use super::*;
use crate::mem::PAGE;
use crate::ring::{Body, Polled};
use std::time::{Duration, Instant};

fn ranks(n: u32) -> Vec<Node> {
    let fd = Node::create(n).unwrap();
    (0..n).map(|r| Node::attach(&fd, r).unwrap()).collect()
}

#[test]
fn sixty_ranks_cost_little_memory_before_they_talk() {
    let fd = Node::create(60).unwrap();
    let nodes: Vec<_> = (0..60).map(|r| Node::attach(&fd, r).unwrap()).collect();
    let kib = rustix::fs::fstat(&fd).unwrap().st_blocks / 2;
    assert!(kib <= 61 * 4, "{kib} KiB");
    assert_eq!(nodes[59].nlocal(), 60);
}

#[test]
fn a_rank_is_claimed_once() {
    let fd = Node::create(2).unwrap();
    let _first = Node::attach(&fd, 1).unwrap();
    let error = Node::attach(&fd, 1).unwrap_err();
    assert_eq!(
        error,
        NodeError::Claimed {
            rank: 1,
            pid: std::process::id()
        }
    );
    assert!(matches!(
        Node::attach(&fd, 2),
        Err(NodeError::NoSuchRank { rank: 2, nlocal: 2 })
    ));
}

#[test]
fn an_end_of_a_ring_is_handed_out_once() {
    let nodes = ranks(2);
    assert!(nodes[0].producer(1).is_ok());
    assert!(matches!(
        nodes[0].producer(1),
        Err(NodeError::Taken { from: 0, to: 1, .. })
    ));
    assert!(nodes[0].producer(0).is_ok());
    assert!(nodes[0].consumer(2).is_err());
    assert!(nodes[0].frags().is_ok());
    let again = nodes[0].frags().unwrap_err();
    assert_eq!(again, NodeError::PoolTaken { rank: 0 });
    assert_eq!(
        again.to_string(),
        "the fragment pool of local rank 0 is in use already"
    );
}

#[test]
fn what_is_not_a_node_is_refused() {
    let fd = memfd("test", 8192).unwrap();
    assert_eq!(Node::attach(&fd, 0).unwrap_err(), NodeError::NotANode);
    let file = Node::create(2).unwrap();
    let head = Segment::map(&file, PAGE).unwrap();
    let nlocal = &head.at::<Head>(0).unwrap().nlocal;
    nlocal.store(60, Ordering::Relaxed);
    // The file is too short for the sixty ranks in its header, so the header is rejected.
    assert!(matches!(Node::attach(&file, 0), Err(NodeError::Map { .. })));
    nlocal.store(u32::MAX, Ordering::Relaxed);
    assert!(matches!(
        Node::attach(&file, 0),
        Err(NodeError::Sizes { .. })
    ));
}

#[test]
fn a_message_and_a_fragment_cross_the_node() {
    let nodes = ranks(2);
    let mut tx = nodes[0].producer(1).unwrap();
    let mut rx = nodes[1].consumer(0).unwrap();
    let mut pool = nodes[0].frags().unwrap();
    tx.push(7, [1, 2], 3, |to| to.copy_from_slice(b"abc"))
        .unwrap();
    let token = pool.fill(1, 30000, |to| to.fill(9)).unwrap();
    tx.push_elsewhere(8, [3, 4], 30000, token).unwrap();
    let seen = rx.pop(|m| match m.body {
        Body::Here(bytes) => (m.am, m.header, bytes.to_vec()),
        Body::Elsewhere { .. } => panic!("a short payload travels in the cell"),
    });
    assert_eq!(seen, Polled::Got((7, [1, 2], b"abc".to_vec())));
    let seen = rx.pop(|m| match m.body {
        Body::Elsewhere { token, len } => {
            nodes[1].read_frag(0, token, len, |bytes| bytes.iter().all(|&b| b == 9))
        }
        Body::Here(_) => None,
    });
    assert_eq!(seen, Polled::Got(Some(true)));
    // The fragment has been returned, so the reader must not return it a second time.
    assert_eq!(nodes[1].read_frag(0, token, 1, |_| ()), None);
}

#[test]
fn fragments_come_back_in_any_order_and_run_out() {
    let fd = Node::create_with(
        2,
        Sizes {
            frags: 3,
            ..Sizes::for_ranks(2)
        },
    )
    .unwrap();
    let [a, b] = [0, 1].map(|r| Node::attach(&fd, r).unwrap());
    let mut pool = a.frags().unwrap();
    let tokens: Vec<_> = (0..3).map(|_| pool.fill(1, 8, |_| ()).unwrap()).collect();
    assert!(!pool.has_free());
    assert_eq!(pool.fill(1, 8, |_| ()), None);
    assert_eq!(pool.slowest(), Some(1));
    b.read_frag(0, tokens[1], 8, |_| ()).unwrap();
    assert!(pool.has_free());
    assert_eq!(pool.fill(1, 8, |_| ()), Some(tokens[1]));
    assert_eq!(pool.fill(1, 8, |_| ()), None);
}

#[test]
fn a_token_or_place_from_a_confused_peer_is_refused() {
    let nodes = ranks(2);
    assert_eq!(nodes[1].read_frag(0, 0, 8, |_| ()), None);
    assert_eq!(nodes[1].read_frag(0, 64, 8, |_| ()), None);
    assert_eq!(nodes[1].read_frag(0, u64::MAX, 8, |_| ()), None);
    assert_eq!(nodes[1].read_frag(2, 0, 8, |_| ()), None);
    for place in [0, 4096, u64::MAX, 1 << 40] {
        assert!(nodes[1].resolve(ShmOffset(place), 8).is_none());
    }
    let block = nodes[0].alloc(1 << 20, 64).unwrap();
    assert!(nodes[1].resolve(block.place(), 1 << 20).is_some());
    assert!(nodes[1].resolve(block.place(), 1 << 40).is_none());
}

#[test]
fn a_block_that_is_longer_than_an_arena_is_found_by_others_and_comes_back_zeroed() {
    let nodes = ranks(2);
    let len = 3 << 30;
    for round in 0..2 {
        let block = nodes[1].alloc_large(len, 1 << 13).unwrap();
        assert_eq!(block.as_ptr().addr() % (1 << 13), 0);
        let there = nodes[0].resolve(block.place(), len).unwrap();
        assert_ne!(there, block.as_ptr());
        // SAFETY: this is the last byte of the block in both mappings, which only this test uses.
        unsafe {
            assert_eq!(there.add(len - 1).read_volatile(), 0);
            block.as_ptr().add(len - 1).write_volatile(7 + round);
            assert_eq!(there.add(len - 1).read_volatile(), 7 + round);
        }
        let address = block.as_ptr().addr() + 100;
        let place = nodes[1].place_of(address, len - 100).unwrap();
        assert_eq!(place.0, block.place().0 + 100);
        assert!(nodes[1].place_of(address, 17 << 30).is_none());
        assert!(nodes[0].resolve(block.place(), 17 << 30).is_none());
    }
}

#[test]
fn a_block_is_seen_by_its_name_and_comes_back_zeroed() {
    let nodes = ranks(2);
    for len in [8usize, 100, 70_000, 1 << 20] {
        let block = nodes[0].alloc(len, 64).unwrap();
        let bytes = nodes[1].resolve(block.place(), len).unwrap();
        // SAFETY: only this test uses the block.
        unsafe { std::slice::from_raw_parts_mut(bytes, len) }.fill(0xff);
        // SAFETY: only this test uses the block.
        assert_eq!(unsafe { block.as_ptr().add(len - 1).read() }, 0xff);
        let place = block.place();
        drop(block);
        let again = nodes[0].alloc(len, 64).unwrap();
        assert_eq!(again.place(), place);
        // SAFETY: only this test uses the block.
        let bytes = unsafe { std::slice::from_raw_parts(again.as_ptr(), len) };
        assert!(bytes.iter().all(|&b| b == 0));
        let words = nodes[1].shared::<AtomicU64>(again.place(), 1).unwrap();
        words[0].store(1, Ordering::Relaxed);
    }
}

/// Returns the allocated memory of a node's file in KiB.
fn kib(fd: &OwnedFd) -> i64 {
    rustix::fs::fstat(fd).unwrap().st_blocks / 2
}

#[test]
fn the_pages_of_a_freed_block_are_kept_for_the_next_up_to_a_bound() {
    let fd = Node::create(64).unwrap();
    let node = Node::attach(&fd, 0).unwrap();
    // All ranks of a node together keep 64 MiB, so each of 64 ranks keeps 1 MiB.
    let mut before = kib(&fd);
    for (round, (len, kept)) in [(1 << 20, 1 << 10), (2 << 20, 0), (512 << 10, 512)]
        .into_iter()
        .enumerate()
    {
        let block = node.alloc(len, 4096).unwrap();
        // SAFETY: only this test uses the block.
        unsafe { block.as_ptr().write_bytes(0xff, len) };
        drop(block);
        if round == 0 {
            assert_eq!(kib(&fd) - before, kept);
            before = kib(&fd);
            // Blocks that are allocated and freed in a loop use the same pages again.
            for _ in 0..3 {
                drop(node.alloc(len, 4096).unwrap());
                assert_eq!(kib(&fd), before);
            }
            before -= kept;
        } else {
            assert_eq!(kib(&fd) - before, kept, "{len} bytes");
        }
    }
}

#[test]
fn of_a_long_block_of_which_little_was_used_only_that_is_kept() {
    let fd = Node::create(2).unwrap();
    let node = Node::attach(&fd, 0).unwrap();
    let before = kib(&fd);
    let block = node.alloc(32 << 20, 4096).unwrap();
    for page in [0, 100, 7000] {
        // SAFETY: this is a byte of the block, which only this test uses.
        unsafe { block.as_ptr().add(page * PAGE).write(1) };
    }
    drop(block);
    assert_eq!(kib(&fd) - before, 3 * 4);
}

#[test]
fn the_contents_of_a_freed_block_do_not_reach_a_block_that_must_be_zero() {
    let nodes = ranks(2);
    let fill = |block: &ShmBlock| {
        let there = nodes[1].resolve(block.place(), block.len()).unwrap();
        // SAFETY: only this test uses the block.
        unsafe { there.write_bytes(0xff, block.len()) };
    };
    // Blocks that begin and end inside pages leave kept ranges of all lengths.
    let lens = [100, 20_000, 8, 300_000, 5000];
    for shift in 0..lens.len() {
        let blocks: Vec<_> = (0..lens.len())
            .map(|at| {
                let len = lens[(at + shift) % lens.len()];
                let block = nodes[0].alloc(len, 64).unwrap();
                // SAFETY: only this test uses the block.
                let bytes = unsafe { std::slice::from_raw_parts(block.as_ptr(), len) };
                assert!(bytes.iter().all(|&byte| byte == 0), "{len}");
                fill(&block);
                block
            })
            .collect();
        drop(blocks);
        let mut any = nodes[0].alloc_with(100_000, 64, Contents::Any).unwrap();
        fill(&any);
        // The block was never zeroed, so this declaration has no effect.
        any.is_clean_behind(0);
    }
}

#[test]
fn a_long_block_without_memory_takes_none_when_it_is_freed() {
    let fd = Node::create(2).unwrap();
    let node = Node::attach(&fd, 0).unwrap();
    let before = kib(&fd);
    for len in [16 << 10, 1 << 20, 3 << 30] {
        drop(node.alloc_large(len, 64).unwrap());
        assert_eq!(kib(&fd), before, "{len}");
    }
}

#[test]
fn a_block_that_was_used_at_its_beginning_only_comes_back_zeroed() {
    let nodes = ranks(1);
    for used in [64, 70_000] {
        let len = 1 << 20;
        let mut block = nodes[0].alloc(len, 64).unwrap();
        // SAFETY: only this test uses the block.
        unsafe { block.as_ptr().write_bytes(0xff, used) };
        block.is_clean_behind(used);
        let place = block.place();
        drop(block);
        let again = nodes[0].alloc(len, 64).unwrap();
        assert_eq!(again.place(), place);
        // SAFETY: only this test uses the block.
        let bytes = unsafe { std::slice::from_raw_parts(again.as_ptr(), len) };
        assert!(bytes.iter().all(|&b| b == 0), "{used}");
    }
}

#[test]
fn the_gallery_sees_who_is_there_and_senders_hear_who_has_left() {
    let fd = Node::create(3).unwrap();
    let inspection = Inspection::open(&fd).unwrap();
    assert_eq!(inspection.pid(1), None);
    let node = Node::attach(&fd, 1).unwrap();
    assert_eq!(inspection.pid(1), Some(std::process::id()));
    assert!(inspection.state(1).is_some() && inspection.state(3).is_none());
    let other = Node::attach(&fd, 0).unwrap();
    assert!(other.inbox(1).unwrap().notify(0));
    drop(node);
    assert!(!other.inbox(1).unwrap().notify(0));
}

#[test]
fn reading_a_peers_memory_is_tried_on_the_peer_itself() {
    let nodes = ranks(2);
    let Some(pid) = nodes[0].processes().readable_pid(1) else {
        return;
    };
    assert_eq!(pid, std::process::id());
    assert_eq!(nodes[0].processes().readable_pid(2), None);
}

#[test]
fn a_rank_that_is_on_its_way_is_waited_for_and_one_that_does_not_come_is_not() {
    let fd = Node::create(3).unwrap();
    let first = Node::attach(&fd, 0).unwrap();
    let long = || Instant::now() + Duration::from_secs(600);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| first.processes().await_attached(1, long()));
        std::thread::sleep(Duration::from_millis(20));
        let second = Node::attach(&fd, 1).unwrap();
        assert!(waiting.join().unwrap());
        assert!(second.processes().await_attached(0, long()));
    });
    assert!(!first.processes().await_attached(2, Instant::now()));
    assert!(!first.processes().await_attached(3, Instant::now()));
}
