//! Accumulate, get-accumulate, fetch-and-op, compare-and-swap (MPI 5.0, section 12.3.4).
//!
//! Elements are updated in packed order, each by one atomic step. Operations that return the old
//! value read it in the same step; with `MPI_NO_OP` they only read.
#![allow(unsafe_code)]

use crate::Error;
use crate::access::TargetLocation;
use crate::access::parts::check_elements;
use crate::datatype::{Datatype, Kind, Named, RecvBuf, Run, SendBuf};
use crate::direct::apply::{self, Combine, packed};
use crate::direct::pieces::{self, Buffers};
use crate::error::{OscClass, OscError};
use crate::op::{Op, Predefined};
use crate::request::Req;
use crate::state::access_kind::AccessKind;
use crate::state::target::Target;
use crate::target_args::TargetArgs;
use crate::win::Win;

/// The maximum size in bytes of an element on the fast path.
const LONGEST_PLAIN: usize = 16;

impl Win {
    /// Returns the accumulate operations of this window.
    #[inline(always)]
    pub fn accumulates(&self) -> Accumulates<'_> {
        Accumulates { win: self }
    }
}

/// The accumulate operations of a window.
#[derive(Clone, Copy)]
pub struct Accumulates<'a> {
    win: &'a Win,
}

impl<'a> Accumulates<'a> {
    pub(super) fn win(self) -> &'a Win {
        self.win
    }

    /// Returns the operator for the basic type of the target's elements.
    /// Fails if MPI does not allow the operator on windows.
    fn combine(self, call: &str, op: &Op, datatype: &Datatype) -> Result<Combine, Error> {
        let Op::Predefined(op) = op else {
            let sentence = format!(
                "{call} of rank {} on {} is given {}, but only predefined operators may be used on windows",
                self.win.rank(),
                self.win.label(),
                op.name()
            );
            return Err(OscError::new(OscClass::Op, sentence).into());
        };
        let Some(named) = datatype.basic_element() else {
            let sentence = format!(
                "{call} of rank {} on {} is given {datatype}, whose basic elements are not all of one predefined type",
                self.win.rank(),
                self.win.label()
            );
            return Err(OscError::new(OscClass::Type, sentence).into());
        };
        self.combine_of(*op, named)
    }

    pub(crate) fn combine_of(self, op: Predefined, named: Named) -> Result<Combine, Error> {
        self.win.state().last_combine().find(op, named)
    }

    /// Checks that `datatype` has the same basic type as the target's elements.
    fn check_alike(self, call: &str, combine: &Combine, datatype: &Datatype) -> Result<(), Error> {
        let kind = |named: Named| named.info().kind;
        match datatype.basic_element() {
            Some(named) if kind(named) == kind(combine.named()) => Ok(()),
            // A datatype without elements is compatible with every type.
            None if datatype.size() == 0 => Ok(()),
            _ => {
                let sentence = format!(
                    "{call} of rank {} on {} combines {datatype} with {}: both need basic elements of the same predefined type",
                    self.win.rank(),
                    self.win.label(),
                    combine.named().info().name
                );
                Err(OscError::new(OscClass::Type, sentence).into())
            }
        }
    }

    /// Implements `MPI_Accumulate`.
    pub fn accumulate(
        self,
        origin: &SendBuf,
        target_args: TargetArgs<'_>,
        op: &Op,
    ) -> Result<(), Error> {
        const CALL: &str = "MPI_Accumulate";
        let Some(target) = self.win.target(target_args.rank)? else {
            return Ok(());
        };
        self.win.accesses().check_access(target)?;
        if matches!(op, Op::Predefined(Predefined::NoOp)) {
            let sentence = format!(
                "{CALL} of rank {} on {} is given MPI_NO_OP, which only the get forms take",
                self.win.rank(),
                self.win.label()
            );
            return Err(OscError::new(OscClass::Op, sentence).into());
        }
        if target_args.datatype.bytes(target_args.count) == 0 {
            return Ok(());
        }
        let combine = self.combine(CALL, op, target_args.datatype)?;
        self.check_alike(CALL, &combine, origin.datatype())?;
        self.win
            .accesses()
            .check_lengths(CALL, origin.bytes(), &target_args)?;
        let kind = AccessKind::Update(combine.named().info().kind);
        let _ordered = self.win.checks().note(CALL, kind, target, &target_args)?;
        self.win.passive().lock_before_message(target)?;
        match self.win.accesses().locate(
            target,
            target_args.disp,
            target_args.count,
            target_args.datatype,
        )? {
            TargetLocation::Direct(memory) => {
                let buffers = Buffers {
                    origin,
                    result: None,
                };
                let bytes = origin.bytes();
                // SAFETY: `locate` checked that the target memory holds all elements.
                let done =
                    unsafe { pieces::update(&combine, &memory, &target_args, buffers, bytes) };
                done.map_err(|why| {
                    self.win
                        .accesses()
                        .unreachable(target, "update", origin.bytes(), why)
                })
            }
            TargetLocation::Message(at) => {
                let at = (at, 0..origin.bytes());
                let input = packed(origin);
                (self.win.messages()).accumulate(
                    target,
                    at,
                    &combine,
                    &input,
                    &target_args,
                    None,
                )?;
                Ok(())
            }
            TargetLocation::Parts(parts) => {
                let buffers = Buffers {
                    origin,
                    result: None,
                };
                let to = (target, &parts);
                self.update_parts(to, &combine, &target_args, buffers, origin.bytes())?;
                Ok(())
            }
        }
    }

    /// Implements `MPI_Get_accumulate`. Returns a request if the result has not arrived yet.
    pub fn get_accumulate(
        self,
        origin: &SendBuf,
        result: &mut RecvBuf,
        target_args: TargetArgs<'_>,
        op: &Op,
    ) -> Result<Option<Req>, Error> {
        const CALL: &str = "MPI_Get_accumulate";
        let Some(target) = self.win.target(target_args.rank)? else {
            return Ok(None);
        };
        self.win.accesses().check_access(target)?;
        let bytes = target_args.datatype.bytes(target_args.count);
        if bytes == 0 {
            return Ok(None);
        }
        let combine = self.combine(CALL, op, target_args.datatype)?;
        self.check_alike(CALL, &combine, result.datatype())?;
        let reads_only = combine.op() == Predefined::NoOp;
        if !reads_only {
            self.check_alike(CALL, &combine, origin.datatype())?;
            self.win
                .accesses()
                .check_lengths(CALL, origin.bytes(), &target_args)?;
        }
        self.win
            .accesses()
            .check_lengths(CALL, result.bytes(), &target_args)?;
        let kind = AccessKind::Update(combine.named().info().kind);
        let _ordered = self.win.checks().note(CALL, kind, target, &target_args)?;
        self.win.passive().lock_before_message(target)?;
        let bytes = match reads_only {
            true => result.bytes().min(bytes),
            false => origin.bytes().min(bytes),
        };
        match self.win.accesses().locate(
            target,
            target_args.disp,
            target_args.count,
            target_args.datatype,
        )? {
            TargetLocation::Direct(memory) => {
                let buffers = Buffers {
                    origin,
                    result: Some(result),
                };
                // SAFETY: `locate` checked that the target memory holds all elements.
                let done =
                    unsafe { pieces::update(&combine, &memory, &target_args, buffers, bytes) };
                done.map_err(|why| {
                    self.win
                        .accesses()
                        .unreachable(target, "update", bytes, why)
                })?;
                Ok(None)
            }
            TargetLocation::Message(at) => {
                let input = match reads_only {
                    true => Default::default(),
                    false => packed(origin),
                };
                self.win.messages().accumulate(
                    target,
                    (at, 0..bytes),
                    &combine,
                    &input,
                    &target_args,
                    Some(result),
                )
            }
            TargetLocation::Parts(parts) => {
                let buffers = Buffers {
                    origin,
                    result: Some(result),
                };
                self.update_parts((target, &parts), &combine, &target_args, buffers, bytes)
            }
        }
    }

    /// `MPI_Fetch_and_op`, fast path: an aligned element of at most 16 bytes in mapped memory,
    /// in an open epoch, after an earlier access has cached this operator and type.
    /// Returns false, without any effect, if one of these conditions does not hold.
    ///
    /// # Safety
    /// `origin` and `result` point to an element of `named`. `result` may be null.
    /// `origin` may be any pointer if the operator reads no origin.
    #[inline]
    pub unsafe fn fetch_and_op_plain(
        self,
        origin: *const u8,
        result: *mut u8,
        named: Named,
        op: Predefined,
        rank: i32,
        disp: i64,
    ) -> bool {
        if let Some(word) = self.win.state().last_combine().word()
            && word.is(op, named)
            && let Some((at, target)) = self.win.accesses().plain_address(rank, disp, word.size())
            && !target.locked
        {
            let mut applied = false;
            // SAFETY: `plain_address` checked that the word at `at` is inside the window; `origin` and `result` are valid by this function's contract.
            target.atomically(|| applied = unsafe { word.apply(at, origin, result) });
            if applied {
                self.win.state().epochs().order.has_loaded();
                return true;
            }
        }
        // SAFETY: the contract of `fetch_and_op_element` on `origin` and `result` is that of this function.
        unsafe { self.fetch_and_op_element((origin, result), named, op, (rank, disp)) }
    }

    /// Fetch-and-op, second fast path: all types and operators.
    /// Returns false, without any effect, if a condition of the first fast path does not hold.
    ///
    /// # Safety
    /// The contract is that of [`Accumulates::fetch_and_op_plain`].
    #[inline(never)]
    unsafe fn fetch_and_op_element(
        self,
        (origin, result): (*const u8, *mut u8),
        named: Named,
        op: Predefined,
        (rank, disp): (i32, i64),
    ) -> bool {
        self.win.state().epochs().order.has_stored();
        let Some(combine) = self.win.state().last_combine().get(op, named) else {
            return false;
        };
        let size = combine.size();
        let Some((at, target)) = self.win.accesses().plain_address(rank, disp, size) else {
            return false;
        };
        if !combine.is_atomic(target.locked, at.addr() as u64) {
            return false;
        }
        let input = match op {
            Predefined::NoOp => &[][..],
            // SAFETY: `origin` points to an element of `size` bytes by this function's contract, as the operator reads it.
            _ => unsafe { std::slice::from_raw_parts(origin, size) },
        };
        let mut old = [0; LONGEST_PLAIN];
        let wanted = (!result.is_null()).then_some(&mut old[..size]);
        // SAFETY: `plain_address` checked that the element is inside the window, and `is_atomic` that it is aligned.
        let done = target.atomically(|| unsafe { combine.atomic(at, input, wanted) });
        if !done {
            self.update_under_lock(target, (at, size), &mut || {
                let wanted = (!result.is_null()).then_some(&mut old[..size]);
                // SAFETY: `plain_address` checked that the element is inside the window, and `is_atomic` that it is aligned.
                unsafe { combine.atomic(at, input, wanted) };
            });
        }
        if !result.is_null() {
            // SAFETY: `result` has space for an element of `size` bytes by this function's contract.
            unsafe { std::ptr::copy_nonoverlapping(old.as_ptr(), result, size) };
        }
        true
    }

    /// `MPI_Accumulate`, fast path: contiguous aligned elements of one basic type in mapped memory,
    /// in an open epoch, after an earlier access has cached this operator and type.
    /// Returns false, without any effect, if one of these conditions does not hold.
    ///
    /// # Safety
    /// `origin` points to `count` contiguous elements of `named`.
    #[inline]
    pub unsafe fn accumulate_plain(
        self,
        origin: *const u8,
        (count, named): (usize, Named),
        op: Predefined,
        rank: i32,
        disp: i64,
    ) -> bool {
        let Some(combine) = self.win.state().last_combine().get(op, named) else {
            return false;
        };
        let Some(len) = count.checked_mul(combine.size()) else {
            return false;
        };
        let Some((at, target)) = self.win.accesses().plain_address(rank, disp, len) else {
            return false;
        };
        if !combine.is_native() || !combine.is_atomic(target.locked, at.addr() as u64) {
            return false;
        }
        self.win.state().epochs().order.has_stored();
        let memory = self.plain_memory(target, at);
        let run = std::iter::once(Run::new(0, len as i64));
        // SAFETY: `plain_address` checked that the elements are inside the window; `origin` points to `len` bytes by this function's contract.
        let done = unsafe {
            let input = std::slice::from_raw_parts(origin, len);
            combine.run(&memory, run, input, None)
        };
        // An update of mapped memory cannot fail.
        debug_assert!(done.is_ok());
        true
    }

    /// Runs `update` under the element's stripe lock if updates of this memory still take locks.
    /// `update` updates one element by an atomic instruction.
    #[cold]
    fn update_under_lock(
        self,
        target: &Target,
        (at, size): (*mut u8, usize),
        update: &mut dyn FnMut(),
    ) {
        let memory = self.plain_memory(target, at);
        memory.exclude(1, &memory.span(0..size as i64), &mut |_| update());
    }

    /// Implements `MPI_Fetch_and_op`.
    pub fn fetch_and_op(
        self,
        origin: &SendBuf,
        result: &mut RecvBuf,
        target_args: TargetArgs<'_>,
        op: &Op,
    ) -> Result<(), Error> {
        if target_args.datatype.as_basic().is_none() {
            let sentence = format!(
                "MPI_Fetch_and_op of rank {} on {} needs a predefined datatype, not {}",
                self.win.rank(),
                self.win.label(),
                target_args.datatype
            );
            return Err(OscError::new(OscClass::Type, sentence).into());
        }
        // The next flush completes the access, so no request is returned.
        let req = self.get_accumulate(origin, result, target_args, op)?;
        self.give_up(req);
        Ok(())
    }

    /// Releases a request that no call will wait for; the access itself continues.
    pub fn give_up(self, req: Option<Req>) {
        if let Some(req) = req {
            self.win.service().detach(&req);
        }
    }

    /// Implements `MPI_Compare_and_swap`.
    pub fn compare_and_swap(
        self,
        [origin, compare]: [&SendBuf; 2],
        result: &mut RecvBuf,
        target_args: TargetArgs<'_>,
    ) -> Result<(), Error> {
        let Some(target) = self.win.target(target_args.rank)? else {
            return Ok(());
        };
        self.win.accesses().check_access(target)?;
        let allowed = |named: &Named| {
            matches!(
                named.info().kind,
                Kind::CInteger(_)
                    | Kind::FInteger(_)
                    | Kind::Multi(_)
                    | Kind::Logical(_)
                    | Kind::Character(_)
                    | Kind::Char(_)
                    | Kind::Byte
            )
        };
        let Some(named) = target_args.datatype.as_basic().filter(allowed) else {
            let sentence = format!(
                "MPI_Compare_and_swap of rank {} on {} compares integers, logicals and bytes, not {}",
                self.win.rank(),
                self.win.label(),
                target_args.datatype
            );
            return Err(OscError::new(OscClass::Type, sentence).into());
        };
        let kind = AccessKind::Update(named.info().kind);
        let _ordered =
            self.win
                .checks()
                .note("MPI_Compare_and_swap", kind, target, &target_args)?;
        self.win.passive().lock_before_message(target)?;
        let (origin, compare) = (packed(origin), packed(compare));
        match self
            .win
            .accesses()
            .locate(target, target_args.disp, 1, target_args.datatype)?
        {
            TargetLocation::Direct(memory) => {
                let mut old = vec![0; origin.len()];
                // SAFETY: `locate` checked that the target memory holds the element.
                let done = unsafe {
                    apply::compare_and_swap(&memory, named, [&compare, &origin], &mut old)
                };
                done.map_err(|why| {
                    self.win
                        .accesses()
                        .unreachable(target, "update", old.len() as i64, why)
                })?;
                result.unpack_at(0, &old);
                Ok(())
            }
            TargetLocation::Message(at) => {
                self.win
                    .messages()
                    .swap(target, (at, named), [&compare, &origin], result)
            }
            // The access has one element, which is not in one part.
            TargetLocation::Parts(parts) => Ok(check_elements(
                self.win,
                &parts.parts,
                target.rank,
                origin.len(),
            )?),
        }
    }

    /// `MPI_Compare_and_swap`, fast path; see [`Accumulates::fetch_and_op_plain`].
    #[inline]
    pub fn compare_and_swap_plain(
        self,
        named: Named,
        [origin, compare]: [&[u8]; 2],
        result: &mut [u8],
        rank: i32,
        disp: i64,
    ) -> bool {
        let Some((at, target)) = self.win.accesses().plain_address(rank, disp, result.len()) else {
            return false;
        };
        if !apply::is_atomic(named, target.locked, at.addr() as u64) {
            return false;
        }
        self.win.state().epochs().order.has_loaded();
        let size = result.len();
        let both = [compare, origin];
        // SAFETY: `plain_address` checked that the element is inside the window, and `is_atomic` that it is aligned.
        let done = target.atomically(|| unsafe { apply::swap_word(at, both, result) });
        if !done {
            self.update_under_lock(target, (at, size), &mut || {
                // SAFETY: `plain_address` checked that the element is inside the window, and `is_atomic` that it is aligned.
                unsafe { apply::swap_word(at, both, result) };
            });
        }
        true
    }

    fn plain_memory<'b>(self, target: &'b Target, at: *mut u8) -> apply::Memory<'b>
    where
        'a: 'b,
    {
        apply::Memory {
            reach: apply::Reach::Here(at),
            address: (target.address)
                .wrapping_add((at.addr() as u64).wrapping_sub(target.plain.addr() as u64)),
            stripes: self.win.memory().stripes(target),
            exclusion: self.win.memory().exclusion(target),
            node: Some(self.win.engine().node()),
            locked: target.locked,
        }
    }
}
