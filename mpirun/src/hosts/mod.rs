//! Hosts of a job with their slots, as named by the user, a file or the resource manager.
//!
//! * [`named`] reads `--host a,b:4` and hostfiles of Open MPI and MPICH;
//! * [`allocation`] reads the environment of Slurm, PBS and LSF;
//! * [`rankfile`] reads the host and cores of each rank;
//! * [`map`] places the remaining ranks on the hosts.
//!
//! Messages print a host's name as the user gave it, and ssh gets the same name.
//! All names of this machine denote one host, *here*; ranks there are started without ssh.

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
    /// The number of slots, that is the number of ranks that the host should run.
    pub slots: usize,
    /// Whether the user or the allocation gave the slot count; a default count is not a limit.
    pub counted: bool,
    pub here: bool,
}

impl Host {
    /// Returns a host with this name and slot count; `None` if the name is invalid ([`is_name`]).
    ///
    /// All parsers of host names call this, so an invalid name never becomes an argument of ssh.
    pub fn named(name: &str, slots: Option<usize>) -> Option<Host> {
        is_name(name).then(|| Host {
            here: is_here(name),
            name: name.to_string(),
            slots: slots.unwrap_or(1),
            counted: slots.is_some(),
        })
    }

    /// Returns true if both values denote the same machine.
    pub fn is_same(&self, other: &Host) -> bool {
        self.name == other.name || (self.here && other.here)
    }

    /// Returns this machine, with one slot for each core that this process may use.
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

/// The reason why the hosts cannot be determined.
#[derive(Debug, PartialEq, Eq)]
pub enum HostError {
    Text(TextError),
    Word {
        text: String,
        wanted: &'static str,
    },
    /// A list of hosts, such as that of `--host`, is empty.
    NoName {
        list: String,
    },
    Empty {
        path: String,
    },
    /// `--host` selects a host that the hostfile does not have.
    NotInFile {
        host: String,
        /// The hosts of the hostfile.
        has: Vec<String>,
    },
    Variable {
        name: &'static str,
        value: String,
    },
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
            HostError::NoName { list } => write!(
                f,
                "--host \"{}\" names no host; name one, or leave the option out",
                name(list)
            ),
            HostError::NotInFile { host, has } => {
                /// Maximum number of hosts that the text lists.
                const SHOWN: usize = 4;
                let shown = has.iter().take(SHOWN).map(|host| name(host).to_string());
                let shown: Vec<String> = shown.collect();
                let more = match has.len().saturating_sub(SHOWN) {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                write!(
                    f,
                    "--host {} is not among the hosts of --hostfile, which are {}{more}",
                    name(host),
                    shown.join(", ")
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

/// Returns the name of this machine.
pub fn own_name() -> String {
    rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned()
}

/// Returns true if a text is a valid host name or address, optionally with a user name before it.
///
/// Valid characters are letters, digits and `-_.@:%`.
/// A name must not begin with a dash, since ssh would parse it as an option.
pub fn is_name(text: &str) -> bool {
    let clean = |c: char| c.is_ascii_alphanumeric() || "-_.@:%".contains(c);
    !text.is_empty() && !text.starts_with('-') && text.chars().all(clean)
}

/// Returns true if a name denotes this machine.
///
/// These are loopback names and addresses, and this machine's name with or without the domain.
/// Host names are case-insensitive and may end with the root domain's dot (RFC 4343, RFC 1034).
pub fn is_here(name: &str) -> bool {
    if let Ok(address) = name.parse::<std::net::IpAddr>() {
        return address.to_canonical().is_loopback();
    }
    let plain = |name: &str| name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    let (name, own) = (plain(name), plain(&own_name()));
    let short = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
    short(&name) == short(&own) || name == "localhost" || name.ends_with(".localhost")
}

/// Adds hosts to a list; if a host is already in the list, its slot counts are added.
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

/// Returns those of `hosts` that `chosen` names, in the order of `hosts`.
///
/// A number of slots in `chosen` replaces that of the host.
/// A chosen host that is not in the list is an error: without it, other hosts than the named ones would run the job.
pub fn select(hosts: Vec<Host>, chosen: &[Host]) -> Result<Vec<Host>, HostError> {
    let is_unknown = |chosen: &&Host| !hosts.iter().any(|host| host.is_same(chosen));
    if let Some(unknown) = chosen.iter().find(is_unknown) {
        return Err(HostError::NotInFile {
            host: unknown.name.clone(),
            has: hosts.into_iter().map(|host| host.name).collect(),
        });
    }
    let selected = hosts.into_iter().filter_map(|host| {
        let choice = chosen.iter().find(|choice| choice.is_same(&host))?;
        Some(match choice.counted {
            true => Host {
                slots: choice.slots,
                counted: true,
                ..host
            },
            false => host,
        })
    });
    Ok(selected.collect())
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
