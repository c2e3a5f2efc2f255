//! Addresses of this machine, and the order in which the addresses of a peer are tried.
//!
//! The interfaces that are up are listed with their address, network and speed. `btl_tcp_if_include` and `btl_tcp_if_exclude` contain
//! interfaces (`eth0`), networks (`10.1.0.0/16`, `fd00::/8`) or families (`ipv4`, `ipv6`) that are used exclusively or excluded.
//! Reachability is tested by connecting and not by comparing addresses ([`super::rendezvous_points`]).
//! The order only determines which address is tried first:
//! loopback addresses on the same machine, then addresses in a common network, then all others, each group by speed.
//!
//! Two machines have a network in common if each has an address in it ([`in_common`]). Both machines compute the same list of common networks from their records.

use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// An address of a machine, its prefix length, and the number and speed of its interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Local {
    pub ip: IpAddr,
    pub prefix: u8,
    pub megabits: u32,
    /// The number of the address's interface on this machine; [`NO_CABLE`] if the interface has no cable to another machine.
    pub interface: u8,
}

/// The number of all interfaces without a cable to another machine: loopback, and interfaces without a carrier.
pub const NO_CABLE: u8 = u8::MAX;

impl Local {
    /// Returns the network in the user's notation, such as `10.1.0.0/16`.
    pub fn network(&self) -> String {
        format!("{}/{}", masked(self.ip, self.prefix), self.prefix)
    }
}

/// Assumed speed in Mbit/s of an interface that does not report its speed.
const UNKNOWN_SPEED: u32 = 1_000;
/// Speed in Mbit/s of loopback; higher than any speed that network interfaces report, because loopback is a copy in memory.
const LOOPBACK_SPEED: u32 = 100_000;

/// A pattern in the user's notation: the name of an interface, a network or a family.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Pattern {
    Name(String),
    Network(IpAddr, u8),
    Ipv4,
    Ipv6,
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
            (None, Err(_)) => match text {
                "ipv4" => Pattern::Ipv4,
                "ipv6" => Pattern::Ipv6,
                name => Pattern::Name(name.to_string()),
            },
        }
    }

    fn covers(&self, name: &str, ip: IpAddr) -> bool {
        match self {
            Pattern::Name(pattern) => pattern == name,
            Pattern::Network(network, prefix) => same_network(*network, ip, *prefix),
            Pattern::Ipv4 => ip.is_ipv4(),
            Pattern::Ipv6 => ip.is_ipv6(),
        }
    }
}

/// The filter of addresses that may be published and used.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    include: Vec<Pattern>,
    exclude: Vec<Pattern>,
}

impl Filter {
    /// Parses the two comma-separated lists `btl_tcp_if_include` and `btl_tcp_if_exclude`.
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

/// Returns the addresses that the filter permits, including loopback, in descending order of speed.
pub fn of_this_machine(filter: &Filter) -> std::io::Result<Vec<Local>> {
    let mut names: Vec<String> = Vec::new();
    let mut locals: Vec<Local> = getifaddrs()?
        .filter(|interface| interface.flags.contains(InterfaceFlags::IFF_UP))
        .filter_map(|interface| {
            let ip = ip(&interface.address?)?;
            // A link-local address is unusable without the index of the interface, which a peer does not know.
            let usable = match ip {
                IpAddr::V4(ip) => !ip.is_link_local(),
                IpAddr::V6(ip) => !ip.is_unicast_link_local(),
            };
            let name = &interface.interface_name;
            let leads_on = interface.flags.contains(InterfaceFlags::IFF_RUNNING);
            (usable && filter.allows(name, ip)).then(|| Local {
                interface: match leads_on && !ip.is_loopback() {
                    true => number(&mut names, name),
                    false => NO_CABLE,
                },
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
    // The sort is stable, so addresses with equal speeds keep the order of the system.
    locals.sort_by_key(|local| std::cmp::Reverse(local.megabits));
    Ok(locals)
}

/// Returns the number of an interface. If the number would exceed the maximum, returns [`NO_CABLE`], so the interface does not count as a separate network.
fn number(names: &mut Vec<String>, name: &str) -> u8 {
    let at = names.iter().position(|known| known == name);
    let at = at.unwrap_or_else(|| {
        names.push(name.to_owned());
        names.len() - 1
    });
    u8::try_from(at).unwrap_or(NO_CABLE)
}

/// Returns the number of interfaces with a cable to other machines.
pub fn interfaces(locals: &[Local]) -> usize {
    let mut numbers: Vec<u8> = locals.iter().map(|local| local.interface).collect();
    numbers.retain(|number| *number != NO_CABLE);
    numbers.sort_unstable();
    numbers.dedup();
    numbers.len()
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

/// Returns the speed that the driver reports in Mbit/s. For virtual interfaces, which report nothing or a negative number, returns [`UNKNOWN_SPEED`].
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

/// Returns the address with its host bits cleared.
fn masked(ip: IpAddr, prefix: u8) -> IpAddr {
    let prefix = u32::from(prefix);
    match ip {
        IpAddr::V4(ip) => {
            let mask = u32::MAX.checked_shl(32 - prefix.min(32)).unwrap_or(0);
            IpAddr::V4((ip.to_bits() & mask).into())
        }
        IpAddr::V6(ip) => {
            let mask = u128::MAX.checked_shl(128 - prefix.min(128)).unwrap_or(0);
            IpAddr::V6((ip.to_bits() & mask).into())
        }
    }
}

/// Returns the common networks of two machines in descending order of speed, each as this machine's and the other machine's address in the network.
///
/// Each interface of either machine occurs in at most one of the networks, so two networks never use the same cable.
/// Both machines compute the same networks in the same order.
pub fn in_common<'a>(ours: &'a [Local], theirs: &'a [Local]) -> Vec<(&'a Local, &'a Local)> {
    let has_cable = |local: &&Local| local.interface != NO_CABLE;
    // An address that both machines have belongs to a bridge that has the same address on every machine, so it connects no machines.
    let is_shared = |our: &&Local| theirs.iter().any(|their| their.ip == our.ip);
    let mut pairs: Vec<(&Local, &Local)> = Vec::new();
    for our in ours.iter().filter(has_cable).filter(|our| !is_shared(our)) {
        let in_it = |their: &&Local| {
            let is_bridge = ours.iter().any(|our| our.ip == their.ip);
            !is_bridge && same_network(our.ip, their.ip, our.prefix.min(their.prefix))
        };
        let mates = theirs.iter().filter(has_cable).filter(in_it);
        pairs.extend(mates.map(|their| (our, their)));
    }
    let network = |(our, their): &(&Local, &Local)| masked(our.ip, our.prefix.min(their.prefix));
    pairs.sort_by_key(|pair| {
        let (our, their) = *pair;
        let speed = our.megabits.min(their.megabits);
        let (low, high) = (our.ip.min(their.ip), our.ip.max(their.ip));
        (std::cmp::Reverse(speed), network(pair), low, high)
    });
    let mut chosen: Vec<(&Local, &Local)> = Vec::new();
    for pair in pairs {
        let overlaps = |other: &(&Local, &Local)| {
            other.0.interface == pair.0.interface
                || other.1.interface == pair.1.interface
                || network(other) == network(&pair)
        };
        if !chosen.iter().any(overlaps) {
            chosen.push(pair);
        }
    }
    chosen
}

/// An address of a peer to which to connect, and the assumed speed of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub to: SocketAddr,
    pub megabits: u32,
}

/// Moves the peer's address in the common network `common` to the front of its candidates.
pub fn preferring(common: Option<&Local>, candidates: Vec<Candidate>) -> Vec<Candidate> {
    let is_best = |candidate: &Candidate| common.is_some_and(|best| candidate.to.ip() == best.ip);
    let (mut best, rest): (Vec<_>, Vec<_>) = candidates.into_iter().partition(is_best);
    best.extend(rest);
    best
}

/// Returns a peer's addresses in the order in which to try them, for the link with the number `link`.
///
/// Different links begin with different common networks, so the links are spread over the machine's interfaces.
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
        // On another machine, an address that this machine has, too, belongs to a bridge with the same address on every machine. A connection to it would lead to this machine itself.
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
    // An IPv4 loopback address is tried first, because it costs a few instructions less than IPv6.
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
            interface: NO_CABLE,
        }
    }

    fn on(interface: u8, text: &str, megabits: u32) -> Local {
        Local {
            interface,
            ..local(text, megabits)
        }
    }

    #[test]
    fn both_ends_find_the_same_networks_and_no_cable_twice() {
        let ours = [
            on(0, "10.0.1.1/24", 1000),
            on(0, "fd01::1/64", 1000),
            on(1, "10.0.0.1/24", 1000),
            on(2, "172.17.0.1/16", 1000),
            on(3, "10.0.9.1/24", 25_000),
            on(4, "10.0.3.1/24", 1000),
        ];
        let theirs = [
            on(0, "10.0.0.2/24", 1000),
            on(0, "10.0.3.2/24", 1000),
            on(1, "fd01::2/64", 1000),
            on(1, "10.0.1.2/24", 1000),
            on(2, "172.17.0.1/16", 1000),
            on(7, "10.0.9.2/24", 100_000),
        ];
        let networks = |ours, theirs| {
            let all = in_common(ours, theirs).into_iter();
            all.map(|(our, _)| our.network()).collect::<Vec<_>>()
        };
        let expected = ["10.0.9.0/24", "10.0.0.0/24", "10.0.1.0/24"];
        assert_eq!(networks(&ours, &theirs), expected);
        assert_eq!(networks(&theirs, &ours), expected);
        assert_eq!(interfaces(&ours), 5);
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
        let no_ipv4 = of_this_machine(&Filter::new("", "ipv4")).unwrap();
        assert!(no_ipv4.iter().all(|local| local.ip.is_ipv6()));
        let ipv4 = of_this_machine(&Filter::new("ipv4", "")).unwrap();
        assert!(!ipv4.is_empty() && ipv4.iter().all(|local| local.ip.is_ipv4()));
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
