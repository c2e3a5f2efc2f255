//! The address record that a process publishes: its addresses, its listening port, and the handshake key.
//!
//! ```text
//! version u8 | links u8 | port u16 | machine u64 | key 32 bytes | addresses u8 | address ...
//! address: family u8 (4 or 6) | prefix length u8 | interface u8 | megabit/s u32 | 4 or 16 bytes
//! ```
//!
//! [`AddressRecord::decode`] accepts any input without a panic.

use super::address::Local;
use mpi_base::fdpass::Key;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const VERSION: u8 = 2;

/// Maximum number of addresses in a record; a machine with more addresses publishes only the fastest.
/// A record of this size fits into the values of launchers, which are limited to 900 digits.
pub const ADDRESSES: usize = 16;

/// The bit of `links` that is set if the process uses a link for each common network.
pub const PER_NETWORK: u8 = 0x80;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressRecord {
    /// Number of links of this process. It must be equal in both processes, except with [`PER_NETWORK`].
    pub links: u8,
    pub port: u16,
    /// The machine's ID, equal for processes that can reach each other by the loopback address.
    pub machine: u64,
    pub key: Key,
    pub addresses: Vec<Local>,
}

impl AddressRecord {
    /// Returns the addresses that fit into the record.
    pub fn published(&self) -> &[Local] {
        &self.addresses[..self.addresses.len().min(ADDRESSES)]
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION, self.links];
        out.extend(self.port.to_le_bytes());
        out.extend(self.machine.to_le_bytes());
        out.extend(self.key.bytes());
        let shown = self.published();
        out.push(shown.len() as u8);
        for local in shown {
            let (family, bytes) = match &local.ip {
                IpAddr::V4(ip) => (4, ip.octets().to_vec()),
                IpAddr::V6(ip) => (6, ip.octets().to_vec()),
            };
            out.extend([family, local.prefix, local.interface]);
            out.extend(local.megabits.to_le_bytes());
            out.extend(bytes);
        }
        out
    }

    pub fn decode(bytes: &[u8]) -> Option<AddressRecord> {
        let mut rest = bytes;
        let [version, links] = take(&mut rest)?;
        let port = u16::from_le_bytes(take(&mut rest)?);
        let machine = u64::from_le_bytes(take(&mut rest)?);
        let key = Key::from_bytes(take(&mut rest)?);
        let [count] = take(&mut rest)?;
        let mut addresses = Vec::new();
        for _ in 0..count {
            let [family, prefix, interface] = take(&mut rest)?;
            let megabits = u32::from_le_bytes(take(&mut rest)?);
            let (ip, bits) = match family {
                4 => (Ipv4Addr::from(take::<4>(&mut rest)?).into(), 32),
                6 => (Ipv6Addr::from(take::<16>(&mut rest)?).into(), 128),
                _ => return None,
            };
            if prefix > bits {
                return None;
            }
            addresses.push(Local {
                ip,
                prefix,
                megabits,
                interface,
            });
        }
        let whole = version == VERSION && port != 0 && addresses.len() <= ADDRESSES;
        (whole && rest.is_empty()).then_some(AddressRecord {
            links,
            port,
            machine,
            key,
            addresses,
        })
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (head, tail) = rest.split_first_chunk()?;
    *rest = tail;
    Some(*head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn card() -> AddressRecord {
        let local = |ip: &str, prefix| Local {
            ip: ip.parse().unwrap(),
            prefix,
            megabits: 10_000,
            interface: 3,
        };
        AddressRecord {
            links: 2,
            port: 4711,
            machine: 17,
            key: Key::from_bytes([3; 32]),
            addresses: vec![local("10.0.0.1", 24), local("fd00::1", 64)],
        }
    }

    #[test]
    fn a_card_is_read_as_it_was_written() {
        assert_eq!(AddressRecord::decode(&card().encode()), Some(card()));
    }

    #[test]
    fn a_card_of_many_addresses_shows_as_many_as_are_allowed() {
        let mut many = card();
        many.addresses = vec![many.addresses[1].clone(); 300];
        let read = AddressRecord::decode(&many.encode()).unwrap();
        assert_eq!(read.addresses.len(), ADDRESSES);
    }

    proptest! {
        #[test]
        fn a_damaged_card_is_a_card_or_not(at in 0usize..70, byte: u8, cut in 0usize..80) {
            let mut bytes = card().encode();
            bytes[at] = byte;
            bytes.truncate(bytes.len().saturating_sub(cut));
            if let Some(card) = AddressRecord::decode(&bytes) {
                prop_assert_eq!(card.encode(), bytes);
            }
        }
    }
}
