//! Copying the data of messages.
//!
//! The C library's `memcpy` is the right one for nearly all of them, but not for those between 2 and 4 KiB:
//! from about 2 KiB on it uses `rep movsb` on processors that say that this is fast for short strings too ("FSRM"),
//! and on AMD's it has much to do before it begins (glibc's bug 30994).
//! So such data are copied in blocks that are short enough for its loop of vectors.
//! Longer data are better off with `rep movsb`, because it overwrites lines without asking the other core for what they held.
//!
//! Two processes on two cores of a Zen 5 that share a cache, `mpi-bench latency` in microseconds and `bw` in MB/s,
//! whole into room that was not fetched before, and in blocks into room that was (`ring/memory.rs`), in turns, builds without link-time optimisation:
//!
//! | bytes | whole | in blocks | whole | in blocks |
//! |---|---|---|---|---|
//! | 2,304 | 0.313 | 0.253 | 18,800 | 18,400 |
//! | 3,072 | 0.325 | 0.288 | 23,200 | 24,000 |
//! | 4,096 | 0.324 | 0.362 | 26,800 | 21,900 |
//! | 6,144 | 0.352 | 0.456 | 38,300 | 26,800 |
//! | 8,192 | 0.394 | 0.525 | 45,400 | 27,900 |

/// The longest run that is copied at once, unless it is long.
const BLOCK: usize = 2 << 10;

/// From here on `rep movsb` is the faster one, and memory that is to be written is not to be fetched before.
pub(crate) const LONG: usize = 4 << 10;

/// Copies `data` to `room`, which has the same length.
#[inline(always)]
pub fn copy(data: &[u8], room: &mut [u8]) {
    match data.len() {
        // The commonest message is one word; spelling it out saves the call.
        8 => {
            if let (Some(room), Some(word)) = (room.first_chunk_mut::<8>(), data.first_chunk()) {
                *room = *word;
            }
        }
        ..=BLOCK | LONG.. => room.copy_from_slice(data),
        _ => in_blocks(data, room),
    }
}

#[inline(never)]
fn in_blocks(data: &[u8], room: &mut [u8]) {
    for (data, room) in data.chunks(BLOCK).zip(room.chunks_mut(BLOCK)) {
        room.copy_from_slice(data);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_of_every_length_are_copied_whole_and_nothing_beside_them() {
        let data: Vec<u8> = (0..3 * LONG)
            .map(|i| (i * 7 + (i >> 8)) as u8 | 1)
            .collect();
        for len in (0..300)
            .chain(BLOCK - 9..BLOCK + 9)
            .chain(LONG + 4000..LONG + 4200)
            .chain(LONG - 9..LONG + 9)
        {
            let mut room = vec![0; len + 2];
            copy(&data[..len], &mut room[1..=len]);
            assert_eq!(room[1..=len], data[..len], "{len} bytes");
            assert_eq!((room[0], room[len + 1]), (0, 0), "{len} bytes");
        }
    }
}
