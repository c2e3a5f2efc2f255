//! Tests of the PMI-1 server: requests, answers, and robustness against arbitrary lines.

use super::*;
use mpi_core::rte::wire::NO_JOBS;
use proptest::prelude::*;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;

fn server(size: usize) -> Server {
    let mut server = Server::new("test", 1);
    server.add_job(&vec![0; size], &vec![0; size], &[]);
    server
}

/// Returns the answers to one line, which must be well-formed.
fn answers(server: &mut Server, proc: usize, line: &str) -> Vec<(usize, String)> {
    said(server.line(Proc(proc), line.as_bytes()).unwrap())
}

fn said(effects: Vec<Effect>) -> Vec<(usize, String)> {
    effects
        .into_iter()
        .filter_map(|effect| match effect {
            Effect::Send(to, bytes) => {
                Some((to.0, String::from_utf8(bytes).unwrap().trim_end().into()))
            }
            // `Effect::Left` concerns only checkpoints.
            Effect::Left(_) => None,
            other => panic!("{other:?}"),
        })
        .collect()
}

#[test]
fn a_value_that_was_put_is_what_is_got() {
    let mut server = server(2);
    answers(
        &mut server,
        0,
        "cmd=put kvsname=kvs_test_0 key=card value=a=b;c",
    );
    let got = answers(&mut server, 1, "cmd=get kvsname=kvs_test_0 key=card");
    assert_eq!(
        got,
        [(1, "cmd=get_result rc=0 msg=success value=a=b;c".into())]
    );
    let absent = answers(&mut server, 1, "cmd=get kvsname=kvs_test_0 key=nothing");
    assert!(absent[0].1.contains("rc=-1 msg=key_not_found"));
}

#[test]
fn the_version_is_the_clients_up_to_1_2() {
    let mut server = server(1);
    for (asked, answered) in [("1 pmi_subversion=1", "1"), ("1 pmi_subversion=7", "2")] {
        let line = format!("cmd=init pmi_version={asked}");
        let reply = answers(&mut server, 0, &line)[0].1.clone();
        assert!(reply.contains(&format!("rc=0 pmi_version=1 pmi_subversion={answered}")));
    }
    assert!(
        answers(&mut server, 0, "cmd=init pmi_version=2 pmi_subversion=0")[0]
            .1
            .contains("rc=-1")
    );
}

#[test]
fn a_barrier_holds_all_until_the_last_has_entered() {
    let mut server = server(3);
    assert!(answers(&mut server, 2, "cmd=barrier_in").is_empty());
    assert!(answers(&mut server, 0, "cmd=barrier_in").is_empty());
    assert_eq!(server.waiting_for(Proc(1)), [0, 2]);
    let out = answers(&mut server, 1, "cmd=barrier_in");
    assert_eq!(
        out.iter().map(|(proc, _)| *proc).collect::<Vec<_>>(),
        [0, 1, 2]
    );
    assert!(server.waiting_for(Proc(1)).is_empty());
}

/// Returns the notices that follow the death of a process.
fn told_of_death(server: &mut Server, proc: usize) -> Vec<(usize, String)> {
    said(server.died(Proc(proc)))
}

#[test]
fn a_dead_process_counts_as_arrived_in_open_and_later_barriers() {
    let mut server = server(3);
    assert!(answers(&mut server, 0, "cmd=barrier_in").is_empty());
    assert!(answers(&mut server, 0, "cmd=barrier_in group=0,1:7").is_empty());
    // The other barrier still waits for rank 2.
    let out = (0, "cmd=barrier_out rc=0 tag=7".to_string());
    assert_eq!(told_of_death(&mut server, 1), [out]);
    assert!(server.waiting_for(Proc(1)).is_empty());
    let out = |rank| (rank, "cmd=barrier_out rc=0".to_string());
    assert_eq!(answers(&mut server, 2, "cmd=barrier_in"), [out(0), out(2)]);
    assert!(answers(&mut server, 2, "cmd=barrier_in").is_empty());
    assert_eq!(
        answers(&mut server, 0, "cmd=barrier_in"),
        [out(0), out(2)],
        "a later one does not wait either"
    );
}

#[test]
fn a_parent_gets_the_name_by_which_deaths_of_its_children_are_announced() {
    let mut server = server(1);
    answers(
        &mut server,
        0,
        "cmd=init pmi_version=1 pmi_subversion=1 portcullis_deaths=1",
    );
    let job = server.add_job(&[0; 2], &[0; 2], &[]);
    let answer = "cmd=spawn_result rc=0 errcodes=0,0 jobid=kvs_test_1".to_string();
    assert_eq!(said(server.spawned(Proc(0), Ok(job))), [(0, answer)]);
    let death_notice = "cmd=process_died job=kvs_test_1 rank=1".to_string();
    assert_eq!(told_of_death(&mut server, 2), [(0, death_notice)]);
}

#[test]
fn one_that_dies_in_a_barrier_is_not_released() {
    let mut server = server(3);
    assert!(answers(&mut server, 1, "cmd=barrier_in").is_empty());
    assert!(told_of_death(&mut server, 1).is_empty());
    assert!(answers(&mut server, 0, "cmd=barrier_in").is_empty());
    let out = (0, "cmd=barrier_out rc=0".to_string());
    assert_eq!(told_of_death(&mut server, 2), [out]);
}

#[test]
fn the_end_of_a_process_after_finalize_is_announced_like_a_death() {
    let mut server = server(2);
    let asks = "cmd=init pmi_version=1 pmi_subversion=1 portcullis_deaths=1";
    answers(&mut server, 0, asks);
    answers(&mut server, 1, asks);
    let ack = (1, "cmd=finalize_ack rc=0".to_string());
    let left = (
        0,
        "cmd=process_died job=kvs_test_0 rank=1 left=1".to_string(),
    );
    assert_eq!(answers(&mut server, 1, "cmd=finalize"), [ack, left]);
}

#[test]
fn a_death_is_announced_once_to_all_clients_that_asked_for_it() {
    let mut server = server(4);
    server.add_job(&[0; 2], &[0; 2], &[]);
    let asks = "cmd=init pmi_version=1 pmi_subversion=1 portcullis_deaths=1";
    // Rank 2 is a foreign client, rank 3 has finalized, and rank 1 of job 1 has not connected yet.
    answers(&mut server, 0, asks);
    answers(&mut server, 1, asks);
    answers(&mut server, 2, "cmd=init pmi_version=1 pmi_subversion=1");
    answers(&mut server, 3, asks);
    answers(&mut server, 3, "cmd=finalize");
    answers(&mut server, 4, asks);
    let death_notice = |to, job, rank| {
        let line = format!("cmd=process_died job=kvs_test_{job} rank={rank}");
        (to, line)
    };
    assert_eq!(
        told_of_death(&mut server, 1),
        [death_notice(0, 0, 1), death_notice(4, 0, 1)]
    );
    assert!(told_of_death(&mut server, 1).is_empty());
    assert_eq!(told_of_death(&mut server, 4), [death_notice(0, 1, 0)]);
    let late = answers(&mut server, 5, asks);
    assert!(late[0].1.starts_with("cmd=response_to_init rc=0"));
    assert_eq!(late[1..], [death_notice(5, 0, 1), death_notice(5, 1, 0)]);
}

#[test]
fn a_notice_comes_before_the_end_of_the_barrier_that_it_ends() {
    let mut server = server(2);
    answers(
        &mut server,
        0,
        "cmd=init pmi_version=1 pmi_subversion=1 portcullis_deaths=1",
    );
    assert!(answers(&mut server, 0, "cmd=barrier_in").is_empty());
    let said: Vec<String> = told_of_death(&mut server, 1)
        .into_iter()
        .map(|(_, line)| line)
        .collect();
    assert_eq!(
        said,
        [
            "cmd=process_died job=kvs_test_0 rank=1",
            "cmd=barrier_out rc=0"
        ]
    );
}

#[test]
fn values_of_a_dead_process_stay_and_missing_ones_are_refused() {
    let mut server = server(2);
    answers(&mut server, 1, "cmd=put key=card.1 value=here");
    told_of_death(&mut server, 1);
    let got = |server: &mut Server, key| answers(server, 0, &format!("cmd=get key={key}"));
    assert!(got(&mut server, "card.1")[0].1.ends_with("value=here"));
    assert!(
        got(&mut server, "more.1")[0]
            .1
            .contains("msg=key_not_found")
    );
}

#[test]
fn barriers_of_groups_do_not_meet() {
    let mut server = server(4);
    assert!(answers(&mut server, 0, "cmd=barrier_in group=0,1:7").is_empty());
    assert!(answers(&mut server, 2, "cmd=barrier_in group=2,3:7").is_empty());
    let out = answers(&mut server, 1, "cmd=barrier_in group=0,1:7");
    assert_eq!(out[0], (0, "cmd=barrier_out rc=0 tag=7".into()));
    assert_eq!(out.len(), 2);
    let outsider = server.line(Proc(0), b"cmd=barrier_in group=2,3:7");
    assert!(
        outsider
            .unwrap_err()
            .to_string()
            .starts_with("rank 0 of job 0")
    );
}

#[test]
fn a_client_reaches_no_other_jobs_keys_and_no_reserved_ones() {
    let mut server = server(1);
    server.add_job(&[0], &[0], &[("PARENT".into(), "port".into())]);
    assert!(
        answers(&mut server, 0, "cmd=get kvsname=kvs_test_1 key=PARENT")[0]
            .1
            .contains("rc=-1")
    );
    assert!(
        answers(&mut server, 0, "cmd=put key=PMI_x value=1")[0]
            .1
            .contains("rc=-1")
    );
    assert!(
        answers(&mut server, 1, "cmd=get kvsname=kvs_test_1 key=PARENT")[0]
            .1
            .ends_with("value=port")
    );
}

/// Returns a server with job 0 of one process, and two jobs of two processes that it has spawned.
fn family() -> Server {
    let mut server = server(1);
    for _ in 0..2 {
        let left = [(HEARS_FAILURE.as_bytes().to_vec(), b"1".to_vec())];
        let job = server.add_job(&[0; 2], &[0; 2], &left);
        server.spawned(Proc(0), Ok(job));
    }
    for proc in 0..5 {
        answers(&mut server, proc, "cmd=init pmi_version=1 pmi_subversion=1");
    }
    server
}

/// Sends a process's report of its connected jobs.
fn connects(server: &mut Server, proc: usize, jobs: &[usize]) {
    use mpi_core::universe::job_number;
    let number = |job: &usize| job_number(&format!("kvs_test_{job}")).to_string();
    let numbers: Vec<String> = jobs.iter().map(number).collect();
    let jobs = match jobs {
        [] => NO_JOBS.to_string(),
        _ => numbers.join(","),
    };
    assert_eq!(
        answers(server, proc, &format!("cmd=connections jobs={jobs}")),
        []
    );
}

fn connected(server: &Server, with: usize) -> Vec<usize> {
    server.connected(Job(with)).into_iter().collect()
}

#[test]
fn a_spawned_job_is_connected_with_its_parent_until_its_processes_report_otherwise() {
    let mut server = family();
    assert_eq!(connected(&server, 0), [0, 1, 2]);
    // Both processes of job 1 have disconnected, but job 0 has not reported the disconnection yet.
    connects(&mut server, 0, &[1, 2]);
    connects(&mut server, 1, &[]);
    connects(&mut server, 2, &[]);
    assert_eq!(connected(&server, 1), [0, 1, 2]);
    connects(&mut server, 0, &[2]);
    assert_eq!(connected(&server, 1), [1]);
    assert_eq!(connected(&server, 0), [0, 2]);
    // One process of job 2 has disconnected; the other process still connects the job.
    connects(&mut server, 3, &[0]);
    connects(&mut server, 4, &[]);
    connects(&mut server, 0, &[]);
    assert_eq!(connected(&server, 2), [0, 2]);
    answers(&mut server, 3, "cmd=finalize");
    assert_eq!(connected(&server, 2), [2]);
    // Two spawned jobs of one parent may connect at a port.
    connects(&mut server, 4, &[1]);
    assert_eq!(connected(&server, 1), [1, 2]);
}

#[test]
fn a_parent_that_understands_it_is_notified_that_its_child_will_not_connect() {
    let mut server = family();
    let why = "rank 0 has ended";
    let death_notice = said(server.spawn_failed(Job(1), why).unwrap());
    let text = format!(
        "cmd=spawn_failed job=kvs_test_1 why={}",
        hex(why.as_bytes())
    );
    assert_eq!(death_notice, [(0, text)]);
    // A job that has connected is not a failed spawn.
    connects(&mut server, 3, &[0]);
    assert_eq!(server.spawn_failed(Job(2), why), None);
    // Job 0 has no parent, and the parent of the last job does not understand notices.
    assert_eq!(server.spawn_failed(Job(0), why), None);
    let job = server.add_job(&[0], &[0], &[("key".into(), "value".into())]);
    server.spawned(Proc(0), Ok(job));
    assert_eq!(server.spawn_failed(job, why), None);
}

#[test]
fn a_job_that_was_taken_back_leaves_its_numbers_to_the_next() {
    let mut server = family();
    let job = server.add_job(&[0; 3], &[0; 3], &[]);
    server.take_back(job);
    // Only the last job can be removed in this way, so this call has no effect.
    server.take_back(Job(0));
    assert_eq!((server.jobs(), server.add_job(&[0], &[0], &[])), (3, job));
    let greeted = answers(&mut server, 5, "cmd=get_my_kvsname");
    assert_eq!(
        greeted[0],
        (5, "cmd=my_kvsname rc=0 kvsname=kvs_test_3".into())
    );
}

#[test]
fn there_is_room_for_more_processes_than_have_begun() {
    let size = |slots, size: usize| {
        let mut server = Server::new("test", slots);
        server.add_job(&vec![0; size], &vec![0; size], &[]);
        answers(&mut server, 0, "cmd=get_universe_size")[0]
            .1
            .clone()
    };
    for (slots, procs, universe_size) in [(4, 1, 4), (4, 3, 4), (4, 4, 8), (2, 5, 7), (1, 1, 2)] {
        assert_eq!(
            size(slots, procs),
            format!("cmd=universe_size rc=0 size={universe_size}")
        );
    }
}

#[test]
fn names_are_shared_by_all_jobs() {
    let mut server = server(1);
    server.add_job(&[0], &[0], &[]);
    answers(&mut server, 0, "cmd=publish_name service=ocean port=p1");
    assert!(
        answers(&mut server, 1, "cmd=lookup_name service=ocean")[0]
            .1
            .ends_with("port=p1")
    );
    answers(&mut server, 1, "cmd=unpublish_name service=ocean");
    assert!(
        answers(&mut server, 0, "cmd=lookup_name service=ocean")[0]
            .1
            .contains("rc=-1")
    );
}

#[test]
fn abort_carries_its_code_and_message() {
    let mut server = server(1);
    let effects = server.line(Proc(0), br"cmd=abort exitcode=42 message=no\ more");
    let expected = Effect::Abort {
        by: Proc(0),
        code: 42,
        message: Some("no more".into()),
    };
    assert_eq!(effects.unwrap(), [expected]);
}

#[test]
fn a_spawn_is_gathered_from_its_blocks() {
    let mut server = server(1);
    let lines = "mcmd=spawn\nnprocs=2\nexecname=/bin/a b\ntotspawns=2\nspawnssofar=1\nargcnt=2\narg1=x\narg2=y z=1\n\
                 preput_num=1\npreput_key_0=K\npreput_val_0=V\ninfo_num=0\nendcmd\n\
                 mcmd=spawn\nnprocs=1\nexecname=/bin/c\ntotspawns=2\nspawnssofar=2\nargcnt=0\ninfo_num=1\n\
                 info_key_0=wdir\ninfo_val_0=/tmp\nendcmd";
    let mut effects = Vec::new();
    for line in lines.lines() {
        assert!(effects.is_empty());
        effects = server.line(Proc(0), line.as_bytes()).unwrap();
    }
    let [Effect::Spawn { request, .. }] = &effects[..] else {
        panic!("{effects:?}");
    };
    assert_eq!(request.apps[0].args, ["x", "y z=1"]);
    assert_eq!(request.apps[1].info, [("wdir".to_string(), "/tmp".into())]);
    assert_eq!(request.preput, [(b"K".to_vec(), b"V".to_vec())]);
    assert!(
        answers(&mut server, 0, "cmd=get_maxes")[0]
            .1
            .contains("keylen_max=64")
    );
}

#[test]
fn bytes_that_are_not_utf_8_come_and_go_unchanged() {
    let mut server = server(1);
    let put = b"cmd=put kvsname=kvs_test_0 key=k\xe4 value=\xff\xfe";
    server.line(Proc(0), put).unwrap();
    let got = server.line(Proc(0), b"cmd=get kvsname=kvs_test_0 key=k\xe4");
    let got = bytes_of(&got.unwrap()[0]);
    assert!(got.ends_with(b" value=\xff\xfe\n"), "{got:?}");
    server
        .line(Proc(0), b"cmd=publish_name service=s\xe4 port=p\xff")
        .unwrap();
    let found = server.line(Proc(0), b"cmd=lookup_name service=s\xe4");
    let found = bytes_of(&found.unwrap()[0]);
    assert!(found.ends_with(b" port=p\xff\n"), "{found:?}");
}

/// Sends a spawn request whose program, argument and variable contain newlines and arbitrary bytes.
#[test]
fn a_spawn_has_any_bytes_and_newlines_come_as_digits() {
    let mut server = server(1);
    let reply = answers(&mut server, 0, "cmd=init pmi_version=1 pmi_subversion=1");
    assert!(reply[0].1.ends_with("portcullis_hex=1"), "{reply:?}");
    let lines: [&[u8]; 11] = [
        b"mcmd=spawn",
        b"nprocs=1",
        b"execname=/tmp/\xe4 b",
        b"totspawns=1",
        b"argcnt=2",
        b"arg1.hex=610A62ff",
        b"arg2=",
        b"info_num=1",
        b"info_key_0=wdir",
        b"info_val_0=/tmp/\xe4",
        b"endcmd",
    ];
    let mut effects = Vec::new();
    for line in lines {
        effects = server.line(Proc(0), line).unwrap();
    }
    let [Effect::Spawn { request, .. }] = &effects[..] else {
        panic!("{effects:?}");
    };
    let app = &request.apps[0];
    let os = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
    assert_eq!(app.program, os(b"/tmp/\xe4 b"));
    assert_eq!(app.args, [os(b"a\nb\xff"), os(b"")]);
    assert_eq!(app.info, [("wdir".to_string(), os(b"/tmp/\xe4"))]);

    server.line(Proc(0), b"mcmd=spawn").unwrap();
    let refused = server.line(Proc(0), b"arg1.hex=6g").unwrap_err();
    assert!(refused.to_string().contains("arg1.hex"), "{refused}");
}

proptest! {
    #[test]
    fn no_likely_line_makes_the_server_panic(
        lines in prop::collection::vec("(cmd|mcmd)=(init|finalize|put|get|barrier_in|abort|spawn|lookup_name)( (key|value|group|kvsname|pmi_version|pmi_subversion|portcullis_program|exitcode)=[0-9a-zA-Z:,_-]{0,12}){0,4}|(nprocs|argcnt|totspawns|info_num|execname|arg1)=[0-9a-z]{0,20}|endcmd", 0..30),
    ) {
        let mut server = server(3);
        for (n, line) in lines.iter().enumerate() {
            let _ = server.line(Proc(n % 3), line.as_bytes());
            if n == 10 {
                let _ = server.died(Proc(1));
            }
            if n == 20 {
                let _ = server.ended(Proc(2));
            }
        }
    }
}

#[test]
fn a_job_that_was_forgotten_leaves_nothing_and_its_numbers_do_not_come_again() {
    let mut server = server(1);
    for number in 1..100 {
        let job = server.add_job(&[0, 0], &[0, 0], &[("port".into(), "name".into())]);
        assert_eq!(job, Job(number));
        let first = 2 * number - 1;
        answers(
            &mut server,
            first,
            "cmd=init pmi_version=1 pmi_subversion=1",
        );
        answers(&mut server, first, "cmd=finalize");
        server.forget(job);
    }
    assert_eq!(
        (server.jobs.iter().count(), server.clients.iter().count()),
        (1, 1)
    );
    let got = answers(&mut server, 0, "cmd=get_my_kvsname");
    assert_eq!(got[0].1, "cmd=my_kvsname rc=0 kvsname=kvs_test_0");
}

#[test]
fn the_mapping_and_node_barriers_follow_the_hosts() {
    let mut server = Server::new("t", 1);
    server.add_job(&[0; 4], &[7, 7, 3, 7], &[]);
    let ask = |server: &mut Server, proc: usize, line: &str| {
        server.line(Proc(proc), line.as_bytes()).unwrap()
    };
    let said = ask(&mut server, 0, "cmd=get key=PMI_process_mapping");
    let text = format!("{:?}", String::from_utf8(bytes_of(&said[0])).unwrap());
    assert!(text.contains("(vector,(0,1,2),(1,1,1),(0,1,1))"), "{text}");
    // Rank 2 is alone on its node, so its barrier completes immediately.
    assert_eq!(ask(&mut server, 2, "cmd=barrier_in group=NODE:1").len(), 1);
    assert!(ask(&mut server, 0, "cmd=barrier_in group=NODE:1").is_empty());
    assert!(ask(&mut server, 1, "cmd=barrier_in group=NODE:1").is_empty());
    assert_eq!(ask(&mut server, 3, "cmd=barrier_in group=NODE:1").len(), 3);
}

fn bytes_of(effect: &Effect) -> Vec<u8> {
    match effect {
        Effect::Send(_, bytes) => bytes.clone(),
        other => panic!("{other:?} is not sent"),
    }
}

const INIT: &str = "cmd=init pmi_version=1 pmi_subversion=1";

/// Returns the effects of the `init` of a process with this ID.
fn init_of(server: &mut Server, proc: usize, process: u32) -> Vec<Effect> {
    let line = format!("{INIT} portcullis_program={process}");
    server.line(Proc(proc), line.as_bytes()).unwrap()
}

/// Runs the first program of every rank to its end.
fn finish_first_program(server: &mut Server, ranks: usize) {
    for proc in 0..ranks {
        assert_eq!(init_of(server, proc, 10).len(), 1);
        answers(server, proc, "cmd=put key=card value=first");
        answers(server, proc, "cmd=finalize");
    }
}

/// Returns the reason of a refusal of `init`, which is the only answer.
fn refusal_of(effects: Vec<Effect>, to: usize) -> String {
    let [(proc, line)] = &said(effects)[..] else {
        panic!("there is more than one answer")
    };
    assert!(*proc == to && line.contains("rc=-1"), "{line}");
    let message = Message::parse(line.as_bytes()).unwrap();
    let why = message.get("portcullis_why").unwrap();
    String::from_utf8(mpi_core::rte::wire::unhex(why).unwrap()).unwrap()
}

#[test]
fn the_next_program_begins_when_all_ranks_have_joined_it_and_has_its_own_values() {
    let mut server = server(2);
    for program in 1..=3 {
        finish_first_program_or_go_on(&mut server, program);
        assert_eq!(init_of(&mut server, 1, 21), []);
        // Rank 0 has the process of another library, which gets no memory.
        let mut effects = server.line(Proc(0), INIT.as_bytes()).unwrap();
        let job = format!("kvs_test_0.{program}");
        let Some(Effect::Welcome {
            proc: Proc(1),
            program: number,
            bytes,
        }) = effects.pop()
        else {
            panic!("{effects:?}");
        };
        let reply = String::from_utf8(bytes).unwrap();
        assert_eq!(number, program);
        assert!(
            reply.contains(&format!("portcullis_job={job} portcullis_program=21")),
            "{reply}"
        );
        assert_eq!(said(effects).len(), 1);
        let named = answers(&mut server, 0, "cmd=get_my_kvsname");
        assert!(named[0].1.ends_with(&job), "{named:?}");
        let absent = answers(&mut server, 0, "cmd=get key=card");
        assert!(absent[0].1.contains("rc=-1"), "{absent:?}");
        let kept = answers(&mut server, 0, "cmd=get key=PMI_process_mapping");
        assert!(kept[0].1.contains("rc=0"), "{kept:?}");
        // A barrier of this program waits for both ranks.
        assert!(answers(&mut server, 0, "cmd=barrier_in").is_empty());
        assert_eq!(answers(&mut server, 1, "cmd=barrier_in").len(), 2);
    }
}

fn finish_first_program_or_go_on(server: &mut Server, program: u32) {
    match program {
        1 => finish_first_program(server, 2),
        _ => {
            for proc in 0..2 {
                answers(server, proc, "cmd=put key=card value=later");
                answers(server, proc, "cmd=finalize");
            }
        }
    }
}

#[test]
fn who_joins_is_refused_when_another_rank_has_ended_before_or_ends_meanwhile() {
    let mut server = server(3);
    finish_first_program(&mut server, 3);
    assert_eq!(init_of(&mut server, 0, 20), []);
    let said = refusal_of(server.ended(Proc(1)), 0);
    assert!(
        said.starts_with("rank 1 has ended and runs no further program"),
        "{said}"
    );
    assert!(server.has_finalized(Proc(0)), "its end is no failure");
    let said = refusal_of(init_of(&mut server, 2, 20), 2);
    assert!(said.starts_with("rank 1 has ended"), "{said}");
    assert_eq!(server.ended(Proc(0)), []);
}

#[test]
fn a_process_that_joins_has_not_finalized() {
    let mut server = server(2);
    finish_first_program(&mut server, 2);
    assert_eq!(init_of(&mut server, 0, 20), []);
    assert!(!server.has_finalized(Proc(0)));
    // The process is killed, and the script starts another one, to which the reply is addressed.
    assert_eq!(init_of(&mut server, 0, 30), []);
    let effects = init_of(&mut server, 1, 21);
    let reply = effects.iter().find_map(|effect| match effect {
        Effect::Welcome {
            proc: Proc(0),
            bytes,
            ..
        } => Some(String::from_utf8_lossy(bytes)),
        _ => None,
    });
    assert!(reply.unwrap().contains("portcullis_program=30"));
}

#[test]
fn a_second_program_is_refused_while_the_first_has_not_finalized_or_if_an_option_forbids_it() {
    let mut server = server(1);
    init_of(&mut server, 0, 10);
    let said = refusal_of(init_of(&mut server, 0, 20), 0);
    assert_eq!(said, "the earlier program has not called MPI_Finalize");
    assert!(!server.has_finalized(Proc(0)));

    server.permit_one_program("with --trace, each rank runs one program");
    answers(&mut server, 0, "cmd=finalize");
    let said = refusal_of(init_of(&mut server, 0, 20), 0);
    assert_eq!(said, "with --trace, each rank runs one program");
    assert!(server.has_finalized(Proc(0)));
}

#[test]
fn a_spawned_rank_runs_one_program() {
    let mut server = server(1);
    server.add_job(&[0], &[0], &[]);
    init_of(&mut server, 1, 10);
    answers(&mut server, 1, "cmd=finalize");
    let said = refusal_of(init_of(&mut server, 1, 20), 1);
    assert_eq!(said, "a spawned rank runs one program");
}
