//! Hosts that the user names: `--host a,b:4` and hostfiles.
//!
//! A hostfile has one host per line; `#` begins a comment.
//! Lines: `name`, `name slots=4`, `name max_slots=8` (Open MPI), `name:4` (MPICH).
//! If a host is named twice, its slot counts are added.

use super::{Host, HostError, merge};
use crate::text::{self, TextError, TextFile};
use std::path::Path;

const SLOTS: &str = "name, name:SLOTS or name slots=SLOTS";

/// Parses a comma-separated list of hosts, the value of `--host`; a list without a host is an error.
pub fn list(text: &str) -> Result<Vec<Host>, HostError> {
    let mut hosts = Vec::new();
    for word in text.split(',').filter(|word| !word.is_empty()) {
        let host = word_with_count(word).ok_or(HostError::Word {
            text: word.into(),
            wanted: "name or name:SLOTS",
        })?;
        merge(&mut hosts, [host]);
    }
    if hosts.is_empty() {
        return Err(HostError::NoName { list: text.into() });
    }
    Ok(hosts)
}

/// Reads the hosts of a hostfile.
pub fn file(path: &Path) -> Result<Vec<Host>, HostError> {
    let file = TextFile::read("hostfile", path)?;
    let hosts = parse(&file)?;
    if hosts.is_empty() {
        return Err(HostError::Empty { path: file.path });
    }
    Ok(hosts)
}

pub(crate) fn parse(file: &TextFile) -> Result<Vec<Host>, TextError> {
    let mut hosts = Vec::new();
    for host in file.lines(SLOTS, line_of) {
        merge(&mut hosts, [host?]);
    }
    Ok(hosts)
}

fn line_of(line: &str) -> Option<Host> {
    let words = text::words(line);
    let mut words = words.iter();
    let mut host = word_with_count(words.next()?)?;
    for word in words {
        let (key, value) = word.split_once('=')?;
        match key {
            "slots" | "cpu" | "count" => {
                host.slots = value.parse().ok().filter(|&slots| slots > 0)?;
                host.counted = true;
            }
            // Other launchers' keys are ignored: slot limit, ssh login name, binding, interface.
            "max_slots" | "max-slots" | "user" | "username" | "binding" | "ifhn" => {}
            _ => return None,
        }
    }
    Some(host)
}

/// Parses `name`, `name:SLOTS`, `[address]`, `[address]:SLOTS`, or an IPv6 address.
fn word_with_count(word: &str) -> Option<Host> {
    if word.parse::<std::net::Ipv6Addr>().is_ok() {
        return Host::named(word, None);
    }
    let count = |text: &str| text.parse().ok().filter(|&slots: &usize| slots > 0);
    // The brackets only separate the address from the slots; ssh gets the address without them.
    if let Some((address, rest)) = word.strip_prefix('[').and_then(|word| word.split_once(']')) {
        address
            .split('%')
            .next()?
            .parse::<std::net::Ipv6Addr>()
            .ok()?;
        return match rest.strip_prefix(':') {
            Some(slots) => Host::named(address, Some(count(slots)?)),
            None => rest.is_empty().then(|| Host::named(address, None))?,
        };
    }
    match word.rsplit_once(':') {
        Some((name, slots)) => Host::named(name, Some(count(slots)?)),
        None => Host::named(word, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Vec<Host>, TextError> {
        parse(&TextFile {
            kind: "hostfile",
            path: "hosts".into(),
            text: text.into(),
        })
    }

    fn shape(hosts: &[Host]) -> Vec<(&str, usize, bool)> {
        hosts
            .iter()
            .map(|host| (host.name.as_str(), host.slots, host.counted))
            .collect()
    }

    #[test]
    fn hostfiles_of_both_peers_are_read() {
        let text = "# mine\nnode1 slots=4 max_slots=8\nnode2:2   # old\n\nnode3\nnode1 slots = 1\nfd00::1\n";
        let hosts = parsed(text).unwrap();
        let expected = [
            ("node1", 5, true),
            ("node2", 2, true),
            ("node3", 1, false),
            ("fd00::1", 1, false),
        ];
        assert_eq!(shape(&hosts), expected);
    }

    #[test]
    fn a_hostfile_of_another_system_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hosts");
        std::fs::write(&path, "\u{feff}node1 slots=2\r\nnode2\r\n").unwrap();
        let hosts = file(&path).unwrap();
        assert_eq!(shape(&hosts), [("node1", 2, true), ("node2", 1, false)]);
    }

    #[test]
    fn a_line_that_is_no_host_is_quoted_with_its_number() {
        let error = parsed("a\nb slots=many\n").unwrap_err().to_string();
        assert_eq!(
            error,
            "line 2 of the hostfile hosts is \"b slots=many\", where name, name:SLOTS or name slots=SLOTS was expected"
        );
    }

    #[test]
    fn a_name_can_not_be_an_option_or_a_command() {
        let bad = [
            "-oProxyCommand=x",
            "a;b",
            "a b",
            ":3",
            "a:0",
            "a:x",
            "a\x1b[2J",
            "[a]:2",
            "[::1]x",
            "[::1]:0",
        ];
        for bad in bad {
            assert!(list(bad).is_err(), "{bad}");
        }
        assert_eq!(
            shape(&list("a,b:3,a").unwrap()),
            [("a", 2, false), ("b", 3, true)]
        );
        assert_eq!(
            shape(&list("[fd00::1]:2,[fd00::2]").unwrap()),
            [("fd00::1", 2, true), ("fd00::2", 1, false)]
        );
        for empty in ["", ","] {
            let said = list(empty).unwrap_err().to_string();
            assert!(said.contains("names no host"), "{said}");
        }
        let said = list("a\x1b[2J").unwrap_err().to_string();
        assert!(said.contains(r"a\u{1b}[2J"), "{said}");
    }
}
