//! Emulated buffers for buffered sends, on a backend whose only buffer is the process's.
//!
//! The module emulates buffers of communicators and sessions, and `MPI_BUFFER_AUTOMATIC`.
//! A message is packed into memory of this library, and sent from that memory.
//! The attached buffer is not used, but its size limits the total size of the messages:
//! a send fails if the buffer would be too small.
//! A communicator with an attached buffer uses that buffer.
//! Otherwise a communicator of a session uses a session's buffer, if one is attached.
//! Otherwise the process's buffer is used: the backend's, or an emulated automatic buffer.

use super::packed::{self, Packed};
use super::{Children, End, Operation};
use crate::backend;
use crate::family::{BUFFER_AUTOMATIC, Kind, Word};
use crate::foreign_below::Foreign;
use crate::foreign_below::interposed::{leaving, of_groups, original, put_in_front};
use crate::foreign_below::refusal::{fail, fail_at_self};
use crate::foreign_below::standard::class;
use crate::lock::lock;
use std::any::Any;
use std::ffi::{c_char, c_int, c_void};
use std::ptr::without_provenance_mut;
use std::sync::{Arc, Mutex, Once, OnceLock};

/// `MPI_PROC_NULL` of the standard.
const PROC_NULL: c_int = -3;
/// Emulated overhead per message in bytes, at most the `MPI_BSEND_OVERHEAD` (512) of programs.
const OVERHEAD: usize = 64;

/// The object to which a buffer is attached, with the `Foreign::request_number` of its handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    Process,
    Comm(usize),
    Session(usize),
}

/// A packed message whose send is active.
struct Message<F: Foreign> {
    request: F::Below,
    _data: Packed,
    takes: usize,
}

/// An attached buffer with the messages whose sends are active.
struct Buffer<F: Foreign> {
    address: usize,
    size: i64,
    automatic: bool,
    messages: Vec<Message<F>>,
}

impl<F: Foreign> Buffer<F> {
    /// Drops completed messages. Returns true if no message remains.
    unsafe fn reap(&mut self) -> bool {
        self.messages.retain_mut(|message| {
            let mut flag = 0;
            // SAFETY: the request is one of the backend, and only this message stores it.
            let code = unsafe {
                (backend::MPI_Test::<F>())(
                    &raw mut message.request,
                    &raw mut flag,
                    super::ignore::<F>(),
                )
            };
            code == 0 && flag == 0
        });
        self.messages.is_empty()
    }

    fn used(&self) -> usize {
        self.messages.iter().map(|message| message.takes).sum()
    }
}

type Shared<F> = Arc<Mutex<Buffer<F>>>;

/// All attached buffers with their owners. Each buffer is a [`Shared`].
static ALL: Mutex<Vec<(Owner, Arc<dyn Any + Send + Sync>)>> = Mutex::new(Vec::new());

fn find<F: Foreign>(owner: Owner) -> Option<Shared<F>> {
    let all = lock(&ALL);
    let (_, buffer) = all.iter().find(|(known, _)| *known == owner)?;
    Arc::clone(buffer).downcast().ok()
}

/// Returns the buffer for sends on a communicator, or `None` for the backend's buffer.
fn of<F: Foreign>(comm: F::Below) -> Option<Shared<F>> {
    if let Some(buffer) = find::<F>(Owner::Comm(F::request_number(comm))) {
        return Some(buffer);
    }
    let session = lock(&ALL)
        .iter()
        .find(|(owner, _)| matches!(owner, Owner::Session(_)))
        .map(|(owner, _)| *owner);
    match session {
        Some(session) if of_groups::is_of_session::<F>(comm) => find::<F>(session),
        _ => find::<F>(Owner::Process),
    }
}

/// The function that routes buffered sends with large counts through those with `int` counts.
static NARROW: OnceLock<fn()> = OnceLock::new();

/// Sets [`NARROW`], which runs when the first emulated buffer is attached.
pub fn narrow_with(narrow: fn()) {
    let _ = NARROW.set(narrow);
}

/// Attaches a buffer to an owner. The error is an error class of the standard.
pub fn attach<F: Foreign>(owner: Owner, address: *mut c_void, size: i64) -> Result<(), c_int> {
    static ARMED: Once = Once::new();
    ARMED.call_once(|| {
        put_in_front! { MPI_Bsend MPI_Ibsend MPI_Bsend_init }
        if let Some(narrow) = NARROW.get() {
            narrow();
        }
        leaving::watch::<F>(left::<F>);
        leaving::watch::<F>(of_groups::left);
    });
    let mut all = lock(&ALL);
    if size < 0 {
        return Err(class::ARG);
    }
    if all.iter().any(|(known, _)| *known == owner) {
        return Err(class::BUFFER);
    }
    let automatic = F::buffer_in(without_provenance_mut(BUFFER_AUTOMATIC)) == address;
    let buffer = Buffer::<F> {
        address: address.expose_provenance(),
        size,
        automatic,
        messages: Vec::new(),
    };
    all.push((owner, Arc::new(Mutex::new(buffer))));
    Ok(())
}

/// Waits until all messages of a buffer have been sent.
///
/// # Safety
/// MPI is initialized and not finalized.
pub unsafe fn flush<F: Foreign>(owner: Owner) {
    while let Some(buffer) = find::<F>(owner) {
        // SAFETY: MPI is initialized, by contract.
        if unsafe { lock(&buffer).reap() } {
            return;
        }
        std::thread::yield_now();
    }
}

/// Detaches a buffer after all its messages have been sent. Returns the buffer's address and size.
///
/// # Safety
/// MPI is initialized and not finalized.
pub unsafe fn detach<F: Foreign>(owner: Owner) -> Option<(*mut c_void, i64)> {
    // SAFETY: MPI is initialized, by contract.
    unsafe { flush::<F>(owner) };
    let buffer = find::<F>(owner)?;
    lock(&ALL).retain(|(known, _)| *known != owner);
    let buffer = lock(&buffer);
    let size = if buffer.automatic { 0 } else { buffer.size };
    Some((std::ptr::with_exposed_provenance_mut(buffer.address), size))
}

/// Returns a request that completes when the buffer's messages have been sent.
pub fn flush_request<F: Foreign>(owner: Owner) -> F::Below {
    super::make::<F>(Box::new(Flush::<F>(find::<F>(owner))))
}

struct Flush<F: Foreign>(Option<Shared<F>>);

impl<F: Foreign> Operation<F> for Flush<F> {
    unsafe fn advance(&mut self) -> Option<End<F>> {
        let left = match &self.0 {
            // SAFETY: MPI is initialized, by contract of `advance`.
            Some(buffer) => unsafe { lock(buffer).reap() },
            None => true,
        };
        left.then(|| (super::empty::<F>(), 0))
    }

    /// Has no effect, because a flush completes even without a cancellation.
    unsafe fn cancel(&mut self) -> Result<(), &'static str> {
        Ok(())
    }
}

unsafe fn send<F: Foreign>(
    buffer: &Shared<F>,
    data: *const c_void,
    count: c_int,
    datatype: F::Below,
    dest: c_int,
    tag: c_int,
    comm: F::Below,
) -> c_int {
    // SAFETY: the arguments are those of a buffered send, valid by the standard.
    // The backend checks the other arguments.
    unsafe {
        let space = match packed::size::<F>(count, datatype, comm) {
            Ok(space) => space,
            Err(code) => return code,
        };
        if dest == F::word_in(Word::Rank, PROC_NULL) {
            return (backend::MPI_Send::<F>())(data, count, datatype, dest, tag, comm);
        }
        let mut buffer = lock(buffer);
        buffer.reap();
        let takes = space + OVERHEAD;
        let size = usize::try_from(buffer.size).unwrap_or(0);
        if !buffer.automatic && buffer.used() + takes > size {
            drop(buffer);
            return fail::<F>(comm, class::BUFFER);
        }
        let mut data = match Packed::new::<F>(data, count, datatype, space, comm) {
            Ok(data) => data,
            Err(code) => return code,
        };
        let mut request = F::null(Kind::Request);
        let code = (backend::MPI_Isend::<F>())(
            data.place(),
            data.length(),
            Packed::datatype::<F>(),
            dest,
            tag,
            comm,
            &raw mut request,
        );
        if code == 0 {
            buffer.messages.push(Message {
                request,
                _data: data,
                takes,
            });
        }
        code
    }
}

// SAFETY of all functions below: the exported functions call them, not the backend's functions.
// The arguments are the program's, which the standard requires to be valid.

unsafe extern "C-unwind" fn MPI_Bsend<F: Foreign>(
    data: *const c_void,
    count: c_int,
    datatype: F::Below,
    dest: c_int,
    tag: c_int,
    comm: F::Below,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        match of::<F>(comm) {
            Some(buffer) => send::<F>(&buffer, data, count, datatype, dest, tag, comm),
            None => original!(MPI_Bsend)(data, count, datatype, dest, tag, comm),
        }
    }
}

unsafe extern "C-unwind" fn MPI_Ibsend<F: Foreign>(
    data: *const c_void,
    count: c_int,
    datatype: F::Below,
    dest: c_int,
    tag: c_int,
    comm: F::Below,
    request: *mut F::Below,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        let Some(buffer) = of::<F>(comm) else {
            return original!(MPI_Ibsend)(data, count, datatype, dest, tag, comm, request);
        };
        let code = send::<F>(&buffer, data, count, datatype, dest, tag, comm);
        if code == 0 {
            request.write(super::make::<F>(Box::new(Children::<F>::new(
                Vec::new(),
                0,
                None,
            ))));
        }
        code
    }
}

/// The arguments of a persistent buffered send.
struct Given<F: Foreign>(*const c_void, c_int, F::Below, c_int, c_int, F::Below);

// SAFETY: MPI forbids the program to access this memory before the operation has ended.
// So another thread may use the memory.
unsafe impl<F: Foreign> Send for Given<F> {}

unsafe extern "C-unwind" fn MPI_Bsend_init<F: Foreign>(
    data: *const c_void,
    count: c_int,
    datatype: F::Below,
    dest: c_int,
    tag: c_int,
    comm: F::Below,
    request: *mut F::Below,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        if of::<F>(comm).is_none() {
            return original!(MPI_Bsend_init)(data, count, datatype, dest, tag, comm, request);
        }
        let given = Given::<F>(data, count, datatype, dest, tag, comm);
        let again = move || {
            let Given(data, count, datatype, dest, tag, comm) = &given;
            match MPI_Bsend::<F>(*data, *count, *datatype, *dest, *tag, *comm) {
                0 => Ok(Vec::new()),
                code => Err(code),
            }
        };
        request.write(super::make::<F>(Box::new(Children::persistent(Box::new(
            again,
        )))));
    }
    0
}

/// Detaches the buffer of a communicator that is being freed.
/// `number` is the communicator's `Foreign::request_number`.
fn left<F: Foreign>(number: usize) {
    // SAFETY: this runs when a communicator is freed, so MPI is initialized.
    unsafe { detach::<F>(Owner::Comm(number)) };
}

macro_rules! process_buffer {
    ($attach:ident $detach:ident $size:ty) => {
        unsafe extern "C-unwind" fn $attach<F: Foreign>(
            address: *mut c_void,
            size: $size,
        ) -> c_int {
            let automatic = F::buffer_in(without_provenance_mut(BUFFER_AUTOMATIC)) == address;
            // SAFETY: the MPI standard requires that the program passes valid arguments.
            unsafe {
                if !automatic && find::<F>(Owner::Process).is_none() {
                    return original!($attach)(address, size);
                }
                #[allow(clippy::useless_conversion)] // Useless for one of the two types.
                match attach::<F>(Owner::Process, address, size.into()) {
                    Ok(()) => 0,
                    Err(class) => fail_at_self::<F>(class),
                }
            }
        }

        unsafe extern "C-unwind" fn $detach<F: Foreign>(
            address: *mut c_void,
            size: *mut $size,
        ) -> c_int {
            // SAFETY: the MPI standard requires that the program passes valid arguments.
            unsafe {
                let Some((known, bytes)) = detach::<F>(Owner::Process) else {
                    return original!($detach)(address, size);
                };
                address.cast::<*mut c_void>().write_unaligned(known);
                #[allow(clippy::unnecessary_fallible_conversions, clippy::useless_conversion)]
                size.write(<$size>::try_from(bytes).unwrap_or(<$size>::MAX));
            }
            0
        }
    };
}

process_buffer! { MPI_Buffer_attach MPI_Buffer_detach c_int }
process_buffer! { MPI_Buffer_attach_c MPI_Buffer_detach_c i64 }

unsafe extern "C-unwind" fn MPI_Comm_create_from_group<F: Foreign>(
    group: F::Below,
    string: *const c_char,
    info: F::Below,
    handler: F::Below,
    comm: *mut F::Below,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        let code = original!(MPI_Comm_create_from_group)(group, string, info, handler, comm);
        if code == 0 {
            of_groups::made_of_groups::<F>(*comm);
        }
        code
    }
}

/// Returns true if the process's buffer is emulated.
pub fn has_process_buffer<F: Foreign>() -> bool {
    find::<F>(Owner::Process).is_some()
}

/// Prepares this module for a backend with one buffer per process. Runs before all MPI calls.
pub fn prepare<F: Foreign>() {
    put_in_front! { MPI_Buffer_attach MPI_Buffer_detach MPI_Buffer_attach_c MPI_Buffer_detach_c }
    put_in_front! { MPI_Comm_create_from_group }
    leaving::watch::<F>(of_groups::left);
}
