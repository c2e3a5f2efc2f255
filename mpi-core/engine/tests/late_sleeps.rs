//! Tests of the number of sleeps that ended by timeout although an event was pending.

use mpi_core::testing::Job;

/// The two waits are those of two threads, which share the engine.
#[test]
fn a_late_sleep_is_counted_for_the_wait_that_has_slept() {
    Job::of(1).run(|engine| {
        while engine.progress() {}
        let late = || engine.waiting().late_sleeps();
        let [mut asleep, mut awake] = [(); 2].map(|()| engine.waiter());
        asleep.note_timeout();
        assert!(engine.turn(&mut awake, || true));
        assert_eq!(late(), 0, "the other wait has not slept");
        assert!(engine.turn(&mut asleep, || true));
        assert_eq!(late(), 1);
        asleep.note_timeout();
        assert!(!engine.turn(&mut asleep, || false));
        assert!(engine.turn(&mut asleep, || true));
        assert_eq!(late(), 1, "the event occurred after the first poll");
    });
}
