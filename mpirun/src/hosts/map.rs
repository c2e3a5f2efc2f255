//! Mapping of ranks to hosts.
//!
//! *By slot* fills a host before the next one; *by node* assigns ranks round robin over the hosts.
//! *`ppr:N:node`* puts N ranks on each host.
//! *Spanning* gives each host the same number of ranks as *by node*, but ranks on a host are
//! consecutive.
//! Ranks are numbered in the order of placement, program by program.
//! With *rank by node* ranks are numbered round robin over the hosts.
//! A rankfile overrides the policy for its ranks.
//! With oversubscription, ranks beyond the slots are placed in further rounds, host by host.

use super::Host;
use std::fmt;

/// The policy of mapping ranks to hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    #[default]
    Slot,
    Node,
    Span,
    PerNode(usize),
}

/// The number of ranks and the usable hosts of one program.
#[derive(Clone, Debug)]
pub struct Wish {
    /// The number of ranks; `None` means the number of slots.
    pub procs: Option<usize>,
    /// The indexes of the hosts that the program may use.
    pub hosts: Vec<usize>,
    /// The host of each rank, if a rankfile specifies the hosts.
    pub fixed: Option<Vec<usize>>,
}

/// How strictly slots limit the number of ranks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// Slots do not limit the number of ranks.
    pub oversubscribe: bool,
    /// Slots limit the number of ranks, also on a single host and also with a default slot count.
    pub strict: bool,
}

/// The reason why ranks cannot be placed.
#[derive(Debug, PartialEq, Eq)]
pub enum MapError {
    NotEnoughSlots {
        ranks: usize,
        slots: usize,
        hosts: String,
    },
    NotEnoughHosts {
        ranks: usize,
        per_node: usize,
        hosts: usize,
    },
}

impl fmt::Display for MapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MapError::NotEnoughSlots {
                ranks,
                slots,
                hosts,
            } => write!(
                f,
                "{ranks} ranks do not fit into the {slots} slots of {hosts}; give more slots, or allow it with --oversubscribe"
            ),
            MapError::NotEnoughHosts {
                ranks,
                per_node,
                hosts,
            } => write!(
                f,
                "{ranks} ranks do not fit with {per_node} on each of {hosts} host{}; name more hosts, or allow it with --oversubscribe",
                if *hosts == 1 { "" } else { "s" }
            ),
        }
    }
}

impl std::error::Error for MapError {}

/// Returns the host index of each rank: one list for each program.
pub fn place(
    wishes: &[Wish],
    hosts: &[Host],
    policy: Policy,
    limits: Limits,
) -> Result<Vec<Vec<usize>>, MapError> {
    let mut free: Vec<usize> = hosts.iter().map(|host| host.slots).collect();
    wishes
        .iter()
        .map(|wish| place_one(wish, hosts, policy, limits, &mut free))
        .collect()
}

fn place_one(
    wish: &Wish,
    hosts: &[Host],
    policy: Policy,
    limits: Limits,
    free: &mut [usize],
) -> Result<Vec<usize>, MapError> {
    if let Some(fixed) = &wish.fixed {
        for &host in fixed {
            free[host] = free[host].saturating_sub(1);
        }
        return Ok(fixed.clone());
    }
    let mine = &wish.hosts;
    let slots: usize = mine.iter().map(|&host| free[host]).sum();
    let ranks = wish.procs.unwrap_or(match policy {
        Policy::PerNode(per_node) => per_node * mine.len(),
        _ => slots.max(1),
    });
    // A default slot count is not a limit.
    // On a single host oversubscription is acceptable, since the kernel shares the cores.
    let counted = hosts.len() > 1 && mine.iter().all(|&host| hosts[host].counted);
    let limited = limits.strict || (counted && !limits.oversubscribe);
    if let Policy::PerNode(per_node) = policy {
        if ranks > per_node * mine.len() && !limits.oversubscribe {
            return Err(MapError::NotEnoughHosts {
                ranks,
                per_node,
                hosts: mine.len(),
            });
        }
        let dealt = mine
            .iter()
            .flat_map(|&host| std::iter::repeat_n(host, per_node.max(1)));
        return Ok(dealt.cycle().take(ranks).collect());
    }
    if ranks > slots && limited {
        return Err(MapError::NotEnoughSlots {
            ranks,
            slots,
            hosts: hosts_as_text(mine, hosts),
        });
    }
    let mut placed = Vec::with_capacity(ranks);
    let deals = matches!(policy, Policy::Node | Policy::Span);
    if deals {
        while placed.len() < ranks {
            let before = placed.len();
            for &host in mine {
                if placed.len() < ranks && free[host] > 0 {
                    free[host] -= 1;
                    placed.push(host);
                }
            }
            if placed.len() == before {
                break;
            }
        }
    } else {
        for &host in mine {
            let here = free[host].min(ranks - placed.len());
            free[host] -= here;
            placed.extend(std::iter::repeat_n(host, here));
        }
    }
    // Places ranks beyond the slots in further rounds, each host in proportion to its slots.
    let again: Vec<usize> = mine
        .iter()
        .flat_map(|&host| {
            let times = if deals { 1 } else { hosts[host].slots.max(1) };
            std::iter::repeat_n(host, times)
        })
        .collect();
    let missing = ranks - placed.len();
    placed.extend(again.into_iter().cycle().take(missing));
    if policy != Policy::Node {
        // Sorts by host, so that consecutive ranks share a host even after further rounds.
        let order = |host: &usize| mine.iter().position(|mine| mine == host);
        placed.sort_by_key(order);
    }
    Ok(placed)
}

/// Numbers the ranks of one program round robin over the hosts.
/// The first rank of each host comes first, then the second rank of each host, and so on.
pub fn rank_by_node(placed: &[usize]) -> Vec<usize> {
    let mut seen = std::collections::HashMap::new();
    let mut keyed: Vec<(usize, usize, usize)> = placed
        .iter()
        .enumerate()
        .map(|(at, &host)| {
            let first = placed.iter().position(|&other| other == host).unwrap_or(at);
            let round = seen.entry(host).or_insert(0usize);
            *round += 1;
            (*round, first, host)
        })
        .collect();
    keyed.sort_unstable();
    keyed.into_iter().map(|(_, _, host)| host).collect()
}

fn hosts_as_text(mine: &[usize], hosts: &[Host]) -> String {
    const SHOWN: usize = 4;
    let shown = |host: &usize| printable::name(&hosts[*host].name).to_string();
    let names: Vec<String> = mine.iter().map(shown).collect();
    match names.len() {
        0..=SHOWN => names.join(", "),
        more => format!(
            "{} and {} more hosts",
            names[..SHOWN].join(", "),
            more - SHOWN
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(slots: &[usize]) -> Vec<Host> {
        (0..)
            .zip(slots)
            .filter_map(|(n, &slots)| Host::named(&format!("h{n}"), Some(slots)))
            .collect()
    }

    fn placed(slots: &[usize], procs: Option<usize>, policy: Policy, over: bool) -> Vec<usize> {
        let limits = Limits {
            oversubscribe: over,
            strict: false,
        };
        let wish = Wish {
            procs,
            hosts: (0..slots.len()).collect(),
            fixed: None,
        };
        place(&[wish], &hosts(slots), policy, limits)
            .unwrap()
            .remove(0)
    }

    #[test]
    fn by_slot_fills_and_by_node_deals() {
        assert_eq!(placed(&[2, 3], Some(4), Policy::Slot, false), [0, 0, 1, 1]);
        assert_eq!(
            placed(&[2, 3], Some(5), Policy::Node, false),
            [0, 1, 0, 1, 1]
        );
        assert_eq!(
            placed(&[9, 9], None, Policy::PerNode(2), false),
            [0, 0, 1, 1]
        );
        assert_eq!(placed(&[2, 1], None, Policy::Slot, false), [0, 0, 1]);
        assert_eq!(
            placed(&[4, 4], Some(5), Policy::Span, false),
            [0, 0, 0, 1, 1]
        );
    }

    #[test]
    fn too_many_ranks_go_round_again_only_where_that_is_allowed() {
        assert_eq!(
            placed(&[1, 2], Some(6), Policy::Slot, true),
            [0, 0, 1, 1, 1, 1]
        );
        let wish = Wish {
            procs: Some(6),
            hosts: vec![0, 1],
            fixed: None,
        };
        let error = place(&[wish], &hosts(&[1, 2]), Policy::Slot, Limits::default()).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("6 ranks do not fit into the 3 slots of h0, h1")
        );
        // A single host accepts any number of ranks.
        assert_eq!(placed(&[2], Some(5), Policy::Slot, false), [0; 5]);
    }

    #[test]
    fn the_second_program_gets_what_the_first_left() {
        let wish = |procs| Wish {
            procs: Some(procs),
            hosts: vec![0, 1],
            fixed: None,
        };
        let placed = place(
            &[wish(1), wish(2)],
            &hosts(&[2, 2]),
            Policy::Slot,
            Limits::default(),
        )
        .unwrap();
        assert_eq!(placed, [vec![0], vec![0, 1]]);
    }

    #[test]
    fn ranking_by_node_deals_numbers() {
        assert_eq!(rank_by_node(&[0, 0, 1, 1, 1]), [0, 1, 0, 1, 1]);
    }
}
