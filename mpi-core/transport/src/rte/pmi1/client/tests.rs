//! The client of PMI-1 against a server of this test, and against answers that mean nothing.

use super::*;
use proptest::prelude::*;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::collections::HashMap;
use std::thread::JoinHandle;

/// A server that answers `put` and `get`, and refuses lines that Slurm would cut.
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
