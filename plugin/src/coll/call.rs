//! One call of an operation, as a module in safe Rust carries it out: its arguments, its messages, and data of any datatype.
#![allow(unsafe_code)]

use super::abi::{self, Args, DONE, FAILED, Host, NO_RANK, PENDING, TypeInfo, Why};
use std::marker::PhantomData;
use std::ops::Deref;
use std::task::Poll;

/// A call, valid until [`Module::run`](super::Module::run) has returned, or until an operation begun by [`Module::begin`](super::Module::begin) is complete.
pub struct Call<'a> {
    host: &'a Host,
    args: Args,
    call: *mut abi::Call,
    size: u32,
}

/// Elements of a datatype in memory, to be read: a send buffer of the call or a block of one. They are reached through services only.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Data<'a> {
    raw: abi::Buffer,
    of: PhantomData<&'a ()>,
}

/// The same to be written: a receive buffer of the call, a block of one, or memory of the library.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Buffer<'a>(Data<'a>);

impl<'a> Deref for Buffer<'a> {
    type Target = Data<'a>;

    fn deref(&self) -> &Data<'a> {
        &self.0
    }
}

/// A message of a call, in progress.
#[derive(Debug, PartialEq, Eq)]
pub struct Message(u64);

/// Returns a service, or fails if an older library lacks it.
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
    /// `args` and `call` are those that the library has passed to a function of a module, and the call lasts at least as long as `'a`.
    pub(super) unsafe fn of(
        host: &'a Host,
        size: u32,
        args: *const Args,
        call: *mut abi::Call,
    ) -> Call<'a> {
        Call {
            host,
            // SAFETY: the library's arguments begin with their size.
            args: unsafe { abi::read(args) },
            call,
            size,
        }
    }

    /// The operation: [`abi::BCAST`] and so on.
    pub fn operation(&self) -> u32 {
        self.args.operation
    }

    /// The root, if the operation has one.
    pub fn root(&self) -> Option<u32> {
        (self.args.root != NO_RANK).then_some(self.args.root)
    }

    /// The number of bytes of one rank's block, or of all data, which is equal at all members; 0 where the standard does not make it so.
    pub fn bytes(&self) -> u64 {
        self.args.bytes
    }

    /// The buffers to send from: one for all ranks or one for each, none for `MPI_IN_PLACE` and at a rank that sends nothing.
    pub fn send(&self) -> &'a [Data<'a>] {
        // SAFETY: the library's arguments point to this number of buffers, which stay unchanged as long as the call; `Data` is transparent.
        unsafe { slice(self.args.send.cast(), self.args.send_count) }
    }

    /// The buffers to receive into: one for all ranks or one for each, none at a rank that receives nothing. `MPI_Bcast` has this one only.
    pub fn recv(&self) -> &'a [Buffer<'a>] {
        // SAFETY: the library's arguments point to this number of buffers, which stay unchanged as long as the call; `Buffer` is transparent.
        unsafe { slice(self.args.recv.cast(), self.args.recv_count) }
    }

    /// The block to send to a rank, of an operation with a block for each rank of the communicator.
    pub fn send_block(&self, rank: u32) -> Result<Data<'a>, String> {
        let blocks = [abi::SCATTER, abi::ALLTOALL];
        let is_divided = blocks.contains(&self.args.operation);
        let (number, ahead) = self.block(self.send(), rank, is_divided)?;
        Ok(moved(self.send()[number], ahead))
    }

    /// The block to receive from a rank, of an operation with a block for each rank of the communicator.
    pub fn recv_block(&self, rank: u32) -> Result<Buffer<'a>, String> {
        let blocks = [abi::GATHER, abi::ALLGATHER, abi::ALLTOALL];
        let is_divided = blocks.contains(&self.args.operation);
        let (number, ahead) = self.block(self.recv(), rank, is_divided)?;
        Ok(Buffer(moved(*self.recv()[number], ahead)))
    }

    /// Returns the number of the buffer with a rank's block, and the distance of the block from its begin in bytes.
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

    /// No elements: a message without data.
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

    /// Starts a message to a rank. The messages of overlapping calls do not mix; those to one rank arrive in order.
    pub fn send_to(&self, rank: u32, data: &Data<'_>) -> Result<Message, String> {
        let send = service!(self.call_send)?;
        let (mut why, mut message) = (Why::new(), 0);
        // SAFETY: the call is in progress, and the buffer is the library's or the program's, as long as the call.
        let code = unsafe { send(self.call, rank, &data.raw, &mut message, &mut why) };
        done(code, &why).map(|()| Message(message))
    }

    /// Starts to receive the next message of a rank, of the same number of bytes as it sends.
    pub fn receive_from(&self, rank: u32, data: &Buffer<'_>) -> Result<Message, String> {
        let receive = service!(self.call_recv)?;
        let (mut why, mut message) = (Why::new(), 0);
        // SAFETY: the call is in progress, and the buffer is the library's or the program's, as long as the call.
        let code = unsafe { receive(self.call, rank, &data.raw, &mut message, &mut why) };
        done(code, &why).map(|()| Message(message))
    }

    /// Waits until these messages are complete, while MPI progresses. A message that is not waited for is cancelled at the end of the call.
    pub fn wait(&self, messages: impl IntoIterator<Item = Message>) -> Result<(), String> {
        let wait = service!(self.call_wait)?;
        let numbers: Vec<u64> = messages.into_iter().map(|message| message.0).collect();
        let mut why = Why::new();
        // SAFETY: the call is in progress, and the numbers are read before the service returns.
        let code = unsafe { wait(self.call, numbers.as_ptr(), numbers.len(), &mut why) };
        done(code, &why)
    }

    /// Tests a message; one that is complete is not tested again.
    pub fn test(&self, message: &Message) -> Result<Poll<()>, String> {
        let test = service!(self.call_test)?;
        let mut why = Why::new();
        // SAFETY: the call is in progress, and the number is one of its messages.
        match unsafe { test(self.call, message.0, &mut why) } {
            PENDING => Ok(Poll::Pending),
            code => done(code, &why).map(Poll::Ready),
        }
    }

    /// Tests messages, and forgets those that are complete.
    pub fn test_all(&self, messages: &mut Vec<Message>) -> Result<Poll<()>, String> {
        while let Some(message) = messages.last() {
            if self.test(message)?.is_pending() {
                return Ok(Poll::Pending);
            }
            messages.pop();
        }
        Ok(Poll::Ready(()))
    }

    /// Returns zeroed memory for the elements of another buffer, which ends with the call.
    pub fn temporary(&self, like: &Data<'_>) -> Result<Buffer<'a>, String> {
        let temporary = service!(self.temporary)?;
        let (mut why, mut buffer) = (Why::new(), self.nothing());
        let (kind, count) = (like.raw.datatype, like.raw.count);
        // SAFETY: the call is in progress, and the type is that of one of its buffers.
        let code = unsafe { temporary(self.call, kind, count, &mut buffer.0.raw, &mut why) };
        done(code, &why).map(|()| buffer)
    }

    /// Copies elements to another buffer of any datatype, as many bytes as both have; returns their number.
    pub fn copy(&self, from: &Data<'_>, to: &Buffer<'_>) -> Result<i64, String> {
        let copy = service!(self.copy)?;
        self.check_apart(from, to)?;
        // SAFETY: both buffers are the library's or the program's, as long as the call, and do not overlap.
        Ok(unsafe { copy(&from.raw, &to.raw) })
    }

    /// Combines element by element with the call's operator: `inout = input op inout`.
    pub fn reduce(&self, input: &Data<'_>, inout: &Buffer<'_>) -> Result<(), String> {
        let reduce = service!(self.reduce)?;
        self.check_apart(input, inout)?;
        let mut why = Why::new();
        // SAFETY: both buffers are the library's or the program's, as long as the call, and do not overlap; so is the operator.
        let code = unsafe { reduce(self.args.op, &input.raw, &inout.raw, &mut why) };
        done(code, &why)
    }

    /// Copies packed data, from packed byte `at` on; returns the number of bytes, fewer at the buffer's end.
    pub fn pack(&self, from: &Data<'_>, at: i64, to: &mut [u8]) -> Result<usize, String> {
        let pack = service!(self.pack)?;
        // SAFETY: the buffer is the library's or the program's, as long as the call, and the slice is writable for its length.
        Ok(unsafe { pack(&from.raw, at, to.as_mut_ptr().cast(), to.len()) })
    }

    /// Copies packed data to a buffer, from packed byte `at` on; returns the number of bytes.
    pub fn unpack(&self, to: &Buffer<'_>, at: i64, from: &[u8]) -> Result<usize, String> {
        let unpack = service!(self.unpack)?;
        // SAFETY: the buffer is the library's or the program's, as long as the call, and the slice is readable for its length.
        Ok(unsafe { unpack(&to.raw, at, from.as_ptr().cast(), from.len()) })
    }

    /// Returns the sizes of a buffer's datatype.
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
            // SAFETY: the type is that of one of the call's buffers, and the structure begins with its size.
            unsafe { info(buffer.raw.datatype, &mut of) };
        }
        Ok(of)
    }

    /// The addresses from the first to the last byte of a buffer.
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

/// A buffer of either kind.
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
/// `first` is null or points to `count` values that stay unchanged as long as `'a`.
unsafe fn slice<'a, T>(first: *const T, count: u32) -> &'a [T] {
    if first.is_null() || count == 0 {
        return &[];
    }
    // SAFETY: not null, and the caller guarantees `count` values.
    unsafe { std::slice::from_raw_parts(first, count as usize) }
}

fn done(code: std::ffi::c_int, why: &Why) -> Result<(), String> {
    match code {
        DONE => Ok(()),
        FAILED => Err(why.sentence()),
        other => Err(format!("the library answered {other}")),
    }
}
