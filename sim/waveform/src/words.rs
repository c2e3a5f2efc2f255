//! Counts with their nouns, for messages to the user: `1 node`, `60 nodes`.

/// Returns a number with its noun: `1 node`, `60 nodes`.
pub fn counted(number: impl TryInto<u64> + Copy + std::fmt::Display, noun: &str) -> String {
    match number.try_into() {
        Ok(1) => format!("1 {noun}"),
        _ => format!("{number} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn one_is_singular() {
        let counts = [0_usize, 1, 60].map(|number| counted(number, "node"));
        assert_eq!(counts, ["0 nodes", "1 node", "60 nodes"]);
    }
}
