//! Tests of the parser of `NODE` and `NODES`, which the firmware calls at build time: an invalid number is a compile-time error.

#[path = "../firmware/node/src/environment.rs"]
mod environment;

use environment::place;

/// Returns the error message of the parser.
fn refused(node: &'static str, nodes: &'static str) -> String {
    let panic = std::panic::catch_unwind(|| place(Some(node), Some(nodes)));
    let panic = panic.expect_err("there is no such node");
    let said = panic.downcast_ref::<&str>().map(|said| (*said).to_owned());
    said.or_else(|| panic.downcast_ref::<String>().cloned())
        .expect("a sentence")
}

#[test]
fn a_node_of_the_ring_is_taken_and_none_means_the_first_of_two() {
    assert_eq!(place(None, None), (0, 2));
    assert_eq!(place(Some("14"), Some("15")), (14, 15));
    assert_eq!(place(None, Some("1")), (0, 1));
}

#[test]
fn what_is_no_node_of_the_ring_builds_nothing() {
    for (node, nodes, sentence) in [
        ("300", "2", "NODE must be a whole number"),
        ("", "2", "NODE must be a whole number"),
        ("0", "abc", "NODES must be a whole number"),
        ("0", "-1", "NODES must be a whole number"),
        ("0", "0", "NODES must be from 1 to 15"),
        ("0", "16", "NODES must be from 1 to 15"),
        ("2", "2", "NODE must be lower than NODES"),
    ] {
        let said = refused(node, nodes);
        assert!(said.starts_with(sentence), "{node} of {nodes}: {said}");
    }
}

#[test]
fn the_most_nodes_are_those_of_the_ring() {
    let most = barrier_driver::MOST_NODES;
    assert_eq!(place(Some("0"), Some(&most.to_string())), (0, most));
    let said = std::panic::catch_unwind(|| place(Some("0"), Some(&(most + 1).to_string())));
    assert!(said.is_err());
}
