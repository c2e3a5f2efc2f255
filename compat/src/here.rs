//! A static of this library in one instruction: its address, or a word of it.
//!
//! The compiler takes the address of a static of another package from a table that the loader fills, since that package might be
//! a library of its own. Here all packages are in one library, and each call reads several statics.

/// A reference to a static of this library, of whichever package.
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]
#[macro_export]
macro_rules! here {
    ($place:path) => {{
        // Only the type of this is used.
        let mut place = &raw const $place;
        // SAFETY: the address of the static, which is in the same file as this instruction and lives as long.
        unsafe {
            ::std::arch::asm!(
                "lea {place}, [rip + {symbol}]",
                place = out(reg) place,
                symbol = sym $place,
                options(pure, nomem, nostack, preserves_flags)
            );
            &*place
        }
    }};
}

/// A reference to a static of this library, of whichever package.
#[cfg(not(all(target_os = "linux", target_arch = "x86_64", not(miri))))]
#[macro_export]
macro_rules! here {
    ($place:path) => {
        &$place
    };
}

/// A word of a static array of atomic addresses, as by a relaxed load.
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]
#[macro_export]
macro_rules! load_here {
    ($place:path, $index:expr) => {{
        const { assert!($index < $place.len()) };
        let mut word: *mut ::std::ffi::c_void;
        // SAFETY: an aligned load of an element of the static, which is in the same file as this instruction.
        unsafe {
            ::std::arch::asm!(
                "mov {word}, qword ptr [rip + {symbol} + {offset}]",
                word = out(reg) word,
                symbol = sym $place,
                offset = const $index * size_of::<*mut ::std::ffi::c_void>(),
                options(pure, readonly, nostack, preserves_flags)
            );
        }
        word
    }};
}

/// A word of a static array of atomic addresses, as by a relaxed load.
#[cfg(not(all(target_os = "linux", target_arch = "x86_64", not(miri))))]
#[macro_export]
macro_rules! load_here {
    ($place:path, $index:expr) => {
        $place[$index].load(::std::sync::atomic::Ordering::Relaxed)
    };
}
