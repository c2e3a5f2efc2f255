//! Tests of barriers on a board that a server at the loopback address provides.

use super::*;
use barrier_board::served::{Address, BoardObserver, Server, View};
use std::sync::atomic::{AtomicBool, Ordering};

/// Sets a flag when it is dropped, also when an assertion fails.
struct Raised<'a>(&'a AtomicBool);

impl Drop for Raised<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs `body` with the port parameter for a served board of `nodes` nodes,
/// and with a function that stops the server.
pub(super) fn served_until<T>(nodes: usize, body: impl FnOnce(&str, &(dyn Fn() + Sync)) -> T) -> T {
    let server = Server::bind(nodes, "127.0.0.1:0");
    run_until(server.expect("a port on the loopback address"), body)
}

fn run_until<T>(mut server: Server, body: impl FnOnce(&str, &(dyn Fn() + Sync)) -> T) -> T {
    let text = Address::from(server.address()).to_string();
    let (over, gone) = (AtomicBool::new(false), AtomicBool::new(false));
    let (over, gone) = (&over, &gone);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let _gone = Raised(gone);
            while !over.load(Ordering::Relaxed) {
                server.turn().expect("the system waits for sockets");
            }
            drop(server);
        });
        let _over = Raised(over);
        body(&text, &|| {
            over.store(true, Ordering::Relaxed);
            while !gone.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
        })
    })
}

/// Runs `body` with the port parameter for a served board of `nodes` nodes.
pub(super) fn served<T>(nodes: usize, body: impl FnOnce(&str) -> T) -> T {
    served_until(nodes, |text, _| body(text))
}

/// As [`served_until`], with a board of version 2.
fn channels_served<T>(nodes: usize, body: impl FnOnce(&str, &(dyn Fn() + Sync)) -> T) -> T {
    let server = Server::bind_channels(nodes, "127.0.0.1:0");
    run_until(server.expect("a port on the loopback address"), body)
}

fn view(text: &str) -> View {
    let mut observer = BoardObserver::connect(&text.parse().expect("an address")).expect("served");
    observer.look().expect("served")
}

#[test]
fn no_rank_leaves_before_all_have_entered() {
    for ranks in [1, 2, 7] {
        for form in [Form::Blocking, Form::Nonblocking, Form::Mixed] {
            served(ranks as usize, |text| {
                let job = job(ranks, &[("port", text)]);
                barrier::no_rank_leaves_before_all_have_entered(&job, "hwbarr", form, 20);
            });
        }
    }
}

#[test]
fn sixty_ranks_share_a_served_board_and_leave_it_free() {
    const BARRIERS: u64 = 10;
    served(60, |text| {
        run(60, &[("port", text)], |engine| {
            let world = world(engine);
            assert_eq!(verdict(&world), Ok(()));
            (0..BARRIERS).for_each(|_| blocking(&world));
        });
        let View { board, connected } = view(text);
        // Three releases are not the program's: two of the self-test, one at the end of the job.
        assert_eq!(board.releases, BARRIERS + 3);
        assert_eq!((connected, board.arrived()), (0, 0));
    });
}

#[test]
fn a_second_job_finds_the_board_as_it_needs_it() {
    served(3, |text| {
        for _ in 0..3 {
            run(3, &[("port", text)], |engine| {
                let world = world(engine);
                assert_eq!(verdict(&world), Ok(()));
                blocking(&world);
            });
        }
    });
}

/// Returns, for each rank, the component's reason for refusing `MPI_COMM_WORLD` with this port.
fn refusals(ranks: u32, text: &str) -> Vec<String> {
    run(ranks, &[("port", text)], |engine| {
        let world = world(engine);
        let message = verdict(&world).expect_err("it should have refused");
        // The next component serves the barrier.
        blocking(&world);
        message
    })
}

#[test]
fn a_board_for_another_number_of_ranks_is_refused() {
    served(4, |text| {
        for message in refusals(3, text) {
            assert!(
                message.contains(&format!(
                    "the board at {text} has 4 nodes, and 3 are needed"
                )),
                "{message}"
            );
        }
    });
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let gone = served(1, str::to_owned);
    for message in refusals(2, &gone) {
        assert!(
            message.contains(&format!("no board can be reached at {gone}: ")),
            "{message}"
        );
    }
}

#[test]
fn a_text_that_is_no_address_is_refused() {
    for message in refusals(2, "sim:tcp://localhost") {
        assert!(
            message.contains("\"sim:tcp://localhost\" is no address of a served board"),
            "{message}"
        );
    }
}

#[test]
fn a_rank_that_is_too_late_still_holds_everyone() {
    for late in [0, 2] {
        served(3, |text| {
            let come = AtomicBool::new(false);
            run(3, &[("port", text), ("timeout", "50ms")], |engine| {
                let world = world(engine);
                assert_eq!(verdict(&world), Ok(()));
                if world.rank() == late {
                    std::thread::sleep(std::time::Duration::from_millis(400));
                    come.store(true, Ordering::SeqCst);
                }
                blocking(&world);
                assert!(come.load(Ordering::SeqCst), "rank {late} had not come");
                (0..3).for_each(|_| blocking(&world));
            });
        });
    }
}

/// The server stops while only some ranks are in the barrier;
/// software completes this barrier and all later ones.
#[test]
fn a_server_that_ends_in_the_middle_is_no_error_of_the_program() {
    for form in [Form::Blocking, Form::Nonblocking] {
        for late in [0, 2] {
            served_until(4, |text, end| {
                let come = AtomicBool::new(false);
                run(4, &[("port", text)], |engine| {
                    let world = world(engine);
                    assert_eq!(verdict(&world), Ok(()));
                    (0..5).for_each(|round| barrier::pass(&world, form, round));
                    if world.rank() == late {
                        end();
                        come.store(true, Ordering::SeqCst);
                    }
                    barrier::pass(&world, form, 5);
                    assert!(come.load(Ordering::SeqCst), "rank {late} had not come");
                    (6..20).for_each(|round| barrier::pass(&world, form, round));
                });
            });
        }
    }
}

#[test]
fn communicators_have_channels_of_a_served_board() {
    const ROUNDS: u32 = 4;
    for (ranks, nodes) in [(3, "3"), (4, "2")] {
        channels_served(3, |text, _| {
            let set = [("port", text), ("version", "2"), ("sim_nodes", nodes)];
            for _ in 0..2 {
                let before = view(text).board.releases;
                run(ranks, &set, |engine| {
                    let world = world(engine);
                    assert_eq!(verdict(&world), Ok(()));
                    let twin = engine
                        .block_on(world.constructors().dup())
                        .expect("a duplicate");
                    assert_eq!(verdict(&twin), Ok(()));
                    for round in 0..ROUNDS {
                        barrier::pass(&twin, Form::Mixed, round);
                        barrier::pass(&world, Form::Nonblocking, round);
                    }
                });
                let View { board, connected } = view(text);
                // Also counted: self-test and farewell of each of two channels, and the end of the job.
                let made = board.releases - before;
                assert_eq!(made, u64::from(2 * ROUNDS) + 2 * 3 + 1);
                assert_eq!(connected, 0);
            }
        });
    }
}

#[test]
fn a_server_of_channels_that_ends_in_the_middle_is_no_error_of_the_program() {
    channels_served(3, |text, end| {
        let come = AtomicBool::new(false);
        let set = [("port", text), ("version", "2"), ("sim_nodes", "3")];
        run(3, &set, |engine| {
            let world = world(engine);
            assert_eq!(verdict(&world), Ok(()));
            (0..5).for_each(|round| barrier::pass(&world, Form::Mixed, round));
            if world.rank() == 1 {
                end();
                come.store(true, Ordering::SeqCst);
            }
            blocking(&world);
            assert!(come.load(Ordering::SeqCst), "rank 1 had not come");
            (0..5).for_each(|round| barrier::pass(&world, Form::Mixed, round));
        });
    });
}

#[test]
fn a_board_of_the_other_version_is_refused() {
    channels_served(2, |text, _| {
        for message in refusals(2, text) {
            assert!(message.contains("hwbarr serve --channels"), "{message}");
        }
    });
}
