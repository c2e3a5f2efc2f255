//! Tests of the guarantees of a virtual run.

use super::*;
use barrier_board::event::What;
use proptest::prelude::*;

fn outcome(parameters: &Parameters) -> Outcome {
    run(parameters, true).expect("legal parameters")
}

#[test]
fn every_barrier_is_one_release_for_2_7_and_60_nodes() {
    for nodes in [1, 2, 7, 60, 64] {
        for arrivals in ["together", "uniform:10us", "exponential:3us"] {
            let Outcome { summary, .. } = outcome(&Parameters {
                arrivals: arrivals.parse().expect("a distribution"),
                ..Parameters::new(nodes, 30)
            });
            assert_eq!(summary.releases, 30, "{nodes} nodes, {arrivals}");
            assert_eq!(summary.every_node.count(), 30 * nodes);
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_seed_another() {
    let parameters = Parameters::new(7, 20);
    let first = outcome(&parameters);
    assert_eq!(first.record, outcome(&parameters).record);
    assert_ne!(
        first.record,
        outcome(&Parameters {
            seed: 2,
            ..parameters
        })
        .record
    );
}

#[test]
fn the_phases_add_up_to_the_latency_of_the_last_arriver() {
    // The run has one barrier, so the distribution of each phase has exactly one sample.
    for seed in 0..20 {
        let Outcome { summary, .. } = outcome(&Parameters {
            seed,
            ..Parameters::new(5, 1)
        });
        let sum = summary
            .phases
            .iter()
            .fold(Time::ZERO, |sum, phase| sum + phase.worst());
        assert_eq!(sum, summary.last_arriver.worst());
    }
}

#[test]
fn the_machine_takes_two_to_three_periods_at_any_clock() {
    for clock_hz in [1_000_000, fpga_model::CLOCK_HZ, 100_000_000] {
        let Outcome { summary, .. } = outcome(&Parameters {
            clock_hz,
            ..Parameters::new(7, 200)
        });
        let period = Time::from_ps(1_000_000_000_000 / clock_hz);
        let rounding = Time::from_ps(2);
        // The synchroniser phase takes one clock period plus the wait for the first edge (up to one
        // period); the state machine takes one more period.
        let [synchroniser, machine] = [4, 5].map(|phase| &summary.phases[phase]);
        assert!(
            synchroniser.percentile(0.0) + rounding >= period,
            "{clock_hz} Hz"
        );
        assert!(
            synchroniser.worst() <= period + period + rounding,
            "{clock_hz} Hz"
        );
        for percent in [0.0, 100.0] {
            let machine = machine.percentile(percent);
            assert!(machine + rounding >= period && machine <= period + rounding);
        }
    }
}

#[test]
fn the_last_arriver_needs_one_write_and_one_read() {
    // The machine and 3 m of cable react before the end of the read that follows the write.
    // So the last arriver needs two port accesses of 1.2 us each.
    // For TTL_PAPERS, the parallel-port barrier of Purdue University,
    // 2.5 us were measured for the same two accesses.
    let Outcome { summary, .. } = outcome(&Parameters::new(60, 500));
    assert_eq!(summary.last_arriver.percentile(0.0), Time::from_ns(2400));
    assert_eq!(summary.last_arriver.worst(), Time::from_ns(2400));
}

#[test]
fn a_run_that_cannot_be_says_why() {
    let refused = |parameters: Parameters| run(&parameters, false).err().map(|e| e.to_string());
    let base = || Parameters::new(2, 1);
    assert_eq!(
        refused(Parameters::new(65, 1)).as_deref(),
        Some("a barrier of 65 nodes cannot be built: it has 1 to 64 wire pairs")
    );
    assert_eq!(
        refused(Parameters {
            port_read: Time::ZERO,
            ..base()
        })
        .as_deref(),
        Some("a port read must take some time, or a node would poll without end in one instant")
    );
    assert_eq!(
        refused(Parameters {
            clock_hz: 0,
            ..base()
        })
        .as_deref(),
        Some("the machine needs a clock of at least 1 Hz")
    );
    assert_eq!(
        refused(Parameters {
            port_write: Time::from_ps(u64::MAX),
            ..base()
        })
        .as_deref(),
        Some("the run exceeds 213 days of virtual time, after 0 barriers")
    );
}

fn waveform(nodes: usize, barriers: usize, arrivals: &str) -> String {
    let parameters = Parameters {
        arrivals: arrivals.parse().expect("a distribution"),
        ..Parameters::new(nodes, barriers)
    };
    let mut out = Vec::new();
    barrier_waveform::vcd::write(&mut out, &outcome(&parameters).record)
        .expect("memory takes everything");
    String::from_utf8(out).expect("ASCII")
}

#[test]
fn golden_waveforms() {
    insta::assert_snapshot!("normal", waveform(3, 2, "uniform:4us"));
    insta::assert_snapshot!("late_node", waveform(3, 2, "one-late:20us"));
}

proptest! {
    #[test]
    fn no_rank_leaves_before_all_have_entered(
        nodes in 1..=12usize,
        barriers in 1..20usize,
        spread in 0..20_000u64,
        port in 1..3000u64,
        cable in 0..500u64,
        seed in any::<u64>(),
    ) {
        let time = Time::from_ns;
        let parameters = Parameters {
            arrivals: Arrivals::Uniform(time(spread)),
            port_write: time(port),
            port_read: time(port),
            cable: time(cable),
            seed,
            ..Parameters::new(nodes, barriers)
        };
        let (mut entered, mut left) = (vec![0usize; nodes], vec![0usize; nodes]);
        for event in outcome(&parameters).record.events {
            match event.what {
                What::Enter { node } => entered[node] += 1,
                What::Leave { node } => {
                    left[node] += 1;
                    prop_assert!(entered.iter().all(|&e| e >= left[node]), "{:?}", event);
                }
                _ => {}
            }
        }
        prop_assert!(left.iter().all(|&l| l == barriers));
    }
}
