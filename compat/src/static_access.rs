//! Macros that read a static of this library, or get its address, in one instruction.
//!
//! For a static of another package, the compiler loads the address from the global offset table,
//! since that package might be in another library. Here all packages are in one library.
//! An MPI call reads several statics, so it executes several instructions less.

/// Returns a reference to a static of any package in this library.
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]
#[macro_export]
macro_rules! static_ref {
    ($place:path) => {{
        // This assignment only defines the variable's type. The instruction sets the value.
        let mut place = &raw const $place;
        // SAFETY: the symbol is a static in the same file as this instruction.
        // So the relative address is valid as long as the code.
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

/// Returns a reference to a static of any package in this library.
#[cfg(not(all(target_os = "linux", target_arch = "x86_64", not(miri))))]
#[macro_export]
macro_rules! static_ref {
    ($place:path) => {
        &$place
    };
}

/// Loads one element of a static array of atomic pointers, with relaxed ordering.
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]
#[macro_export]
macro_rules! load_static {
    ($place:path, $index:expr) => {{
        const { assert!($index < $place.len()) };
        let mut word: *mut ::std::ffi::c_void;
        // SAFETY: the index is in range, by the assertion above.
        // An aligned load of one word is atomic.
        // The static is in the same file as this instruction.
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

/// Loads one element of a static array of atomic pointers, with relaxed ordering.
#[cfg(not(all(target_os = "linux", target_arch = "x86_64", not(miri))))]
#[macro_export]
macro_rules! load_static {
    ($place:path, $index:expr) => {
        $place[$index].load(::std::sync::atomic::Ordering::Relaxed)
    };
}
