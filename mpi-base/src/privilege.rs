//! Detection of programs with more rights than their user, such as set-user-ID programs.
#![allow(unsafe_code)]

/// Returns true if the kernel started this program with more rights than its user has,
/// by set-user-ID, set-group-ID or file capabilities (getauxval(3), `AT_SECURE`).
///
/// In such a program, input that the user controls (environment,
/// home directory) must not select code or files.
pub fn is_raised() -> bool {
    // SAFETY: the call reads the auxiliary vector that the kernel passed at start, and has no other effect.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}
