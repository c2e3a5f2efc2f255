//! Hosts that a resource manager has allocated, read from its environment variables.
//!
//! * Slurm: `SLURM_JOB_NODELIST` (`node[1-3,7],login`) and `SLURM_TASKS_PER_NODE` or
//!   `SLURM_JOB_CPUS_PER_NODE` (`4(x3),2`);
//! * PBS and Torque: `PBS_NODEFILE`, a file with a line for each slot;
//! * LSF: `LSB_MCPU_HOSTS` (`a 4 b 2`).

use super::{Host, HostError, merge, named};
use mpi_base::text;

/// The name of the resource manager that starts remote ranks itself (`launch::srun`).
pub const SLURM: &str = "Slurm";

/// An allocation: the name of the resource manager and the allocated hosts.
#[derive(Debug, PartialEq, Eq)]
pub struct Allocation {
    pub manager: &'static str,
    pub hosts: Vec<Host>,
}

/// Returns the allocation that this process runs in, or `None` outside of an allocation.
pub fn find(var: impl Fn(&str) -> Option<String>) -> Result<Option<Allocation>, HostError> {
    let var = |name: &str| var(name).filter(|value| !value.is_empty());
    if let Some(list) = var("SLURM_JOB_NODELIST").or_else(|| var("SLURM_NODELIST")) {
        let counts = ["SLURM_TASKS_PER_NODE", "SLURM_JOB_CPUS_PER_NODE"]
            .iter()
            .find_map(|&name| var(name).map(|value| (name, value)));
        return slurm(&list, counts).map(|hosts| {
            Some(Allocation {
                manager: SLURM,
                hosts,
            })
        });
    }
    if let Some(path) = var("PBS_NODEFILE") {
        let hosts = named::file(&text::to_path(&path))?
            .into_iter()
            .map(|host| Host {
                counted: true,
                ..host
            })
            .collect();
        return Ok(Some(Allocation {
            manager: "PBS",
            hosts,
        }));
    }
    if let Some(list) = var("LSB_MCPU_HOSTS") {
        let words: Vec<&str> = list.split_whitespace().collect();
        let mut hosts = Vec::new();
        for pair in words.chunks(2) {
            let slots = pair.get(1).and_then(|count| count.parse().ok());
            let host = slots.and_then(|slots| Host::named(pair[0], Some(slots)));
            let host = host.ok_or_else(|| HostError::Variable {
                name: "LSB_MCPU_HOSTS",
                value: list.clone(),
            })?;
            merge(&mut hosts, [host]);
        }
        return Ok(Some(Allocation {
            manager: "LSF",
            hosts,
        }));
    }
    Ok(None)
}

fn slurm(list: &str, counts: Option<(&'static str, String)>) -> Result<Vec<Host>, HostError> {
    let names = expand(list).ok_or_else(|| HostError::Variable {
        name: "SLURM_JOB_NODELIST",
        value: list.into(),
    })?;
    let slots = match counts {
        Some((name, value)) => {
            let slots = repeat(&value).filter(|slots| slots.len() == names.len());
            slots.ok_or(HostError::Variable { name, value })?
        }
        None => vec![1; names.len()],
    };
    let hosts = names.iter().zip(slots);
    let hosts = hosts.map(|(name, slots)| Host::named(name, Some(slots)));
    hosts
        .collect::<Option<_>>()
        .ok_or_else(|| HostError::Variable {
            name: "SLURM_JOB_NODELIST",
            value: list.into(),
        })
}

/// The maximum number of hosts in a list; a longer list counts as malformed.
const HOSTS_MAX: usize = 100_000;

/// Expands a list such as `a[1-3,05]b,c` to host names.
pub fn expand(list: &str) -> Option<Vec<String>> {
    let mut names = Vec::new();
    for word in split_outside_brackets(list) {
        names.extend(expand_word(word)?);
        if names.len() > HOSTS_MAX {
            return None;
        }
    }
    (!names.is_empty()).then_some(names)
}

fn split_outside_brackets(list: &str) -> Vec<&str> {
    let (mut words, mut depth, mut begin) = (Vec::new(), 0i32, 0);
    for (at, c) in list.char_indices() {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            ',' if depth == 0 => {
                words.push(&list[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    words.push(&list[begin..]);
    words.into_iter().filter(|word| !word.is_empty()).collect()
}

fn expand_word(word: &str) -> Option<Vec<String>> {
    let Some((head, rest)) = word.split_once('[') else {
        return Some(vec![word.to_string()]);
    };
    let (ranges, tail) = rest.split_once(']')?;
    let tails = expand_word(tail)?;
    let mut names = Vec::new();
    for range in ranges.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if !digits(first) || !digits(last) {
            return None;
        }
        let width = first.len();
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        if last < first || last - first > HOSTS_MAX {
            return None;
        }
        for number in first..=last {
            names.extend(
                tails
                    .iter()
                    .map(|tail| format!("{head}{number:0width$}{tail}")),
            );
            if names.len() > HOSTS_MAX {
                return None;
            }
        }
    }
    Some(names)
}

/// Expands counts such as `4(x3),2` to 4, 4, 4, 2.
pub(crate) fn repeat(text: &str) -> Option<Vec<usize>> {
    let mut counts = Vec::new();
    for word in text.split(',') {
        let (count, times) = match word.split_once("(x") {
            Some((count, times)) => (count, times.strip_suffix(')')?.parse().ok()?),
            None => (word, 1),
        };
        let count: usize = count.parse().ok()?;
        if counts.len() + times > HOSTS_MAX {
            return None;
        }
        counts.extend(std::iter::repeat_n(count, times));
    }
    Some(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, &str)]) -> Result<Option<Allocation>, HostError> {
        find(|name| {
            let found = pairs.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| value.to_string())
        })
    }

    #[test]
    fn slurm_names_its_nodes_in_ranges() {
        let names = expand("n[1-3,08-10],login,x[1-2]y").unwrap();
        let expected = "n1 n2 n3 n08 n09 n10 login x1y x2y";
        assert_eq!(names.join(" "), expected);
        let found = of(&[
            ("SLURM_JOB_NODELIST", "n[1-3],m"),
            ("SLURM_TASKS_PER_NODE", "4(x3),2"),
        ]);
        let hosts = found.unwrap().unwrap().hosts;
        let slots: Vec<usize> = hosts.iter().map(|host| host.slots).collect();
        assert_eq!(slots, [4, 4, 4, 2]);
        assert!(hosts.iter().all(|host| host.counted));
    }

    #[test]
    fn a_list_that_is_not_understood_is_quoted() {
        for bad in ["n[1-", "n[3-1]", "n[a]"] {
            let error = of(&[("SLURM_JOB_NODELIST", bad)]).unwrap_err().to_string();
            assert!(error.contains(bad), "{error}");
        }
        assert_eq!(of(&[]), Ok(None));
    }

    #[test]
    fn pbs_has_a_line_for_each_slot() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "a\na\nb\n").unwrap();
        let found = of(&[("PBS_NODEFILE", file.path().to_str().unwrap())]);
        let hosts = found.unwrap().unwrap().hosts;
        assert_eq!((hosts[0].slots, hosts[1].slots), (2, 1));
    }

    #[test]
    fn lsf_alternates_names_and_counts() {
        let hosts = of(&[("LSB_MCPU_HOSTS", "a 4 b 2")]).unwrap().unwrap().hosts;
        assert_eq!((hosts[0].slots, hosts[1].slots), (4, 2));
        assert!(of(&[("LSB_MCPU_HOSTS", "a 4 b")]).is_err());
    }
}
