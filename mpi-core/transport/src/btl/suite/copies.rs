//! Conformance tests of single copy, by the receiver alone and by both processes together.

use std::cell::Cell;
use std::time::Duration;

use super::super::{Btl, CooperativeCopy, GetError, Region, Share};
use super::net::{Net, endpoint, pattern};

fn together(btl: &dyn Btl) -> &dyn CooperativeCopy {
    match btl
        .capabilities()
        .single_copy
        .and_then(|copy| copy.together())
    {
        Some(together) => together,
        None => panic!("{} does not copy together", btl.info().name),
    }
}

fn region(data: &[u8]) -> Region {
    Region {
        address: data.as_ptr().expose_provenance() as u64,
        len: data.len() as u64,
    }
}

/// If the system forbids single copy, `Forbidden` is the only valid result.
pub fn single_copy_reads_the_peers_memory_or_says_why_not(net: Net) {
    let Some(copy) = net.from().capabilities().single_copy else {
        return;
    };
    for len in [0, 1, 4097, 1 << 20] {
        // The ranks of this test are in one process, so the peer's memory is also mapped here.
        let theirs = pattern(len as u64, len);
        let mut ours = vec![0; len];
        let target = Cell::from_mut(&mut ours[..]).as_slice_of_cells();
        match copy.get(net.endpoint(), &[region(&theirs)], &[target]) {
            Ok(()) => assert!(ours == theirs),
            Err(error) => return assert_eq!(error, GetError::Forbidden),
        }
    }
    let nowhere = Region {
        address: 16,
        len: 1,
    };
    let result = copy.get(net.endpoint(), &[nowhere], &[&[Cell::new(0)]]);
    assert_eq!(result, Err(GetError::BadAddress));
}

/// The sender begins to help late, in time, or not at all.
/// If the system forbids the copy, the receiver's result is an error.
pub fn a_copy_together_is_whole_whoever_does_how_much(net: Net) {
    let copy = net.from().capabilities().single_copy;
    if copy.is_none_or(|copy| copy.together().is_none()) {
        return;
    }
    let procs = [net.procs[net.pair.0], net.procs[net.pair.1]];
    let mut btls = net.btls.into_iter();
    let (Some(receiver), Some(sender)) = (btls.next(), btls.next()) else {
        return;
    };
    let cases = [(1, 0), (4096, 0), (70_001, 3), (1 << 20, 20), (5 << 20, 0)];
    let datas = cases.map(|(len, _)| pattern(len as u64, len));
    let (ask, asked) = std::sync::mpsc::channel();
    let (tell, told) = std::sync::mpsc::channel::<Result<usize, GetError>>();
    std::thread::scope(|s| {
        let datas = &datas;
        s.spawn(move || {
            let copy = together(&*receiver);
            let peer = endpoint(&*receiver, procs[1]);
            for data in datas {
                let mut room = vec![0; data.len()];
                let target = Cell::from_mut(&mut room[..]).as_slice_of_cells();
                // Both lists of segments are divided, at different offsets.
                let target: Vec<_> = target.chunks(data.len().div_ceil(3)).collect();
                let from: Vec<_> = data.chunks(data.len().div_ceil(5)).map(region).collect();
                let to = target.iter().map(|run| Region {
                    address: run.as_ptr().expose_provenance() as u64,
                    len: run.len() as u64,
                });
                let Some(number) = copy.offer(data.len()) else {
                    panic!("a copy of {} bytes was not begun", data.len());
                };
                // A closed channel means that the other thread has failed; its panic reports the failure.
                if ask.send((number, to.collect::<Vec<_>>())).is_err() {
                    return;
                }
                let mut ours = 0;
                for share in [Share::Half, Share::Rest] {
                    let fetched = copy.fetch(peer, number, &from, &target, share);
                    if fetched.result == Err(GetError::Forbidden) {
                        return;
                    }
                    assert_eq!(fetched.result, Ok(()));
                    assert!(share == Share::Half || !fetched.open);
                    ours += fetched.bytes;
                }
                assert_eq!(told.recv(), Ok(Ok(data.len() - ours)));
                assert!(room == *data, "{ours} of {}", data.len());
            }
            while copy.offer(1 << 20).is_some() {}
            // The maximum number of cooperative copies is open. Closing one permits another.
            for number in 0..1000 {
                copy.close(number);
            }
            assert!(copy.offer(1).is_some());
        });
        let copy = together(&*sender);
        let peer = endpoint(&*sender, procs[0]);
        for (data, (_, late)) in datas.iter().zip(cases) {
            let Ok((number, to)) = asked.recv() else {
                return;
            };
            std::thread::sleep(Duration::from_micros(late));
            let data: Vec<_> = data.chunks(data.len().div_ceil(7)).collect();
            let _ = tell.send(copy.help(peer, number, &data, &to));
        }
    });
}
