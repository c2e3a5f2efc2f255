//! Benchmark of packing and unpacking: the datatype engine against hand-written loops.
//!
//! The layouts follow DDTBench (Schneider, Gerstenberger, Hoefler, 2012): a matrix column, faces
//! of a cube, an indexed list, a structure of arrays, an array of structures, and contiguous data,
//! for which the hand-written code is memcpy.
//! Prints the median of many rounds in GB/s of packed data, and the ratio of the engine's time
//! to the time of the hand-written loop.
//!
//! `cargo bench -p mpi-types --bench pack`

use std::hint::black_box;
use std::time::Instant;

use mpi_types::datatype::{self, Datatype, Named, Order, RecvBuf, SendBuf, TypeError};

/// A hand-written loop that reads the matrix and writes the packed numbers.
type ByHand = dyn Fn(&[f64], &mut [f64]);

struct Case {
    name: &'static str,
    datatype: Datatype,
    count: i64,
    /// The loop that a program would contain if it did not use datatypes.
    by_hand: Box<ByHand>,
}

const N: usize = 256;

fn cases() -> Result<Vec<Case>, TypeError> {
    let double = Datatype::from(Named::DOUBLE);
    let n = N as i64;
    let list: Vec<i64> = (0..40_000).map(|i| i * 5 + i % 3).collect();
    let places = list.clone();
    let pairs: Vec<i64> = list.iter().step_by(2).copied().collect();
    let pair_places = pairs.clone();
    let face = |subsizes: [i64; 3]| {
        datatype::subarray(&[n, n, n], &subsizes, &[0, 0, 0], Order::C, &double)
    };
    let particle = Datatype::structure(
        &[3, 1, 2],
        &[0, 32, 48],
        &[double.clone(), Named::INT.into(), double.clone()],
    )?;
    let field = (N * N) as i64;
    let mut cases = vec![
        Case {
            name: "contiguous 512 KiB",
            datatype: double.clone(),
            count: field,
            by_hand: Box::new(|m, out| out[..N * N].copy_from_slice(&m[..N * N])),
        },
        Case {
            name: "matrix column (8 B)",
            datatype: Datatype::vector(field / 8, 1, 257, &double)?,
            count: 1,
            by_hand: Box::new(|m, out| {
                for (i, out) in out[..N * N / 8].iter_mut().enumerate() {
                    *out = m[i * 257];
                }
            }),
        },
        Case {
            name: "column, rows of 4 KiB",
            datatype: Datatype::vector(2048, 1, 512, &double)?,
            count: 1,
            by_hand: Box::new(|m, out| {
                for (i, out) in out[..2048].iter_mut().enumerate() {
                    *out = m[i * 512];
                }
            }),
        },
        Case {
            name: "two columns (16 B)",
            datatype: Datatype::vector(field / 8, 2, 257, &double)?,
            count: 1,
            by_hand: Box::new(|m, out| {
                for i in 0..N * N / 8 {
                    out[2 * i] = m[i * 257];
                    out[2 * i + 1] = m[i * 257 + 1];
                }
            }),
        },
        Case {
            name: "cube face yz",
            datatype: face([1, n, n])?,
            count: 1,
            by_hand: Box::new(|m, out| out[..N * N].copy_from_slice(&m[..N * N])),
        },
        Case {
            name: "cube face xz",
            datatype: face([n, 1, n])?,
            count: 1,
            by_hand: Box::new(|m, out| {
                for x in 0..N {
                    out[x * N..][..N].copy_from_slice(&m[x * N * N..][..N]);
                }
            }),
        },
        Case {
            name: "cube face xy (8 B)",
            datatype: face([n, n, 1])?,
            count: 1,
            by_hand: Box::new(|m, out| {
                for i in 0..N * N {
                    out[i] = m[i * N];
                }
            }),
        },
        Case {
            name: "sub-cube 16x16x4",
            datatype: face([16, 16, 4])?,
            count: 1,
            by_hand: Box::new(|m, out| {
                let mut to = 0;
                for x in 0..16 {
                    for y in 0..16 {
                        out[to..to + 4].copy_from_slice(&m[(x * N + y) * N..][..4]);
                        to += 4;
                    }
                }
            }),
        },
        Case {
            name: "indexed, blocks of 1",
            datatype: Datatype::indexed_block(1, &list, &double)?,
            count: 1,
            by_hand: Box::new(move |m, out| {
                for (out, &at) in out.iter_mut().zip(&places) {
                    *out = m[at as usize];
                }
            }),
        },
        Case {
            name: "indexed, lengths 1-3",
            datatype: Datatype::indexed(
                &(0..pairs.len() as i64)
                    .map(|i| 1 + i % 3)
                    .collect::<Vec<_>>(),
                &pairs,
                &double,
            )?,
            count: 1,
            by_hand: Box::new(move |m, out| {
                let mut to = 0;
                for (i, &at) in pair_places.iter().enumerate() {
                    let len = 1 + i % 3;
                    for k in 0..len {
                        out[to + k] = m[at as usize + k];
                    }
                    to += len;
                }
            }),
        },
        Case {
            name: "array of structs",
            datatype: particle,
            count: 10_000,
            by_hand: Box::new(|m, out| {
                // 44 bytes of every 64: doubles 0-2, an int in 4, doubles 6 and 7.
                let mut to = out.as_mut_ptr().cast::<u8>();
                for p in m.chunks_exact(8).take(10_000) {
                    let from = p.as_ptr().cast::<u8>();
                    // SAFETY: 44 bytes for each of 10,000 structures fit the output.
                    unsafe {
                        to.copy_from_nonoverlapping(from, 24);
                        to.add(24).copy_from_nonoverlapping(from.add(32), 4);
                        to.add(28).copy_from_nonoverlapping(from.add(48), 16);
                        to = to.add(44);
                    }
                }
            }),
        },
    ];
    // Not three arrays of 1000 doubles: together with their packed form they fill a 48 KiB
    // first-level cache exactly, so the result would vary by chance.
    for (name, each) in [
        ("struct of arrays, 500", 500),
        ("struct of arrays, 4000", 4000),
    ] {
        cases.push(Case {
            name,
            datatype: Datatype::structure(
                &[each; 3],
                &[0, field * 8, field * 16],
                &[double.clone(), double.clone(), double.clone()],
            )?,
            count: 1,
            by_hand: Box::new(move |m, out| {
                let n = black_box(each as usize);
                for f in 0..3 {
                    out[f * n..][..n].copy_from_slice(&m[f * N * N..][..n]);
                }
            }),
        });
    }
    Ok(cases)
}

/// Returns the median time of one call in seconds; short calls are timed in groups of sixteen.
fn median(mut f: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..201)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..16 {
                f();
            }
            start.elapsed().as_secs_f64() / 16.0
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() -> Result<(), TypeError> {
    let mut matrix: Vec<f64> = (0..N * N * N).map(|i| i as f64).collect();
    println!(
        "{:22} {:>10} {:>10} {:>10} {:>10} {:>7}  form",
        "layout", "bytes", "hand GB/s", "pack GB/s", "unpack", "ratio"
    );
    for case in cases()? {
        case.datatype.commit()?;
        let bytes = case.datatype.bytes(case.count) as usize;
        let mut out = vec![0f64; bytes / 8 + 8];
        let hand = median(|| (case.by_hand)(black_box(&matrix), black_box(&mut out)));
        // SAFETY: the matrix holds all elements of every case.
        // Nothing else uses the matrix while the buffers are alive.
        let (send, mut recv) = unsafe {
            (
                SendBuf::new(matrix.as_ptr().cast(), case.count, case.datatype.clone()),
                RecvBuf::new(
                    matrix.as_mut_ptr().cast(),
                    case.count,
                    case.datatype.clone(),
                ),
            )
        };
        let expected = out.clone();
        out.fill(0.0);
        // SAFETY: `out` has `bytes` bytes, and nothing else uses it here.
        // The loop and the engine write to the same address, for equal conditions.
        let packed =
            unsafe { std::slice::from_raw_parts_mut(out.as_mut_ptr().cast::<u8>(), bytes) };
        let pack = median(|| {
            black_box(send.pack_at(0, black_box(packed)));
        });
        assert!(out == expected, "{}: both pack the same", case.name);
        // SAFETY: `out` holds `bytes` packed bytes, and nothing else uses it here.
        let packed = unsafe { std::slice::from_raw_parts(out.as_ptr().cast::<u8>(), bytes) };
        let unpack = median(|| {
            black_box(recv.unpack_at(0, black_box(packed)));
        });
        let rate = |seconds: f64| bytes as f64 / seconds / 1e9;
        println!(
            "{:22} {:>10} {:>10.2} {:>10.2} {:>10.2} {:>7.2}  {}",
            case.name,
            bytes,
            rate(hand),
            rate(pack),
            rate(unpack),
            pack / hand,
            case.datatype.form()
        );
    }
    Ok(())
}
