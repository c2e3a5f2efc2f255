//! Whether the process has more rights than its user.

/// Whether the kernel started this program with more rights than its user has (set-user-ID, set-group-ID, file capabilities; getauxval(3), `AT_SECURE`).
///
/// What the user controls, such as the environment and the home directory, must then choose no code and no file.
pub fn is_raised() -> bool {
    // SAFETY: the call reads what the kernel told this process at its start, and has no other effect.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}
