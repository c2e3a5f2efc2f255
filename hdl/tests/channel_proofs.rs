//! The proofs of version 2, and that they bite.

mod common;

use common::or_skip;
use hdl::channel_claims::{CLAIMS, HAZARDS, MUTANTS, design};
use hdl::formal::{self, Claim, Design, Verdict};

fn decide(sentence: &str, design: &Design, claim: &Claim) -> Option<Verdict> {
    let folder = tempfile::tempdir().expect("a folder");
    or_skip(sentence, formal::prove(design, claim, folder.path()))
}

#[test]
fn every_claim_about_the_channels_is_proved() {
    for (sentence, claim) in CLAIMS {
        if let Some(verdict) = decide(sentence, &design(), claim) {
            println!("{sentence}: {verdict:?}");
            assert!(
                matches!(verdict, Verdict::Proved { .. }),
                "{sentence}: {verdict:?}"
            );
        }
    }
}

#[test]
fn every_broken_channel_is_refuted() {
    for (mutant, claim) in MUTANTS {
        let broken = design().mutated(*mutant).expect("one place to break");
        if let Some(verdict) = decide(mutant.fault, &broken, claim) {
            assert_eq!(verdict, Verdict::Refuted, "{}", mutant.fault);
        }
    }
}

#[test]
fn the_rule_that_members_change_only_at_rest_is_needed() {
    for (sentence, claim) in HAZARDS {
        if let Some(verdict) = decide(sentence, &design(), claim) {
            assert_eq!(verdict, Verdict::Refuted, "{sentence}");
        }
    }
}
