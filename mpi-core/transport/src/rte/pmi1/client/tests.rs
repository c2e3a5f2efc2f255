//! Tests of the PMI-1 client with a simulated server, and with invalid replies.

use super::*;
use proptest::prelude::*;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::collections::HashMap;
use std::thread::JoinHandle;

/// Starts a server that replies to `put` and `get`, and fails on lines that Slurm would truncate. Returns its values at the end.
fn server(socket: OwnedFd) -> JoinHandle<HashMap<String, String>> {
    std::thread::spawn(move || {
        let mut values = HashMap::new();
        let mut lines = Lines::default();
        let mut buffer = [0; 2048];
        loop {
            let got = rustix::io::read(&socket, &mut buffer).unwrap_or(0);
            if got == 0 {
                return values;
            }
            lines.push(&buffer[..got]);
            while let Ok(Some(line)) = lines.next_line() {
                assert!(line.len() < SEND_MAX, "{} bytes in a line", line.len());
                let message = Message::parse(&line).unwrap();
                let key = message.get("key").unwrap_or_default().to_string();
                let reply = match message.cmd() {
                    "put" => {
                        values.insert(key, message.need("value").unwrap().to_string());
                        Line::cmd("put_result")
                    }
                    _ => match values.get(&key) {
                        Some(value) => Line::cmd("get_result").with("rc", 0).with("value", value),
                        None => Line::cmd("get_result").with("rc", 1),
                    },
                };
                send_all(&socket, &reply.finish().unwrap()).unwrap();
            }
        }
    })
}

fn pair() -> (Client, OwnedFd) {
    let (ours, theirs) = socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )
    .unwrap();
    let mut client = Client::new(ours);
    client.set_kvsname("kvs_29380_0_568212898_host");
    (client, theirs)
}

#[test]
fn values_of_any_length_come_back() {
    let (mut client, theirs) = pair();
    let server = server(theirs);
    for (rank, len) in [0usize, 1, 440, 450, 451, 5000].into_iter().enumerate() {
        let value: Vec<u8> = (0..len).map(|n| n as u8).collect();
        client.put(rank as u32, "card", &value).unwrap();
        assert_eq!(client.get(rank as u32, "card").unwrap(), value);
    }
    assert!(matches!(
        client.get(99, "card"),
        Err(RteError::NoSuchKey { rank: 99, .. })
    ));
    drop(client);
    let values = server.join().unwrap();
    assert!(values.values().all(|value| value.len() <= VALUE_MAX + 4));
}

#[test]
fn keys_that_the_wire_cannot_carry_are_refused() {
    let (mut client, _theirs) = pair();
    for key in ["", "a b", "a=b", &"x".repeat(64)] {
        assert!(matches!(
            client.put(0, key, b"v"),
            Err(RteError::BadKey { .. })
        ));
    }
}

#[test]
fn a_launcher_that_goes_away_is_told_apart_from_one_that_refuses() {
    let (mut client, theirs) = pair();
    drop(theirs);
    assert!(matches!(
        client.barrier(),
        Err(RteError::LauncherLost { .. })
    ));
    let (mut client, theirs) = pair();
    send_all(&theirs, b"cmd=barrier_out rc=-1 msg=no\n").unwrap();
    let error = client.barrier().unwrap_err().to_string();
    assert_eq!(
        error,
        "barrier_in failed at the launcher: the request barrier_in was answered \"cmd=barrier_out rc=-1 msg=no\""
    );
}

fn death(job: &str, rank: u32) -> Death {
    let job = job.to_string();
    Death {
        job,
        rank,
        left: false,
    }
}

/// Returns a client that has requested death notices, and the server's end of its socket.
fn listening() -> (Client, OwnedFd) {
    let (mut client, theirs) = pair();
    let answer = b"cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n";
    send_all(&theirs, answer).unwrap();
    let greeting = Greeting {
        hears_deaths: true,
        ..Greeting::default()
    };
    client.init(greeting).unwrap();
    let mut buffer = [0; 256];
    let got = rustix::io::read(&theirs, &mut buffer).unwrap();
    assert_eq!(
        String::from_utf8_lossy(&buffer[..got]),
        "cmd=init pmi_version=1 pmi_subversion=1 portcullis_deaths=1\n"
    );
    (client, theirs)
}

#[test]
fn a_server_that_tells_of_no_deaths_is_not_asked_to() {
    let (mut client, theirs) = pair();
    send_all(&theirs, b"cmd=response_to_init rc=0\n").unwrap();
    client.init(Greeting::default()).unwrap();
    let mut buffer = [0; 256];
    let got = rustix::io::read(&theirs, &mut buffer).unwrap();
    assert_eq!(&buffer[..got], b"cmd=init pmi_version=1 pmi_subversion=1\n");
    assert_eq!(client.take_deaths(), []);
}

#[test]
fn deaths_are_never_taken_for_answers() {
    let (mut client, theirs) = listening();
    assert_eq!(client.take_deaths(), []);
    // Notices arrive before the reply, after it, and divided between two reads.
    let told = "cmd=process_died job=a rank=1\ncmd=barrier_out rc=0\ncmd=process_died job=b rank=0\ncmd=proc";
    send_all(&theirs, told.as_bytes()).unwrap();
    client.barrier().unwrap();
    assert_eq!(client.take_deaths(), [death("a", 1), death("b", 0)]);
    send_all(&theirs, b"ess_died rank=7 job=a\n").unwrap();
    assert_eq!(client.take_deaths(), [death("a", 7)]);
    assert_eq!(client.take_deaths(), []);
    send_all(&theirs, b"cmd=get_result rc=1\n").unwrap();
    assert!(matches!(
        client.get(3, "card"),
        Err(RteError::NoSuchKey { rank: 3, .. })
    ));
}

#[test]
fn failed_spawns_are_never_taken_for_answers_and_need_not_be_asked_for() {
    let (mut client, theirs) = pair();
    let told = format!(
        "cmd=spawn_failed job=a why={}\ncmd=barrier_out rc=0\ncmd=spawn_failed job=b why=0\n",
        hex(b"it has ended")
    );
    send_all(&theirs, told.as_bytes()).unwrap();
    client.barrier().unwrap();
    let (job, why) = ("a".to_string(), "it has ended".to_string());
    // A notice whose reason is not hexadecimal is dropped.
    assert_eq!(client.take_failed_spawns(), [FailedSpawn { job, why }]);
    assert_eq!(client.take_failed_spawns(), []);
}

#[test]
fn connections_are_reported_without_an_answer() {
    let (mut client, theirs) = pair();
    client.tell_connections(&[7, 1 << 39]).unwrap();
    client.tell_connections(&[]).unwrap();
    let mut buffer = [0; 256];
    let got = rustix::io::read(&theirs, &mut buffer).unwrap();
    assert_eq!(
        String::from_utf8_lossy(&buffer[..got]),
        "cmd=connections jobs=7,549755813888\ncmd=connections jobs=none\n"
    );
}

#[test]
fn a_server_that_hangs_up_has_told_of_all_deaths_before() {
    let (mut client, theirs) = listening();
    send_all(&theirs, b"cmd=process_died job=a rank=1\n").unwrap();
    drop(theirs);
    assert_eq!(client.take_deaths(), [death("a", 1)]);
    assert!(matches!(
        client.barrier(),
        Err(RteError::LauncherLost { .. })
    ));
}

#[test]
fn a_notice_without_a_process_is_ignored() {
    let (mut client, theirs) = listening();
    let told = "cmd=process_died job=a rank=-1\ncmd=process_died rank=1\nnonsense\ncmd=process_died job=a rank=2\n";
    send_all(&theirs, told.as_bytes()).unwrap();
    assert_eq!(client.take_deaths(), [death("a", 2)]);
}

#[test]
fn an_abort_message_is_one_word_on_the_wire() {
    let (client, theirs) = pair();
    send_abort(&client.socket, 42, "out of\ncheese");
    let mut buffer = [0; 256];
    let got = rustix::io::read(&theirs, &mut buffer).unwrap();
    assert_eq!(
        String::from_utf8_lossy(&buffer[..got]),
        "cmd=abort exitcode=42 message=out\\ of\\ cheese\n"
    );
}

proptest! {
    #[test]
    fn no_answer_makes_the_client_panic(answer: Vec<u8>) {
        let (mut client, theirs) = pair();
        send_all(&theirs, &answer).unwrap();
        send_all(&theirs, b"\n").unwrap();
        rustix::net::shutdown(&theirs, rustix::net::Shutdown::Write).unwrap();
        let _ = client.get(0, "card");
        let _ = client.kvsname();
        client.hears_deaths = true;
        let _ = client.take_deaths();
    }

    #[test]
    fn no_likely_answer_makes_the_client_panic(value in "([0-9]{0,3}:)?[0-9a-fg]{0,12}") {
        let (mut client, theirs) = pair();
        let answer = format!("cmd=get_result rc=0 value={value}\n");
        send_all(&theirs, answer.as_bytes()).unwrap();
        rustix::net::shutdown(&theirs, rustix::net::Shutdown::Write).unwrap();
        let _ = client.get(0, "card");
    }
}

/// Returns the outcome of a greeting as process 7, with these bytes from the server, and a descriptor with the last ones.
fn greeted_as_7(lines: &[&str]) -> Result<Welcome, RteError> {
    let (mut client, theirs) = pair();
    let file = mpi_base::mem::memfd("test", 1).unwrap();
    for line in lines {
        fdpass::send(theirs.as_fd(), line.as_bytes(), file.as_fd()).unwrap();
    }
    rustix::net::shutdown(&theirs, rustix::net::Shutdown::Write).unwrap();
    client.init(Greeting {
        program: Some(7),
        ..Greeting::default()
    })
}

#[test]
fn a_reply_to_an_earlier_process_of_the_rank_is_not_taken() {
    let reply = "cmd=response_to_init rc=0 portcullis_job=b portcullis_program=7\n";
    let stale = [
        "cmd=finalize_ack rc=0\n",
        "cmd=process_died job=a rank=1 left=1\n",
        "cmd=response_to_init rc=0 portcullis_job=a portcullis_program=6\n",
    ];
    for stale in [&stale[..], &[]] {
        let lines: Vec<&str> = stale.iter().copied().chain([reply]).collect();
        let Ok(Welcome::Taken { job, memory }) = greeted_as_7(&lines) else {
            panic!("process 7 is refused")
        };
        assert_eq!(job.as_deref(), Some("b"));
        assert!(memory.is_some());
    }
    let only_stale = greeted_as_7(&stale[..]);
    assert!(matches!(only_stale, Err(RteError::LauncherLost { .. })));
}

#[test]
fn a_refused_program_gets_the_reason() {
    let why = hex(b"rank 1 has ended");
    let line = format!("cmd=response_to_init rc=-1 portcullis_why={why} portcullis_program=7\n");
    let Ok(Welcome::NotNext { why }) = greeted_as_7(&[&line]) else {
        panic!("it is not refused")
    };
    assert_eq!(why, "rank 1 has ended");
}
