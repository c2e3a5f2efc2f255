//! Tests of version 2, channels for communicators, on the simulator and on emulated parallel ports.

use super::*;
use crate::channels::chosen;
use barrier_emulation::channels::ChannelBoard;
use barrier_emulation::ppdev::Parports;
use mpi_core::comm::SplitKey;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

const SIM: [(&str, &str); 2] = [("port", "sim"), ("version", "2")];
/// Number of releases in the self-test of a channel.
const TESTED: u64 = 2;

fn dup(comm: &Comm) -> Comm {
    comm.engine()
        .block_on(comm.constructors().dup())
        .expect("a duplicate")
}

/// Splits a communicator; returns the part with this color.
pub(super) fn part(comm: &Comm, color: u32) -> Comm {
    let key = comm.rank() as i32;
    let part = comm.engine().block_on(comm.constructors().split(SplitKey {
        color: Some(color.into()),
        key,
    }));
    part.expect("a split").expect("a part")
}

pub(super) fn pass(comm: &Comm, barriers: u32) {
    (0..barriers).for_each(|round| barrier::pass(comm, Form::Mixed, round));
}

/// Checks the counts in the report of a board without open channels; returns the number of barriers.
pub(super) fn consistent_barriers(files: &Files) -> u64 {
    let text = std::fs::read_to_string(files.report()).expect("a report");
    let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let count = |value: &serde_json::Value| value.as_u64().expect("a number");
    let channels = report["channels"].as_array().expect("channels");
    let releases: u64 = channels.iter().map(|c| count(&c["releases"])).sum();
    let [barriers, taken] = ["barriers", "channels_taken"].map(|what| count(&report[what]));
    // Each use of a channel adds the releases of its self-test and of its farewell.
    assert_eq!(releases, barriers + taken * (TESTED + 1), "{text}");
    assert!(channels.iter().all(|c| count(&c["members"]) == 0), "{text}");
    barriers
}

claims!(&SIM, [2, 5]);

#[test]
#[ignore = "long: cargo xtask test --long"]
fn no_rank_of_24_leaves_before_all_have_entered() {
    for form in [Form::Blocking, Form::Nonblocking, Form::Mixed] {
        barrier::no_rank_leaves_before_all_have_entered(&job(24, &SIM), "hwbarr", form, 12);
    }
}

#[test]
fn ranks_of_a_node_meet_before_their_leader_passes_the_wire() {
    for (ranks, nodes) in [(4, "2"), (7, "3"), (12, "2")] {
        for form in [Form::Blocking, Form::Nonblocking, Form::Mixed] {
            let set = [&SIM[..], &[("sim_nodes", nodes)]].concat();
            let job = job(ranks, &set);
            barrier::no_rank_leaves_before_all_have_entered(&job, "hwbarr", form, 30);
            barrier::a_late_rank_holds_everyone(&job, "hwbarr", form);
        }
    }
}

#[test]
fn barriers_in_flight_of_crowded_nodes_end_in_order() {
    let set = [&SIM[..], &[("sim_nodes", "2")]].concat();
    barrier::barriers_in_flight_end_in_order(&job(5, &set), "hwbarr");
}

/// One half of the world completes its barriers while the other half has not begun.
#[test]
fn parts_of_the_world_have_channels_of_their_own() {
    let files = Files::new();
    let report = files.report();
    let set = [&SIM[..], &[("sim_report", text(&report))]].concat();
    run(6, &set, |engine| {
        let world = world(engine);
        let half = part(&world, world.rank() % 2);
        assert_eq!(verdict(&world), Ok(()));
        assert_eq!(verdict(&half), Ok(()));
        if world.rank() % 2 == 1 {
            std::thread::sleep(Duration::from_millis(20));
        }
        pass(&half, 20);
        pass(&world, 5);
        pass(&half, 20);
    });
    // The barriers of the two halves, of `MPI_COMM_WORLD`, and the one at the end of the job.
    assert_eq!(consistent_barriers(&files), 80 + 5 + 1);
}

/// Both halves have chosen channel 1 before the first half takes it; then the second half tries.
#[test]
fn the_second_of_two_communicators_that_choose_one_channel_gets_the_next_one() {
    let [have_chosen, is_taken] = [(); 2].map(|()| Arc::new(Barrier::new(2)));
    let choices = Arc::new(Mutex::new(Vec::new()));
    run(4, &SIM, |engine| {
        let world = world(engine);
        let rank = world.rank();
        if rank == 0 || rank == 2 {
            let (have_chosen, is_taken) = (have_chosen.clone(), is_taken.clone());
            let choices = choices.clone();
            let mut is_first = true;
            chosen::set(move |channel| {
                choices.lock().expect("no panic").push((rank, channel));
                if std::mem::take(&mut is_first) {
                    have_chosen.wait();
                    if rank == 2 {
                        is_taken.wait();
                    }
                }
            });
        }
        let half = part(&world, rank / 2);
        if rank == 0 {
            is_taken.wait();
        }
        assert_eq!(verdict(&half), Ok(()));
        pass(&half, 5);
        pass(&world, 2);
    });
    let mut choices = choices.lock().expect("no panic").clone();
    choices.sort_unstable();
    assert_eq!(choices, [(0, 1), (2, 1), (2, 2)]);
}

#[test]
fn when_channels_are_used_up_the_next_component_serves() {
    run(4, &SIM, |engine| {
        let world = world(engine);
        let twins: Vec<_> = (0..6).map(|_| dup(&world)).collect();
        let verdicts: Vec<_> = twins.iter().map(verdict).collect();
        assert!(verdicts[..4].iter().all(Result::is_ok), "{verdicts:?}");
        for refused in &verdicts[4..] {
            let message = refused.as_ref().expect_err("there are five channels");
            assert!(
                message.contains("no channel is free: 0 serves"),
                "{message}"
            );
        }
        twins.iter().for_each(|twin| pass(twin, 5));
    });
}

#[test]
fn a_free_communicator_gives_its_channel_back() {
    let files = Files::new();
    let report = files.report();
    let set = [&SIM[..], &[("sim_report", text(&report))]].concat();
    run(4, &set, |engine| {
        let world = world(engine);
        for round in 0..12 {
            let twin = dup(&world);
            assert_eq!(verdict(&twin), Ok(()), "round {round}");
            pass(&twin, round % 3);
            drop(twin);
        }
    });
    assert_eq!(consistent_barriers(&files), 12 + 1);
}

#[test]
fn one_rank_and_one_node_need_no_channel() {
    let set = [&SIM[..], &[("sim_nodes", "2")]].concat();
    run(4, &set, |engine| {
        let world = world(engine);
        let node = part(&world, world.rank() / 2);
        let message = verdict(&node).expect_err("shared memory is there for that");
        assert!(message.contains("all its ranks are at node "), "{message}");
        let alone = part(&world, world.rank());
        let message = verdict(&alone).expect_err("no other rank to wait for");
        assert!(
            message.contains("one rank has no other rank to wait for"),
            "{message}"
        );
        // Ranks 1 and 3 are leaders of no node.
        let led = part(&world, world.rank() % 2);
        assert_eq!(verdict(&led).is_ok(), world.rank().is_multiple_of(2));
        pass(&led, 5);
    });
}

#[test]
fn a_rank_that_is_too_late_still_holds_everyone() {
    for nodes in ["0", "2"] {
        for late in 0..4 {
            let come = AtomicBool::new(false);
            let set = [&SIM[..], &[("sim_nodes", nodes), ("timeout", "50ms")]].concat();
            run(4, &set, |engine| {
                let world = world(engine);
                let twin = dup(&world);
                pass(&twin, 5);
                if world.rank() == late {
                    std::thread::sleep(Duration::from_millis(300));
                    come.store(true, Ordering::SeqCst);
                }
                blocking(&twin);
                assert!(come.load(Ordering::SeqCst), "rank {late} had not come");
                pass(&twin, 5);
                pass(&world, 5);
            });
        }
    }
}

#[test]
fn barriers_that_go_there_and_back_work_over_channels() {
    for reboot in ["low", "high"] {
        let set = [&SIM[..], &[("reboot", reboot)]].concat();
        run(3, &set, |engine| {
            let world = world(engine);
            for _ in 0..8 {
                let twin = dup(&world);
                assert_eq!(verdict(&twin), Ok(()));
                pass(&twin, 5);
            }
        });
    }
}

#[test]
fn a_version_that_is_none_is_refused() {
    let message = run(2, &[("port", "sim"), ("version", "3")], |engine| {
        verdict(&world(engine)).expect_err("it should have refused")
    });
    assert!(
        message[0].contains("coll_hwbarr_version is 3, and there are 1 and 2"),
        "{message:?}"
    );
}

/// Emulates `nodes` parallel ports of a version 2 board, with `data` in their latches;
/// `None` if this process may not mount.
fn ports(nodes: usize, data: u8) -> Option<(ChannelBoard, Parports)> {
    let board = ChannelBoard::power_on(nodes).expect("a board");
    let ports = (0..nodes).map(|node| board.port(node, data)).collect();
    match Parports::mount(ports) {
        Ok(files) => Some((board, files)),
        Err(e) => {
            eprintln!("SKIPPED: ppdev is not tested, this process may not mount /dev/fuse: {e}");
            None
        }
    }
}

/// The board has more nodes than the job, and the ranks determine their node numbers;
/// old levels in the latches do not count as arrivals.
#[test]
fn jobs_over_parallel_ports_find_their_nodes_one_after_the_other() {
    let Some((board, files)) = ports(5, 0b0000_0101) else {
        return;
    };
    let text = format!("ppdev:{}/parport{{rank}}", files.folder().display());
    for _ in 0..2 {
        run(3, &[("port", &text), ("version", "2")], |engine| {
            let world = world(engine);
            assert_eq!(verdict(&world), Ok(()));
            let half = part(&world, u32::from(world.rank() > 0));
            assert_eq!(verdict(&half).is_ok(), world.rank() > 0);
            pass(&world, 3);
            pass(&half, 3);
        });
        let machine = board.machine();
        let members: Vec<_> = (0..5)
            .filter_map(|c| machine.channel(c))
            .map(|c| c.mask)
            .collect();
        assert!(members.iter().all(|mask| mask & 0b111 == 0), "{members:?}");
    }
}

/// A program may end without freeing its communicators:
/// their channels have no farewell, but their barriers count.
#[test]
fn the_report_counts_barriers_of_a_communicator_that_is_never_freed() {
    let files = Files::new();
    let report = files.report();
    let set = [&SIM[..], &[("sim_report", text(&report))]].concat();
    run(3, &set, |engine| {
        let twin = dup(&world(engine));
        assert_eq!(verdict(&twin), Ok(()));
        pass(&twin, 10);
        std::mem::forget(twin);
    });
    let read = std::fs::read_to_string(&report).expect("a report");
    let read: serde_json::Value = serde_json::from_str(&read).expect("JSON");
    let channels = read["channels"].as_array().expect("channels");
    let releases = channels.iter().filter_map(|c| c["releases"].as_u64());
    // Only the channel of MPI_COMM_WORLD has a farewell.
    let others = 2 * TESTED + 1;
    assert_eq!(releases.sum::<u64>(), files.count("barriers") + others);
    assert!(files.count("barriers") >= 10);
}

/// The model computes the waveform from the nodes' inputs, so it shows the counted releases.
#[test]
fn the_last_node_writes_the_waveform_of_the_channels() {
    let files = Files::new();
    let (vcd, report) = (files.vcd(), files.report());
    let set = [
        &SIM[..],
        &[("sim_vcd", text(&vcd)), ("sim_report", text(&report))],
    ]
    .concat();
    run(3, &set, |engine| pass(&world(engine), 10));
    let wave = std::fs::read_to_string(&vcd).expect("a waveform");
    assert!(wave.contains("sSetMask:"), "{wave}");
    let mut parser = vcd::Parser::new(wave.as_bytes());
    let header = parser.parse_header().expect("a header");
    let counts: Vec<_> = (0..5)
        .map(|channel| {
            let path = ["barrier", &format!("channel{channel}"), "releases"];
            header.find_var(&path).expect("declared").code
        })
        .collect();
    let mut last = [0; 5];
    for command in parser {
        if let vcd::Command::ChangeVector(code, value) = command.expect("well-formed")
            && let Some(channel) = counts.iter().position(|count| *count == code)
        {
            let bits = value.iter().map(|bit| u64::from(bit == vcd::Value::V1));
            last[channel] = bits.fold(0, |number, bit| number << 1 | bit);
        }
    }
    let text = std::fs::read_to_string(&report).expect("a report");
    let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    for (channel, count) in last.iter().enumerate() {
        assert_eq!(report["channels"][channel]["releases"], *count, "{text}");
    }
    let save = std::fs::read_to_string(vcd.with_extension("gtkw")).expect("a save file");
    assert!(save.contains("barrier.serial.request"), "{save}");
    let commands = std::fs::read_to_string(vcd.with_extension("sucl")).expect("commands");
    assert!(
        commands.contains("variable_add barrier.serial.request"),
        "{commands}"
    );
}
