//! Jobs that hang are explained: who waits for whom, and who is to blame.

use rustix::process::Signal;
use tests::Job;
use tests::hosts::Hosts;

fn explained(job: Job, parts: &[&str]) {
    let outcome = job.with(["--timeout", "1"]).run();
    assert_eq!(outcome.status.code(), Some(124), "{}", outcome.stderr);
    for part in parts {
        assert!(
            outcome.stderr.contains(part),
            "{part:?} is not in:\n{}",
            outcome.stderr
        );
    }
}

#[test]
fn the_common_mistakes_are_named() {
    for (way, parts) in [
        (
            "crossed",
            &[
                "wait for each other in a circle",
                "rank 0 is in MPI_Ssend with rank 1, tag 7",
            ][..],
        ),
        (
            "tag",
            &["in a circle", "their tags differ, so they never meet"],
        ),
        (
            "missing",
            &["rank 0 waits for rank 1, which is in MPI_Barrier"],
        ),
        ("computes", &["rank 0 waits for rank 1, which computes"]),
        (
            "left",
            &["rank 0 waits for rank 1, which has left: it is in MPI_Finalize"],
        ),
    ] {
        explained(Job::of("hang").arg(way).ranks(2), parts);
    }
}

#[test]
fn ranks_in_different_collectives_are_told_apart() {
    let parts = [
        "different collective operations are under way: rank 0 in MPI_Allreduce, rank 1 in MPI_Barrier",
    ];
    explained(Job::of("hang").arg("collective").ranks(2), &parts);
}

#[test]
fn ranks_of_other_hosts_are_in_the_report() {
    let Some(hosts) = Hosts::new(2) else { return };
    let hosts = hosts.network(0, &[1500]);
    let program = tests::compile("hang");
    let parts = [
        "wait for each other in a circle",
        "rank 1 is in MPI_Ssend with rank 0",
    ];
    explained(hosts.remote_job(&program, 1).arg("crossed"), &parts);
}

#[test]
fn stillness_and_a_signal_make_reports_and_the_job_goes_on() {
    let job = Job::of("leave").arg("wait").ranks(3);
    let job = job.with(["--hang-after", "300ms"]).start();
    job.ready(3);
    std::thread::sleep(std::time::Duration::from_millis(1200));
    job.signal(Signal::USR1);
    std::thread::sleep(std::time::Duration::from_millis(300));
    job.signal(Signal::TERM);
    let said = job.wait().stderr;
    assert_eq!(
        said.matches("nothing has moved for 0.3 s").count(),
        1,
        "{said}"
    );
    assert_eq!(
        said.matches("ranks 0, 1, 2 wait for each other in a circle")
            .count(),
        2,
        "{said}"
    );
}
