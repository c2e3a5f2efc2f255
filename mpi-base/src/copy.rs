//! Copying of message payloads with the fastest method for their length.
//!
//! The C library's `memcpy` is the best choice for nearly all lengths, but not between 2 and 4 KiB:
//! from about 2 KiB on, it uses the instruction `rep movsb` on processors that execute short copies
//! by this instruction fast ("FSRM").
//! This instruction has a high start-up cost on AMD processors (glibc bug 30994).
//! Payloads of these lengths are therefore copied in blocks.
//! The blocks are short enough for `memcpy`'s vector loop.
//! For longer payloads `rep movsb` is faster,
//! because it overwrites cache lines without fetching their previous contents from the other core.
//!
//! Measured with two processes on two cores of a Zen 5 that share a cache,
//! in builds without link-time optimisation: `mpi-bench latency` in us and `bw` in MB/s.
//! "Whole" copies the payload by one `memcpy` into a buffer that was not prefetched;
//! "in blocks" is several calls, into a prefetched buffer (`ring/memory.rs`).
//! Runs of the two methods alternated. Columns 2 and 3 are us, columns 4 and 5 MB/s:
//!
//! | bytes | whole | in blocks | whole | in blocks |
//! |---|---|---|---|---|
//! | 2,304 | 0.313 | 0.253 | 18,800 | 18,400 |
//! | 3,072 | 0.325 | 0.288 | 23,200 | 24,000 |
//! | 4,096 | 0.324 | 0.362 | 26,800 | 21,900 |
//! | 6,144 | 0.352 | 0.456 | 38,300 | 26,800 |
//! | 8,192 | 0.394 | 0.525 | 45,400 | 27,900 |

/// Maximum length in bytes of one `memcpy`, for payloads shorter than [`LONG`].
const BLOCK: usize = 2 << 10;

/// Payload length in bytes from which `rep movsb` is faster, if its destination is not prefetched.
pub(crate) const LONG: usize = 4 << 10;

/// Copies `data` to `buffer`, which has the same length.
#[inline(always)]
pub fn copy(data: &[u8], buffer: &mut [u8]) {
    match data.len() {
        // The most frequent message has 8 bytes; this arm copies it without a function call.
        8 => {
            if let (Some(buffer), Some(word)) = (buffer.first_chunk_mut::<8>(), data.first_chunk())
            {
                *buffer = *word;
            }
        }
        ..=BLOCK | LONG.. => buffer.copy_from_slice(data),
        _ => in_blocks(data, buffer),
    }
}

#[inline(never)]
fn in_blocks(data: &[u8], buffer: &mut [u8]) {
    for (data, buffer) in data.chunks(BLOCK).zip(buffer.chunks_mut(BLOCK)) {
        buffer.copy_from_slice(data);
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
        // Miri takes a second for ten lengths.
        let step = if cfg!(miri) { 17 } else { 1 };
        for len in (0..300)
            .chain(BLOCK - 9..BLOCK + 9)
            .chain(LONG + 4000..LONG + 4200)
            .chain(LONG - 9..LONG + 9)
            .step_by(step)
        {
            let mut buffer = vec![0; len + 2];
            copy(&data[..len], &mut buffer[1..=len]);
            assert_eq!(buffer[1..=len], data[..len], "{len} bytes");
            assert_eq!((buffer[0], buffer[len + 1]), (0, 0), "{len} bytes");
        }
    }
}
