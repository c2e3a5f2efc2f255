//! Tests of reads of registered memory: the data arrive, memory that was withdrawn or a foreign key is an error, and an end is noticed before a sleep.

#![allow(unsafe_code)]

use super::super::{Btl, GetError, Region, RemoteRead};
use super::net::{Net, Nothing, pattern};
use std::time::{Duration, Instant};

fn region(data: &mut [u8]) -> Region {
    Region {
        address: data.as_mut_ptr().expose_provenance() as u64,
        len: data.len() as u64,
    }
}

fn reads(btl: &dyn Btl) -> Option<&dyn RemoteRead> {
    btl.capabilities().remote_read
}

/// The first process of the pair reads the memory of the second.
pub fn registered_memory_is_read_whole_or_not_at_all(net: Net) {
    let (Some(reader), Some(owner)) = (reads(net.from()), reads(net.to())) else {
        return;
    };
    for len in [1, 4097, 3 << 20] {
        let mut theirs = pattern(len as u64, len);
        let mut ours = vec![0; len];
        // SAFETY: `theirs` lives until it is withdrawn below.
        let Some(exposed) = (unsafe { owner.expose(region(&mut theirs)) }) else {
            panic!("{len} bytes are not registered");
        };
        let limit = Instant::now() + Duration::from_secs(30);
        let read = loop {
            assert!(Instant::now() < limit, "{len} bytes are not read");
            // SAFETY: `ours` is not used before the outcome is known.
            match unsafe { reader.read(net.endpoint(), &exposed.key, region(&mut ours)) } {
                Ok(read) => break read,
                // The connection is being made.
                Err(GetError::Busy) => drop(net.pump(&Nothing)),
                Err(error) => panic!("{len} bytes: {error}"),
            }
        };
        let outcome = loop {
            if let Some(outcome) = reader.outcome(read) {
                break outcome;
            }
            assert!(Instant::now() < limit, "the read of {len} bytes has no end");
            net.pump(&Nothing);
        };
        owner.withdraw(exposed.number);
        assert!(outcome, "the read of {len} bytes has failed");
        assert!(ours == theirs, "{len} bytes came otherwise");
    }
    for nonsense in [&[][..], &[7; 3], &[0; 8]] {
        let mut ours = vec![0; 16];
        // SAFETY: a key that is too short is refused, so nothing uses the memory.
        let read = unsafe { reader.read(net.endpoint(), nonsense, region(&mut ours)) };
        assert!(read.is_err(), "a key of {} bytes", nonsense.len());
    }
}
