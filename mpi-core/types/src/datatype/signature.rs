//! Type signatures: the sequence of basic types of a datatype, without displacements.
//!
//! Signatures answer two questions.
//! *How many basic elements are in a number of bytes?* (`MPI_Get_elements`): a traversal of the
//! placements counts the elements, and skips complete placements by division.
//! *Are two signatures equal?*: their hashes are compared.
//! A signature of `n` elements with hash `h`, followed by a signature of `m` elements with hash
//! `g`, has `n + m` elements and the hash `h * B^m + g` modulo 2^61 - 1 (Karp and Rabin).
//! So `contiguous(4, INT)` and four `INT`s have equal hashes,
//! and the hash of n repetitions takes O(log n) steps.
//!
//! Basic types are compared by format and not by name: `MPI_INT` and `MPI_INT32_T` are equal.
//! A pair type has two basic elements, like the structure in the standard's definition of the type.

use super::construct::Derived;
use super::named::{Kind, Named, Scalar};
use super::{Datatype, Repr};

/// A digest of the sequence of basic elements of a datatype.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub struct Signature {
    /// The number of basic elements, modulo 2^64.
    pub elements: u64,
    hash: u64,
}

const PRIME: u64 = (1 << 61) - 1;
const BASE: u64 = 0x0b3f_27c1_95d4_e86b % PRIME;

fn times(a: u64, b: u64) -> u64 {
    ((a as u128 * b as u128) % PRIME as u128) as u64
}

fn power(mut exponent: u64) -> u64 {
    let (mut result, mut square) = (1, BASE);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = times(result, square);
        }
        square = times(square, square);
        exponent >>= 1;
    }
    result
}

impl Signature {
    fn of_basic(code: u64) -> Signature {
        // A multiplicative hash, so that the hashes of consecutive codes are far apart.
        let hash = (code + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) % PRIME;
        Signature { elements: 1, hash }
    }

    /// Returns the signature of this sequence followed by `next`.
    pub fn then(self, next: Signature) -> Signature {
        Signature {
            elements: self.elements.wrapping_add(next.elements),
            hash: (times(self.hash, power(next.elements)) + next.hash) % PRIME,
        }
    }

    /// Returns the signature of `n` repetitions of this sequence.
    pub fn times(self, n: i64) -> Signature {
        let (mut result, mut doubled, mut n) = (Signature::default(), self, n.max(0));
        while n > 0 {
            if n & 1 == 1 {
                result = result.then(doubled);
            }
            doubled = doubled.then(doubled);
            n >>= 1;
        }
        result
    }

    /// Encodes the signature as two 64-bit integers.
    pub fn words(self) -> [u64; 2] {
        [self.elements, self.hash]
    }

    /// Decodes the output of [`Signature::words`].
    pub fn from_words([elements, hash]: [u64; 2]) -> Signature {
        Signature { elements, hash }
    }

    /// Returns a 64-bit digest of element count and hash, for fingerprints.
    pub fn word(self) -> u64 {
        self.hash ^ self.elements.rotate_left(61)
    }
}

fn code(class: u64, scalar: Scalar) -> Signature {
    Signature::of_basic(class * 16 + scalar as u64)
}

fn number(scalar: Scalar) -> Signature {
    code(0, scalar)
}

/// Returns the signature of a basic type.
fn basic(named: Named) -> Signature {
    match named.info().kind {
        Kind::CInteger(s) | Kind::FInteger(s) | Kind::Multi(s) | Kind::Float(s) => number(s),
        Kind::Complex(s) => code(1, s),
        Kind::Logical(s) => code(2, s),
        Kind::Character(s) => code(3, s),
        // The code of MPI_CHARACTER, whether C's `char` is signed or not.
        Kind::Char(_) => code(3, Scalar::U8),
        Kind::Byte | Kind::Packed => code(4, Scalar::U8),
        Kind::Pair(value, index) => number(value).then(number(index)),
    }
}

impl Datatype {
    /// Returns the signature of one element.
    pub fn signature(&self) -> Signature {
        match &self.0 {
            Repr::Named(named) => basic(*named),
            Repr::Derived(derived) => *derived.signature.get_or_init(|| fold(derived)),
        }
    }

    /// Returns the predefined datatype of the basic elements if all have the same kind.
    /// Returns `None` for other types, and for a type without data.
    pub fn basic_element(&self) -> Option<Named> {
        match &self.0 {
            Repr::Named(named) => Some(*named),
            Repr::Derived(derived) => *derived.basic.get_or_init(|| basic_of(derived)),
        }
    }

    /// Returns the functions that count the elements in a number of received bytes.
    pub fn counts(&self) -> Counts<'_> {
        Counts(self)
    }
}

/// Functions that count elements of a datatype in a number of received bytes.
#[derive(Clone, Copy, Debug)]
pub struct Counts<'a>(&'a Datatype);

impl Counts<'_> {
    /// `MPI_Get_count`: the number of complete elements in `bytes`.
    /// Returns `None` (`MPI_UNDEFINED`) if there is a remainder.
    pub fn whole(self, bytes: i64) -> Option<i64> {
        match self.0.size() {
            0 => (bytes == 0).then_some(0),
            size => (bytes % size == 0).then_some(bytes / size),
        }
    }

    /// Returns the signature of the first `bytes` bytes of consecutive elements.
    /// Returns `None` if these bytes end within a basic element.
    pub fn signature(self, bytes: i64) -> Option<Signature> {
        let size = self.0.size();
        if size == 0 {
            return (bytes == 0).then(Signature::default);
        }
        let whole = self.0.signature().times(bytes / size);
        let mut left = bytes % size;
        let part = signature_of_part(self.0, &mut left);
        (left == 0).then(|| whole.then(part))
    }

    /// `MPI_Get_elements`: the number of basic elements in `bytes`.
    /// Returns `None` (`MPI_UNDEFINED`) if the bytes end within a basic element.
    pub fn basic(self, bytes: i64) -> Option<i64> {
        let size = self.0.size();
        if size == 0 {
            return (bytes == 0).then_some(0);
        }
        let whole = (bytes / size).checked_mul(self.0.signature().elements as i64)?;
        let mut left = bytes % size;
        let part = elements_in_part(self.0, &mut left);
        (left == 0).then_some(whole + part)
    }
}

fn fold(derived: &Derived) -> Signature {
    let mut all = Signature::default();
    derived.placements(|p| {
        let block = p.child.signature().times(p.count).times(p.reps);
        all = all.then(block);
        Some(())
    });
    all
}

fn basic_of(derived: &Derived) -> Option<Named> {
    let mut found: Option<Named> = None;
    derived.placements(|p| {
        if p.count == 0 || p.reps == 0 || p.child.size() == 0 {
            return Some(());
        }
        let basic = p.child.basic_element()?;
        let first = *found.get_or_insert(basic);
        (first.info().kind == basic.info().kind).then_some(())
    })?;
    found
}

/// Returns the signature of the complete basic elements in the first `left` bytes of one element.
/// Subtracts the size of these basic elements from `left`.
fn signature_of_part(datatype: &Datatype, left: &mut i64) -> Signature {
    let mut all = Signature::default();
    match &datatype.0 {
        Repr::Named(named) => {
            if *left >= named.info().size {
                *left -= named.info().size;
                all = basic(*named);
            } else if let Kind::Pair(value, _) = named.info().kind
                && *left >= value.size()
            {
                *left -= value.size();
                all = number(value);
            }
        }
        Repr::Derived(derived) => {
            derived.placements(|p| {
                let size = p.child.size();
                if size == 0 {
                    return Some(());
                }
                let copies = p.count * p.reps;
                let whole = (*left / size).min(copies);
                all = all.then(p.child.signature().times(whole));
                *left -= whole * size;
                if whole == copies {
                    return Some(());
                }
                all = all.then(signature_of_part(p.child, left));
                None
            });
        }
    }
    all
}

/// Counts the complete basic elements in the first `left` bytes of one element.
/// Subtracts their size from `left`.
fn elements_in_part(datatype: &Datatype, left: &mut i64) -> i64 {
    match &datatype.0 {
        Repr::Named(named) => {
            let (first, second) = named.basics();
            let mut n = 0;
            for size in [Some(first), second].into_iter().flatten() {
                if *left < size {
                    break;
                }
                *left -= size;
                n += 1;
            }
            n
        }
        Repr::Derived(derived) => {
            let mut n = 0;
            derived.placements(|p| {
                let size = p.child.size();
                if size == 0 {
                    return Some(());
                }
                let whole = (*left / size).min(p.count * p.reps);
                n += whole * p.child.signature().elements as i64;
                *left -= whole * size;
                if whole == p.count * p.reps {
                    return Some(());
                }
                n += elements_in_part(p.child, left);
                None
            });
            n
        }
    }
}
