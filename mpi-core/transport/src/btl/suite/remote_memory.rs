//! Conformance tests of access to registered memory: data arrive complete and at their offset, and a malformed key is refused.

#![allow(unsafe_code)]

use super::super::{Btl, GetError, Region, RemoteMemory, Rights, Span};
use super::net::{Net, Nothing, pattern};
use std::time::{Duration, Instant};

fn region(data: &mut [u8]) -> Region {
    Region {
        address: data.as_mut_ptr().expose_provenance() as u64,
        len: data.len() as u64,
    }
}

fn memory(btl: &dyn Btl) -> Option<&dyn RemoteMemory> {
    btl.capabilities().remote_memory
}

/// Starts an access and waits until it has ended. While the transport is busy, for example with connecting, polls and tries again.
fn complete(net: &Net, what: &str, start: impl Fn(&dyn RemoteMemory) -> Result<u64, GetError>) {
    let limit = Instant::now() + Duration::from_secs(30);
    let accessing = memory(net.from()).expect("checked by the caller");
    let number = loop {
        assert!(Instant::now() < limit, "{what} does not begin");
        match start(accessing) {
            Ok(number) => break number,
            Err(GetError::Busy) => drop(net.pump(&Nothing)),
            Err(error) => panic!("{what}: {error}"),
        }
    };
    let outcome = loop {
        if let Some(outcome) = accessing.outcome(number) {
            break outcome;
        }
        assert!(Instant::now() < limit, "{what} has no end");
        net.pump(&Nothing);
    };
    assert!(outcome, "{what} has failed");
    assert_eq!(accessing.outcome(number), None, "{what} ends once");
}

/// The sender of the pair reads and writes memory of the receiver.
pub fn registered_memory_is_read_and_written_whole_or_not_at_all(net: Net) {
    let (Some(accessing), Some(owner)) = (memory(net.from()), memory(net.to())) else {
        return;
    };
    for len in [1, 4097, 3 << 20] {
        let mut theirs = pattern(len as u64, len + 24);
        // SAFETY: `theirs` lives until `withdraw` below.
        let Some(exposed) = (unsafe { owner.expose(region(&mut theirs), Rights::ReadWrite) })
        else {
            panic!("{len} bytes are not registered");
        };
        for offset in [0, 16] {
            let key = &exposed.key;
            let span = |local: &mut [u8]| Span {
                key,
                offset,
                local: region(local),
            };
            let here = offset as usize..offset as usize + len;
            let mut ours = vec![0; len];
            let local = span(&mut ours);
            // SAFETY: no other code accesses `ours` before the read has ended.
            complete(&net, "a read", |all| unsafe {
                all.read(net.endpoint(), local)
            });
            assert!(ours == theirs[here.clone()], "{len} bytes came otherwise");
            let mut new = pattern(len as u64 + 1 + offset, len);
            let local = span(&mut new);
            // SAFETY: `new` is neither written nor freed before the write has ended.
            complete(&net, "a write", |all| unsafe {
                all.write(net.endpoint(), local)
            });
            complete(&net, "a flush", |all| all.flush(net.endpoint()));
            assert!(new == theirs[here.clone()], "{len} bytes went otherwise");
            let after = &theirs[here.end..];
            let old = &pattern(len as u64, len + 24)[here.end..];
            assert!(after == old, "bytes behind {len} have changed");
        }
        owner.withdraw(exposed.number);
    }
    for key in [&[][..], &[7; 3], &[0; 8]] {
        let mut ours = vec![0; 16];
        let span = Span {
            key,
            offset: 0,
            local: region(&mut ours),
        };
        // SAFETY: a malformed key is refused, so no operation accesses the memory.
        let refused = unsafe {
            let to = net.endpoint();
            accessing.read(to, span).is_err() && accessing.write(to, span).is_err()
        };
        assert!(refused, "a key of {} bytes", key.len());
    }
}
