//! Conformance tests of abandoned peers: a transport does not wait for a peer whose process has ended.

use super::super::{Am, Connections, Header, ProcId, SendError, Sink};
use super::net::{Keep, Net, must_send, send_numbered};

/// A sink that accepts the loss of the abandoned peer.
struct Heard;

impl Sink for Heard {
    fn deliver(&self, from: ProcId, am: Am, _: Header, _: &[u8]) {
        panic!("message {am} arrived from {from}, which has sent none");
    }
}

/// Sends until the transport refuses a message, or has accepted a thousand. The receiver does not poll, like a dead process.
fn send_to_the_dead(net: &Net, first: u64) {
    let len = net.from().info().limits.max_send;
    for n in first..first + 1000 {
        match send_numbered(net.from(), net.endpoint(), n, len) {
            Ok(()) => {}
            Err(SendError::WouldBlock) => return,
            Err(error) => panic!("message {n}: {error}"),
        }
    }
}

/// Abandons the receiver. One poll later, nothing must be left to be transmitted.
fn abandon(net: &Net) {
    let all = net.from().capabilities();
    let Some(connections) = all.connections else {
        return;
    };
    connections.abandon(net.procs[net.pair.1]);
    net.from().progress(&Heard);
    assert!(Connections::is_flushed(connections));
    // Both calls return at once, and the transport can be dropped.
    connections.flush();
    connections.shutdown();
}

pub fn a_peer_that_is_abandoned_before_it_is_connected_is_not_waited_for(net: Net) {
    if net.pair.0 != net.pair.1 {
        send_to_the_dead(&net, 0);
        abandon(&net);
    }
}

pub fn a_peer_that_is_abandoned_while_it_is_connected_is_not_waited_for(net: Net) {
    if net.pair.0 != net.pair.1 {
        let sink = Keep::default();
        must_send(net.from(), net.endpoint(), 0, 8);
        net.pump_until(&sink, || sink.len() == 1);
        send_to_the_dead(&net, 1);
        abandon(&net);
    }
}
