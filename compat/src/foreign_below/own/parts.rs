//! Partitioned operations, on a library that has none: one message, which leaves when the last part is ready.
//!
//! Protocol: the n-th send of a process to a peer, communicator and tag belongs to the n-th receive there, in the order in which
//! they were made, whatever the order of starts; so the number is part of the tag of the message below. These tags are above all
//! that the program may use (half of those that the library has). A receive of the program from any tag could still match one.

use super::{Children, End, Operation, original, put_in_front};
use crate::below;
use crate::family::{Kind, Word};
use crate::foreign_below::Foreign;
use crate::foreign_below::fallbacks::Fit;
use crate::foreign_below::standard::{MPI_COMM_WORLD, class};
use crate::lock::lock;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::Mutex;

/// What a message is made of.
pub struct Message<F: Foreign> {
    pub buffer: *mut c_void,
    pub count: i64,
    pub datatype: F::Below,
    /// The other process, below.
    pub peer: c_int,
    pub tag: c_int,
    pub comm: F::Below,
}

// SAFETY: the address is the program's, which leaves the memory alone until the operation has ended.
unsafe impl<F: Foreign> Send for Message<F> {}

/// One partitioned operation.
pub struct Partitioned<F: Foreign> {
    message: Message<F>,
    tag_below: c_int,
    /// Of a send: which parts are ready.
    ready: Option<Vec<bool>>,
    parts: usize,
    /// The message below, once it is under way.
    under_way: Option<Children<F>>,
    end: Option<End<F>>,
    /// The code of an error at the start.
    code: c_int,
}

impl<F: Foreign> Partitioned<F> {
    /// # Safety
    /// The message is the program's, and its communicator is one of the library below.
    pub unsafe fn new(message: Message<F>, parts: usize, sends: bool) -> Self {
        // SAFETY: passed on.
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

    /// Sends or receives the whole.
    unsafe fn begin(&mut self) -> c_int {
        let m = &self.message;
        let mut request = F::null(Kind::Request);
        // SAFETY: the program's message; the datatype below lives on in the operation.
        let code = unsafe {
            match Fit::<F>::new(m.count, m.datatype) {
                Err(code) => code,
                Ok(fit) => {
                    let code = if self.ready.is_some() {
                        (below::MPI_Isend::<F>())(
                            m.buffer,
                            fit.count,
                            fit.datatype,
                            m.peer,
                            self.tag_below,
                            m.comm,
                            &raw mut request,
                        )
                    } else {
                        (below::MPI_Irecv::<F>())(
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

    /// These parts are ready; the class of an error of the standard.
    ///
    /// # Safety
    /// Between init and finalize.
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
            // SAFETY: the program says that its memory is ready.
            self.code = unsafe { self.begin() };
        }
        Ok(())
    }

    /// Whether a part has come.
    ///
    /// # Safety
    /// Between init and finalize.
    pub unsafe fn arrived(&mut self, active: bool, part: c_int) -> Result<bool, c_int> {
        if self.ready.is_some() {
            return Err(class::REQUEST);
        }
        if !usize::try_from(part).is_ok_and(|part| part < self.parts) {
            return Err(class::ARG);
        }
        // SAFETY: passed on.
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
        // SAFETY: passed on.
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
            // SAFETY: the program has given the memory until the end.
            None => return unsafe { self.begin() },
        }
        0
    }

    fn parts(&mut self) -> Option<&mut Partitioned<F>> {
        Some(self)
    }
}

/// How many operations there were: communicator, peer, tag, whether they send.
type Made = ((usize, c_int, c_int, bool), c_int);

static MADE: Mutex<Vec<Made>> = Mutex::new(Vec::new());

/// Tags of the library below that programs may use: the lower half.
const ALL_TAGS: c_int = 32767;
static HIGHEST: std::sync::OnceLock<c_int> = std::sync::OnceLock::new();

/// `MPI_TAG_UB` of the standard.
const TAG_UB: c_int = 501;

fn highest<F: Foreign>() -> c_int {
    *HIGHEST.get_or_init(|| {
        let (mut value, mut flag): (*mut c_int, c_int) = (null_mut(), 0);
        let keyval = F::word_in(Word::Keyval, TAG_UB);
        let world = F::handle_in(Kind::Comm, MPI_COMM_WORLD);
        // SAFETY: a predefined attribute, which is an integer.
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

/// The tag of an operation's message.
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

/// A communicator is the program's no longer, and its handle may be another's next.
fn left(number: usize) {
    let mut made = lock(&MADE);
    made.retain(|((of, ..), _)| *of != number);
}

/// The program gets to know half of the tags.
unsafe extern "C" fn MPI_Comm_get_attr<F: Foreign>(
    comm: F::Below,
    keyval: c_int,
    value: *mut c_void,
    flag: *mut c_int,
) -> c_int {
    static HALF: std::sync::OnceLock<c_int> = std::sync::OnceLock::new();
    // SAFETY: called as the function of the library below.
    unsafe {
        let code = original!(MPI_Comm_get_attr)(comm, keyval, value, flag);
        if code == 0 && keyval == F::word_in(Word::Keyval, TAG_UB) && flag.read() != 0 {
            let half = HALF.get_or_init(|| highest::<F>() / 2 - 1);
            value.cast::<*const c_int>().write_unaligned(half);
        }
        code
    }
}

/// For a library that has no partitioned operations, before the program calls anything.
pub fn prepare<F: Foreign>() {
    put_in_front! { MPI_Comm_get_attr }
    super::leaving::watch::<F>(left);
}
