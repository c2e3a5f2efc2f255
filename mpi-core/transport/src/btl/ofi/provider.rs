//! Choice of one of the providers that libfabric offers.

/// Providers that are used only if the user names them:
/// they support only one host, are deprecated or slow,
/// or use interfaces that other providers need.
const ONLY_NAMED: [&str; 7] = ["shm", "sm2", "sockets", "udp", "psm3", "lnx", "usnic"];
/// Providers over plain Ethernet, in descending order of preference. All other providers are preferred to these.
const ETHERNET: [&str; 3] = ["tcp;ofi_rxm", "tcp", "net"];

/// Returns the index of the best provider in `offered`. `wanted` is empty, a provider's name, or the first layers of a layered name.
pub fn choose(offered: &[String], wanted: &str) -> Option<usize> {
    let all = || offered.iter().enumerate();
    if !wanted.is_empty() {
        let exact = all().find(|(_, name)| *name == wanted);
        let layered = || all().find(|(_, name)| is_layer_of(name, wanted));
        return exact.or_else(layered).map(|(index, _)| index);
    }
    let rank = |name: &str| {
        let ethernet = ETHERNET.iter().position(|known| *known == name);
        ethernet.map_or(0, |position| position + 1)
    };
    all()
        .filter(|(_, name)| !ONLY_NAMED.iter().any(|only| is_layer_of(name, only)))
        .min_by_key(|(_, name)| rank(name))
        .map(|(index, _)| index)
}

/// Returns true if `name` equals `first`, or consists of `first` and further layers after a semicolon.
fn is_layer_of(name: &str, first: &str) -> bool {
    let rest = name.strip_prefix(first);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(';'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(offered: &[&str], wanted: &str) -> Option<String> {
        let offered: Vec<String> = offered.iter().map(|&name| name.into()).collect();
        choose(&offered, wanted).map(|index| offered[index].clone())
    }

    #[test]
    fn hardware_comes_first_and_what_serves_one_host_only_if_it_is_named() {
        let debian = ["shm", "net", "tcp;ofi_rxm", "udp;ofi_rxd", "sockets"];
        assert_eq!(chosen(&debian, "").as_deref(), Some("tcp;ofi_rxm"));
        assert_eq!(chosen(&["psm3", "tcp", "efa"], "").as_deref(), Some("efa"));
        assert_eq!(chosen(&["shm", "sockets", "udp;ofi_rxd"], ""), None);
        assert_eq!(chosen(&debian, "shm").as_deref(), Some("shm"));
        assert_eq!(chosen(&debian, "tcp").as_deref(), Some("tcp;ofi_rxm"));
        assert_eq!(
            chosen(&["tcp;ofi_rxm", "tcp"], "tcp").as_deref(),
            Some("tcp")
        );
        assert_eq!(chosen(&debian, "ud"), None);
    }
}
