//! The proofs, and that they bite: what is claimed is proved, what is broken is refuted.

mod common;

use common::or_skip;
use hdl::formal::{self, Claim, Design, Verdict};

fn decide(sentence: &str, design: &Design, claim: &Claim) -> Option<Verdict> {
    let folder = tempfile::tempdir().expect("a folder");
    or_skip(sentence, formal::prove(design, claim, folder.path()))
}

#[test]
fn every_claim_about_the_toggle_barrier_is_proved() {
    let design = Design::toggle_barrier();
    for (sentence, claim) in formal::CLAIMS {
        if let Some(verdict) = decide(sentence, &design, claim) {
            println!("{sentence}: {verdict:?}");
            assert!(
                matches!(verdict, Verdict::Proved { .. }),
                "{sentence}: {verdict:?}"
            );
        }
    }
}

#[test]
fn every_mutant_is_refuted() {
    for (mutant, claim) in formal::MUTANTS {
        let design = Design::toggle_barrier()
            .mutated(*mutant)
            .expect("one place to break");
        if let Some(verdict) = decide(mutant.fault, &design, claim) {
            assert_eq!(verdict, Verdict::Refuted, "{}", mutant.fault);
        }
    }
}

#[test]
fn what_hardware_cannot_cure_is_known() {
    for (sentence, claim) in formal::HAZARDS {
        if let Some(verdict) = decide(sentence, &Design::toggle_barrier(), claim) {
            assert_eq!(verdict, Verdict::Refuted, "{sentence}");
        }
    }
}
