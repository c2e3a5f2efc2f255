//! Addresses of this machine, and the order in which a peer's addresses are tried.
//!
//! Interfaces that are up are listed with their address, network and speed; `btl_tcp_if_include` and `btl_tcp_if_exclude` name
//! interfaces (`eth0`) or networks (`10.1.0.0/16`, `fd00::/8`) to use exclusively or to leave out.
//! Reachability is never derived from an address, it is tried ([`super::rendezvous_points`]). The order only decides which address is tried first:
//! the loopback address on the same machine, then networks of both ends, then the rest, each by speed.

use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// An address of a machine, its prefix length, and the speed of its interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Local {
    pub ip: IpAddr,
    pub prefix: u8,
    pub megabits: u32,
}

/// Assumed speed of an interface that does not report one.
const UNKNOWN_SPEED: u32 = 1_000;
/// Higher than any speed that network interfaces report, since loopback is a copy in memory.
const LOOPBACK_SPEED: u32 = 100_000;

/// An interface name or a network, as the user writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Pattern {
    Name(String),
    Network(IpAddr, u8),
}

impl Pattern {
    fn parse(text: &str) -> Pattern {
        let network = text.split_once('/').and_then(|(ip, prefix)| {
            let ip: IpAddr = ip.parse().ok()?;
            let prefix: u8 = prefix.parse().ok()?;
            Some(Pattern::Network(ip, prefix))
        });
        match (network, text.parse()) {
            (Some(network), _) => network,
            (None, Ok(ip)) => Pattern::Network(ip, 128),
            (None, Err(_)) => Pattern::Name(text.to_string()),
        }
    }

    fn covers(&self, name: &str, ip: IpAddr) -> bool {
        match self {
            Pattern::Name(pattern) => pattern == name,
            Pattern::Network(network, prefix) => same_network(*network, ip, *prefix),
        }
    }
}

/// Which addresses may be published and used.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    include: Vec<Pattern>,
    exclude: Vec<Pattern>,
}

impl Filter {
    /// Parses both comma-separated lists.
    pub fn new(include: &str, exclude: &str) -> Filter {
        let list = |text: &str| {
            text.split(',')
                .map(str::trim)
                .filter(|word| !word.is_empty())
                .map(Pattern::parse)
                .collect()
        };
        Filter {
            include: list(include),
            exclude: list(exclude),
        }
    }

    /// Returns true if the filter excludes nothing.
    pub fn is_open(&self) -> bool {
        self.include.is_empty() && self.exclude.is_empty()
    }

    fn allows(&self, name: &str, ip: IpAddr) -> bool {
        (self.include.is_empty() || self.include.iter().any(|p| p.covers(name, ip)))
            && !self.exclude.iter().any(|p| p.covers(name, ip))
    }
}

/// Returns the addresses that the filter allows, loopback included, faster ones first.
pub fn of_this_machine(filter: &Filter) -> std::io::Result<Vec<Local>> {
    let mut locals: Vec<Local> = getifaddrs()?
        .filter(|interface| interface.flags.contains(InterfaceFlags::IFF_UP))
        .filter_map(|interface| {
            let ip = ip(&interface.address?)?;
            // A link-local address is unusable without the interface index, which the peer does not know.
            let usable = match ip {
                IpAddr::V4(ip) => !ip.is_link_local(),
                IpAddr::V6(ip) => !ip.is_unicast_link_local(),
            };
            let name = &interface.interface_name;
            (usable && filter.allows(name, ip)).then(|| Local {
                ip,
                prefix: interface
                    .netmask
                    .as_ref()
                    .and_then(self::ip)
                    .map_or(0, ones),
                megabits: if ip.is_loopback() {
                    LOOPBACK_SPEED
                } else {
                    speed(name)
                },
            })
        })
        .collect();
    // The sort is stable, so the system's order decides between equal speeds.
    locals.sort_by_key(|local| std::cmp::Reverse(local.megabits));
    Ok(locals)
}

fn ip(address: &nix::sys::socket::SockaddrStorage) -> Option<IpAddr> {
    match (address.as_sockaddr_in(), address.as_sockaddr_in6()) {
        (Some(v4), _) => Some(v4.ip().into()),
        (_, Some(v6)) => Some(v6.ip().into()),
        _ => None,
    }
}

fn ones(mask: IpAddr) -> u8 {
    (match mask {
        IpAddr::V4(mask) => mask.to_bits().leading_ones(),
        IpAddr::V6(mask) => mask.to_bits().leading_ones(),
    }) as u8
}

/// The speed that the driver reports in Mbit/s; virtual interfaces report nothing or a negative number.
fn speed(interface: &str) -> u32 {
    std::fs::read_to_string(format!("/sys/class/net/{interface}/speed"))
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .filter(|&speed| speed > 0)
        .unwrap_or(UNKNOWN_SPEED)
}

fn same_network(a: IpAddr, b: IpAddr, prefix: u8) -> bool {
    let differing = match (a, b) {
        (IpAddr::V4(a), IpAddr::V4(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros(),
        (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros(),
        _ => return false,
    };
    let bits = if a.is_ipv4() { 32 } else { 128 };
    differing >= u32::from(prefix).min(bits)
}

/// An address of a peer to try, and the assumed speed of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub to: SocketAddr,
    pub megabits: u32,
}

/// Returns a peer's addresses in the order in which to try them, for link number `link` of several.
///
/// Different links start with different common networks, so that they spread over the machine's interfaces.
pub fn candidates(
    ours: &[Local],
    theirs: &[Local],
    same_machine: bool,
    port: u16,
    link: usize,
) -> Vec<Candidate> {
    let (mut loopback, mut shared, mut rest) = (Vec::new(), Vec::new(), Vec::new());
    for their in theirs {
        let candidate = |megabits: u32| Candidate {
            to: SocketAddr::new(their.ip, port),
            megabits: megabits.min(their.megabits),
        };
        if their.ip.is_loopback() {
            if same_machine {
                loopback.push(candidate(u32::MAX));
            }
            continue;
        }
        // On another machine, an address equal to one of this machine is a bridge with the same number everywhere; it would lead back to this machine.
        if !same_machine && ours.iter().any(|our| our.ip == their.ip) {
            continue;
        }
        match ours
            .iter()
            .find(|our| same_network(our.ip, their.ip, our.prefix.min(their.prefix)))
        {
            Some(our) => shared.push(candidate(our.megabits)),
            None => rest.push(candidate(UNKNOWN_SPEED)),
        }
    }
    // An IPv4 loopback address is tried first, as it costs a few instructions less.
    loopback.sort_by_key(|c: &Candidate| c.to.ip() != IpAddr::V4(Ipv4Addr::LOCALHOST));
    shared.sort_by_key(|c| std::cmp::Reverse(c.megabits));
    if !shared.is_empty() {
        let by = link % shared.len();
        shared.rotate_left(by);
    }
    loopback.append(&mut shared);
    loopback.append(&mut rest);
    loopback
}

#[cfg(test)]
mod tests {
    use super::*;

    fn local(text: &str, megabits: u32) -> Local {
        let (ip, prefix) = text.split_once('/').unwrap();
        Local {
            ip: ip.parse().unwrap(),
            prefix: prefix.parse().unwrap(),
            megabits,
        }
    }

    fn order(ours: &[Local], theirs: &[Local], same_machine: bool, link: usize) -> Vec<String> {
        candidates(ours, theirs, same_machine, 1, link)
            .iter()
            .map(|c| c.to.ip().to_string())
            .collect()
    }

    #[test]
    fn this_machine_has_a_loopback_address() {
        let all = of_this_machine(&Filter::default()).unwrap();
        assert!(all.iter().any(|local| local.ip.is_loopback()));
        let none = of_this_machine(&Filter::new("no-such-interface", "")).unwrap();
        assert_eq!(none, []);
        let without = of_this_machine(&Filter::new("", "lo")).unwrap();
        assert!(without.iter().all(|local| !local.ip.is_loopback()));
        let network = of_this_machine(&Filter::new("127.0.0.0/8", "")).unwrap();
        assert!(!network.is_empty());
        assert!(network.iter().all(|local| local.ip.is_loopback()));
    }

    #[test]
    fn processes_of_one_machine_begin_with_loopback() {
        let ours = [local("10.0.0.1/24", 1000), local("127.0.0.1/8", 100)];
        assert_eq!(order(&ours, &ours, true, 0), ["127.0.0.1", "10.0.0.1"]);
    }

    #[test]
    fn loopback_and_bridges_that_every_machine_has_are_not_ways_to_another_machine() {
        let ours = [
            local("127.0.0.1/8", 100_000),
            local("172.17.0.1/16", 10_000),
            local("10.0.0.1/24", 1000),
        ];
        let theirs = [
            local("127.0.0.1/8", 100_000),
            local("172.17.0.1/16", 10_000),
            local("10.0.0.2/24", 1000),
        ];
        assert_eq!(order(&ours, &theirs, false, 0), ["10.0.0.2"]);
    }

    #[test]
    fn networks_of_both_ends_come_first_and_links_share_them() {
        let ours = [local("10.0.0.1/24", 1000), local("10.0.1.1/24", 10_000)];
        let theirs = [
            local("192.168.5.2/24", 100_000),
            local("10.0.0.2/24", 1000),
            local("10.0.1.2/24", 10_000),
        ];
        let first = order(&ours, &theirs, false, 0);
        assert_eq!(first, ["10.0.1.2", "10.0.0.2", "192.168.5.2"]);
        let second = order(&ours, &theirs, false, 1);
        assert_eq!(second, ["10.0.0.2", "10.0.1.2", "192.168.5.2"]);
    }
}
