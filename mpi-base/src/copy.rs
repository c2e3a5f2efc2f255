//! Copying the data of messages.
//!
//! The C library's `memcpy` is the right one for nearly all of them, but not for those of 2 to 8 KiB:
//! from about 2 KiB on it uses `rep movsb` on processors that say that this is fast for short strings too ("FSRM"),
//! and on AMD's it is not (glibc's bug 30994), least of all where the memory was in another core's cache.
//! So such data are copied in blocks that are short enough for its loop of vectors.
//!
//! Two threads of one process, on two cores of a Zen 5 that share a cache, 64 messages at a time through a ring, MB/s:
//!
//! | bytes | whole | in blocks |
//! |---|---|---|
//! | 2,048 | 21,700 | 21,600 |
//! | 2,304 | 16,500 | 28,900 |
//! | 4,096 | 16,900 | 29,300 |
//! | 8,192 | 31,400 | 36,400 |
//! | 12,288 | 47,500 | 39,200 |

/// The longest run that is copied at once, unless it is long.
const BLOCK: usize = 2 << 10;

/// From here on `rep movsb` is the faster one.
const LONG: usize = (8 << 10) + 1;

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
        let data: Vec<u8> = (0..LONG + 99)
            .map(|i| (i * 7 + (i >> 8)) as u8 | 1)
            .collect();
        for len in (0..300)
            .chain(BLOCK - 9..BLOCK + 9)
            .chain(4000..4200)
            .chain(LONG - 9..LONG + 9)
        {
            let mut room = vec![0; len + 2];
            copy(&data[..len], &mut room[1..=len]);
            assert_eq!(room[1..=len], data[..len], "{len} bytes");
            assert_eq!((room[0], room[len + 1]), (0, 0), "{len} bytes");
        }
    }
}
