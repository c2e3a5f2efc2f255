//! The name of the host.
#![allow(unsafe_code)]

/// Returns the host name.
pub fn host_name() -> String {
    let mut buffer = [0u8; 256];
    // SAFETY: the buffer is a local variable of this length, and its last byte stays zero.
    let failed = unsafe { libc::gethostname(buffer.as_mut_ptr().cast(), buffer.len() - 1) };
    let name = std::ffi::CStr::from_bytes_until_nul(&buffer);
    match (failed, name) {
        (0, Ok(name)) if !name.is_empty() => mpi_base::text::from_bytes(name.to_bytes()),
        _ => "localhost".to_string(),
    }
}
