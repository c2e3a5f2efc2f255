//! Tests of the state page: a snapshot returns what the owner stored,
//! and each line has its documented layout.

use super::*;

#[test]
fn a_page_is_seven_cache_lines_and_its_subjects_do_not_share_one() {
    assert_eq!(size_of::<StatePage>(), 448);
    assert_eq!(std::mem::offset_of!(StatePage, quiet), 384);
    assert_eq!(std::mem::offset_of!(StatePage, window), 320);
    assert_eq!(std::mem::offset_of!(StatePage, file), 256);
    assert_eq!(align_of::<StatePage>(), 64);
    assert_eq!(std::mem::offset_of!(StatePage, call), 64);
    assert_eq!(std::mem::offset_of!(StatePage, collective), 128);
    assert_eq!(std::mem::offset_of!(StatePage, progress), 192);
}

#[test]
fn a_snapshot_tells_the_system_call_on_a_file_and_the_end_of_its_name() {
    let page = StatePage::default();
    page.enters_file_call(FileCall::Pwrite, 7, &file_name_words("data.bin"));
    let seen = page
        .snapshot()
        .in_file
        .map(|at| (at.call, at.since_ns, at.name));
    assert_eq!(seen, Some((FileCall::Pwrite, 7, "data.bin".to_owned())));
    let long = format!("{}/{}", "x".repeat(50), "e".repeat(40));
    page.enters_file_call(FileCall::Open, 8, &file_name_words(&long));
    let seen = page.snapshot().in_file.map(|at| at.name);
    let cut = format!("...{}", &long[long.len() - 45..]);
    assert_eq!(seen, Some(cut));
    let whole = "e".repeat(48);
    page.enters_file_call(FileCall::Open, 9, &file_name_words(&whole));
    assert_eq!(page.snapshot().in_file.map(|at| at.name), Some(whole));
    page.leaves_file_call();
    assert_eq!(page.snapshot().in_file, None);
}

#[test]
fn a_snapshot_tells_the_window_that_a_rank_waits_at_and_on_whom() {
    let page = StatePage::default();
    page.enter(3);
    let at = AboutWindow {
        name: "board".into(),
        need: WindowNeed::Lock,
        on: Some(0),
        calls: 12,
    };
    let about = About {
        peer: 2,
        proc: 4,
        ..About::default()
    };
    page.about_window(&about, &at);
    let state = page.snapshot();
    assert_eq!(state.at_window, Some(at));
    assert_eq!((state.about.waits, state.about.peer), (Waits::Window, 2));
    page.leave(3);
    assert_eq!(page.snapshot().at_window, None);
}

#[test]
fn an_untouched_page_is_a_rank_that_has_not_come() {
    let state = StatePage::default().snapshot();
    assert_eq!(
        (state.phase, state.call, state.calls),
        (Phase::Absent, 0, 0)
    );
}

#[test]
fn a_snapshot_names_the_call_and_its_peer() {
    let page = StatePage::default();
    page.start(17, 3);
    page.run();
    page.enter(9);
    page.about(&About {
        waits: Waits::Recv,
        peer: 5,
        proc: 8,
        tag: 7,
        bytes: 4096,
        requests: 1,
        ..About::default()
    });
    page.waits_since(1000);
    page.waits_since(2000);
    let state = page.snapshot();
    assert_eq!(
        (state.pid, state.rank, state.phase),
        (17, 3, Phase::Running)
    );
    assert_eq!((state.call, state.about.waits), (9, Waits::Recv));
    let about = state.about;
    assert_eq!((about.peer, about.proc, about.tag), (5, 8, 7));
    assert_eq!((about.bytes, state.since_ns), (4096, 1000));
    page.leave(9);
    let state = page.snapshot();
    assert_eq!((state.call, state.last_call, state.since_ns), (0, 9, 0));
    assert_eq!((state.calls, state.about.waits), (2, Waits::Nothing));
}

#[test]
fn the_latest_collective_is_kept_after_the_call() {
    let page = StatePage::default();
    page.enter(4);
    page.collective(1, 3, 12, [1, 2, 3, 4]);
    page.inside(true);
    assert!(page.snapshot().collective.inside);
    page.inside(false);
    page.leave(4);
    let expected = Collective {
        comm: 1,
        round: 12,
        signature: [1, 2, 3, 4],
        members: 3,
        inside: false,
    };
    assert_eq!(page.snapshot().collective, expected);
}

#[test]
fn a_rank_without_a_wire_has_none() {
    let page = StatePage::default();
    assert_eq!(page.snapshot().barrier_wire, None);
    page.set_barrier_wire(0, 3, 2);
    let wire = BarrierWire {
        wire: 0,
        entered: 3,
        released: 2,
    };
    assert_eq!(page.snapshot().barrier_wire, Some(wire));
}

#[test]
fn a_quiet_rank_shows_its_latest_poll_and_its_counts() {
    let page = StatePage::default();
    assert_eq!(page.snapshot().quiet, Quiet::default());
    let quiet = Quiet {
        waits: 3,
        since_ns: 16,
        checked_ns: 17,
        sent: 5,
        received: 4,
        thread: 99,
        is_open: true,
    };
    page.is_quiet(&quiet);
    assert_eq!(page.snapshot().quiet, quiet);
}
