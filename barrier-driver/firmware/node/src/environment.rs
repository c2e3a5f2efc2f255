//! The node's number and the number of nodes, read from the build environment.
//!
//! All functions are `const`, so a wrong number is a compiler error.

use barrier_driver::MOST_NODES;

/// Parses the variables `NODE` and `NODES`; the default is node 0 of 2.
pub const fn place(node: Option<&str>, nodes: Option<&str>) -> (u8, u8) {
    let Some(node) = number(node, 0) else {
        panic!("NODE must be a whole number from 0 to 14: the number of this node");
    };
    let Some(nodes) = number(nodes, 2) else {
        panic!("NODES must be a whole number from 1 to 15: how many nodes the ring has");
    };
    assert!(
        nodes >= 1 && nodes <= MOST_NODES,
        "NODES must be from 1 to 15: a ring's fence counts no more nodes"
    );
    assert!(
        node < nodes,
        "NODE must be lower than NODES: nodes are counted from 0"
    );
    (node, nodes)
}

/// Parses a decimal number; returns the default if `text` is `None`,
/// `None` if malformed or above 255.
const fn number(text: Option<&str>, default: u8) -> Option<u8> {
    let Some(text) = text else {
        return Some(default);
    };
    let digits = text.as_bytes();
    if digits.is_empty() {
        return None;
    }
    let (mut value, mut at) = (0u8, 0);
    while at < digits.len() {
        let digit = digits[at].wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = match value.checked_mul(10) {
            Some(tens) => match tens.checked_add(digit) {
                Some(value) => value,
                None => return None,
            },
            None => return None,
        };
        at += 1;
    }
    Some(value)
}
