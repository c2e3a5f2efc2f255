//! Tests of the guarantees of the software barriers and of the cost models.

use super::*;
use proptest::prelude::*;

fn schedule(name: &str, nodes: usize) -> Schedule {
    let found = ALGORITHMS.iter().find(|a| a.name == name);
    found.expect(name).schedule(nodes).expect("a schedule")
}

/// Returns the time in ns until all nodes have left a barrier that all enter at the same time.
fn together(name: &str, nodes: usize, network: Network) -> u64 {
    let barrier = vec![Time::ZERO; nodes];
    network
        .latencies(&schedule(name, nodes), &[barrier])
        .worst()
        .ns()
}

fn log_p() -> Network {
    Network::LOGGOPSIM.seen_by(Model::LogP)
}

#[test]
fn every_algorithm_ends_for_every_number_of_nodes() {
    for algorithm in ALGORITHMS {
        for nodes in 1..=64 {
            let made = algorithm.schedule(nodes);
            assert!(made.is_ok(), "{} of {nodes}: {made:?}", algorithm.name);
        }
    }
}

#[test]
fn dissemination_takes_a_latency_and_two_overheads_for_each_doubling() {
    for (nodes, rounds) in [(1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (60, 6), (64, 6)] {
        assert_eq!(
            together("dissemination", nodes, log_p()),
            rounds * (2500 + 2 * 1500),
            "{nodes} nodes"
        );
    }
}

#[test]
fn the_butterfly_is_as_fast_for_powers_of_two_and_folds_the_rest_in() {
    assert_eq!(together("butterfly", 64, log_p()), 6 * 5500);
    // The 28 extra nodes add one message before and one after the five rounds of 32 nodes.
    assert_eq!(together("butterfly", 60, log_p()), 7 * 5500);
}

#[test]
fn the_central_counter_costs_two_overheads_for_each_node() {
    // The first message arrives at the root after o + L. The root needs o to receive each message.
    // Then the root sends to each node in turn, and each send needs o.
    // The last of these messages takes L to arrive and o to receive.
    for nodes in [2u64, 10, 60] {
        let expected = 1500 + 2500 + (nodes - 1) * 1500 * 2 + 2500 + 1500;
        assert_eq!(
            together("central counter", nodes as usize, log_p()),
            expected
        );
    }
}

#[test]
fn log_gp_adds_the_bytes_of_each_message() {
    let network = Network::LOGGOPSIM;
    assert_eq!(
        together("dissemination", 60, network),
        6 * (2500 + 2 * 1500 + 63 * 6)
    );
    assert_eq!(
        together("dissemination", 60, network.seen_by(Model::LogP)),
        together(
            "dissemination",
            60,
            Network {
                bytes: 1,
                ..network
            }
        )
    );
}

#[test]
fn the_gap_holds_back_a_sender_with_many_messages() {
    let slow = Network {
        gap: Time::from_ns(10_000),
        ..log_p()
    };
    assert!(together("3-way dissemination", 60, slow) > together("dissemination", 60, slow));
    let fast = Network {
        overhead: Time::from_ns(10),
        gap: Time::from_ns(10),
        ..log_p()
    };
    assert!(together("3-way dissemination", 60, fast) < together("dissemination", 60, fast));
}

proptest! {
    #[test]
    fn no_rank_leaves_before_all_have_entered(
        entries in prop::collection::vec(0..50_000u64, 1..=64),
        late in any::<prop::sample::Index>(),
    ) {
        let mut entries: Vec<_> = entries.into_iter().map(Time::from_ns).collect();
        // The last node enters after all other messages have arrived,
        // so only messages that follow from its entry can delay the other nodes.
        let last = Time::from_ns(10_000_000);
        *late.get_mut(&mut entries) = last;
        for algorithm in ALGORITHMS {
            let schedule = algorithm.schedule(entries.len()).expect("a schedule");
            for time in log_p().leave_times(&schedule, &entries) {
                prop_assert!(time >= last, "{}", algorithm.name);
            }
        }
    }
}
