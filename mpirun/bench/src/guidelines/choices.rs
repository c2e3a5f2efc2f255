//! Parser of `mpirun --explain` output: the chosen components and algorithms of each collective.

use std::collections::BTreeMap;

use super::ways::Call;

/// The prefix of the lines about collectives on MPI_COMM_WORLD.
const LINE: &str = "explain: coll on MPI_COMM_WORLD: ";

/// The components that serve each call, and their algorithms.
#[derive(Debug, Default)]
pub struct Choices {
    /// The components of each call, in the order in which the library tries them.
    chains: BTreeMap<String, Vec<String>>,
    /// The algorithm of each component for each call.
    algorithms: BTreeMap<(String, String), String>,
}

impl Choices {
    /// Parses the output of a job; lines about other subjects are skipped.
    pub fn read(explained: &str) -> Choices {
        let mut choices = Choices::default();
        for line in explained.lines().filter_map(|line| line.strip_prefix(LINE)) {
            if let Some((component, does)) = line.split_once(" does ") {
                for part in does.split("; ") {
                    if let Some((call, how)) = part.split_once(" by ") {
                        let key = (component.to_owned(), call.to_owned());
                        choices.algorithms.insert(key, how.to_owned());
                    }
                }
            } else if let Some((chain, calls)) = line.split_once(" for ")
                && !line.starts_with("not ")
            {
                let chain: Vec<String> = chain.split(", then ").map(String::from).collect();
                for call in calls.split(", ") {
                    choices.chains.insert(call.to_owned(), chain.clone());
                }
            }
        }
        choices
    }

    /// Describes the choice for a call in one line.
    pub fn of(&self, call: Call) -> String {
        let name = call.served_as();
        let Some(chain) = self.chains.get(name) else {
            return format!("{call}: the library does not explain its choice");
        };
        let how = chain.iter().map(|component| {
            let key = (component.clone(), name.to_owned());
            match self.algorithms.get(&key) {
                Some(how) => format!("{component} by {how}"),
                None => component.clone(),
            }
        });
        let how: Vec<String> = how.collect();
        format!("{call}: {}", how.join(", then "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_no_line_names_is_reported_as_such() {
        let choices = Choices::read("explain: coll on MPI_COMM_WORLD: not han: bcast by han for x");
        assert_eq!(
            choices.of(Call::Bcast),
            "bcast: the library does not explain its choice"
        );
    }

    #[test]
    fn a_nonblocking_call_has_the_choice_of_the_blocking_one() {
        let choices = Choices::read(
            "explain: coll on MPI_COMM_WORLD: tuned for barrier, bcast\n\
             explain: coll on MPI_COMM_WORLD: tuned does barrier by dissemination; bcast by binomial, from 65536 bytes chain",
        );
        assert_eq!(
            choices.of(Call::Ibcast),
            "ibcast: tuned by binomial, from 65536 bytes chain"
        );
    }
}
