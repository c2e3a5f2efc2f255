//! Rankfiles in Open MPI's format: one line for each rank, with its host and its cores.
//!
//! ```text
//! rank 0=node1 slot=1:0-2     package 1, cores 0 to 2
//! rank 1=node2 slot=0:0,2     package 0, cores 0 and 2
//! rank 2=+n0 slot=3;1:*       the first host of the job: its fourth core, and all of package 1
//! rank 3=node2                not bound
//! ```
//!
//! Packages and cores are numbered from 0 in the machine's order, among those that mpirun may use.
//! `#` begins a comment.
//! Source: mpirun(1) of Open MPI 4.1, "Rankfiles".

use super::{Host, is_name};
use crate::text::{self, TextError, TextFile};
use mpi_base::ranges;
use printable::name;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

/// A set of cores: a list of cores or all cores, of one package or of all packages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cores {
    pub package: Option<usize>,
    pub cores: Option<Vec<usize>>,
}

impl fmt::Display for Cores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cores {
            None => write!(f, "all cores")?,
            Some(cores) if cores.len() == 1 => write!(f, "core {}", ranges::write(cores))?,
            Some(cores) => write!(f, "cores {}", ranges::write(cores))?,
        }
        self.package
            .map_or(Ok(()), |package| write!(f, " of package {package}"))
    }
}

/// The placement of one rank in a rankfile: host and cores.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankPlacement {
    /// The host, as an index into the job's hosts.
    pub host: usize,
    /// The cores that the rank is bound to; an empty list leaves the rank unbound.
    pub cores: Vec<Cores>,
}

/// The reason why a rankfile cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub enum RankfileError {
    Text(TextError),
    Twice {
        path: String,
        rank: usize,
    },
    /// A line names a host that the job does not have.
    Host {
        path: String,
        rank: usize,
        host: String,
    },
    Missing {
        path: String,
        rank: usize,
        ranks: usize,
    },
}

impl fmt::Display for RankfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RankfileError::Text(error) => error.fmt(f),
            RankfileError::Twice { path, rank } => {
                write!(
                    f,
                    "the rankfile {} has two lines for rank {rank}",
                    name(path)
                )
            }
            RankfileError::Host { path, rank, host } => write!(
                f,
                "the rankfile {} puts rank {rank} on {}, which is none of the job's hosts",
                name(path),
                name(host)
            ),
            RankfileError::Missing { path, rank, ranks } => write!(
                f,
                "the rankfile {} has no line for rank {rank} of {ranks}",
                name(path)
            ),
        }
    }
}

impl std::error::Error for RankfileError {}

impl From<TextError> for RankfileError {
    fn from(error: TextError) -> RankfileError {
        RankfileError::Text(error)
    }
}

const LINE: &str = "\"rank N=HOST\" or \"rank N=HOST slot=PACKAGE:CORES\"";

/// The parsed lines of a rankfile.
#[derive(Debug)]
pub struct Rankfile {
    path: String,
    lines: BTreeMap<usize, (String, Vec<Cores>)>,
}

impl Rankfile {
    /// Reads a rankfile; a malformed line is an error.
    pub fn read(path: &Path) -> Result<Rankfile, RankfileError> {
        Rankfile::parse(TextFile::read("rankfile", path)?)
    }

    pub(crate) fn parse(file: TextFile) -> Result<Rankfile, RankfileError> {
        let mut lines = BTreeMap::new();
        for line in file.lines(LINE, line_of) {
            let (rank, host, cores) = line?;
            if lines.insert(rank, (host, cores)).is_some() {
                let path = file.path.clone();
                return Err(RankfileError::Twice { path, rank });
            }
        }
        Ok(Rankfile {
            path: file.path,
            lines,
        })
    }

    /// Returns the number of ranks that the rankfile places.
    pub fn count(&self) -> usize {
        self.lines.len()
    }

    /// Returns the hosts that the rankfile names, for a job without host options.
    pub fn hosts(&self) -> Vec<Host> {
        let mut hosts = Vec::new();
        let named = self.lines.values().filter(|(host, _)| nth(host).is_none());
        super::merge(
            &mut hosts,
            named.filter_map(|(host, _)| Host::named(host, None)),
        );
        hosts
    }

    /// Returns the placement of each rank from 0 to `ranks - 1`; `hosts` are the job's hosts.
    pub fn placements(
        &self,
        ranks: usize,
        hosts: &[Host],
    ) -> Result<Vec<RankPlacement>, RankfileError> {
        let path = || self.path.clone();
        let placement = |rank: usize| {
            let (host, cores) = self.lines.get(&rank).ok_or(RankfileError::Missing {
                path: path(),
                rank,
                ranks,
            })?;
            let found = match nth(host) {
                Some(at) => (at < hosts.len()).then_some(at),
                None => hosts
                    .iter()
                    .position(|known| known.name == *host || (known.here && super::is_here(host))),
            };
            let host = found.ok_or_else(|| RankfileError::Host {
                path: path(),
                rank,
                host: host.clone(),
            })?;
            Ok(RankPlacement {
                host,
                cores: cores.clone(),
            })
        };
        (0..ranks).map(placement).collect()
    }
}

/// Parses `+nK`, the job's host with index K.
fn nth(host: &str) -> Option<usize> {
    host.strip_prefix("+n")?.parse().ok()
}

fn line_of(line: &str) -> Option<(usize, String, Vec<Cores>)> {
    let words = text::words(line.strip_prefix("rank")?);
    let mut words = words.iter();
    let (rank, host) = words.next()?.split_once('=')?;
    let cores = match words.next() {
        None => Vec::new(),
        Some(slot) => {
            let list = slot.strip_prefix("slot=").or(slot.strip_prefix("slots="))?;
            list.split(';').map(cores_of).collect::<Option<_>>()?
        }
    };
    let whole = words.next().is_none() && (nth(host).is_some() || is_name(host));
    whole.then_some((rank.parse().ok()?, host.to_string(), cores))
}

fn cores_of(item: &str) -> Option<Cores> {
    let (package, list) = match item.split_once(':') {
        Some((package, list)) => (Some(package.parse().ok()?), list),
        None => (None, item),
    };
    let cores = match list {
        "*" => None,
        list => {
            let ranges = list.split(',').map(|range| {
                let (first, last) = range.split_once('-').unwrap_or((range, range));
                let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
                /// Upper limit of core numbers in a rankfile; no machine has more cores.
                const MOST: usize = 1 << 16;
                (first <= last && last < MOST).then_some(first..=last)
            });
            let ranges: Vec<_> = ranges.collect::<Option<_>>()?;
            Some(ranges.into_iter().flatten().collect())
        }
    };
    Some(Cores { package, cores })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Rankfile, RankfileError> {
        Rankfile::parse(TextFile {
            kind: "rankfile",
            path: "f".into(),
            text: text.into(),
        })
    }

    fn cores(package: Option<usize>, cores: &[usize]) -> Cores {
        Cores {
            package,
            cores: Some(cores.to_vec()),
        }
    }

    #[test]
    fn the_lines_of_open_mpis_manual_are_understood() {
        let text = "rank 0=aa slot=1:0-2\nrank 1=bb slot=0:0,1 # a comment\n\nrank 2=cc slot=1-2\n";
        let file = parsed(text).unwrap();
        let names: Vec<String> = file.hosts().into_iter().map(|host| host.name).collect();
        assert_eq!(names, ["aa", "bb", "cc"]);
        let placements = file.placements(3, &file.hosts()).unwrap();
        let places: Vec<usize> = placements.iter().map(|placement| placement.host).collect();
        assert_eq!(places, [0, 1, 2]);
        assert_eq!(placements[0].cores, [cores(Some(1), &[0, 1, 2])]);
        assert_eq!(placements[1].cores, [cores(Some(0), &[0, 1])]);
        assert_eq!(placements[2].cores, [cores(None, &[1, 2])]);
        assert_eq!(placements[0].cores[0].to_string(), "cores 0-2 of package 1");
    }

    #[test]
    fn hosts_by_number_several_items_and_ranks_that_are_not_bound_are_understood() {
        let file = parsed("rank 1 = +n1 slot=3;0:*\nrank 0=aa").unwrap();
        let hosts = ["aa", "bb"].map(|name| Host::named(name, None).unwrap());
        let placements = file.placements(2, &hosts).unwrap();
        assert_eq!((placements[0].host, placements[1].host), (0, 1));
        assert_eq!(placements[0].cores, []);
        let all = Cores {
            package: Some(0),
            cores: None,
        };
        assert_eq!(placements[1].cores, [cores(None, &[3]), all]);
    }

    #[test]
    fn mistakes_are_reported_in_a_sentence() {
        for (text, said) in [
            ("rank 0=aa\nrank 0=bb", "two lines for rank 0"),
            ("rank 1=aa", "no line for rank 0 of 2"),
            ("rank 0=aa\nrank 1=zz", "puts rank 1 on zz"),
            ("rank 0=aa\nrank 1=+n7", "puts rank 1 on +n7"),
        ] {
            let hosts = [Host::named("aa", None).unwrap()];
            let error = parsed(text).and_then(|file| file.placements(2, &hosts));
            let error = error.unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
        for line in [
            "0=aa",
            "rank x=aa",
            "rank 0",
            "rank 0=aa slot=",
            "rank 0=aa slot=2-1",
            "rank 0=aa slot=1:x",
            "rank 0=aa slot=1 more",
            "rank 0=aa slot=0-99999999999",
        ] {
            let error = parsed(line).unwrap_err().to_string();
            assert!(error.starts_with("line 1 of the rankfile f is "), "{error}");
        }
    }
}
