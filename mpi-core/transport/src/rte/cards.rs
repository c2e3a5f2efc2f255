//! Node discovery and shared-memory setup for launchers that do not report which ranks share a node.
//!
//! Each rank publishes a card: the machine (boot ID), the network namespace (which limits abstract sockets), the user,
//! the name of the rank's socket, a secret, and the processors on which the rank may run.
//! After the fence every rank reads all cards. Ranks with equal machine, namespace and user belong to one node.
//! The lowest of these ranks creates the node's memory
//! and passes its descriptor to the other ranks through their sockets ([`mpi_base::fdpass`]).
//! If the launcher has bound the ranks to cores, each rank computes from the cards how many ranks share its cores.
//!
//! The nodes of the resource manager are not used: several of them can be on one machine,
//! and one of them can consist of several containers.

use super::{NodeMembership, Rte, RteError};
use mpi_base::cpu;
use mpi_base::fdpass::{self, Giver, Key};
use mpi_base::node::Node;
use mpi_base::param::{Level, Param};
use mpi_base::ranges;
use sha2::{Digest, Sha256};
use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

const KEY: &str = "card";

/// Defines the parameter of a component for the timeout of [`meet`].
pub const fn patience(component: &'static str) -> Param<Duration> {
    Param::new(
        "rte",
        component,
        "meet",
        "60s",
        Level::TUNER,
        "How long the ranks of a node wait for each other at start to share memory.",
    )
}

/// The card of one rank.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Card {
    place: Place,
    socket: String,
    key: Key,
    /// The processors on which the rank may run; `None` if they are unknown, or if the list would make the card longer than a line of the launcher's protocol.
    processors: Option<Vec<usize>>,
}

/// Maximum length of the processor list on a card, in characters.
const LIST_MAX: usize = 64;

/// Exclusive upper limit of processor numbers.
const PROCESSORS: usize = 1 << 16;

/// The machine, network namespace and user of a rank. Ranks with equal values can share memory.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    boot_id: String,
    network: String,
    uid: u32,
}

impl Place {
    fn here() -> Result<Place, RteError> {
        let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
            .map_err(system("reading the machine's boot id"))?;
        // If /proc hides the namespace, a unique value makes this rank the only rank of its node.
        let network = std::fs::read_link("/proc/self/ns/net").map_or_else(
            |_| format!("hidden {}", std::process::id()),
            |link| link.display().to_string(),
        );
        Ok(Place {
            boot_id: boot_id.trim().to_string(),
            network,
            uid: rustix::process::geteuid().as_raw(),
        })
    }
}

/// Returns an ID of the machine. It is equal for processes that can reach each other by the loopback address, and different for others (except by chance).
pub(crate) fn machine() -> u64 {
    let seed = match Place::here() {
        Ok(place) => format!("{} {}", place.boot_id, place.network),
        // If the machine is unknown, the process is handled as if it were alone on its machine.
        Err(_) => return u64::from(std::process::id()),
    };
    let digest = Sha256::digest(seed);
    let mut first = [0; 8];
    first.copy_from_slice(&digest[..8]);
    u64::from_le_bytes(first)
}

/// Returns the reason why this process cannot identify its machine ([`machine`] is then different in each process); `None` if it can.
pub(crate) fn unknown_machine() -> Option<String> {
    let error = Place::here().err()?;
    Some(format!(
        "this process cannot find out which machine it runs on ({error}), so it takes each other process for one of another machine; is /proc mounted?"
    ))
}

impl Card {
    fn to_bytes(&self) -> Vec<u8> {
        let place = &self.place;
        let processors = self.processors.as_deref().map(ranges::write);
        let fields = [
            &place.boot_id,
            &place.network,
            &place.uid.to_string(),
            &self.socket,
            &self.key.to_hex(),
            &processors
                .filter(|list| list.len() <= LIST_MAX)
                .unwrap_or_default(),
        ];
        fields.map(String::as_str).join("\n").into_bytes()
    }

    fn parse(bytes: &[u8]) -> Option<Card> {
        let text = std::str::from_utf8(bytes).ok()?;
        let [boot_id, network, uid, socket, key, processors] =
            text.split('\n').collect::<Vec<_>>().try_into().ok()?;
        Some(Card {
            place: Place {
                boot_id: boot_id.into(),
                network: network.into(),
                uid: uid.parse().ok()?,
            },
            socket: socket.into(),
            key: Key::from_hex(key)?,
            processors: match processors {
                "" => None,
                list if list.len() > LIST_MAX => None,
                list => Some(ranges::read(list, PROCESSORS)?),
            },
        })
    }
}

fn system(doing: &str) -> impl FnOnce(io::Error) -> RteError {
    let doing = doing.to_string();
    move |error| RteError::System { doing, error }
}

/// Sets up the shared memory of this node's ranks. All ranks of the job must call it.
pub fn meet(rte: &dyn Rte, patience: Duration) -> Result<NodeMembership, RteError> {
    let me = rte.identity().rank;
    let key = Key::random().map_err(RteError::Pass)?;
    let tail: String = key.to_hex().chars().rev().take(8).collect();
    let card = Card {
        place: Place::here()?,
        socket: format!("portcullis-{}-{tail}", std::process::id()),
        key,
        processors: cpu::processors(),
    };
    // Every rank creates a socket before the fence, because the lowest rank of the node is not known yet.
    let giver = Giver::bind(&card.socket).map_err(RteError::Pass)?;
    rte.put(KEY, &card.to_bytes())?;
    rte.fence()?;
    let mut local_ranks = Vec::new();
    let mut processors = Vec::new();
    let mut first = card.clone();
    for rank in 0..rte.identity().size {
        let theirs = match rank == me {
            true => card.clone(),
            false => Card::parse(&rte.get(rank, KEY)?).ok_or_else(|| RteError::Garbled {
                key: KEY.into(),
                rank,
            })?,
        };
        if theirs.place == card.place {
            processors.push(theirs.processors.clone());
            if local_ranks.is_empty() {
                first = theirs;
            }
            local_ranks.push(rank);
        }
    }
    let local_rank = local_ranks.iter().take_while(|&&rank| rank < me).count() as u32;
    let deadline = Instant::now() + patience;
    let fd = if local_rank == 0 {
        let fd = Node::create(local_ranks.len() as u32).map_err(RteError::Node)?;
        giver
            .give(fd.as_fd(), &first.key, local_ranks.len() - 1, deadline)
            .map_err(RteError::Pass)?;
        fd
    } else {
        drop(giver);
        fdpass::take(&first.socket, &first.key, deadline).map_err(RteError::Pass)?
    };
    Ok(NodeMembership {
        place: Node::claim(fd, local_rank).map_err(RteError::Node)?,
        sharers: sharers(card.processors.as_deref(), &processors),
        local_ranks,
    })
}

/// Returns the number of the node's ranks, including this one, that may run on the processors `mine`.
///
/// Returns `None` if the ranks are not bound (all of them may run on all processors), or if the node is oversubscribed.
fn sharers(mine: Option<&[usize]>, all: &[Option<Vec<usize>>]) -> Option<usize> {
    let sharers = cpu::sharers(mine?, all.iter().map(Option::as_deref));
    let bound = sharers < all.len();
    (bound && all.len() <= cpu::usable_unbound()?).then_some(sharers)
}

/// For [`crate::fuzz`]: asserts that an accepted card is equal after encoding and decoding.
#[cfg(any(test, fuzzing))]
pub(crate) fn fuzz(bytes: &[u8]) {
    if let Some(card) = Card::parse(bytes) {
        assert_eq!(Card::parse(&card.to_bytes()), Some(card));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_is_read_as_it_was_written() {
        let card = Card {
            place: Place::here().unwrap(),
            socket: "portcullis-1-abc".into(),
            key: Key::random().unwrap(),
            processors: cpu::processors(),
        };
        assert_eq!(Card::parse(&card.to_bytes()), Some(card));
    }

    #[test]
    fn a_list_of_processors_that_is_too_long_is_left_out() {
        let with = |processors: Option<Vec<usize>>| Card {
            place: Place::here().unwrap(),
            socket: "portcullis-1-abc".into(),
            key: Key::random().unwrap(),
            processors,
        };
        let read = |processors| {
            Card::parse(&with(processors).to_bytes())
                .unwrap()
                .processors
        };
        assert_eq!(read(Some((0..512).collect())), Some((0..512).collect()));
        assert_eq!(read(Some((0..512).step_by(2).collect())), None);
        assert_eq!(read(None), None);
    }

    proptest::proptest! {
        /// Replaces a part of a valid card. If the result is accepted, it must be equal after encoding and decoding.
        #[test]
        fn any_bytes_are_a_card_or_none(
            stretch in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..80),
            at in 0usize..120,
        ) {
            let card = Card {
                place: Place { boot_id: "boot".into(), network: "4026531840".into(), uid: 7 },
                socket: "portcullis-1-abc".into(),
                key: Key::random().unwrap(),
                processors: Some(vec![0, 1, 4]),
            };
            let mut bytes = card.to_bytes();
            let at = at.min(bytes.len());
            let end = (at + stretch.len()).min(bytes.len());
            bytes.splice(at..end, stretch);
            fuzz(&bytes);
        }
    }

    #[test]
    fn what_is_no_card_is_refused() {
        for bad in [&b""[..], b"a\nb\nc\nd\ne\nf", b"\xff", b"a\nb\n1\nd"] {
            assert_eq!(Card::parse(bad), None);
        }
    }
}
