//! A collective call that a module executes: its arguments, messages and buffers.
#![allow(unsafe_code)]

use super::abi::{self, Args, DONE, FAILED, Host, NO_RANK, PENDING, TypeInfo, Why};
use std::marker::PhantomData;
use std::ops::Deref;
use std::task::Poll;

/// A collective call; valid until [`Module::run`](super::Module::run) returns,
/// or until a call started by [`Module::begin`](super::Module::begin) is complete or has failed.
pub struct Call<'a> {
    host: &'a Host,
    args: Args,
    call: *mut abi::Call,
    size: u32,
}

/// Readable elements: a send buffer of the call, or one block of a send buffer.
/// A module accesses the elements through the methods of [`Call`] only.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Data<'a> {
    raw: abi::Buffer,
    of: PhantomData<&'a ()>,
}

/// Writable elements: a receive buffer of the call, one block of a receive buffer,
/// or temporary memory.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Buffer<'a>(Data<'a>);

impl<'a> Deref for Buffer<'a> {
    type Target = Data<'a>;

    fn deref(&self) -> &Data<'a> {
        &self.0
    }
}

/// A message that a call has started and that may be incomplete.
#[derive(Debug, PartialEq, Eq)]
pub struct Message(u64);

/// Returns a function of the library's table. Fails if an older library lacks the function.
macro_rules! service {
    ($self:ident . $name:ident) => {
        $self.host.$name.ok_or_else(|| {
            format!(
                "this library does not offer the service {}",
                stringify!($name)
            )
        })
    };
}

impl<'a> Call<'a> {
    /// # Safety
    /// `args` and `call` are arguments of a module function; the call is in progress during `'a`.
    pub(super) unsafe fn of(
        host: &'a Host,
        size: u32,
        args: *const Args,
        call: *mut abi::Call,
    ) -> Call<'a> {
        Call {
            host,
            // SAFETY: the library's arguments start with their size.
            args: unsafe { abi::read(args) },
            call,
            size,
        }
    }

    /// Returns the operation, a constant such as [`abi::BCAST`].
    pub fn operation(&self) -> u32 {
        self.args.operation
    }

    /// Returns the rank of the root, or `None` if the operation has no root.
    pub fn root(&self) -> Option<u32> {
        (self.args.root != NO_RANK).then_some(self.args.root)
    }

    /// Returns the number of bytes of one rank's block or of all data;
    /// 0 if this number may differ between members.
    pub fn bytes(&self) -> u64 {
        self.args.bytes
    }

    /// Returns the send buffers: one for all ranks, one per rank, or none for `MPI_IN_PLACE`.
    pub fn send(&self) -> &'a [Data<'a>] {
        // SAFETY: `args` has this number of buffers, unchanged in the call; `Data` is transparent.
        unsafe { slice(self.args.send.cast(), self.args.send_count) }
    }

    /// Returns the receive buffers: one for all ranks or one per rank.
    /// The only buffer of `MPI_Bcast` is a receive buffer at all ranks.
    pub fn recv(&self) -> &'a [Buffer<'a>] {
        // SAFETY: `args` has this number of buffers, unchanged in the call;
        // `Buffer` is transparent.
        unsafe { slice(self.args.recv.cast(), self.args.recv_count) }
    }

    /// Returns the block to send to a rank, in an operation with one block per rank.
    pub fn send_block(&self, rank: u32) -> Result<Data<'a>, String> {
        let blocks = [abi::SCATTER, abi::ALLTOALL];
        let is_divided = blocks.contains(&self.args.operation);
        let (number, ahead) = self.block(self.send(), rank, is_divided)?;
        Ok(moved(self.send()[number], ahead))
    }

    /// Returns the block to receive from a rank, in an operation with one block per rank.
    pub fn recv_block(&self, rank: u32) -> Result<Buffer<'a>, String> {
        let blocks = [abi::GATHER, abi::ALLGATHER, abi::ALLTOALL];
        let is_divided = blocks.contains(&self.args.operation);
        let (number, ahead) = self.block(self.recv(), rank, is_divided)?;
        Ok(Buffer(moved(*self.recv()[number], ahead)))
    }

    /// Returns the index of the buffer with a rank's block, and the offset of the block in bytes.
    fn block<'b, B: AsData<'b>>(
        &self,
        buffers: &[B],
        rank: u32,
        is_divided: bool,
    ) -> Result<(usize, i64), String> {
        match buffers {
            [one] if is_divided && rank < self.size => {
                let one = one.data();
                let extent = self.info(one)?.extent;
                Ok((0, i64::from(rank) * one.raw.count * extent))
            }
            many if many.len() == self.size as usize && rank < self.size => Ok((rank as usize, 0)),
            _ => Err(format!("the operation has no block of rank {rank} here")),
        }
    }

    /// Returns an empty buffer, for messages without data.
    pub fn nothing(&self) -> Buffer<'static> {
        Buffer(Data {
            raw: abi::Buffer {
                address: std::ptr::null_mut(),
                count: 0,
                datatype: std::ptr::null(),
            },
            of: PhantomData,
        })
    }

    /// Starts a send to a rank. The messages of one call between two ranks arrive in order;
    /// messages of other calls do not match them.
    pub fn send_to(&self, rank: u32, data: &Data<'_>) -> Result<Message, String> {
        let send = service!(self.call_send)?;
        let (mut why, mut message) = (Why::new(), 0);
        // SAFETY: the call is in progress, and the buffer is valid during the call.
        let code = unsafe { send(self.call, rank, &data.raw, &mut message, &mut why) };
        done(code, &why).map(|()| Message(message))
    }

    /// Starts to receive the next message of a rank, which must send the same number of bytes.
    pub fn receive_from(&self, rank: u32, data: &Buffer<'_>) -> Result<Message, String> {
        let receive = service!(self.call_recv)?;
        let (mut why, mut message) = (Why::new(), 0);
        // SAFETY: the call is in progress, and the buffer is valid during the call.
        let code = unsafe { receive(self.call, rank, &data.raw, &mut message, &mut why) };
        done(code, &why).map(|()| Message(message))
    }

    /// Waits until these messages are complete. Messages that are incomplete when the call ends
    /// are cancelled.
    pub fn wait(&self, messages: impl IntoIterator<Item = Message>) -> Result<(), String> {
        let wait = service!(self.call_wait)?;
        let numbers: Vec<u64> = messages.into_iter().map(|message| message.0).collect();
        let mut why = Why::new();
        // SAFETY: the call is in progress, and the service reads the numbers before it returns.
        let code = unsafe { wait(self.call, numbers.as_ptr(), numbers.len(), &mut why) };
        done(code, &why)
    }

    /// Tests a message. A complete message must not be tested again.
    pub fn test(&self, message: &Message) -> Result<Poll<()>, String> {
        let test = service!(self.call_test)?;
        let mut why = Why::new();
        // SAFETY: the call is in progress, and the number belongs to one of its messages.
        match unsafe { test(self.call, message.0, &mut why) } {
            PENDING => Ok(Poll::Pending),
            code => done(code, &why).map(Poll::Ready),
        }
    }

    /// Tests messages and removes complete ones from the list.
    pub fn test_all(&self, messages: &mut Vec<Message>) -> Result<Poll<()>, String> {
        while let Some(message) = messages.last() {
            if self.test(message)?.is_pending() {
                return Ok(Poll::Pending);
            }
            messages.pop();
        }
        Ok(Poll::Ready(()))
    }

    /// Returns zeroed memory for the elements of `like`; it is freed at the end of the call.
    pub fn temporary(&self, like: &Data<'_>) -> Result<Buffer<'a>, String> {
        let temporary = service!(self.temporary)?;
        let (mut why, mut buffer) = (Why::new(), self.nothing());
        let (kind, count) = (like.raw.datatype, like.raw.count);
        // SAFETY: the call is in progress, and the datatype belongs to one of its buffers.
        let code = unsafe { temporary(self.call, kind, count, &mut buffer.0.raw, &mut why) };
        done(code, &why).map(|()| buffer)
    }

    /// Copies elements to a buffer of any datatype, until either buffer ends.
    /// Returns the number of bytes copied.
    pub fn copy(&self, from: &Data<'_>, to: &Buffer<'_>) -> Result<i64, String> {
        let copy = service!(self.copy)?;
        self.check_apart(from, to)?;
        // SAFETY: both buffers are valid during the call and do not overlap.
        Ok(unsafe { copy(&from.raw, &to.raw) })
    }

    /// Reduces element by element with the call's operator: `inout = input op inout`.
    pub fn reduce(&self, input: &Data<'_>, inout: &Buffer<'_>) -> Result<(), String> {
        let reduce = service!(self.reduce)?;
        self.check_apart(input, inout)?;
        let mut why = Why::new();
        // SAFETY: buffers and operator are valid during the call; the buffers do not overlap.
        let code = unsafe { reduce(self.args.op, &input.raw, &inout.raw, &mut why) };
        done(code, &why)
    }

    /// Packs the data of a buffer, starting at byte `at` of the packed form. Returns the number
    /// of bytes written to `to`, which is less than `to.len()` if the data end earlier.
    pub fn pack(&self, from: &Data<'_>, at: i64, to: &mut [u8]) -> Result<usize, String> {
        let pack = service!(self.pack)?;
        // SAFETY: the buffer is valid during the call, and the slice is writable for its length.
        Ok(unsafe { pack(&from.raw, at, to.as_mut_ptr().cast(), to.len()) })
    }

    /// Unpacks `from` to a buffer, starting at byte `at` of its packed form.
    /// Returns the number of bytes unpacked.
    pub fn unpack(&self, to: &Buffer<'_>, at: i64, from: &[u8]) -> Result<usize, String> {
        let unpack = service!(self.unpack)?;
        // SAFETY: the buffer is valid during the call, and the slice is readable for its length.
        Ok(unsafe { unpack(&to.raw, at, from.as_ptr().cast(), from.len()) })
    }

    /// Returns the size and extent of a buffer's datatype.
    fn info(&self, buffer: &Data<'_>) -> Result<TypeInfo, String> {
        let info = service!(self.type_info)?;
        let mut of = TypeInfo {
            size: size_of::<TypeInfo>(),
            bytes: 0,
            lb: 0,
            extent: 0,
            true_lb: 0,
            true_extent: 0,
            handle: 0,
        };
        if !buffer.raw.datatype.is_null() {
            // SAFETY: the datatype is that of a call's buffer; the structure starts with its size.
            unsafe { info(buffer.raw.datatype, &mut of) };
        }
        Ok(of)
    }

    /// Returns the address range from the first to the last byte of a buffer.
    fn range(&self, buffer: &Data<'_>) -> Result<(i128, i128), String> {
        let info = self.info(buffer)?;
        let (address, count) = (buffer.raw.address.addr() as i128, buffer.raw.count as i128);
        if count <= 0 || info.true_extent <= 0 {
            return Ok((address, address));
        }
        let last = (count - 1) * i128::from(info.extent);
        let begin = address + i128::from(info.true_lb);
        let end = begin + i128::from(info.true_extent);
        Ok((begin + last.min(0), end + last.max(0)))
    }

    fn check_apart(&self, one: &Data<'_>, other: &Data<'_>) -> Result<(), String> {
        let (one, other) = (self.range(one)?, self.range(other)?);
        match one.1 <= other.0 || other.1 <= one.0 {
            true => Ok(()),
            false => Err("the two buffers of a service overlap".into()),
        }
    }
}

/// A [`Data`] or a [`Buffer`].
trait AsData<'a> {
    fn data(&self) -> &Data<'a>;
}

impl<'a> AsData<'a> for Data<'a> {
    fn data(&self) -> &Data<'a> {
        self
    }
}

impl<'a> AsData<'a> for Buffer<'a> {
    fn data(&self) -> &Data<'a> {
        self
    }
}

fn moved(mut data: Data<'_>, ahead: i64) -> Data<'_> {
    data.raw.address = data.raw.address.wrapping_byte_offset(ahead as isize);
    data
}

/// # Safety
/// `first` is null, or it points to `count` values that stay unchanged throughout `'a`.
unsafe fn slice<'a, T>(first: *const T, count: u32) -> &'a [T] {
    if first.is_null() || count == 0 {
        return &[];
    }
    // SAFETY: `first` is not null, so it points to `count` values by this function's contract.
    unsafe { std::slice::from_raw_parts(first, count as usize) }
}

fn done(code: std::ffi::c_int, why: &Why) -> Result<(), String> {
    match code {
        DONE => Ok(()),
        FAILED => Err(why.sentence()),
        other => Err(format!("the library answered {other}")),
    }
}
