//! The debug page: a process's message queues in a fixed layout, readable without type information.
//!
//! The page is an array of 64-bit words in the process's own memory.
//! The process rewrites the page before it sleeps in a long wait, at most once per [`PERIOD_NS`].
//! So the page of a rank that hangs shows the events that the rank waits for,
//! and the page of a rank that computes shows its last long wait.
//! The page adds no cost to a message.
//!
//! The table lists the words by index. A debugger takes the positions and lengths of the tables
//! from the page, so later versions may add words:
//!
//! | words | content |
//! |---|---|
//! | 0, 1 | [`MAGIC`], [`VERSION`] |
//! | 2 | number of changes of the page; odd while the page is written |
//! | 3 | time of the last change: ns of the node's monotonic clock |
//! | 4 | this process's rank in the job |
//! | 5, 6, 7 | table of communicators: number of entries, index of the first word, words per entry |
//! | 8, 9, 10 | table of operations and unexpected messages: the same three numbers |
//! | 11, 12 | list of communicators' members: number of words, index of the first word |
//! | 13 | 1 if the page had no space for some entries |
//!
//! Entry of a communicator: its number, this process's rank in it, its size,
//! the index of its first member or [`NONE`], and its name in 8 words.
//! Entry of an operation: the index of its communicator, a [`Kind`],
//! the peer's rank in the communicator and in the job or [`NONE`], the tag, 1 if any tag
//! is accepted, bytes, and 1 if it has matched.
//! Entry of a member: its rank in the job; in the order of the communicator's ranks.

use crate::atomic::{AtomicU64, Ordering, fence};

/// The first word of a debug page.
pub const MAGIC: u64 = u64::from_le_bytes(*b"PCQUEUES");

/// The version of the layout that this file describes.
pub const VERSION: u64 = 1;

/// The value of a rank or an index that does not exist.
pub const NONE: u64 = u64::MAX;

/// Minimum time between two changes of the page, in nanoseconds.
pub const PERIOD_NS: u64 = 100_000_000;

/// Number of words in the page's head, which the table above describes.
pub const HEAD: usize = 16;
/// Number of words of a communicator's entry.
pub const COMM: usize = 16;
/// Number of words of an operation's entry.
pub const OPERATION: usize = 8;

const COMMS: usize = 128;
const OPERATIONS: usize = 4096;
const MEMBERS: usize = 1 << 15;

const FIRST_COMM: usize = HEAD;
const FIRST_OPERATION: usize = FIRST_COMM + COMMS * COMM;
const FIRST_MEMBER: usize = FIRST_OPERATION + OPERATIONS * OPERATION;
const WORDS: usize = FIRST_MEMBER + MEMBERS;

/// The kind of an operation; the values are those of the debuggers' message queue interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Kind {
    /// A send that is not complete.
    Send = 0,
    /// A receive that is not complete.
    Receive = 1,
    /// A message that no receive has matched.
    Unexpected = 2,
}

/// The entry of a communicator on the page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comm {
    /// The communicator's number, which is the same at all members.
    pub number: u64,
    /// This process's rank in the communicator.
    pub rank: u32,
    /// The number of members of the communicator.
    pub size: u32,
    /// The members' ranks in the job; empty if the page has no space for them.
    pub members: Vec<u32>,
    /// The start of the communicator's name.
    pub name: String,
}

/// The entry of an operation or an unexpected message on the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The index of the operation's communicator on the page.
    pub comm: usize,
    /// The kind of operation.
    pub kind: Kind,
    /// The peer's rank in the communicator; `None` if any peer is accepted.
    pub peer: Option<u32>,
    /// The peer's rank in the job.
    pub proc: Option<u32>,
    /// The tag; `None` if any tag is accepted.
    pub tag: Option<i32>,
    /// The length in bytes of the message, or of the receive buffer.
    pub bytes: u64,
    /// True if a message has matched the receive.
    pub has_matched: bool,
}

/// The debug page of this process.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct DebugPage {
    words: [AtomicU64; WORDS],
}

impl Default for DebugPage {
    fn default() -> Self {
        DebugPage::new()
    }
}

impl DebugPage {
    /// Returns a page that has not been written yet.
    pub const fn new() -> DebugPage {
        DebugPage {
            words: [const { AtomicU64::new(0) }; WORDS],
        }
    }

    fn set(&self, at: usize, value: u64) {
        if let Some(word) = self.words.get(at) {
            word.store(value, Ordering::Relaxed);
        }
    }

    /// Writes the page; only one thread at a time may call this.
    pub fn write<'a>(
        &self,
        (time_ns, rank): (u64, u32),
        comms: impl Iterator<Item = Comm>,
        operations: impl Iterator<Item = &'a Operation>,
    ) {
        let change = self.words.get(2).map_or(0, |w| w.load(Ordering::Relaxed)) | 1;
        self.set(2, change);
        fence(Ordering::Release);
        let (mut count, mut members, mut lacks_space) = (0, 0, false);
        for comm in comms {
            if count == COMMS {
                lacks_space = true;
                break;
            }
            let fits = !comm.members.is_empty() && comm.members.len() <= MEMBERS - members;
            lacks_space |= !fits;
            self.write_comm(count, &comm, if fits { members as u64 } else { NONE });
            if fits {
                for (at, member) in comm.members.iter().enumerate() {
                    self.set(FIRST_MEMBER + members + at, u64::from(*member));
                }
                members += comm.members.len();
            }
            count += 1;
        }
        let mut shown = 0;
        for operation in operations {
            if shown == OPERATIONS {
                lacks_space = true;
                break;
            }
            self.write_operation(FIRST_OPERATION + shown * OPERATION, operation);
            shown += 1;
        }
        let head = [
            (0, MAGIC),
            (1, VERSION),
            (3, time_ns),
            (4, u64::from(rank)),
            (5, count as u64),
            (6, FIRST_COMM as u64),
            (7, COMM as u64),
            (8, shown as u64),
            (9, FIRST_OPERATION as u64),
            (10, OPERATION as u64),
            (11, members as u64),
            (12, FIRST_MEMBER as u64),
            (13, u64::from(lacks_space)),
        ];
        for (at, value) in head {
            self.set(at, value);
        }
        fence(Ordering::Release);
        self.set(2, change.wrapping_add(1));
    }

    fn write_comm(&self, index: usize, comm: &Comm, first_member: u64) {
        let at = FIRST_COMM + index * COMM;
        self.set(at, comm.number);
        self.set(at + 1, u64::from(comm.rank));
        self.set(at + 2, u64::from(comm.size));
        self.set(at + 3, first_member);
        let name = comm.name.as_bytes();
        for word in 0..8 {
            let byte = |n: usize| name.get(word * 8 + n).copied().unwrap_or(0);
            let value = u64::from_le_bytes(std::array::from_fn(byte));
            self.set(at + 4 + word, value);
        }
    }

    fn write_operation(&self, at: usize, operation: &Operation) {
        let rank = |rank: Option<u32>| rank.map_or(NONE, u64::from);
        let words = [
            operation.comm as u64,
            operation.kind as u64,
            rank(operation.peer),
            rank(operation.proc),
            operation.tag.map_or(0, |tag| i64::from(tag) as u64),
            u64::from(operation.tag.is_none()),
            operation.bytes,
            u64::from(operation.has_matched),
        ];
        for (word, value) in words.into_iter().enumerate() {
            self.set(at + word, value);
        }
    }
}

/// The decoded contents of a debug page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Queues {
    /// The communicators of the process.
    pub comms: Vec<Comm>,
    /// The operations and unexpected messages of all communicators.
    pub operations: Vec<Operation>,
}

/// The reason why a page cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageError {
    /// The process has had no long wait yet, or the memory is not a debug page.
    NeverWritten,
    /// The page has another version of the layout.
    Version(u64),
    /// The process was stopped while it wrote the page.
    BeingWritten,
    /// The memory of the process cannot be read.
    Unreadable,
}

impl std::fmt::Display for PageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            PageError::NeverWritten => {
                f.write_str("the process has not waited for long in an MPI call yet")
            }
            PageError::Version(version) => write!(
                f,
                "the process shows its queues in version {version}, and this library reads version {VERSION}"
            ),
            PageError::BeingWritten => f.write_str(
                "the process was stopped while it described its queues; let it run for a moment",
            ),
            PageError::Unreadable => {
                f.write_str("the memory of the process with its queues cannot be read")
            }
        }
    }
}

impl std::error::Error for PageError {}

impl Queues {
    /// Decodes a page. The closure `read` returns some of the page's words;
    /// its arguments are the index of the first word and the number of words.
    pub fn read(read: impl Fn(usize, usize) -> Option<Vec<u64>>) -> Result<Queues, PageError> {
        let read = |first: usize, count: usize| read(first, count).ok_or(PageError::Unreadable);
        let head = read(0, HEAD)?;
        let at = |index: usize| head.get(index).copied().unwrap_or(0);
        match (at(0), at(1), at(2)) {
            (MAGIC, VERSION, changes) if changes % 2 == 0 => {}
            (MAGIC, VERSION, _) => return Err(PageError::BeingWritten),
            (MAGIC, version, _) => return Err(PageError::Version(version)),
            _ => return Err(PageError::NeverWritten),
        }
        let table = |index: usize, most: usize, least: usize| {
            let [count, first, each] = [at(index), at(index + 1), at(index + 2)];
            let sound = count <= most as u64
                && (least as u64..=64).contains(&each)
                && first <= WORDS as u64 * 2;
            match sound {
                true => Ok((count as usize, first as usize, each as usize)),
                false => Err(PageError::Unreadable),
            }
        };
        let (count, first, each) = table(5, COMMS, COMM)?;
        let comms = read(first, count * each)?;
        let members = match (at(11), at(12)) {
            (count, first) if count <= MEMBERS as u64 && first <= WORDS as u64 * 2 => {
                read(first as usize, count as usize)?
            }
            _ => return Err(PageError::Unreadable),
        };
        let comms: Vec<Comm> = comms
            .chunks_exact(each)
            .map(|words| comm_of(words, &members))
            .collect();
        let (count, first, each) = table(8, OPERATIONS, OPERATION)?;
        let operations = read(first, count * each)?;
        let operations = operations.chunks_exact(each).filter_map(operation_of);
        let operations = operations.filter(|operation| operation.comm < comms.len());
        Ok(Queues {
            operations: operations.collect(),
            comms,
        })
    }
}

fn comm_of(words: &[u64], members: &[u64]) -> Comm {
    let word = |at: usize| words.get(at).copied().unwrap_or(0);
    let (first, size) = (word(3), word(2));
    let range = usize::try_from(first)
        .ok()
        .and_then(|first| Some(first..first.checked_add(usize::try_from(size).ok()?)?));
    let of_comm = range.and_then(|range| members.get(range)).unwrap_or(&[]);
    let name: Vec<u8> = (4..12).flat_map(|at| word(at).to_le_bytes()).collect();
    let name = name.split(|byte| *byte == 0).next().unwrap_or(&[]);
    Comm {
        number: word(0),
        rank: word(1) as u32,
        size: size as u32,
        members: of_comm.iter().map(|member| *member as u32).collect(),
        name: String::from_utf8_lossy(name).into_owned(),
    }
}

fn operation_of(words: &[u64]) -> Option<Operation> {
    let &[comm, kind, peer, proc, tag, any_tag, bytes, has_matched, ..] = words else {
        return None;
    };
    Some(Operation {
        comm: usize::try_from(comm).ok()?,
        kind: match kind {
            0 => Kind::Send,
            1 => Kind::Receive,
            2 => Kind::Unexpected,
            _ => return None,
        },
        peer: u32::try_from(peer).ok(),
        proc: u32::try_from(proc).ok(),
        tag: (any_tag == 0).then_some(tag as i32),
        bytes,
        has_matched: has_matched != 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words_of(page: &DebugPage, first: usize, count: usize) -> Option<Vec<u64>> {
        let words = page.words.get(first..first.checked_add(count)?)?;
        Some(
            words
                .iter()
                .map(|word| word.load(Ordering::Relaxed))
                .collect(),
        )
    }

    fn read(page: &DebugPage) -> Result<Queues, PageError> {
        Queues::read(|first, count| words_of(page, first, count))
    }

    #[test]
    fn a_page_is_read_as_it_was_written() {
        static PAGE: DebugPage = DebugPage::new();
        let page = &PAGE;
        assert_eq!(read(page), Err(PageError::NeverWritten));
        let comm = |number: u64, name: &str| Comm {
            number,
            rank: 1,
            size: 3,
            members: vec![4, 5, 6],
            name: name.into(),
        };
        let comms = vec![comm(8, "MPI_COMM_WORLD"), comm(9, &"x".repeat(64))];
        let operations = [
            Operation {
                comm: 1,
                kind: Kind::Receive,
                peer: None,
                proc: None,
                tag: None,
                bytes: 40,
                has_matched: false,
            },
            Operation {
                comm: 0,
                kind: Kind::Unexpected,
                peer: Some(2),
                proc: Some(6),
                tag: Some(-7),
                bytes: u64::MAX,
                has_matched: true,
            },
        ];
        for _ in 0..2 {
            page.write((7, 5), comms.iter().cloned(), operations.iter());
            let expected = Queues {
                comms: comms.clone(),
                operations: operations.to_vec(),
            };
            assert_eq!(read(page), Ok(expected));
        }
        page.set(2, 5);
        assert_eq!(read(page), Err(PageError::BeingWritten));
        page.set(1, 2);
        assert_eq!(read(page), Err(PageError::Version(2)));
    }

    #[test]
    fn more_than_a_page_holds_is_cut_and_reported() {
        static PAGE: DebugPage = DebugPage::new();
        let page = &PAGE;
        let comm = Comm {
            size: MEMBERS as u32,
            members: vec![0; MEMBERS],
            ..Comm::default()
        };
        let operation = Operation {
            comm: 0,
            kind: Kind::Send,
            peer: Some(0),
            proc: Some(0),
            tag: Some(0),
            bytes: 0,
            has_matched: false,
        };
        let many = std::iter::repeat_n(&operation, OPERATIONS + 1);
        page.write((0, 0), vec![comm; COMMS + 1].into_iter(), many);
        let queues = read(page).expect("a page");
        assert_eq!(queues.comms.len(), COMMS);
        assert_eq!(queues.operations.len(), OPERATIONS);
        assert_eq!(queues.comms[0].members.len(), MEMBERS);
        assert!(queues.comms[1].members.is_empty());
        assert_eq!(words_of(page, 13, 1), Some(vec![1]));
    }

    #[test]
    fn any_words_are_read_without_a_panic() {
        static PAGE: DebugPage = DebugPage::new();
        let page = &PAGE;
        let mut random = crate::random::SplitMix64(7);
        for round in 0..200 {
            page.write((0, 0), std::iter::empty(), std::iter::empty());
            for at in 3..HEAD {
                page.set(at, random.next_u64() >> (round % 64));
            }
            let _ = read(page);
        }
    }
}
