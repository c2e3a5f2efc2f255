//! Conformance test of zero-copy sends ([`Lending`](super::super::Lending)).

use super::super::{Header, OVERTAKES, SendError};
use super::net::{Keep, Net, pattern, send_numbered};

/// A full transport refuses a lent message; the sender sends it again or calls `leave_rest`. Ordered messages can be sent in between.
pub fn what_is_lent_arrives_whole_and_once_or_not_at_all(net: Net) {
    let Some(lending) = net.from().capabilities().lending else {
        return;
    };
    let (peer, len) = (net.endpoint(), net.from().info().limits.max_send);
    let (sink, mut ordered, mut refused, mut left) = (Keep::default(), 0, 0, Vec::new());
    let lend = |n: u64, data: &[u8]| lending.lend(peer, 3 | OVERTAKES, [n, !n], data);
    for n in 1000..1100 {
        let data = pattern(n, len);
        while let Err(error) = lend(n, &data) {
            assert_eq!(error, SendError::WouldBlock);
            refused += 1;
            let another = lend(n + 1, &data);
            assert_eq!(another, Err(SendError::WouldBlock));
            if ordered < 500 && send_numbered(net.from(), peer, ordered, 100).is_ok() {
                ordered += 1;
            }
            if refused % 9 == 0 {
                lending.leave_rest(peer, 3 | OVERTAKES, [n, !n], &data);
                left.push(n);
                break;
            }
            net.pump(&sink);
        }
    }
    assert!(ordered > 0 && !left.is_empty(), "there was always room");
    // The last ordered message arrives after all messages that were accepted before it.
    while send_numbered(net.from(), peer, ordered, 100).is_err() {
        net.pump(&sink);
    }
    let last = |(header, _): &(Header, Vec<u8>)| header[0] == ordered;
    net.pump_until(&sink, || sink.0.borrow().last().is_some_and(last));
    let mut came = Vec::new();
    for (header, payload) in sink.0.borrow().iter() {
        let whole = pattern(header[0], if header[0] < 1000 { 100 } else { len });
        assert!(*payload == whole, "bytes of message {}", header[0]);
        came.push(header[0]);
    }
    let (lent, numbered): (Vec<u64>, Vec<u64>) = came.into_iter().partition(|n| *n >= 1000);
    assert!(numbered.into_iter().eq(0..=ordered));
    assert!(lent.is_sorted_by(|a, b| a < b), "{lent:?}");
    let missing = (1000..1100).filter(|n| !lent.contains(n));
    assert!(missing.clone().all(|n| left.contains(&n)), "{lent:?}");
    assert!(missing.count() < left.len(), "nothing was begun: {left:?}");
}
