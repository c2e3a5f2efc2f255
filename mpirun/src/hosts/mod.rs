//! Where ranks may run: the hosts that the user, a file or the resource manager named, with their slots.
//!
//! * [`named`] reads `--host a,b:4` and hostfiles in the spellings of both peers;
//! * [`allocation`] asks Slurm's and PBS's environment;
//! * [`rankfile`] reads where each rank is to run;
//! * [`map`] puts the others onto the hosts.
//!
//! A host is known by the name that was given, which is the one that messages use and that ssh is called with.
//! Names of this machine all mean the one host *here*, on which ranks are started without ssh.

pub mod allocation;
pub mod map;
pub mod named;
pub mod rankfile;

use crate::text::TextError;
use printable::name;
use std::fmt;

/// One host of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    pub name: String,
    /// How many ranks it is meant to have.
    pub slots: usize,
    /// Whether the user or the allocation said how many; else the number is a default and no limit.
    pub counted: bool,
    pub here: bool,
}

impl Host {
    /// A host by its name, and the slots it is said to have; `None` if that is no host's name ([`is_name`]).
    ///
    /// All sources of names end here: what is no name never reaches the command that reaches the host.
    pub fn named(name: &str, slots: Option<usize>) -> Option<Host> {
        is_name(name).then(|| Host {
            here: is_here(name),
            name: name.to_string(),
            slots: slots.unwrap_or(1),
            counted: slots.is_some(),
        })
    }

    /// This machine, with a slot for each core that this process may use.
    pub fn here() -> Host {
        let cores = mpi_base::cpu::Cores::of_this_process().usable;
        Host {
            name: own_name(),
            slots: cores.max(1),
            counted: false,
            here: true,
        }
    }
}

/// Why the hosts are not clear.
#[derive(Debug, PartialEq, Eq)]
pub enum HostError {
    Text(TextError),
    Word { text: String, wanted: &'static str },
    Empty { path: String },
    Variable { name: &'static str, value: String },
}

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HostError::Text(error) => error.fmt(f),
            HostError::Word { text, wanted } => {
                write!(
                    f,
                    "\"{}\" is no host for --host, where {wanted} was expected",
                    name(text)
                )
            }
            HostError::Empty { path } => {
                write!(f, "the hostfile {} names no host", name(path))
            }
            HostError::Variable {
                name: variable,
                value,
            } => write!(
                f,
                "{variable}=\"{}\" of the resource manager is not understood; name the hosts with --host or --hostfile",
                name(value)
            ),
        }
    }
}

impl std::error::Error for HostError {}

impl From<TextError> for HostError {
    fn from(error: TextError) -> HostError {
        HostError::Text(error)
    }
}

/// The name of this machine.
pub fn own_name() -> String {
    rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned()
}

/// Whether a text can be a host's name or address, with a user before it: letters, digits and `-_.@:%`.
///
/// A name that begins with a dash would be an option of ssh.
pub fn is_name(text: &str) -> bool {
    let clean = |c: char| c.is_ascii_alphanumeric() || "-_.@:%".contains(c);
    !text.is_empty() && !text.starts_with('-') && text.chars().all(clean)
}

/// Whether a name means this machine: a loopback name or address, or its own name with or without the domain.
///
/// Names of hosts are the same in capitals, and with the dot at the end that means the root of all domains (RFC 4343, RFC 1034).
pub fn is_here(name: &str) -> bool {
    if let Ok(address) = name.parse::<std::net::IpAddr>() {
        return address.to_canonical().is_loopback();
    }
    let plain = |name: &str| name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    let (name, own) = (plain(name), plain(&own_name()));
    let short = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
    short(&name) == short(&own) || name == "localhost" || name.ends_with(".localhost")
}

/// Adds hosts to a list; one that is there already gets more slots.
pub fn merge(list: &mut Vec<Host>, more: impl IntoIterator<Item = Host>) {
    for host in more {
        let known = list
            .iter_mut()
            .find(|known| known.name == host.name || (known.here && host.here));
        match known {
            Some(known) => {
                known.slots += host.slots;
                known.counted |= host.counted;
            }
            None => list.push(host),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_names_of_this_machine_are_one_host() {
        let mut list = Vec::new();
        let own = own_name();
        let names = [
            "localhost",
            "127.0.0.1",
            &own,
            "elsewhere",
            "LOCALHOST",
            "localhost.",
            "127.0.1.1",
            &own.to_uppercase(),
            &format!("{own}."),
        ];
        merge(
            &mut list,
            names.into_iter().filter_map(|name| Host::named(name, None)),
        );
        assert_eq!(list.len(), 2);
        assert_eq!((list[0].here, list[0].slots), (true, 8));
        assert!(!list[1].here);
        for elsewhere in ["10.0.0.1", "localhost.example.org", "."] {
            assert!(!is_here(elsewhere), "{elsewhere}");
        }
    }
}
