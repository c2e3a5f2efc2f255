//! Tests of the decorators; each test wraps a built-in transport.

use super::open::decorate;
use super::suite::{Keep, Net, Nothing, cramped, endpoint, pattern, send_numbered};
use super::{Info, OpenContext, Payload, ProcId, SendError, Sink, Transport, open_all};
use crate::rte::TestModex;
use mpi_base::node::Node;
use std::cell::RefCell;
use std::time::{Duration, Instant};

/// Returns two processes connected by the transport and the decorators that the parameters select.
fn net(pairs: &[(&str, &str)]) -> Net {
    let params = cramped(pairs);
    let modex = TestModex::default();
    let fd = Node::create(2).unwrap();
    let open = |me: u32| -> Vec<Transport> {
        let around = OpenContext {
            me,
            size: 2,
            node: Some((Node::attach(&fd, me).unwrap(), vec![0, 1])),
            params: &params,
            modex: Some(modex.of(me)),
        };
        open_all(&around).unwrap().btls
    };
    Net {
        btls: [open(0), open(1)].into_iter().flatten().collect(),
        procs: vec![0, 1],
        pair: (0, 1),
    }
}

mod late_over_sm {
    crate::btl_suite!(|| super::net(&[("btl", "sm"), ("btl_fault_late", "0.5")]));
}

mod late_and_checked_over_tcp {
    crate::btl_suite!(|| super::net(&[
        ("btl", "tcp"),
        ("btl_fault_late", "0.3"),
        ("btl_checksum_enable", "yes")
    ]));
}

mod checked_over_sm {
    crate::btl_suite!(|| super::net(&[("btl", "sm"), ("btl_checksum_enable", "yes")]));
}

/// Returns two processes with traced transports.
/// The temporary folder is removed on return, when the trace files are already open.
fn traced() -> Net {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace").display().to_string();
    net(&[("btl", "tcp"), ("btl_trace_file", &file)])
}

mod traced_over_tcp {
    crate::btl_suite!(super::traced);
}

#[derive(Default)]
struct Watch {
    came: RefCell<Vec<Vec<u8>>>,
    losses: RefCell<Vec<String>>,
}

impl Sink for Watch {
    fn deliver(&self, _: ProcId, _: u8, _: [u64; 2], payload: &[u8]) {
        self.came.borrow_mut().push(payload.to_vec());
    }

    fn lost(&self, _: ProcId, why: &str) {
        self.losses.borrow_mut().push(why.into());
    }
}

/// Sends messages until the receiver has been notified of a loss, or `count` messages have arrived.
fn send_many(net: &Net, count: u64) -> (Watch, Watch) {
    let (here, there) = (Watch::default(), Watch::default());
    let (from, to) = (&net.btls[0], &net.btls[1]);
    let peer = endpoint(&**from, 1);
    let limit = Instant::now() + Duration::from_secs(20);
    let mut sent = 0;
    while there.losses.borrow().is_empty() && (there.came.borrow().len() as u64) < count {
        assert!(Instant::now() < limit, "nothing has happened");
        if sent < count
            && from
                .send(peer, 1, [sent; 2], Payload::Bytes(&pattern(0, 500)))
                .is_ok()
        {
            sent += 1;
        }
        from.progress(&here);
        to.progress(&there);
    }
    while !there.losses.borrow().is_empty() && here.losses.borrow().is_empty() {
        assert!(Instant::now() < limit, "the sender has not been told");
        from.progress(&here);
        to.progress(&there);
    }
    (here, there)
}

#[test]
fn a_flipped_bit_goes_unseen_without_a_checksum() {
    let net = net(&[("btl", "tcp"), ("btl_fault_flip", "0.05")]);
    let (_, there) = send_many(&net, 1000);
    let came = there.came.borrow();
    let spoilt = came.iter().filter(|bytes| **bytes != pattern(0, 500));
    assert!(spoilt.count() > 10);
}

#[test]
fn a_flipped_bit_is_found_by_the_checksum_and_both_ends_are_told() {
    let net = net(&[
        ("btl", "tcp"),
        ("btl_fault_flip", "0.05"),
        ("btl_checksum_enable", "yes"),
    ]);
    let (here, there) = send_many(&net, 1000);
    assert!(
        there
            .came
            .borrow()
            .iter()
            .all(|bytes| *bytes == pattern(0, 500))
    );
    assert_eq!(
        *there.losses.borrow(),
        [
            "the connection between job ranks 1 and 0 was given up: 500 bytes that came over tcp do not fit their checksum"
        ]
    );
    assert_eq!(here.losses.borrow().len(), 1);
}

#[test]
fn a_refusing_transport_accepts_again_after_a_poll() {
    let net = net(&[("btl", "sm"), ("btl_fault_refuse", "1")]);
    let from = &net.btls[0];
    let peer = endpoint(&**from, 1);
    for _ in 0..3 {
        assert_eq!(
            send_numbered(&**from, peer, 0, 8),
            Err(SendError::WouldBlock)
        );
        assert!(from.pending());
        from.progress(&Nothing);
        assert!(!from.pending());
    }
}

#[test]
fn a_connection_is_cut_after_as_many_bytes_as_were_said() {
    let net = net(&[("btl", "tcp"), ("btl_fault_cut", "200k")]);
    let (here, there) = send_many(&net, 100_000);
    assert_eq!(here.losses.borrow().len(), 1);
    let came = there.came.borrow().len();
    assert!(came < 1000, "{came} messages of 500 bytes came");
}

/// Returns the capabilities of a transport as flags: single copy, lending, pipeline, connections, wake-up.
fn abilities(btl: &Transport) -> [bool; 5] {
    let able = btl.capabilities();
    [
        able.single_copy.is_some(),
        able.lending.is_some(),
        able.pipeline.is_some(),
        able.connections.is_some(),
        able.wakeup.is_some(),
    ]
}

#[test]
fn a_decorator_withholds_only_what_goes_around_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace").display().to_string();
    for transport in ["sm", "tcp"] {
        let of = |name: &str, value: &str| net(&[("btl", transport), (name, value)]);
        let plain = of("btl", transport);
        let (can, info) = (abilities(&plain.btls[0]), plain.btls[0].info());
        assert!(can[3], "{transport} has connections");
        for (name, value, sees_copies, longer) in [
            ("btl_fault_late", "0.5", true, 0),
            ("btl_checksum_enable", "yes", true, 4),
            ("btl_trace_file", &*file, false, 0),
        ] {
            let net = of(name, value);
            let [copy, _, rest @ ..] = can;
            let expected = [copy && !sees_copies, false];
            let [copy, lending, others @ ..] = abilities(&net.btls[0]);
            assert_eq!(([copy, lending], others), (expected, rest), "{name}");
            let mut limits = net.btls[0].info().limits;
            limits.eager += longer;
            limits.max_send += longer;
            let same = Info {
                limits,
                ..*net.btls[0].info()
            };
            assert_eq!(same, *info, "{name}");
        }
    }
}

#[test]
fn only_the_link_that_was_named_has_faults() {
    let params = cramped(&[("btl_fault_cut", "1"), ("btl_fault_link", "1")]);
    let around = OpenContext {
        me: 0,
        size: 1,
        node: None,
        params: &params,
        modex: None,
    };
    let open = || open_all(&around).unwrap().btls.remove(0);
    // A decorated transport has the same name, but its type has a different size.
    let size = |number| size_of_val(&*decorate(&around, number, open()).unwrap());
    assert_eq!(size(0), size_of_val(&*open()));
    assert_ne!(size(1), size(0));
}

#[test]
fn a_trace_has_a_line_for_each_message_at_each_end() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t").display().to_string();
    let net = net(&[("btl", "sm"), ("btl_trace_file", &file)]);
    let sink = Keep::default();
    let peer = endpoint(&*net.btls[0], 1);
    send_numbered(&*net.btls[0], peer, 3, 100).unwrap();
    while sink.len() == 0 {
        net.btls[1].progress(&sink);
    }
    drop(net);
    let read = |rank: u32| std::fs::read_to_string(format!("{file}.{rank}.0.json")).unwrap();
    let (sent, delivered) = (read(0), read(1));
    let end =
        r#""peer":1,"am":3,"header":["0x3","0xfffffffffffffffc"],"len":100,"result":"taken"}},"#;
    assert!(
        sent.starts_with("[\n{\"name\":\"send\",\"cat\":\"sm\",\"ph\":\"i\""),
        "{sent}"
    );
    assert!(sent.trim_end().ends_with(end), "{sent}");
    assert!(delivered.contains(r#""name":"deliver""#), "{delivered}");
    assert_eq!((sent.lines().count(), delivered.lines().count()), (2, 2));
}
