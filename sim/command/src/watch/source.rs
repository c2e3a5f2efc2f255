//! Finding and opening the watched board: by address, by process, or the only one of this host.

use crate::Failure;
use barrier_board::live::{self, Found, Look};
use barrier_board::served::{Address, AddressError, BoardObserver, SCHEME, View};
use std::fmt;
use std::str::FromStr;

/// The name of a board: the address of a served board, or the process that has a board in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BoardName {
    Served(Address),
    Process(u32),
}

/// The reason why a text does not name a board.
#[derive(Debug)]
pub enum BadBoardName {
    Address(AddressError),
    Other(String),
}

/// An opened board, from which samples are read.
pub enum Source {
    Served(Address, BoardObserver),
    Memory(Found),
}

impl FromStr for BoardName {
    type Err = BadBoardName;

    fn from_str(text: &str) -> Result<Self, BadBoardName> {
        if text.starts_with(SCHEME) {
            return text
                .parse()
                .map(Self::Served)
                .map_err(BadBoardName::Address);
        }
        let process = text.parse().map(Self::Process);
        process.map_err(|_| BadBoardName::Other(text.to_owned()))
    }
}

impl fmt::Display for BadBoardName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(bad) => bad.fmt(f),
            Self::Other(text) => write!(
                f,
                "'{text}' is neither {SCHEME}HOST:PORT nor the number of a process"
            ),
        }
    }
}

impl std::error::Error for BadBoardName {}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Served(address, _) => address.fmt(f),
            Self::Memory(found) => found.fmt(f),
        }
    }
}

impl Source {
    /// Opens the board with this name; without a name, opens the only board of this host.
    pub fn open(place: Option<&BoardName>) -> Result<Self, Failure> {
        let found = match place {
            Some(BoardName::Served(address)) => {
                return Ok(Self::Served(
                    address.clone(),
                    BoardObserver::connect(address)?,
                ));
            }
            Some(BoardName::Process(pid)) => live::boards_of(*pid),
            None => live::boards(),
        };
        let names: Vec<_> = found.iter().map(|found| found.to_string()).collect();
        let mut found = found.into_iter();
        match (found.next(), found.next(), place) {
            (Some(only), None, _) => Ok(Self::Memory(only)),
            (None, _, Some(BoardName::Process(pid))) => Err(format!(
                "process {pid} has no board in shared memory, or belongs to another user; a served one is named {SCHEME}HOST:PORT"
            )
            .into()),
            (None, ..) => Err(format!(
                "no process of yours on this host has a board in shared memory; a served one is named {SCHEME}HOST:PORT"
            )
            .into()),
            (Some(_), Some(_), _) => Err(format!(
                "there are {} boards in shared memory, name one by its process: {}",
                names.len(),
                names.join(", ")
            )
            .into()),
        }
    }

    pub fn look(&mut self) -> Result<Look, Failure> {
        match self {
            Self::Served(_, observer) => {
                let View { board, connected } = observer.look()?;
                let look = Look::at(&board, observer.nodes(), connected);
                let look = look.beside(observer.eureka_line()?);
                Ok(look.with_channels(observer.channels()?))
            }
            Self::Memory(found) => {
                let look = found.look();
                Ok(look.ok_or_else(|| format!("the board of {found} is gone"))?)
            }
        }
    }
}
