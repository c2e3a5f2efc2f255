//! Tests of launches that succeed: ranks, output, input, environment, exit codes.

mod common;

use common::Launch;

fn sh(n: &str, script: &str) -> common::Done {
    Launch::new(&["-n", n, "/bin/sh", "-c", script]).run()
}

#[test]
fn every_rank_runs_once_and_knows_itself() {
    let done = sh(
        "5",
        "echo $PMI_RANK/$PMI_SIZE $PORTCULLIS_LOCAL_RANK/$PORTCULLIS_LOCAL_SIZE",
    );
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(
        done.sorted(),
        ["0/5 0/5", "1/5 1/5", "2/5 2/5", "3/5 3/5", "4/5 4/5"]
    );
    assert_eq!(done.stderr, "");
}

#[test]
fn bound_ranks_get_the_number_of_ranks_that_share_their_cores() {
    let shared = |n: &str, bind: &str| {
        let script = "echo ${PORTCULLIS_LOCAL_SHARERS-not told}";
        let launch = ["-n", n, "--bind-to", bind, "/bin/sh", "-c", script];
        let done = Launch::new(&launch).run();
        done.sorted()
            .into_iter()
            .map(String::from)
            .collect::<Vec<_>>()
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    if cores > 1 {
        assert_eq!(shared("2", "core"), ["1", "1"]);
    }
    assert_eq!(shared("1", "none"), ["not told"]);
    // If cores are oversubscribed, no rank has a core of its own, whether it is bound or not.
    let crowd = (cores + 1).to_string();
    let told = shared(&crowd, "core");
    assert_eq!(told, vec!["not told"; cores + 1]);
}

#[test]
fn more_cores_for_each_rank_than_the_host_has_are_an_error() {
    for option in [["--map-by", "slot:PE=4096"], ["--bind-to", "core:4096"]] {
        let done = Launch::new(&["-n", "1", option[0], option[1], "true"]).run();
        assert_eq!(done.code, 1, "{done:?}");
        let said = "4096 of the units \"core\" cannot be bound to each of 1 ranks";
        assert!(done.stderr.contains(said), "{done:?}");
    }
}

#[test]
fn too_few_descriptors_are_reported_with_the_limit_to_raise() {
    let limited = "ulimit -n 20; exec \"$0\" -n 2 true";
    let done = std::process::Command::new("sh")
        .args(["-c", limited, env!("CARGO_BIN_EXE_mpirun")])
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{stderr}");
    assert!(
        stderr.contains("ulimit -n is 20, and mpirun needs"),
        "{stderr}"
    );
}

#[test]
fn ranks_that_share_cores_are_started_without_restartable_sequences() {
    let told = |n: usize, before: &str| {
        let args = [
            "-n",
            &n.to_string(),
            "/bin/sh",
            "-c",
            "echo $GLIBC_TUNABLES",
        ];
        let done = Launch::new(&args).env("GLIBC_TUNABLES", before).run();
        assert_eq!(done.code, 0, "{done:?}");
        let mut told: Vec<String> = done.stdout.lines().map(String::from).collect();
        assert_eq!(told.len(), n);
        told.dedup();
        told
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    assert_eq!(told(cores, ""), [""]);
    assert_eq!(told(cores + 1, ""), ["glibc.pthread.rseq=0"]);
    let own = "glibc.malloc.arena_max=1:glibc.pthread.rseq=1";
    assert_eq!(told(cores + 1, own), [own]);
}

#[test]
fn lines_of_different_ranks_do_not_mix() {
    // All ranks write at the same time, and each line in many small pieces.
    let script =
        "for i in 1 2 3 4 5; do for c in a b c d e f g h; do printf $PMI_RANK$c; done; echo; done";
    let done = sh("8", script);
    assert_eq!(done.stdout.lines().count(), 40);
    for line in done.stdout.lines() {
        let rank = &line[..1];
        let whole: String = "abcdefgh"
            .chars()
            .flat_map(|c| [rank.to_string(), c.to_string()])
            .collect();
        assert_eq!(line, whole);
    }
}

#[test]
fn a_last_line_without_a_newline_is_not_lost() {
    assert_eq!(sh("1", "printf 'one\\ntwo'").stdout, "one\ntwo");
}

#[test]
fn much_output_arrives_whole() {
    let done = sh(
        "2",
        "head -c 3000000 /dev/zero | tr '\\0' x; echo; echo end",
    );
    assert_eq!(done.code, 0);
    // An incomplete line may be printed, with a newline before the other rank's bytes.
    let of = |wanted: char| done.stdout.chars().filter(|c| *c == wanted).count();
    assert_eq!(of('x'), 2 * 3_000_000);
    assert_eq!(done.stdout.lines().filter(|line| *line == "end").count(), 2);
}

#[test]
fn standard_output_and_error_stay_apart() {
    let done = sh("1", "echo out; echo err >&2");
    assert_eq!(
        (done.stdout.as_str(), done.stderr.as_str()),
        ("out\n", "err\n")
    );
}

#[test]
fn input_goes_to_rank_0_only() {
    let script = "read line; echo $PMI_RANK:$line";
    let done = Launch::new(&["-n", "3", "sh", "-c", script]).run_with_input("hello\n");
    assert_eq!(done.sorted(), ["0:hello", "1:", "2:"]);
}

#[test]
fn tags_name_the_rank_and_the_stream() {
    let done = Launch::new(&["-n", "2", "--tag-output", "sh", "-c", "echo x; echo y >&2"]).run();
    assert_eq!(done.sorted(), ["[1,0]<stdout>: x", "[1,1]<stdout>: x"]);
    assert!(done.stderr.contains("[1,1]<stderr>: y"));
}

#[test]
fn the_exit_code_is_that_of_the_first_rank_that_fails() {
    let done = sh("3", "[ $PMI_RANK = 2 ] && exit 7; sleep 10; exit 3");
    assert_eq!(done.code, 7);
    assert!(
        done.stderr.contains("rank 2 (of 3; /bin/sh, pid "),
        "{}",
        done.stderr
    );
    assert!(
        done.stderr.contains("exited with status 7"),
        "{}",
        done.stderr
    );
}

#[test]
fn the_environment_is_passed_and_can_be_set() {
    let args = [
        "-n",
        "1",
        "-x",
        "A=one two",
        "-env",
        "B",
        "2",
        "--mca",
        "btl",
        "^tcp",
        "sh",
        "-c",
    ];
    let script = "echo \"$A,$B,$C,$PORTCULLIS_MCA_btl,$PORTCULLIS_MPIRUN_MCA\"";
    let done = Launch::new(&[&args[..], &[script]].concat())
        .env("C", "3")
        .run();
    assert_eq!(done.stdout, "one two,2,3,^tcp,btl\n");
}

#[test]
fn programs_of_one_job_are_numbered_through() {
    let script = "echo $1:$PMI_RANK/$PMI_SIZE:$PORTCULLIS_APPNUM";
    let line = [
        "-n",
        "1",
        "sh",
        "-c",
        script,
        "x",
        "a",
        ":",
        "-n",
        "2",
        "-wdir",
        "/tmp",
        "sh",
        "-c",
        "echo b:$PMI_RANK/$PMI_SIZE:$PORTCULLIS_APPNUM; pwd",
    ];
    let done = Launch::new(&line).run();
    assert_eq!(
        done.sorted(),
        ["/tmp", "/tmp", "a:0/3:0", "b:1/3:1", "b:2/3:1"]
    );
}

#[test]
fn a_missing_program_is_127_and_starts_nothing() {
    let done = Launch::new(&["-n", "1", "echo", "x", ":", "-n", "2", "no-such-program"]).run();
    assert_eq!((done.code, done.stdout.as_str()), (127, ""));
    assert_eq!(
        done.stderr,
        "mpirun: there is no program no-such-program in PATH\n"
    );
    let done = Launch::new(&["/etc/passwd"]).run();
    assert_eq!(done.code, 126);
    let done = Launch::new(&["-wdir", "/nowhere", "true"]).run();
    assert_eq!(
        done.stderr,
        "mpirun: there is no working directory /nowhere\n"
    );
}

#[test]
fn a_script_without_an_interpreter_line_runs_as_from_a_shell() {
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("script");
    bounded::write_program(&script, "echo from a script: $1\n").unwrap();
    let done = Launch::new(&[script.to_str().unwrap(), "arg"]).run();
    assert_eq!(done.stdout, "from a script: arg\n");
}

#[test]
fn sixty_ranks_run_on_any_machine() {
    let done = sh("60", "echo $PMI_RANK");
    assert_eq!((done.code, done.stdout.lines().count()), (0, 60));
}

#[test]
fn ranks_get_the_callers_limits_and_no_strange_descriptors() {
    let script = "echo $(ls /proc/self/fd | wc -l) $(ulimit -n)";
    let shell = std::process::Command::new("sh")
        .args(["-c", script])
        .output()
        .unwrap();
    let shell = String::from_utf8(shell.stdout).unwrap();
    let (files, limit) = shell.trim().split_once(' ').unwrap();
    // The two additional descriptors are the PMI socket and the node segment.
    let expected = format!("{} {limit}", files.parse::<u32>().unwrap() + 2);
    assert_eq!(sh("3", script).sorted(), [expected.as_str(); 3]);
}

#[test]
fn an_outer_launch_does_not_show_in_an_inner_one() {
    let mpirun = env!("CARGO_BIN_EXE_mpirun");
    let inner = format!("{mpirun} -n 2 sh -c 'echo $PMI_RANK/$PMI_SIZE'");
    let done = Launch::new(&["-n", "1", "sh", "-c", &inner]).run();
    assert_eq!(done.sorted(), ["0/2", "1/2"]);
}

#[test]
fn verbose_names_what_is_started() {
    let done = Launch::new(&["-v", "-n", "2", "true"]).run();
    assert_eq!((done.code, done.stderr.lines().count()), (0, 2));
    assert!(
        done.stderr.starts_with("mpirun: rank 0 (of 2; true, pid "),
        "{}",
        done.stderr
    );
}

#[test]
fn a_rankfile_binds_each_rank_to_the_cores_it_names() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ranks");
    std::fs::write(&file, "rank 0=localhost slot=0\nrank 1=localhost\n").unwrap();
    let file = file.to_str().unwrap();
    let script = "echo $PMI_RANK $(taskset -pc $$ | sed 's/.*: //')";
    let run = |more: &[&str]| {
        let words = [&["--rankfile", file][..], more, &["/bin/sh", "-c", script]].concat();
        Launch::new(&words).run()
    };
    let done = run(&["--report-bindings"]);
    assert_eq!(done.code, 0, "{done:?}");
    let mine = common::run_bounded(std::process::Command::new("sh").args(["-c", script]));
    let mine = String::from_utf8(mine.stdout).unwrap();
    let lines = done.sorted();
    let cpus = lines[0].strip_prefix("0 ").unwrap();
    assert_eq!(lines[1].strip_prefix("1 "), Some(mine.trim()));
    let told = done
        .stderr
        .lines()
        .find(|line| line.contains("Rank 0 bound to package["));
    assert!(
        told.unwrap().ends_with(&format!("(cpu {cpus})")),
        "{done:?}"
    );
    // The rankfile names a core that no machine has.
    let folder = tempfile::tempdir().unwrap();
    let wrong = folder.path().join("ranks");
    std::fs::write(&wrong, "rank 0=localhost slot=0:60000").unwrap();
    let done = Launch::new(&["-rf", wrong.to_str().unwrap(), "/bin/true"]).run();
    assert_eq!(done.code, 1, "{done:?}");
    let said = "the rankfile binds rank 0 to core 60000 of package 0, which ";
    assert!(done.stderr.contains(said), "{done:?}");
}

/// Returns a field of `/proc/PID/status` in KiB.
fn kib(pid: i32, field: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    line.split_whitespace().next()?.parse().ok()
}

#[test]
fn a_launcher_that_only_waits_returns_its_startup_memory() {
    let job = Launch::new(&["-n", "1", "sh", "-c", "echo up; sleep 1000"]).start(1);
    let front = job.mpirun();
    let children = std::fs::read_to_string(format!("/proc/{front}/task/{front}/children"));
    let agent: i32 = children.unwrap().trim().parse().unwrap();
    // Both processes have returned a fifth of their peak memory to the kernel.
    // The C library's pages, which other processes share, remain resident.
    let is_slim = |pid: &i32| Some(kib(*pid, "VmRSS:")? * 5 < kib(*pid, "VmHWM:")? * 4);
    let begin = std::time::Instant::now();
    let mut slim = false;
    while !slim && begin.elapsed() < common::PATIENCE {
        std::thread::sleep(std::time::Duration::from_millis(10));
        slim = [front, agent].iter().all(|pid| is_slim(pid) == Some(true));
    }
    job.signal_mpirun(libc::SIGTERM);
    assert_eq!(job.end().code, 128 + libc::SIGTERM);
    assert!(slim, "mpirun keeps what it started with");
}

#[test]
fn a_run_that_is_recorded_or_replayed_refuses_to_spawn_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("run");
    let folder = folder.to_str().unwrap();
    // The rank speaks PMI-1 from a shell.
    let script = "eval \"exec 9<&$PMI_FD\"; \
        printf 'cmd=init pmi_version=1 pmi_subversion=1\\n' >&9; read -r greeting <&9; \
        printf 'mcmd=spawn\\nnprocs=1\\nexecname=/bin/echo\\ntotspawns=1\\nspawnssofar=1\\nargcnt=1\\narg1=spawned\\nendcmd\\n' >&9; \
        read -r answer <&9; echo \"$answer\"; printf 'cmd=finalize\\n' >&9; read -r bye <&9";
    let run = |options: &[&str]| {
        let words = [options, &["-n", "1", "bash", "-c", script]].concat();
        Launch::new(&words).run()
    };
    let free = run(&[]);
    assert_eq!(
        (free.code, free.stdout.contains("rc=0")),
        (0, true),
        "{free:?}"
    );
    assert!(free.stdout.contains("spawned"), "{free:?}");
    let recorded = run(&["--record", folder]);
    // A recording library would write this file.
    std::fs::write(format!("{folder}/rank.0"), "").unwrap();
    for refused in [recorded, run(&["--replay", folder])] {
        assert_eq!(refused.code, 0, "{refused:?}");
        assert!(!refused.stdout.contains("spawned"), "{refused:?}");
        assert!(!refused.stdout.contains("rc=0"), "{refused:?}");
        let why =
            "called MPI_Comm_spawn, which fails: a run that is recorded or replayed cannot spawn";
        assert!(refused.stderr.contains(why), "{refused:?}");
    }
}

/// Rank 0 speaks PMI-1 from a shell and spawns jobs on this host, on another host, and on both.
/// A report lists each job that mpirun still knows.
#[test]
fn spawned_jobs_that_have_ended_are_forgotten_on_whichever_host_they_ran() {
    const GREET: &str = "#!/bin/bash\n\
        eval \"exec 9<&$PMI_FD\"; printf 'cmd=init pmi_version=1 pmi_subversion=1\\n' >&9; read -r answer <&9\n";
    const FINALIZE: &str = "printf 'cmd=finalize\\n' >&9; read -r answer <&9\n";
    let folder = tempfile::tempdir().unwrap();
    let program = |name: &str, text: String| {
        let path = folder.path().join(name);
        bounded::write_program(&path, &(GREET.to_string() + &text)).unwrap();
        path.display().to_string()
    };
    let child = program(
        "child",
        format!("{FINALIZE}printf 'spawned: '; exit ${{1:-0}}\n"),
    );
    let parent = program(
        "parent",
        format!(
            "for code in 0 3; do for hosts in localhost b localhost,b; do\n\
             printf \"mcmd=spawn\\nnprocs=2\\nexecname={child}\\ntotspawns=1\\nspawnssofar=1\\n\" >&9\n\
             printf \"argcnt=1\\narg1=$code\\ninfo_num=1\\ninfo_key_0=host\\ninfo_val_0=$hosts\\nendcmd\\n\" >&9\n\
             read -r answer <&9; done; done\n\
             : >\"$1.begun\"; while ! [ -e \"$1\" ]; do sleep 0.02; done; {FINALIZE}"
        ),
    );
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (report, end) = (path("report"), path("end"));
    let agent = common::agent(folder.path());
    let hosts = ["--launch-agent", &agent, "--host", "localhost:9,b:9"];
    let what = ["--hang-report", &report, "-n", "1", &parent, &end];
    let job = Launch::new(&[&hosts[..], &what].concat()).start(0);
    let begin = std::time::Instant::now();
    let late = || begin.elapsed() > common::PATIENCE;
    while !std::fs::exists(path("end.begun")).unwrap() && !late() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let known = || -> Option<usize> {
        let text = std::fs::read_to_string(&report).ok()?;
        let report: serde_json::Value = serde_json::from_str(&text).ok()?;
        Some(report["jobs"].as_array()?.len())
    };
    let mut left = None;
    while left != Some(1) && !late() {
        let _ = std::fs::remove_file(&report);
        job.signal_mpirun(libc::SIGUSR1);
        while known().is_none() && !late() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        left = known();
    }
    std::fs::write(&end, "").unwrap();
    let done = job.end();
    assert_eq!(left, Some(1), "the number of jobs that mpirun knows");
    assert_eq!(done.code, 3, "{done:?}");
}

#[test]
fn each_program_finds_the_variables_of_its_part() {
    let print = |name: &str| format!("echo {name} $COLOUR");
    let done = Launch::new(&[
        "-n",
        "1",
        "-x",
        "COLOUR=red",
        "sh",
        "-c",
        &print("a"),
        ":", //
        "-n",
        "1",
        "sh",
        "-c",
        &print("b"),
        ":", //
        "-n",
        "1",
        "-x",
        "COLOUR=blue",
        "sh",
        "-c",
        &print("c"),
    ])
    .run();
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert_eq!(done.sorted(), ["a red", "b", "c blue"]);
}

#[test]
fn the_allocation_is_shown_and_the_job_runs() {
    let done = Launch::new(&[
        "--display",
        "allocation,map",
        "-host",
        "localhost:2",
        "-n",
        "2",
        "true",
    ])
    .run();
    assert_eq!(done.code, 0, "{}", done.stderr);
    let shown = "mpirun: hosts of this job:\n  localhost: 2 slots\n";
    assert!(done.stderr.starts_with(shown), "{}", done.stderr);
    assert!(
        done.stderr.contains("localhost: 0-1 (true) of 2 slots"),
        "{}",
        done.stderr
    );
}
