//! Emulated partitioned communication: one message, which is sent when all partitions are ready.
//!
//! The n-th init of a send matches the n-th init of a receive at the other rank,
//! counted per communicator and tag, independent of the order of starts.
//! So both ranks compute the tag of the backend's message from the program's tag and n.
//! Programs may use the tags in the lower half of the backend's range.
//! The tags of the backend's messages are in the upper half.
//! A receive of the program with `MPI_ANY_TAG` can match such a message.

use super::{Children, End, Operation};
use crate::backend;
use crate::family::{Kind, Word};
use crate::foreign_below::Foreign;
use crate::foreign_below::interposed::{leaving, original, put_in_front};
use crate::foreign_below::large_counts::Fit;
use crate::foreign_below::standard::{MPI_COMM_WORLD, class};
use crate::lock::lock;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::Mutex;

/// The arguments of a partitioned send or receive. `count` covers all partitions.
pub struct Message<F: Foreign> {
    pub buffer: *mut c_void,
    pub count: i64,
    pub datatype: F::Below,
    /// The rank of the receiver or sender, in the backend's ABI.
    pub peer: c_int,
    pub tag: c_int,
    pub comm: F::Below,
}

// SAFETY: MPI forbids the program to access this memory before the operation has ended.
// So another thread may use the memory.
unsafe impl<F: Foreign> Send for Message<F> {}

/// A partitioned send or receive.
pub struct Partitioned<F: Foreign> {
    message: Message<F>,
    tag_below: c_int,
    /// For each partition of a send, whether it is ready; `None` for a receive.
    ready: Option<Vec<bool>>,
    parts: usize,
    /// The backend's send or receive, after it was started.
    under_way: Option<Children<F>>,
    end: Option<End<F>>,
    /// The code that the start of the backend's operation returned; 0 is success.
    code: c_int,
}

impl<F: Foreign> Partitioned<F> {
    /// # Safety
    /// The message is the program's, and its communicator is valid in the backend.
    pub unsafe fn new(message: Message<F>, parts: usize, sends: bool) -> Self {
        // SAFETY: the communicator is valid in the backend, by contract.
        let tag_below = unsafe { tag::<F>(&message, sends) };
        Partitioned {
            tag_below,
            ready: sends.then(|| vec![false; parts]),
            parts,
            message,
            under_way: None,
            end: None,
            code: 0,
        }
    }

    /// Starts the backend's send or receive.
    unsafe fn begin(&mut self) -> c_int {
        let m = &self.message;
        let mut request = F::null(Kind::Request);
        // SAFETY: the program guarantees that the message is valid.
        // The backend keeps the datatype until the operation has ended, although it is freed here.
        let code = unsafe {
            match Fit::<F>::new(m.count, m.datatype) {
                Err(code) => code,
                Ok(fit) => {
                    let code = if self.ready.is_some() {
                        (backend::MPI_Isend::<F>())(
                            m.buffer,
                            fit.count,
                            fit.datatype,
                            m.peer,
                            self.tag_below,
                            m.comm,
                            &raw mut request,
                        )
                    } else {
                        (backend::MPI_Irecv::<F>())(
                            m.buffer,
                            fit.count,
                            fit.datatype,
                            m.peer,
                            self.tag_below,
                            m.comm,
                            &raw mut request,
                        )
                    };
                    fit.free();
                    code
                }
            }
        };
        if code == 0 {
            self.under_way = Some(Children::new(vec![request], 0, None));
        }
        code
    }

    /// Marks partitions as ready, and starts the send after the last one.
    /// The error is an error class of the standard.
    ///
    /// # Safety
    /// MPI is initialized and not finalized.
    pub unsafe fn ready(
        &mut self,
        active: bool,
        parts: impl Iterator<Item = c_int>,
    ) -> Result<(), c_int> {
        if !active {
            return Err(class::REQUEST);
        }
        let ready = self.ready.as_mut().ok_or(class::REQUEST)?;
        for part in parts {
            let part = usize::try_from(part)
                .ok()
                .and_then(|part| ready.get_mut(part));
            match part {
                Some(part) if !*part => *part = true,
                _ => return Err(class::ARG),
            }
        }
        if ready.iter().all(|part| *part) && self.under_way.is_none() {
            // SAFETY: the program has marked all partitions as ready.
            self.code = unsafe { self.begin() };
        }
        Ok(())
    }

    /// Returns true if a partition has arrived. All partitions arrive with the one message.
    ///
    /// # Safety
    /// MPI is initialized and not finalized.
    pub unsafe fn arrived(&mut self, active: bool, part: c_int) -> Result<bool, c_int> {
        if self.ready.is_some() {
            return Err(class::REQUEST);
        }
        if !usize::try_from(part).is_ok_and(|part| part < self.parts) {
            return Err(class::ARG);
        }
        // SAFETY: MPI is initialized, by contract.
        Ok(!active || unsafe { self.advance() }.is_some())
    }
}

impl<F: Foreign> Operation<F> for Partitioned<F> {
    unsafe fn advance(&mut self) -> Option<End<F>> {
        if self.end.is_some() {
            return self.end;
        }
        if self.code != 0 {
            return Some((super::empty::<F>(), self.code));
        }
        // SAFETY: MPI is initialized, by contract of `advance`.
        let (status, code) = unsafe { self.under_way.as_mut()?.test() }?;
        let mut shown = F::status_above(&status);
        if self.ready.is_none() && shown.tag == self.tag_below {
            shown.tag = self.message.tag;
        }
        self.end = Some((F::status_below(&shown), code));
        self.end
    }

    fn is_persistent(&self) -> bool {
        true
    }

    unsafe fn start(&mut self) -> c_int {
        (self.under_way, self.end, self.code) = (None, None, 0);
        match &mut self.ready {
            Some(ready) => ready.fill(false),
            // SAFETY: the program keeps the receive buffer valid until the operation has ended.
            None => return unsafe { self.begin() },
        }
        0
    }

    /// Refuses to cancel the operation.
    /// After a cancellation, the remaining partitions could not become ready,
    /// so a wait for the operation would not return.
    unsafe fn cancel(&mut self) -> Result<(), &'static str> {
        Err("a partitioned send or receive")
    }

    fn comm(&self) -> Option<F::Below> {
        Some(self.message.comm)
    }

    fn parts(&mut self) -> Option<&mut Partitioned<F>> {
        Some(self)
    }
}

/// A key (communicator, other rank, tag, whether it is a send), and the index of its last init.
type Made = ((usize, c_int, c_int, bool), c_int);

static MADE: Mutex<Vec<Made>> = Mutex::new(Vec::new());

/// The largest tag if the backend does not report `MPI_TAG_UB`.
const ALL_TAGS: c_int = 32767;
static HIGHEST: std::sync::OnceLock<c_int> = std::sync::OnceLock::new();

/// `MPI_TAG_UB` of the standard.
const TAG_UB: c_int = 501;

fn highest<F: Foreign>() -> c_int {
    *HIGHEST.get_or_init(|| {
        let (mut value, mut flag): (*mut c_int, c_int) = (null_mut(), 0);
        let keyval = F::word_in(Word::Keyval, TAG_UB);
        let world = F::handle_in(Kind::Comm, MPI_COMM_WORLD);
        // SAFETY: the value of this predefined attribute is a pointer to an `int`.
        // The outputs are local variables.
        unsafe {
            let code =
                original!(MPI_Comm_get_attr)(world, keyval, (&raw mut value).cast(), &raw mut flag);
            if code == 0 && flag != 0 && !value.is_null() {
                return value.read();
            }
        }
        ALL_TAGS
    })
}

/// Returns the tag of the backend's message, and increments the index of the key's last init.
unsafe fn tag<F: Foreign>(message: &Message<F>, sends: bool) -> c_int {
    let key = (
        F::request_number(message.comm),
        message.peer,
        message.tag,
        sends,
    );
    let mut made = lock(&MADE);
    let number = match made.iter_mut().find(|(known, _)| *known == key) {
        Some((_, count)) => {
            *count += 1;
            *count
        }
        None => {
            made.push((key, 0));
            0
        }
    };
    let half = highest::<F>() / 2;
    half + (message
        .tag
        .wrapping_mul(0x3d4d)
        .wrapping_add(number.wrapping_mul(0x1f1f)))
    .rem_euclid(half)
}

/// Drops the indices of a communicator that is being freed, because its handle may be reused.
fn left(number: usize) {
    let mut made = lock(&MADE);
    made.retain(|((of, ..), _)| *of != number);
}

/// Replaces the backend's function: reports about half of its `MPI_TAG_UB` to the program.
unsafe extern "C-unwind" fn MPI_Comm_get_attr<F: Foreign>(
    comm: F::Below,
    keyval: c_int,
    value: *mut c_void,
    flag: *mut c_int,
) -> c_int {
    static HALF: std::sync::OnceLock<c_int> = std::sync::OnceLock::new();
    // SAFETY: the arguments are the program's arguments of this function.
    // For this keyval, `value` receives a pointer.
    unsafe {
        let code = original!(MPI_Comm_get_attr)(comm, keyval, value, flag);
        if code == 0 && keyval == F::word_in(Word::Keyval, TAG_UB) && flag.read() != 0 {
            let half = HALF.get_or_init(|| highest::<F>() / 2 - 1);
            value.cast::<*const c_int>().write_unaligned(half);
        }
        code
    }
}

/// Prepares this module for a backend without partitioned operations.
/// Runs before all MPI calls.
pub fn prepare<F: Foreign>() {
    put_in_front! { MPI_Comm_get_attr }
    leaving::watch::<F>(left);
}
