//! Fault tolerance (ULFM): communicators that are revoked, and jobs that survive the death of some of their ranks, in real processes.

use tests::Job;

/// A job of `survivors` in which ranks die by `kill -9`.
fn survivors(what: &str, ranks: u32, seed: u32) -> Job {
    let job = Job::of("survivors").arg(what).arg(seed.to_string());
    job.under_options(["--with-ft", "ulfm"]).ranks(ranks)
}

#[test]
fn communicators_are_revoked_agreed_on_and_shrunk_though_nobody_dies() {
    for ranks in [1, 2, 3, 5, 8] {
        Job::of("revoked").ranks(ranks).holds();
        let by_messages = Job::of("revoked").ranks(ranks);
        by_messages.with(["--mca", "btl", "tcp,self"]).holds();
    }
}
