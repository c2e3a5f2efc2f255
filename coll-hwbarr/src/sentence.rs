//! Lists of node names in messages to the user.

/// Returns the end of a timeout message about a barrier of `nodes` nodes,
/// in which the nodes `missing` have not arrived.
pub fn sentence(missing: &[String], nodes: usize) -> String {
    match missing {
        [] => "although all have entered".into(),
        // This node has entered the barrier. If all nodes are now missing from it,
        // the barrier was released after the timeout and before the nodes were read.
        all if all.len() == nodes => "and did so at this very moment".into(),
        [one] => format!("node {one} has not entered"),
        all => format!("nodes {} have not entered", listed(all)),
    }
}

/// Formats a list such as "1, 2 and 3".
pub fn listed(nodes: &[String]) -> String {
    match nodes {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::sentence;

    #[test]
    fn missing_nodes_are_named() {
        let named = |missing: &[u32], nodes| {
            let missing: Vec<_> = missing.iter().map(ToString::to_string).collect();
            sentence(&missing, nodes)
        };
        assert_eq!(named(&[2], 4), "node 2 has not entered");
        assert_eq!(named(&[1, 2, 3], 4), "nodes 1, 2 and 3 have not entered");
        assert_eq!(named(&[], 4), "although all have entered");
        assert_eq!(named(&[0, 1], 2), "and did so at this very moment");
    }
}
