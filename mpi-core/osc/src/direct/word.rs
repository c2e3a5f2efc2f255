//! Accumulates on one word of 4 or 8 bytes by one atomic instruction.
//! Programs use such accumulates for counters, flags and queues.
//!
//! This module is the fast path; [`crate::direct::apply`] handles all types and operators
//! with the same [`Instruction`]s.
#![allow(unsafe_code)]

use crate::datatype::{Kind, Named};
use crate::op::Predefined;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// An operator on a type of 4 or 8 bytes for which the processor has an atomic instruction.
#[derive(Clone, Copy)]
pub(crate) struct Word {
    op: Predefined,
    named: Named,
    instruction: Instruction,
    is_long: bool,
}

/// An atomic instruction on a word in memory.
#[derive(Clone, Copy)]
pub(crate) enum Instruction {
    Add,
    And,
    Or,
    Xor,
    Swap,
    Load,
}

impl Instruction {
    /// Returns the atomic instruction for the operator on elements of this kind.
    pub fn of(op: Predefined, kind: Kind) -> Option<Instruction> {
        let is_integer = matches!(
            kind,
            Kind::CInteger(_) | Kind::Char(_) | Kind::FInteger(_) | Kind::Multi(_) | Kind::Byte
        );
        match op {
            Predefined::Replace => Some(Instruction::Swap),
            Predefined::NoOp => Some(Instruction::Load),
            Predefined::Sum if is_integer => Some(Instruction::Add),
            Predefined::Band if is_integer => Some(Instruction::And),
            Predefined::Bor if is_integer => Some(Instruction::Or),
            Predefined::Bxor if is_integer => Some(Instruction::Xor),
            _ => None,
        }
    }
}

/// Runs an [`Instruction`] on an atomic integer of any size and returns the old value.
macro_rules! instruct {
    ($instruction:expr, $word:expr, $given:expr) => {{
        use std::sync::atomic::Ordering::{AcqRel, Acquire};
        match $instruction {
            Instruction::Add => $word.fetch_add($given, AcqRel),
            Instruction::And => $word.fetch_and($given, AcqRel),
            Instruction::Or => $word.fetch_or($given, AcqRel),
            Instruction::Xor => $word.fetch_xor($given, AcqRel),
            Instruction::Swap => $word.swap($given, AcqRel),
            Instruction::Load => $word.load(Acquire),
        }
    }};
}
pub(crate) use instruct;

impl Word {
    /// Returns the update by `op` on elements of type `named`.
    /// Returns `None` if the processor has no atomic instruction for this operator and type.
    pub fn new(op: Predefined, named: Named) -> Option<Word> {
        let info = named.info();
        let is_whole = matches!(info.size, 4 | 8) && info.size == info.extent;
        let instruction = Instruction::of(op, info.kind).filter(|_| is_whole)?;
        Some(Word {
            op,
            named,
            instruction,
            is_long: info.size == 8,
        })
    }

    #[inline(always)]
    pub fn is(&self, op: Predefined, named: Named) -> bool {
        self.op == op && self.named == named
    }

    /// Returns the size of a word in bytes.
    #[inline(always)]
    pub fn size(&self) -> usize {
        if self.is_long { 8 } else { 4 }
    }

    /// Combines the word at `at` with the word at `origin`.
    /// Stores the old value at `result` unless `result` is null.
    /// Returns false, without any effect, if the word is not aligned.
    ///
    /// # Safety
    /// All accesses to the word at `at` use atomic instructions.
    /// `origin` points to a word, unless the operator reads none.
    /// `result` is null or points to space for a word. `origin` and `result` may be unaligned.
    #[inline(always)]
    pub unsafe fn apply(&self, at: *mut u8, origin: *const u8, result: *mut u8) -> bool {
        if !at.addr().is_multiple_of(self.size()) {
            return false;
        }
        macro_rules! word {
            ($t:ty, $atomic:ty) => {{
                // SAFETY: this function's contract gives a word at `at`, and its alignment was checked above.
                let word = unsafe { <$atomic>::from_ptr(at.cast()) };
                let given = || {
                    // SAFETY: this function's contract gives a word at `origin` for every operator that reads it.
                    unsafe { origin.cast::<$t>().read_unaligned() }
                };
                let before = instruct!(self.instruction, word, given());
                if !result.is_null() {
                    // SAFETY: this function's contract gives space for a word at `result`, which is not null.
                    unsafe { result.cast::<$t>().write_unaligned(before) };
                }
            }};
        }
        match self.is_long {
            true => word!(u64, AtomicU64),
            false => word!(u32, AtomicU32),
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPS: [Predefined; 6] = [
        Predefined::Sum,
        Predefined::Band,
        Predefined::Bor,
        Predefined::Bxor,
        Predefined::Replace,
        Predefined::NoOp,
    ];

    #[test]
    fn a_word_becomes_what_the_operator_says_and_the_old_one_comes_back() {
        let (before, given) = (0xF0F0_1234_5678_9ABC_u64, 0x0FF0_0000_8000_0001_u64);
        let wanted = [
            before.wrapping_add(given),
            before & given,
            before | given,
            before ^ given,
            given,
            before,
        ];
        for (op, wanted) in OPS.into_iter().zip(wanted) {
            let word = Word::new(op, Named::INT64).expect("a word");
            let (mut target_args, mut old) = (before, 0_u64);
            let (at, from) = (
                std::ptr::from_mut(&mut target_args),
                std::ptr::from_ref(&given),
            );
            // SAFETY: all three pointers point to locals of eight bytes.
            let done = unsafe { word.apply(at.cast(), from.cast(), (&raw mut old).cast()) };
            assert!(done && target_args == wanted && old == before, "{op:?}");
        }
        let word = Word::new(Predefined::Sum, Named::INT32).expect("a word");
        let mut two = [u32::MAX, 7];
        // SAFETY: the pointers point to words of four bytes; the carry out of the first does not touch the second.
        let done = unsafe {
            word.apply(
                two.as_mut_ptr().cast(),
                [1, 0, 0, 0].as_ptr(),
                std::ptr::null_mut(),
            )
        };
        assert!(done && two == [0, 7]);
    }

    #[test]
    fn what_no_instruction_does_to_a_word_is_none() {
        for named in [
            Named::INTEGER1,
            Named::BYTE,
            Named::DOUBLE_INT,
            Named::COMPLEX16,
        ] {
            assert!(OPS.iter().all(|op| Word::new(*op, named).is_none()));
        }
        assert!(Word::new(Predefined::Sum, Named::DOUBLE).is_none());
        assert!(Word::new(Predefined::Max, Named::INT64).is_none());
        let word = Word::new(Predefined::Sum, Named::INT64).expect("a word");
        let mut two = [3_u64; 2];
        let between = two.as_mut_ptr().cast::<u8>().wrapping_add(4);
        // SAFETY: the pointer is inside the two words; as it is not aligned, nothing is accessed.
        let done = unsafe { word.apply(between, [0; 8].as_ptr(), std::ptr::null_mut()) };
        assert!(!done && two == [3, 3]);
    }
}
