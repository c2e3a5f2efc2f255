//! Decoder of the instructions by which compilers access a 32-bit device register: `mov` from and to memory,
//! and the bitwise operations with a memory operand.
//!
//! Intel SDM volume 2, chapter 2 (prefixes, ModRM, SIB), "MOV", "AND", "OR", "XOR", "TEST".
//! The address is not computed here: the kernel reports it with the fault.

/// The memory access of an instruction, as the handler performs it on a device register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Load the memory word into this general register, numbered as in the encoding.
    Load(u8),
    /// Store this general register into the memory word.
    Store(u8),
    /// Store this number into the memory word.
    StoreNumber(u32),
    /// Combine this general register with the memory word. If the last field is true
    /// the result is stored in the general register, otherwise only the flags change.
    Combine(Bitwise, u8, bool),
}

/// A bitwise operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bitwise {
    And,
    Or,
    Xor,
}

/// The flags that a bitwise operation changes: carry, parity, zero, sign, overflow.
const CHANGED: i64 = 1 << 0 | 1 << 2 | 1 << 6 | 1 << 7 | 1 << 11;

impl Bitwise {
    /// Returns the result of the operation and the new flags register.
    pub fn of(self, a: u32, b: u32, flags: i64) -> (u32, i64) {
        let result = match self {
            Self::And => a & b,
            Self::Or => a | b,
            Self::Xor => a ^ b,
        };
        let parity = i64::from((result as u8).count_ones().is_multiple_of(2));
        let (zero, sign) = (i64::from(result == 0), i64::from(result >> 31));
        (
            result,
            flags & !CHANGED | parity << 2 | zero << 6 | sign << 7,
        )
    }
}

/// The maximum length of an x86 instruction in bytes.
pub const LONGEST: usize = 15;

/// Decodes the memory access at the start of this code; returns the access and the instruction's
/// length, or `None` for any other instruction.
pub fn decode(code: &[u8]) -> Option<(Access, usize)> {
    const WIDE: u8 = 0b1000;
    const REGISTER_ABOVE_7: u8 = 0b0100;
    let (rex, at) = match *code.first()? {
        rex @ 0x40..=0x4f => (rex, 1),
        _ => (0, 0),
    };
    if rex & WIDE != 0 {
        return None;
    }
    let (opcode, modrm) = (*code.get(at)?, *code.get(at + 1)?);
    let (mode, field, base) = (modrm >> 6, modrm >> 3 & 0b111, modrm & 0b111);
    let register = field | if rex & REGISTER_ABOVE_7 != 0 { 8 } else { 0 };
    let (has_sib, mut end) = (base == 0b100, at + 2);
    let base = if has_sib {
        end += 1;
        *code.get(at + 2)? & 0b111
    } else {
        base
    };
    end += match mode {
        // Without a base register the displacement has four bytes.
        0b00 if base == 0b101 => 4,
        0b00 => 0,
        0b01 => 1,
        0b10 => 4,
        // A register operand accesses no memory.
        _ => return None,
    };
    match (opcode, field) {
        (0x8b, _) => Some((Access::Load(register), end)),
        (0x89, _) => Some((Access::Store(register), end)),
        (0x23, _) => Some((Access::Combine(Bitwise::And, register, true), end)),
        (0x0b, _) => Some((Access::Combine(Bitwise::Or, register, true), end)),
        (0x33, _) => Some((Access::Combine(Bitwise::Xor, register, true), end)),
        (0x85, _) => Some((Access::Combine(Bitwise::And, register, false), end)),
        (0xc7, 0) => {
            let number = code.get(end..end + 4)?.try_into().ok()?;
            Some((Access::StoreNumber(u32::from_le_bytes(number)), end + 4))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Access::{Combine, Load, Store, StoreNumber};

    #[test]
    fn accesses_are_understood_with_their_lengths() {
        for (code, expected) in [
            // mov eax, [rdi]; mov [rdi], esi; mov eax, [rdi+0x34]
            (&[0x8b, 0x07][..], (Load(0), 2)),
            (&[0x89, 0x37], (Store(6), 2)),
            (&[0x8b, 0x47, 0x34], (Load(0), 3)),
            // mov ecx, [rdi+rax*4+0x34]; mov [rcx+rdx*4], eax; mov r9d, [r8+0xe4]
            (&[0x8b, 0x4c, 0x87, 0x34], (Load(1), 4)),
            (&[0x89, 0x04, 0x91], (Store(0), 3)),
            (&[0x45, 0x8b, 0x88, 0xe4, 0, 0, 0], (Load(9), 7)),
            // mov [rax*4+0x1c], edx; mov eax, [rip+0]; mov [r13+0], eax; mov [r12], eax
            (&[0x89, 0x14, 0x85, 0x1c, 0, 0, 0], (Store(2), 7)),
            (&[0x8b, 0x05, 0, 0, 0, 0], (Load(0), 6)),
            (&[0x41, 0x89, 0x45, 0], (Store(0), 4)),
            (&[0x41, 0x89, 0x04, 0x24], (Store(0), 4)),
            // and esi, [rax]; test [rdi+4], r8d
            (&[0x23, 0x30], (Combine(Bitwise::And, 6, true), 2)),
            (&[0x44, 0x85, 0x47, 4], (Combine(Bitwise::And, 8, false), 4)),
            // mov dword [rdi+0x1c], 0x20000
            (&[0xc7, 0x47, 0x1c, 0, 0, 2, 0], (StoreNumber(0x20000), 7)),
        ] {
            assert_eq!(decode(code), Some(expected), "{code:02x?}");
            assert_eq!(
                decode(&code[..code.len() - 1]).filter(|&(_, len)| len < code.len()),
                None,
                "{code:02x?} cut short"
            );
        }
    }

    #[test]
    fn bitwise_operations_set_the_flags_as_the_processor_does() {
        const ALL: i64 = -1;
        let flags = |(_, flags)| flags & CHANGED;
        assert_eq!(flags(Bitwise::And.of(1, 2, ALL)), 1 << 6 | 1 << 2);
        assert_eq!(flags(Bitwise::Or.of(1 << 31, 1, ALL)), 1 << 7);
        assert_eq!(flags(Bitwise::Xor.of(0x0103, 0, 0)), 1 << 2);
        assert_eq!(
            Bitwise::Xor.of(5, 6, ALL).1 | CHANGED,
            ALL,
            "the others stay"
        );
    }

    #[test]
    fn what_is_no_access_of_32_bits_is_not_taken_for_one() {
        // mov rax, [rdi]; mov eax, edi; add eax, [rdi]; mov al, [rdi]; c7 /1; nothing
        for code in [
            &[0x48, 0x8b, 0x07][..],
            &[0x8b, 0xc7],
            &[0x03, 0x07],
            &[0x8a, 0x07],
            &[0xc7, 0x4f, 0x1c, 0, 0, 2, 0],
            &[],
        ] {
            assert_eq!(decode(code), None, "{code:02x?}");
        }
    }
}
