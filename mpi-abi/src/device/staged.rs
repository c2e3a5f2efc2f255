//! A buffer in device memory, and its copy in host memory for an operation.

use super::libraries::Located;
use super::pool::{Block, NoMemory, pipeline_min};
use mpi_base::accelerator::twins::Registered;
use mpi_base::accelerator::{AcceleratorError, Direction, Strip};
use mpi_core::datatype::{Datatype, Run};
use std::cell::Cell;
use std::fmt;
use std::ops::Range;

/// The use of a buffer by an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The operation reads the buffer.
    Read,
    /// The operation sends the buffer as one message.
    Send,
    /// The operation sends partitions of `elements` elements each, and each partition as one message.
    /// The data of a partition are valid from `MPI_Pready` on.
    SendParts { elements: i64 },
    /// The operation may read and write any part of the buffer.
    Update,
    /// The operation receives one message, or its partitions, at the start of the buffer.
    /// The length is known when the operation completes.
    Receive,
}

/// The reason why a buffer in device memory cannot be used.
#[derive(Clone, Debug)]
pub enum DeviceError {
    /// The host has no memory for the copy.
    NoMemory { bytes: usize, memory: String },
    /// A copy failed.
    Copy {
        at: usize,
        memory: String,
        bytes: i64,
        direction: Direction,
        error: AcceleratorError,
    },
    /// A datatype with absolute addresses covers both host and device memory.
    Mixed { memory: String },
}

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceError::NoMemory { bytes, memory } => write!(
                f,
                "the buffer is {memory}, and the host has no {bytes} bytes for a copy of it"
            ),
            DeviceError::Copy {
                at,
                memory,
                bytes,
                direction,
                error,
            } => {
                let way = match direction {
                    Direction::ToHost => "from it to the host",
                    Direction::ToDevice => "to it from the host",
                };
                write!(
                    f,
                    "the buffer at {at:#x} is {memory}, and {bytes} bytes cannot be copied {way}: {error}; it must stay allocated, with its context, until the operation is complete"
                )
            }
            DeviceError::Mixed { memory } => write!(
                f,
                "the datatype covers {memory} and memory of the host by absolute addresses; use one datatype and one call for each"
            ),
        }
    }
}

impl std::error::Error for DeviceError {}

/// A buffer in device memory with its copy in host memory.
pub struct Staged {
    located: Located,
    /// The address that the program passed as the buffer, in device memory.
    at: *mut u8,
    count: i64,
    datatype: Datatype,
    access: Access,
    /// The engine's registration of host memory as the copy of one long message.
    /// Declared before `host`, so that it is dropped first.
    twin: Option<Registered>,
    host: Block,
    /// Number of bytes received into a buffer with [`Access::Receive`].
    received: Cell<i64>,
}

impl Staged {
    /// Allocates the host memory and copies the data that the operation may read.
    pub fn new(
        located: Located,
        at: *mut u8,
        (count, datatype): (i64, &Datatype),
        access: Access,
    ) -> Result<Staged, DeviceError> {
        let span = datatype.span(count);
        let bytes = usize::try_from(span.end.saturating_sub(span.start)).unwrap_or(usize::MAX);
        let host = Block::take(bytes, &located).map_err(|NoMemory| DeviceError::NoMemory {
            bytes,
            memory: located.to_string(),
        })?;
        let mut staged = Staged {
            located,
            at,
            count,
            datatype: datatype.clone(),
            access,
            twin: None,
            host,
            received: Cell::new(0),
        };
        if at.is_null() {
            staged.check_addresses()?;
        }
        staged.pair();
        staged.fill()?;
        Ok(staged)
    }

    /// Registers the host memory of a long message, or of long partitions, with the engine.
    /// The engine then copies parts of a sent message only when the host needs them,
    /// and parts of a received message when they have arrived.
    fn pair(&mut self) {
        let message = match self.access {
            Access::Send | Access::Receive => self.all().end,
            Access::SendParts { elements } => elements.saturating_mul(self.datatype.size()),
            Access::Read | Access::Update => return,
        };
        let is_long = usize::try_from(message).is_ok_and(|bytes| bytes >= pipeline_min());
        if !is_long {
            return;
        }
        let Some((offset, bytes)) = self.datatype.contiguous_bytes(self.count) else {
            return;
        };
        let Ok(len) = usize::try_from(bytes) else {
            return;
        };
        let (device, host) = (self.at, self.address());
        let Located { by, memory } = self.located;
        let [device, host] = [device, host].map(|start| start.wrapping_offset(offset as isize));
        // SAFETY: `self.host` covers the data of all elements.
        // The registration is dropped before `self.host`, by the order of the fields.
        let twin = unsafe { Registered::new((by, memory), device, host, len) };
        self.twin = Some(twin);
    }

    /// Returns the address that the engine uses as the buffer: the copy in host memory.
    pub fn address(&self) -> *mut u8 {
        let start = self.datatype.span(self.count).start;
        self.host.start().wrapping_offset(-start as isize)
    }

    /// Returns an error unless all data are on the device.
    fn check_addresses(&self) -> Result<(), DeviceError> {
        let on_device = |run: Run| {
            let at = self.at.wrapping_offset(run.offset as isize);
            self.located.by.recognise(at).is_some()
        };
        let all = self.datatype.bytes(self.count);
        match self.datatype.runs(self.count, 0..all).all(on_device) {
            true => Ok(()),
            false => Err(DeviceError::Mixed {
                memory: self.located.to_string(),
            }),
        }
    }

    /// Returns true if the operation writes to the buffer.
    pub fn is_written(&self) -> bool {
        matches!(self.access, Access::Update | Access::Receive)
    }

    /// Copies the data that the operation may read to the host.
    pub fn fill(&self) -> Result<(), DeviceError> {
        if let Some(twin) = &self.twin {
            twin.twin().restart();
        }
        match self.access {
            // A partition is copied when the program marks it as ready.
            Access::Receive | Access::SendParts { .. } => Ok(()),
            // The engine copies a registered message during the send.
            Access::Send if self.twin.is_some() => Ok(()),
            Access::Read | Access::Send | Access::Update => {
                self.copy(Direction::ToHost, self.all())
            }
        }
    }

    /// Copies a partition, the elements in the range `elements`, to the host.
    /// The engine copies a registered partition during its send.
    pub fn fill_elements(&self, elements: Range<i64>) -> Result<(), DeviceError> {
        if self.twin.is_some() {
            return Ok(());
        }
        self.copy(Direction::ToHost, self.bytes_of(elements))
    }

    /// Copies the data that the operation has written to the device.
    pub fn land(&self) -> Result<(), DeviceError> {
        match self.access {
            Access::Read => Ok(()),
            Access::Send | Access::SendParts { .. } => self.sent(),
            Access::Update => self.copy(Direction::ToDevice, self.all()),
            Access::Receive => {
                let landed = self.land_bytes(0..self.received.get());
                if let Some(twin) = &self.twin {
                    twin.twin().close();
                }
                landed
            }
        }
    }

    /// Copies the packed bytes `range` of a received message to the device.
    fn land_bytes(&self, range: Range<i64>) -> Result<(), DeviceError> {
        let range = range.start..range.end.min(self.all().end);
        let Some(twin) = self.twin.as_ref().filter(|_| !range.is_empty()) else {
            return self.copy(Direction::ToDevice, range);
        };
        // `twin` covers all packed bytes, which are contiguous.
        let landed = twin.twin().land(range.start as usize..range.end as usize);
        landed.map_err(|error| self.failed(Direction::ToDevice, range.end - range.start, error))
    }

    /// Returns an error if a part of a sent message could not be copied to the host.
    fn sent(&self) -> Result<(), DeviceError> {
        if let Some(twin) = &self.twin {
            // Pieces that the receiver did not request may still be copied from the program's memory.
            twin.twin().wait();
        }
        let failure = self.twin.as_ref().and_then(|twin| twin.twin().failure());
        match failure {
            None => Ok(()),
            Some(error) => Err(self.failed(Direction::ToHost, self.all().end, error)),
        }
    }

    fn failed(&self, direction: Direction, bytes: i64, error: AcceleratorError) -> DeviceError {
        DeviceError::Copy {
            at: self.at.addr(),
            memory: self.located.to_string(),
            bytes,
            direction,
            error,
        }
    }

    /// Copies a partition that has arrived, the elements in the range `elements`, to the device.
    /// Copies only its bytes before `end`, which is the length of the whole message.
    pub fn land_elements(&self, elements: Range<i64>, end: u64) -> Result<(), DeviceError> {
        let bytes = self.bytes_of(elements);
        let end = bytes.end.min(i64::try_from(end).unwrap_or(i64::MAX));
        self.land_bytes(bytes.start..end)
    }

    /// Sets the length of the received message.
    pub fn set_received(&self, bytes: i64) {
        self.received.set(bytes);
    }

    /// Returns the range of all packed bytes.
    fn all(&self) -> Range<i64> {
        0..self.datatype.bytes(self.count)
    }

    fn bytes_of(&self, elements: Range<i64>) -> Range<i64> {
        let size = self.datatype.size();
        elements.start.saturating_mul(size)..elements.end.saturating_mul(size)
    }

    /// Copies the packed bytes `range`.
    /// Writes no bytes in the holes of the datatype, since other operations may use them.
    fn copy(&self, direction: Direction, range: Range<i64>) -> Result<(), DeviceError> {
        if range.is_empty() {
            return Ok(());
        }
        let bytes = range.end - range.start;
        // Contiguous data are copied as one segment (`Run`), instead of one segment per element.
        let whole = self.datatype.contiguous_bytes(self.count);
        let only = whole.map(|(offset, _)| Run {
            offset: offset + range.start,
            len: bytes,
        });
        let rest = match only {
            Some(_) => None,
            None => Some(self.datatype.runs(self.count, range)),
        };
        let runs = only.into_iter().chain(rest.into_iter().flatten());
        let host = self.address();
        let mut strips = Strips::of(runs).map(|(first, stride, blocks)| Strip {
            device: self.at.wrapping_offset(first.offset as isize),
            host: host.wrapping_offset(first.offset as isize),
            len: first.len as usize,
            stride: stride as usize,
            blocks,
        });
        let Located { by, memory } = &self.located;
        // SAFETY: `host` spans all elements, so it contains all segments.
        // The engine uses `host` only during the operation.
        let copied = unsafe { by.copy(memory, direction, &mut strips) };
        copied.map_err(|error| self.failed(direction, bytes, error))
    }
}

/// Iterator that merges adjacent contiguous segments (runs) into one segment.
struct Joined<I: Iterator<Item = Run>> {
    runs: std::iter::Peekable<I>,
}

impl<I: Iterator<Item = Run>> Iterator for Joined<I> {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        let mut joined = self.runs.next()?;
        let end = |run: &Run| run.offset + run.len;
        while let Some(next) = self.runs.next_if(|next| next.offset == end(&joined)) {
            joined.len += next.len;
        }
        Some(joined)
    }
}

/// Iterator that merges runs of equal length at equal distances into a strip.
/// An item is the first run, the distance in bytes, and the number of runs.
struct Strips<I: Iterator<Item = Run>> {
    runs: std::iter::Peekable<Joined<I>>,
}

impl<I: Iterator<Item = Run>> Strips<I> {
    fn of(runs: I) -> Self {
        let runs = runs.peekable();
        Strips {
            runs: Joined { runs }.peekable(),
        }
    }
}

impl<I: Iterator<Item = Run>> Iterator for Strips<I> {
    type Item = (Run, i64, usize);

    fn next(&mut self) -> Option<Self::Item> {
        let first = self.runs.next()?;
        let (mut stride, mut blocks, mut last) = (first.len, 1, first);
        loop {
            let fits = |run: &Run| {
                let distance = run.offset - last.offset;
                run.len == first.len && distance >= first.len && (blocks == 1 || distance == stride)
            };
            let Some(run) = self.runs.next_if(fits) else {
                return Some((first, stride, blocks));
            };
            (stride, blocks, last) = (run.offset - last.offset, blocks + 1, run);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_runs_at_equal_distances_become_one_strip() {
        let run = |offset, len| Run { offset, len };
        let strips = |runs: &[Run]| {
            let strips = Strips::of(runs.iter().copied());
            strips
                .map(|(first, stride, blocks)| (first.offset, first.len, stride, blocks))
                .collect::<Vec<_>>()
        };
        let column = [run(0, 8), run(100, 8), run(200, 8)];
        assert_eq!(strips(&column), [(0, 8, 100, 3)]);
        // A run with another length, another distance or a lower offset begins a new strip.
        let mixed = [run(0, 8), run(100, 4), run(200, 4), run(250, 4), run(40, 4)];
        let apart = [
            (0, 8, 8, 1),
            (100, 4, 100, 2),
            (250, 4, 4, 1),
            (40, 4, 4, 1),
        ];
        assert_eq!(strips(&mixed), apart);
        // Adjacent runs are merged.
        let adjacent = [run(0, 1), run(1, 1), run(2, 2), run(10, 4)];
        assert_eq!(strips(&adjacent), [(0, 4, 10, 2)]);
        assert!(strips(&[]).is_empty());
    }
}
