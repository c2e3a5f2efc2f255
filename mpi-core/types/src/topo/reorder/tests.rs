//! Tests of layouts: each vertex has a process, no layout costs more
//! than the original order, and known optima are reached.

use super::*;
use proptest::prelude::*;

/// Returns locations on nodes of two packages with two cores each.
/// Blocks of `next` processes are assigned to the nodes round robin.
fn machine(processes: u32, next: u32, nodes: u32) -> Vec<Place> {
    let of = |process: u32| {
        let (node, turn) = (
            process / next % nodes,
            process % next + process / next / nodes * next,
        );
        let core = turn % 4;
        let place = |within: u32| u64::from(node) << 32 | u64::from(within);
        [
            place(0),
            place(core / 2),
            place(core / 2),
            place(core),
            place(core),
        ]
    };
    (0..processes).map(of).collect()
}

/// Returns the number of edges between vertices on different nodes.
fn cut(wires: &Wires, layout: &[u32], places: &[Place]) -> usize {
    let node = |vertex: u32| places[layout[vertex as usize] as usize][0];
    let ends = (0..layout.len() as u32).flat_map(|v| wires.of(v).iter().map(move |to| (v, to.0)));
    ends.filter(|(from, to)| node(*from) != node(*to)).count() / 2
}

fn identity(n: usize) -> Vec<u32> {
    (0..n as u32).collect()
}

fn cart(dims: &[i64], periodic: bool) -> Cart {
    Cart::new(dims, vec![periodic; dims.len()]).expect("positive extents")
}

#[test]
fn a_grid_comes_apart_in_boxes() {
    for (dims, periodic, nodes, rows, boxes) in [
        (&[4, 4][..], false, 4, 12, 8),
        (&[8, 8], false, 4, 24, 16),
        (&[8, 8], true, 4, 32, 32),
        (&[4, 4, 4], false, 8, 64, 48),
        (&[6, 4], false, 6, 20, 14),
    ] {
        let grid = cart(dims, periodic);
        let wires = Wires::of_cart(&grid);
        let size = wires.vertices();
        let places = machine(size as u32, size as u32 / nodes, nodes);
        let layout = reorder(&wires, Some(&grid), &places);
        let seen = (
            cut(&wires, &identity(size), &places),
            cut(&wires, &layout, &places),
        );
        assert_eq!(seen, (rows, boxes), "{dims:?} on {nodes} nodes");
    }
}

#[test]
fn within_a_node_packages_and_cores_count_too() {
    // One node with two packages of two cores each.
    // Eight ranks are distributed round robin over the cores.
    let places = machine(8, 8, 1);
    let ring = cart(&[8], true);
    let wires = Wires::of_cart(&ring);
    let layout = reorder(&wires, Some(&ring), &places);
    // Four edges connect different cores, two of them also different packages. In the original
    // order all eight connect different cores, four of them also different packages.
    assert_eq!(wires.cost(&layout, &places), 2 * FAR[1] + 2 * FAR[3]);
    assert_eq!(wires.cost(&identity(8), &places), 4 * FAR[1] + 4 * FAR[3]);
}

#[test]
fn a_ring_that_was_dealt_over_nodes_is_gathered() {
    let places = machine(12, 1, 3);
    let ring = cart(&[12], true);
    let wires = Wires::of_cart(&ring);
    assert_eq!(cut(&wires, &identity(12), &places), 12);
    assert_eq!(
        cut(&wires, &reorder(&wires, Some(&ring), &places), &places),
        3
    );
    // Without the grid, `grow` computes the layout.
    assert_eq!(cut(&wires, &reorder(&wires, None, &places), &places), 3);
}

#[test]
fn heavy_edges_stay_inside_and_lonely_vertices_fill_up() {
    // Two triangles of heavy edges, connected by light edges.
    // Their members alternate between two nodes.
    // Two vertices have no edge.
    let heavy = [(0, 2), (2, 4), (4, 0), (1, 3), (3, 5), (5, 1)].map(|(a, b)| (a, b, 7));
    let light = [(0, 1, 1), (2, 3, 0)];
    let wires = Wires::new(8, heavy.into_iter().chain(light));
    let places = machine(8, 1, 2);
    let layout = reorder(&wires, None, &places);
    assert_eq!(cut(&wires, &layout, &places), 2);
    assert_eq!(
        layout,
        identity(8),
        "they sat well, for triangles are nodes here"
    );
    let places = machine(8, 4, 2);
    let layout = reorder(&wires, None, &places);
    assert_eq!(cut(&wires, &identity(8), &places), 4);
    assert_eq!(cut(&wires, &layout, &places), 2);
}

#[test]
fn what_is_as_good_as_can_be_stays() {
    let line = cart(&[8], false);
    let wires = Wires::of_cart(&line);
    assert_eq!(reorder(&wires, Some(&line), &machine(8, 4, 2)), identity(8));
    // All ranks have the same location, so no layout is better.
    assert_eq!(reorder(&wires, Some(&line), &[[3; LEVELS]; 8]), identity(8));
}

#[test]
fn parts_may_differ_in_size() {
    // Five processes on one node, three on another.
    // The topology is a line that changes nodes at almost every edge.
    let nodes = [0, 1, 0, 1, 0, 1, 0, 0];
    let places = nodes.map(|node| [node; LEVELS]);
    let line = cart(&[8], false);
    let wires = Wires::of_cart(&line);
    let layout = reorder(&wires, Some(&line), &places);
    assert_eq!(cut(&wires, &layout, &places), 1);
}

#[test]
fn more_processes_than_vertices_leave_the_last_out() {
    let line = cart(&[3], false);
    let wires = Wires::of_cart(&line);
    let layout = reorder(
        &wires,
        Some(&line),
        &[0, 1, 0, 1, 1].map(|node| [node; LEVELS]),
    );
    assert_eq!(layout, [0, 2, 1]);
    let nothing = Wires::new(0, [].into_iter());
    assert!(reorder(&nothing, None, &[[0; LEVELS]]).is_empty());
}

proptest! {
    #[test]
    fn every_process_has_one_vertex_and_nothing_is_dearer(
        vertices in 1..20u32,
        edges in prop::collection::vec((0..20u32, 0..20u32, 0..5u64), 0..40),
        places in prop::collection::vec((0..3u64, 0..2u64, 0..3u64), 20),
    ) {
        let edges = edges.into_iter().map(|(from, to, weight)| (from % vertices, to % vertices, weight));
        let wires = Wires::new(vertices, edges);
        let places: Vec<Place> = places
            .into_iter()
            .map(|(node, package, core)| {
                let package = node << 8 | package;
                [node, package, package, package << 8 | core, package << 8 | core]
            })
            .collect();
        let layout = reorder(&wires, None, &places);
        let mut sorted = layout.clone();
        sorted.sort_unstable();
        prop_assert_eq!(&sorted, &identity(vertices as usize));
        prop_assert!(wires.cost(&layout, &places) <= wires.cost(&sorted, &places));
    }

    #[test]
    fn grids_too(dims in prop::collection::vec(1..5i64, 1..4), periodic: bool, nodes in 1..5u32, next in 1..5u32) {
        let grid = cart(&dims, periodic);
        let wires = Wires::of_cart(&grid);
        let size = wires.vertices();
        let places = machine(size as u32, next, nodes);
        let layout = reorder(&wires, Some(&grid), &places);
        let mut sorted = layout.clone();
        sorted.sort_unstable();
        prop_assert_eq!(&sorted, &identity(size));
        prop_assert!(wires.cost(&layout, &places) <= wires.cost(&sorted, &places));
        // The cost that is predicted for an exchange is the cost after the exchange.
        if size > 1 {
            let mut swapped = layout.clone();
            swapped.swap(0, 1);
            let around = |layout: &[u32], of: [u32; 2]| {
                wires.cost_of(0, of[0], layout, &places) + wires.cost_of(1, of[1], layout, &places)
            };
            prop_assert_eq!(around(&layout, [1, 0]), around(&swapped, [0, 1]));
        }
    }
}
