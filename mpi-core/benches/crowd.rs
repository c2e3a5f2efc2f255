//! Benchmark of waiting ranks on an oversubscribed node: a barrier over the sm transport,
//! and the CPU time that waiting ranks take from a rank that computes.
//!
//! `cargo bench -p mpi-core --bench crowd [-- ranks barriers]`
//!
//! The barrier is the dissemination algorithm (D. Hensgen, R. Finkel, U. Manber, 1988) on active messages alone; the ranks are threads.

use std::cell::RefCell;
use std::time::Instant;

use mpi_base::cpu::Cores;
use mpi_base::node::Node;
use mpi_base::occupancy::Occupancy;
use mpi_base::param::Params;
use mpi_base::wait::{WaitPolicy, Waiter};
use mpi_core::btl::{
    Am, Btl, Endpoint, Header, OpenContext, Payload, ProcId, Reach, Sink, open_all,
};

/// Counts arrivals for each round of the barrier.
struct Arrivals(RefCell<Vec<u64>>);

impl Sink for Arrivals {
    fn deliver(&self, _: ProcId, am: Am, _: Header, _: &[u8]) {
        self.0.borrow_mut()[usize::from(am)] += 1;
    }
}

struct Rank {
    node: Node,
    btl: Box<dyn Btl + Send>,
    partners: Vec<Endpoint>,
    arrivals: Arrivals,
    waiter: Waiter,
    barriers: u64,
}

impl Rank {
    fn join(fd: &std::os::fd::OwnedFd, me: u32, ranks: u32, policy: WaitPolicy) -> Rank {
        let node = Node::attach(fd, me).expect("our rank");
        let params = Params::default();
        let btl = open_all(&OpenContext {
            me,
            size: ranks,
            modex: None,
            node: Some((node.clone(), (0..ranks).collect())),
            params: &params,
        })
        .expect("the default selection")
        .btls
        .into_iter()
        .find(|btl| btl.info().name == "sm")
        .expect("sm is built in");
        let partners: Vec<_> = (0..u32::BITS)
            .map(|round| 1 << round)
            .take_while(|&step| step < ranks)
            .filter_map(|step| match btl.reach((me + step) % ranks) {
                Reach::Yes(endpoint) => Some(endpoint),
                Reach::No(_) => None,
            })
            .collect();
        Rank {
            arrivals: Arrivals(RefCell::new(vec![0; partners.len()])),
            waiter: Waiter::new(policy),
            barriers: 0,
            node,
            btl,
            partners,
        }
    }

    fn barrier(&mut self) {
        self.barriers += 1;
        for (round, &to) in self.partners.iter().enumerate() {
            let am = round as Am;
            while self
                .btl
                .send(to, am, [self.barriers, 0], Payload::Bytes(&[]))
                .is_err()
            {
                self.btl.progress(&self.arrivals);
            }
            self.waiter.reset();
            while self.arrivals.0.borrow()[round] < self.barriers {
                if self.btl.progress(&self.arrivals) > 0 {
                    self.waiter.reset();
                } else {
                    let doorbell = self.node.my_inbox().doorbell();
                    self.waiter.pause(doorbell, || self.btl.pending());
                }
            }
        }
    }
}

/// Runs work that the compiler cannot remove. Returns the seconds it took.
fn compute(steps: u64) -> f64 {
    let begin = Instant::now();
    let mut x = 1u64;
    for _ in 0..steps {
        x = std::hint::black_box(x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    }
    begin.elapsed().as_secs_f64()
}

fn main() {
    let mut args = std::env::args().skip(1);
    let ranks: u32 = args.next().and_then(|n| n.parse().ok()).unwrap_or(60);
    let barriers: u64 = args.next().and_then(|n| n.parse().ok()).unwrap_or(3000);
    let cores = Cores::of_this_process().usable;
    let policy = WaitPolicy::of(Occupancy::of(cores, ranks as usize));
    let fd = Node::create(ranks).expect("shared memory");
    let steps = 200_000_000;
    let alone = compute(steps);
    std::thread::scope(|s| {
        for me in 0..ranks {
            let fd = &fd;
            s.spawn(move || {
                let mut rank = Rank::join(fd, me, ranks, policy);
                for _ in 0..barriers / 10 {
                    rank.barrier();
                }
                let begin = Instant::now();
                for _ in 0..barriers {
                    rank.barrier();
                }
                let us = begin.elapsed().as_secs_f64() * 1e6 / barriers as f64;
                if me == 0 {
                    println!("{ranks} ranks on {cores} cores: {us:.1} us for a barrier");
                    let among = compute(steps);
                    println!(
                        "rank 0 computes {alone:.3} s alone, {among:.3} s while the others wait for it"
                    );
                }
                rank.barrier();
                // A rank must not end while other ranks may still send to it.
                rank.barrier();
            });
        }
    });
}
