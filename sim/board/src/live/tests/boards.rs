//! Tests of cascaded boards in one process: the port suite's claims, and the propagation of levels.

use super::*;
use crate::tree::Tree;

/// Boards whose memory lives as long as the test program.
struct Below(Boards<'static>);

impl Below {
    fn new(nodes: usize, boards: usize, record: usize) -> Self {
        let share = nodes.div_ceil(boards);
        let tree = Tree::new(nodes, nodes.div_ceil(share));
        let memory = Memory::create(Boards::layout_size(&tree, record)).expect("memory");
        let memory: &'static Memory = Box::leak(Box::new(memory));
        memory.init_boards(&tree, record).expect("it fits");
        // Attaches to the boards, as a process other than the creator does.
        Self(memory.attach_boards(&tree, record).expect("they are there"))
    }

    fn node(&self, node: usize) -> NodeWires<'static, Silent> {
        self.0.wires(node, silent as Silent).expect("free wires")
    }
}

impl barrier_driver::suite::Rig for Below {
    type Error = Infallible;
    type Out = NodeOut<'static, Silent>;
    type In = NodeIn<'static, Silent>;

    fn build(nodes: usize) -> Self {
        Self::new(nodes, 3, 100_000)
    }

    fn wires(&self, node: usize) -> (Self::Out, Self::In) {
        let NodeWires { out, input, .. } = self.node(node);
        (out, input)
    }

    fn releases(&self) -> u64 {
        self.0.releases()
    }
}

barrier_driver::port_suite!(Below);

#[test]
fn the_last_arrival_is_forwarded_to_the_root_although_no_other_node_polls() {
    // The cases are: full boards, boards of one node, and one board that is the root.
    for (nodes, boards) in [(120, 2), (7, 7), (7, 1)] {
        let below = Below::new(nodes, boards, 0);
        let mut wires: Vec<_> = (0..nodes).map(|node| below.node(node)).collect();
        for (number, high) in [true, false, true].into_iter().enumerate() {
            for node in (0..nodes).rev() {
                assert_eq!(below.0.releases(), number as u64, "{node} has not come");
                assert_eq!(below.0.missing().len(), node + 1);
                wires[node].out.set_state(high.into()).expect("infallible");
            }
            assert_eq!(below.0.releases(), number as u64 + 1);
            assert!(wires.iter_mut().all(|w| w.input.is_high() == Ok(high)));
            assert_eq!(below.0.missing().len(), nodes);
        }
    }
}

#[test]
fn three_levels_are_as_good_as_two() {
    let tree = Tree::new(122, 61);
    assert_eq!(tree.levels(), 3);
    let below = Below::new(122, 61, 0);
    let mut wires: Vec<_> = (0..122).map(|node| below.node(node)).collect();
    for number in 1..=4 {
        let high = number % 2 == 1;
        for node in &mut wires {
            node.out.set_state(high.into()).expect("infallible");
        }
        assert_eq!(below.0.releases(), number);
    }
}

#[test]
fn a_polling_node_completes_the_steps_of_one_that_died_on_the_way_up() {
    let below = Below::new(4, 2, 0);
    let mut wires: Vec<_> = (0..4).map(|node| below.node(node)).collect();
    for node in [2, 3] {
        wires[node].out.set_high().expect("infallible");
    }
    // Simulates nodes that were killed after they had driven the wires to their own board.
    for node in [0, 1] {
        below.0.own_board_only(node, true);
    }
    assert_eq!(below.0.releases(), 0, "the root has received nothing");
    assert_eq!(wires[2].input.is_high(), Ok(false), "its own board is up");
    assert_eq!(wires[0].input.is_high(), Ok(true));
    assert_eq!(below.0.releases(), 1);
}

#[test]
fn a_release_of_the_root_alone_rings_all_other_nodes() {
    let below = Below::new(6, 3, 0);
    let rung = Arc::new([const { AtomicU64::new(0) }; 6]);
    let mut wires: Vec<_> = (0..6)
        .map(|node| {
            let rung = rung.clone();
            let ring = move |other: usize| {
                rung[other].fetch_add(1, Ordering::Relaxed);
            };
            below.0.wires(node, ring).expect("free wires")
        })
        .collect();
    for node in &mut wires[..5] {
        node.out.set_high().expect("infallible");
    }
    let count = || rung.each_ref().map(|rung| rung.load(Ordering::Relaxed));
    assert_eq!(count(), [0; 6]);
    wires[5].out.set_high().expect("infallible");
    assert_eq!(count(), [1, 1, 1, 1, 1, 0]);
}

#[test]
fn the_record_has_every_node_and_the_releases_of_the_root() {
    let below = Below::new(5, 2, 1000);
    let mut wires: Vec<_> = (0..5).map(|node| below.node(node)).collect();
    for node in &mut wires {
        node.marks.enter();
        node.out.set_high().expect("infallible");
    }
    for node in &mut wires {
        node.marks.leave();
    }
    let record = below.0.record();
    assert_eq!((record.nodes, record.dropped), (5, 0));
    let kinds = |wanted: fn(&What) -> bool| {
        record
            .events
            .iter()
            .filter(|event| wanted(&event.what))
            .count()
    };
    assert_eq!(kinds(|what| matches!(what, What::Wire { .. })), 5);
    assert_eq!(kinds(|what| matches!(what, What::Enter { .. })), 5);
    assert_eq!(kinds(|what| matches!(what, What::Leave { .. })), 5);
    assert_eq!(kinds(|what| matches!(what, What::Release { .. })), 1);
    assert!(record.events.is_sorted_by_key(|event| event.at_ns));
    let nodes = record.events.iter().filter_map(|event| match event.what {
        What::Wire { node, .. } => Some(node),
        _ => None,
    });
    assert_eq!(nodes.collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
}

#[test]
fn wires_are_one_process_at_a_time_and_a_wrong_tree_is_no_board() {
    let below = Below::new(6, 3, 0);
    let held = below.node(4);
    let again = below.0.wires(4, silent as Silent).err();
    assert!(
        matches!(again, Some(WiresError::Taken { node: 4, .. })),
        "{again:?}"
    );
    drop(held);
    below.node(4);
    let beyond = below.0.wires(6, silent as Silent).err();
    assert_eq!(beyond, Some(WiresError::NoSuchNode { node: 6, nodes: 6 }));

    let tree = Tree::new(6, 3);
    let memory = Memory::create(Boards::layout_size(&tree, 0)).expect("memory");
    assert!(memory.attach_boards(&tree, 0).is_err(), "not made yet");
    memory.init_boards(&tree, 0).expect("it fits");
    assert!(memory.attach_boards(&Tree::new(4, 2), 0).is_err());
    assert!(memory.init_boards(&Tree::new(60, 3), 0).is_err());
}
