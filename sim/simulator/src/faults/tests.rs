//! Tests of a campaign's guarantees, and golden waveforms of faults.

use super::campaign::{Campaign, Case, Class};
use super::catalogue::Place;
use super::known::KnownUnsafe;
use super::moments::Moment;
use crate::virtual_time::{Parameters, Protocol, Time};
use embedded_hal::digital::PinState;

fn known() -> KnownUnsafe {
    KnownUnsafe::shipped().expect("the shipped list is well formed")
}

fn run(campaign: &Campaign) -> Vec<Case> {
    campaign.run(&known(), 2).expect("legal parameters")
}

fn only(fault: &str, campaign: Campaign) -> Vec<Case> {
    let cases = run(&Campaign {
        only: Some(fault.to_owned()),
        ..campaign
    });
    assert!(!cases.is_empty(), "no fault is called {fault}");
    cases
}

/// Tests 2, 3 and 7 nodes; for 4 nodes see [`every_line_of_the_documented_list_is_needed`].
#[test]
fn every_unsafe_outcome_is_documented_with_a_reason() {
    for (nodes, seed) in [(2, 1), (3, 2), (7, 4)] {
        for case in run(&Campaign::new(nodes, seed)) {
            assert!(
                case.class != Class::Unsafe || case.known.is_some(),
                "{nodes} nodes, seed {seed}: {case:?}"
            );
        }
    }
}

/// Returns campaigns with hardware that differs from the prototype.
fn of_other_hardware() -> Vec<Campaign> {
    let boards = |nodes, boards| Parameters {
        boards,
        ..Parameters::new(nodes * boards, 0)
    };
    let cured = |filter, protocol| Parameters {
        filter,
        protocol,
        ..Parameters::new(4, 0)
    };
    let returning = |rest| Protocol::Returning { rest };
    let all = [
        boards(2, 2),
        boards(2, 3),
        Parameters {
            filter: 7,
            protocol: returning(PinState::Low),
            ..boards(2, 2)
        },
        cured(7, Protocol::Toggle),
        cured(128, Protocol::Toggle),
        cured(1, returning(PinState::Low)),
        cured(1, returning(PinState::High)),
    ];
    let campaign = |parameters: Parameters| {
        let mut campaign = Campaign::new(parameters.nodes, 1);
        campaign.cure(&parameters);
        campaign
    };
    all.map(campaign).into()
}

#[test]
fn every_line_of_the_documented_list_is_needed() {
    let known = known();
    let plain = (1..=4).map(|seed| Campaign::new(4, seed));
    let mut needed = Vec::new();
    for campaign in plain.chain(of_other_hardware()) {
        for case in run(&campaign) {
            if case.class != Class::Unsafe {
                continue;
            }
            let Case { fault, place, .. } = &case;
            let moment = case.moment.name();
            let listed = known.reason_with(&campaign.parameters, fault, place.kind(), moment);
            assert!(listed.is_some(), "{:?}: {case:?}", campaign.parameters);
            needed.extend(listed);
        }
    }
    for listed in known.listed() {
        let of = needed.contains(&listed);
        assert!(of, "nothing unsafe comes of {listed:?} any more");
    }
}

#[test]
fn channels_in_turn_have_the_hazards_of_one_barrier() {
    let mut campaign = Campaign::new(2, 1);
    campaign.cure(&Parameters {
        channels: 2,
        ..Parameters::new(2, 0)
    });
    let cases = run(&campaign);
    assert!(cases.iter().any(|case| case.class == Class::Unsafe));
    for case in cases {
        let documented = case.class != Class::Unsafe || case.known.is_some();
        assert!(documented, "{case:?}");
    }
}

#[test]
fn every_detection_and_every_hang_comes_with_a_sentence_of_the_driver() {
    for case in run(&Campaign::new(4, 1)) {
        match case.class {
            Class::Safe => assert_eq!(case.sentence, "", "{case:?}"),
            _ => assert!(case.sentence.starts_with("node "), "{case:?}"),
        }
    }
}

#[test]
fn wiring_faults_never_get_past_the_start() {
    for fault in ["inverted", "pair reversed", "looped back"] {
        for case in only(fault, Campaign::new(5, 1)) {
            assert_eq!(case.class, Class::Detected, "{case:?}");
        }
    }
    for case in only("stuck", Campaign::new(5, 1)) {
        let start = matches!(case.moment, Moment::PowerOn | Moment::StartUp);
        assert!(!start || case.class == Class::Detected, "{case:?}");
    }
}

/// Crosstalk is unsafe if only the victim is missing and a clock edge samples the pulse.
/// The pulse on a wire from the barrier occurs when the node itself drives an edge.
/// The port samples one port access later, when the pulse has ended.
#[test]
fn crosstalk_hurts_wires_to_the_barrier_and_never_those_from_it() {
    let cases = only("crosstalk", Campaign::new(4, 1));
    let (to, from): (Vec<_>, Vec<_>) = cases
        .iter()
        .partition(|case| matches!(case.place, Place::ToBarrier(_)));
    assert!(from.iter().all(|case| case.class == Class::Safe));
    assert!(to.iter().any(|case| case.class == Class::Unsafe));
    assert!(to.iter().any(|case| case.class == Class::Detected));
}

#[test]
fn crosstalk_that_no_clock_edge_samples_is_safe() {
    let mut campaign = Campaign::new(4, 1);
    campaign.sizes.crosstalk = vec![Time::from_ps(1)];
    for case in only("crosstalk", campaign) {
        assert_eq!(case.class, Class::Safe, "{case:?}");
    }
}

#[test]
fn without_the_self_test_an_inverted_wire_is_unsafe() {
    // The campaign must find unsafe outcomes of a faulty driver;
    // otherwise a safe result is worthless.
    let mut campaign = Campaign::new(4, 1);
    campaign.plan.late_nodes = 0;
    let cases = only("inverted", campaign);
    let worst = cases.iter().map(|case| case.class).max();
    assert_eq!(worst, Some(Class::Unsafe));
}

#[test]
fn what_only_takes_longer_is_safe() {
    for fault in [
        "slow port",
        "clock paused",
        "metastable",
        "cables swapped",
        "left high",
    ] {
        for case in only(fault, Campaign::new(6, 3)) {
            assert_eq!(case.class, Class::Safe, "{case:?}");
        }
    }
}

#[test]
fn a_dead_node_ends_in_a_sentence_and_never_in_a_release() {
    for case in only("dead, wire kept", Campaign::new(4, 5)) {
        assert!(
            matches!(case.class, Class::Detected | Class::Hang),
            "{case:?}"
        );
    }
}

#[test]
fn a_campaign_is_the_same_every_time() {
    let campaign = Campaign::new(3, 9);
    let single = campaign.run(&known(), 1).expect("legal parameters");
    assert_eq!(single, run(&campaign));
}

/// Returns a campaign of three nodes without a self-test, so that a waveform fits on a page.
fn short() -> Campaign {
    let mut campaign = Campaign::new(3, 1);
    campaign.plan.late_nodes = 0;
    campaign.plan.barriers = 4;
    campaign.plan.limit = Time::from_ns(40_000);
    campaign
}

fn waveform(fault: &str, place: Place, moment: Moment) -> String {
    let record = short()
        .examine(&known(), fault, place, moment)
        .expect("there is such a case")
        .record;
    let mut out = Vec::new();
    barrier_waveform::vcd::write(&mut out, &record).expect("memory takes everything");
    String::from_utf8(out).expect("ASCII")
}

#[test]
fn golden_waveforms_of_faults() {
    insta::assert_snapshot!(
        "aborted_job",
        waveform("all others left high", Place::Node(0), Moment::PowerOn)
    );
    insta::assert_snapshot!(
        "reboot_to_0_while_all_wait_for_the_fall",
        waveform("reboot to 0", Place::Node(0), Moment::AwaitedFalling)
    );
    insta::assert_snapshot!(
        "reboot_to_0_while_all_wait_for_the_rise",
        waveform("reboot to 0", Place::Node(0), Moment::AwaitedRising)
    );
    insta::assert_snapshot!(
        "metastable_samples",
        waveform("metastable samples", Place::ToBarrier(1), Moment::PowerOn)
    );
}
