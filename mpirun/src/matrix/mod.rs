//! `mpirun --matrix FILE`: communication matrix as `FILE.csv`, and as the heat map `FILE.svg`.
//!
//! Each rank counts its sent messages and one-sided accesses ([`mpi_core::matrix`]).
//! Each rank writes its counts to its event ring in `MPI_Finalize`; a killed rank writes none.

mod svg;

use crate::trace::lane::Lane;
use mpi_base::node::EventKind;
use mpi_core::matrix::{Amount, Kind};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

/// The key of an amount in the matrix: job, kind of communication, sender and receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Way {
    /// The index of the job: 0 is the launched job, others are spawned.
    job: usize,
    kind: Kind,
    from: u32,
    to: u32,
}

/// The communication amounts of all jobs.
#[derive(Clone, Debug, Default)]
pub struct Matrix {
    amounts: BTreeMap<Way, Amount>,
    /// The number of ranks of the launched job.
    ranks: u32,
}

impl Matrix {
    /// Adds the counts in the ranks' event rings.
    pub fn of(lanes: &[Lane]) -> Matrix {
        let mut matrix = Matrix::default();
        for lane in lanes {
            if lane.job == 0 {
                matrix.ranks = matrix.ranks.max(lane.rank + 1);
            }
            let events = lane.played.events.iter();
            for event in events.filter(|event| event.kind == EventKind::Matrix) {
                let kind = Kind::ALL
                    .into_iter()
                    .find(|kind| *kind as u16 == event.call);
                let ends = (u32::try_from(event.comm), u32::try_from(event.peer));
                let (Some(kind), (Ok(from), Ok(to))) = (kind, ends) else {
                    continue;
                };
                let way = Way {
                    job: lane.job,
                    kind,
                    from,
                    to,
                };
                let amount = matrix.amounts.entry(way).or_default();
                amount.messages = amount.messages.saturating_add(event.extra);
                amount.bytes = amount.bytes.saturating_add(event.bytes);
            }
        }
        matrix
    }

    /// Returns the CSV table: one line for each kind and pair of ranks with any communication.
    fn csv(&self) -> String {
        let mut text = String::from("job,kind,from,to,messages,bytes\n");
        for (way, amount) in &self.amounts {
            let _ = writeln!(
                text,
                "{},{},{},{},{},{}",
                way.job,
                way.kind.name(),
                way.from,
                way.to,
                amount.messages,
                amount.bytes
            );
        }
        text
    }

    /// Writes both files; an extension `.csv` or `.svg` of the given name is ignored.
    pub fn write(&self, file: &Path) -> io::Result<()> {
        let [csv, svg] = files(file);
        std::fs::write(csv, self.csv())?;
        std::fs::write(svg, svg::heat_map(self))
    }
}

/// Returns the file names of the CSV table and of the heat map.
pub fn files(file: &Path) -> [PathBuf; 2] {
    let known = file
        .extension()
        .is_some_and(|end| end == "csv" || end == "svg");
    let stem = match known {
        true => file.with_extension(""),
        false => file.to_owned(),
    };
    ["csv", "svg"].map(|end| {
        let mut name = stem.clone().into_os_string();
        name.push(".");
        name.push(end);
        name.into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use mpi_base::node::{Event, Played};

    fn lane(rank: u32, sent: &[(Kind, u32, u64, u64)]) -> Lane {
        let event = |(kind, to, messages, bytes): &(Kind, u32, u64, u64)| Event {
            call: *kind as u16,
            peer: *to as i32,
            comm: u64::from(rank),
            extra: *messages,
            bytes: *bytes,
            ..Event::new(EventKind::Matrix, 1)
        };
        Lane {
            rank,
            played: Played {
                events: sent.iter().map(event).collect(),
                lost: 0,
            },
            ..Lane::default()
        }
    }

    fn example() -> Matrix {
        Matrix::of(&[
            lane(
                0,
                &[(Kind::P2p, 1, 3, 1 << 20), (Kind::Collective, 2, 1, 0)],
            ),
            lane(1, &[(Kind::P2p, 2, 2, 100), (Kind::OneSided, 0, 7, 5000)]),
            lane(2, &[]),
        ])
    }

    #[test]
    fn the_table_has_a_line_for_each_kind_and_pair() {
        assert_eq!(
            example().csv(),
            "job,kind,from,to,messages,bytes\n\
             0,p2p,0,1,3,1048576\n\
             0,p2p,1,2,2,100\n\
             0,collective,0,2,1,0\n\
             0,one-sided,1,0,7,5000\n"
        );
    }

    #[test]
    fn the_heat_map_names_each_pair_and_has_both_colour_schemes() {
        let map = svg::heat_map(&example());
        for part in [
            "<title>rank 0 to rank 1: 3 messages, 1 MiB</title>",
            "<title>rank 0 to rank 2: 1 message, 0 B</title>",
            "prefers-color-scheme: dark",
            "point to point",
            "one-sided",
        ] {
            assert!(map.contains(part), "{part:?} is not in {map}");
        }
    }

    #[test]
    fn a_job_with_many_ranks_has_a_map_of_bounded_size() {
        let all: Vec<(Kind, u32, u64, u64)> = (0..1000).map(|to| (Kind::P2p, to, 1, 8)).collect();
        let lanes: Vec<Lane> = (0..1000).map(|rank| lane(rank, &all)).collect();
        let map = svg::heat_map(&Matrix::of(&lanes));
        assert!(map.len() < 4 << 20, "{} bytes", map.len());
        assert!(map.contains("ranks 0-7 to ranks 0-7: 64 messages, 512 B"));
    }

    #[test]
    fn an_extension_of_the_name_is_that_of_neither_file_twice() {
        let names = |file: &str| files(Path::new(file)).map(|file| file.display().to_string());
        assert_eq!(names("a/traffic"), ["a/traffic.csv", "a/traffic.svg"]);
        assert_eq!(names("traffic.svg"), ["traffic.csv", "traffic.svg"]);
        assert_eq!(names("run.2"), ["run.2.csv", "run.2.svg"]);
    }
}
