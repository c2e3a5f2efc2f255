//! The address of a served board: `sim:tcp://host:port`.

use std::fmt;
use std::str::FromStr;

/// The prefix of a served board's address.
pub const SCHEME: &str = "sim:tcp://";

/// A host (name or IP address) and a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    host: String,
    port: u16,
}

/// The error for a text that is not an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressError {
    text: String,
}

impl Address {
    /// Returns host and port for name resolution: an IPv6 address without its brackets.
    pub(super) fn parts(&self) -> (&str, u16) {
        (&self.host, self.port)
    }
}

impl From<std::net::SocketAddr> for Address {
    fn from(at: std::net::SocketAddr) -> Self {
        Self {
            host: at.ip().to_string(),
            port: at.port(),
        }
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let parse = || {
            let (host, port) = text.strip_prefix(SCHEME)?.rsplit_once(':')?;
            let bare = match host.strip_prefix('[') {
                Some(rest) => rest.strip_suffix(']')?,
                // Without brackets the last group of an IPv6 address would be parsed as the port.
                None if host.contains(':') => return None,
                None => host,
            };
            let port = port.parse().ok().filter(|port| *port != 0)?;
            (!bare.is_empty()).then(|| Self {
                host: bare.to_owned(),
                port,
            })
        };
        parse().ok_or_else(|| AddressError {
            text: text.to_owned(),
        })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        match host.contains(':') {
            true => write!(f, "{SCHEME}[{host}]:{port}"),
            false => write!(f, "{SCHEME}{host}:{port}"),
        }
    }
}

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "\"{}\" is no address of a served board: write {SCHEME}HOST:PORT, and an IPv6 address in brackets",
            self.text
        )
    }
}

impl std::error::Error for AddressError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_survives_its_text() {
        for text in [
            "sim:tcp://localhost:25175",
            "sim:tcp://10.0.0.1:1",
            "sim:tcp://[fe80::1]:65535",
        ] {
            let address: Address = text.parse().expect("an address");
            assert_eq!(address.to_string(), text);
        }
    }

    #[test]
    fn what_is_no_address_is_refused_with_its_text() {
        for text in [
            "",
            "sim",
            "tcp://h:1",
            "sim:tcp://",
            "sim:tcp://h",
            "sim:tcp://h:",
            "sim:tcp://h:0",
            "sim:tcp://h:65536",
            "sim:tcp://:1",
            "sim:tcp://::1:80",
            "sim:tcp://[::1:80",
        ] {
            let refused = text.parse::<Address>().expect_err(text).to_string();
            assert!(refused.starts_with(&format!("\"{text}\" is no address")));
        }
    }
}
