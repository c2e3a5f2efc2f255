//! The queues of a debugged process as last read, and the debugger's iterators over them.

use crate::interface::{
    Communicator, END_OF_LIST, NO_INFORMATION, OK, PendingOperation, TEXT, Word,
};
use mpi_base::debug_page::{Comm, Kind, Operation, Queues};
use std::ffi::{c_char, c_int};

/// A process with its queues, and the positions of the debugger's two iterators.
#[derive(Default)]
pub struct Process {
    queues: Queues,
    comm: usize,
    kind: Option<Kind>,
    operation: usize,
}

/// Copies a text to a NUL-terminated array, truncated to its length.
fn text(from: &str) -> [c_char; TEXT] {
    let mut to = [0; TEXT];
    for (to, byte) in to.iter_mut().zip(from.bytes().take(TEXT - 1)) {
        *to = byte.cast_signed();
    }
    to
}

/// Converts a rank to the interface's integer; a wildcard or an unknown rank is -1.
fn rank(rank: Option<u32>) -> Word {
    rank.map_or(-1, Word::from)
}

impl Process {
    /// Stores the queues read from the debug page, and resets all iterators.
    pub fn set(&mut self, queues: Queues) {
        *self = Process {
            queues,
            ..Process::default()
        };
    }

    /// Starts the iteration over communicators at the first one.
    pub fn begin_comms(&mut self) -> c_int {
        self.comm = 0;
        match self.queues.comms.is_empty() {
            true => NO_INFORMATION,
            false => OK,
        }
    }

    /// Advances the iteration to the next communicator.
    pub fn next_comm(&mut self) -> c_int {
        self.comm += 1;
        match self.comm() {
            Some(_) => OK,
            None => END_OF_LIST,
        }
    }

    fn comm(&self) -> Option<&Comm> {
        self.queues.comms.get(self.comm)
    }

    /// Returns the current communicator; `None` after the last one.
    pub fn communicator(&self) -> Option<Communicator> {
        let comm = self.comm()?;
        Some(Communicator {
            unique_id: comm.number,
            local_rank: comm.rank.into(),
            size: comm.size.into(),
            name: text(&comm.name),
        })
    }

    /// Returns the members of the current communicator as ranks of the job, if they are known.
    pub fn group(&self) -> Option<impl Iterator<Item = c_int>> {
        let comm = self.comm()?;
        let members = comm.members.iter();
        let members = members.map(|member| c_int::try_from(*member).unwrap_or(-1));
        (!comm.members.is_empty()).then_some(members)
    }

    /// Starts the iteration over the operations of one kind on the current communicator.
    pub fn begin_operations(&mut self, kind: c_int) -> c_int {
        self.operation = 0;
        self.kind = match kind {
            0 => Some(Kind::Send),
            1 => Some(Kind::Receive),
            2 => Some(Kind::Unexpected),
            _ => None,
        };
        match (self.kind, self.comm()) {
            (Some(_), Some(_)) => OK,
            _ => NO_INFORMATION,
        }
    }

    /// Returns the next operation of the iteration; `None` after the last one.
    pub fn next_operation(&mut self) -> Option<PendingOperation> {
        let rest = self.queues.operations.get(self.operation..)?;
        let is_next = |operation: &&Operation| {
            operation.comm == self.comm && Some(operation.kind) == self.kind
        };
        let at = rest.iter().position(|operation| is_next(&operation))?;
        let operation = rest.get(at).copied()?;
        self.operation += at + 1;
        Some(shown(&operation))
    }
}

fn shown(operation: &Operation) -> PendingOperation {
    let tag = operation.tag.map_or(-1, Word::from);
    let length = Word::try_from(operation.bytes).unwrap_or(Word::MAX);
    let is_message = operation.kind == Kind::Unexpected;
    let what = match operation.kind {
        Kind::Send => "a send that is not complete",
        Kind::Receive if operation.has_matched => "a receive whose data are arriving",
        Kind::Receive => "a receive that no message has matched",
        Kind::Unexpected => "a message that no receive has asked for",
    };
    let mut extra_text = [[0; TEXT]; 5];
    extra_text[0] = text(what);
    PendingOperation {
        status: c_int::from(operation.has_matched || is_message),
        desired_local_rank: rank(operation.peer),
        desired_global_rank: rank(operation.proc),
        tag_wild: operation.tag.is_none().into(),
        desired_tag: tag,
        desired_length: length,
        system_buffer: is_message.into(),
        buffer: 0,
        actual_local_rank: rank(operation.peer),
        actual_global_rank: rank(operation.proc),
        actual_tag: tag,
        actual_length: length,
        extra_text,
    }
}
