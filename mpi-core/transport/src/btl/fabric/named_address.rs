//! The address that a port publishes, with the name of its dialect: the properties of the library that must be the same at both ends of a connection.
//!
//! ```text
//! length of the name u8 | name | the library's address
//! ```
//!
//! [`split`] accepts any input without a panic.

/// Returns the bytes to publish. A longer name than 255 bytes is cut.
pub fn join(name: &str, address: &[u8]) -> Vec<u8> {
    let len = name.len().min(usize::from(u8::MAX));
    let mut all = vec![len as u8];
    all.extend_from_slice(&name.as_bytes()[..len]);
    all.extend_from_slice(address);
    all
}

/// Splits published bytes into the name and the library's address.
pub fn split(published: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = published.split_first()?;
    rest.split_at_checked(usize::from(*len))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_bytes_are_split_as_they_were_joined_or_not_at_all() {
        let published = join("UCX 1.13", b"here");
        assert_eq!(split(&published), Some((&b"UCX 1.13"[..], &b"here"[..])));
        assert_eq!((split(&[]), split(&[3, 1, 2])), (None, None));
        let (long, cut) = ("x".repeat(300), [b'x'; 255]);
        assert_eq!(split(&join(&long, b"a")), Some((&cut[..], &b"a"[..])));
    }
}
