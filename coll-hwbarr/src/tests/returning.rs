//! Tests of returning barriers, which end at the idle level, for nodes that may reboot.

use super::*;
use std::time::Duration;

const BOTH: [&str; 2] = ["low", "high"];

#[test]
fn no_rank_leaves_before_all_have_entered_whatever_the_level_of_rest() {
    for reboot in BOTH {
        for ranks in [1, 2, 5] {
            let job = job(ranks, &[("port", "sim"), ("reboot", reboot)]);
            barrier::no_rank_leaves_before_all_have_entered(&job, "hwbarr", Form::Mixed, 100);
        }
    }
}

/// No node waits for the return to idle, so the last return may be missing when the job ends.
#[test]
fn each_barrier_is_one_release_and_a_way_back() {
    for reboot in BOTH {
        let files = Files::new();
        let report = files.report();
        let set = [
            ("port", "sim"),
            ("reboot", reboot),
            ("sim_report", text(&report)),
        ];
        run(3, &set, |engine| {
            let world = world(engine);
            (0..20).for_each(|_| blocking(&world));
        });
        let (barriers, returns) = (files.count("barriers"), files.count("returns"));
        assert!(barriers >= 20);
        assert_eq!(files.count("releases"), barriers);
        assert!(
            (barriers - 1..=barriers).contains(&returns),
            "{returns} ways back of {barriers} barriers"
        );
    }
}

#[test]
fn a_node_that_is_too_late_still_holds_everyone() {
    for late in [0, 2] {
        let come = std::sync::atomic::AtomicBool::new(false);
        let set = [("port", "sim"), ("timeout", "50ms"), ("reboot", "low")];
        run(4, &set, |engine| {
            let world = world(engine);
            (0..10).for_each(|_| blocking(&world));
            if world.rank() == late {
                std::thread::sleep(Duration::from_millis(300));
                come.store(true, std::sync::atomic::Ordering::SeqCst);
            }
            blocking(&world);
            let come = come.load(std::sync::atomic::Ordering::SeqCst);
            assert!(come, "rank {late} had not come");
            (0..10).for_each(|_| blocking(&world));
        });
    }
}

#[test]
fn a_level_that_is_none_is_refused() {
    let message = run(2, &[("port", "sim"), ("reboot", "up")], |engine| {
        verdict(&world(engine)).expect_err("it should have refused")
    });
    for message in message {
        assert!(
            message.contains("coll_hwbarr_reboot is \"up\", but none, low or high is expected"),
            "{message}"
        );
    }
}
