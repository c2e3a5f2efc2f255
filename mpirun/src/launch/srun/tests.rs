//! Tests of the srun command for a command line inside a Slurm allocation.

use super::*;
use crate::cli::{self, Request};

/// Returns the launcher for a command line in an allocation of n1 and n2, with srun in `PATH`.
fn handed(words: &str, more: &[(&str, &str)]) -> Launcher {
    let bin = tempfile::tempdir().unwrap();
    std::fs::write(bin.path().join("srun"), "").unwrap();
    let line = std::iter::once("mpirun").chain(words.split_whitespace());
    let Ok(Request::Job(mut plan)) = cli::request(line.map(OsString::from)) else {
        panic!("no job");
    };
    plan.env = vec![
        ("PATH".into(), bin.path().into()),
        ("SLURM_HOSTFILE".into(), "somewhere".into()),
        ("HOME".into(), "/nowhere".into()),
    ];
    let allocation = [
        ("SLURM_JOB_NODELIST", "n[1-2]"),
        ("SLURM_TASKS_PER_NODE", "4(x2)"),
    ];
    launcher(&plan, |name| {
        let mut pairs = more.iter().chain(&allocation);
        let found = pairs.find(|(known, _)| *known == name);
        found
            .map(|(_, value)| value.to_string())
            .filter(|value| !value.is_empty())
    })
    .unwrap()
}

fn arguments_of(launcher: Launcher) -> Vec<String> {
    let Launcher::Srun(command) = launcher else {
        panic!("{launcher:?}");
    };
    assert!(command.get_envs().all(|(name, _)| name != "SLURM_HOSTFILE"));
    let text = |word: &OsStr| word.to_string_lossy().into_owned();
    command.get_args().map(text).collect()
}

#[test]
fn srun_gets_the_host_of_every_rank() {
    let line = "-n 3 --host n1:2,n2:2 --map-by node ./program --its=own";
    assert_eq!(
        arguments_of(handed(line, &[])),
        [
            "--mpi=pmi2",
            "--ntasks=3",
            "--nodes=2",
            "--nodelist=n1,n2,n1",
            "--distribution=arbitrary",
            "--export=ALL",
            "--kill-on-bad-exit=1",
            "--quit-on-interrupt",
            "--input=0",
            "./program",
            "--its=own",
        ]
    );
}

#[test]
fn options_become_those_of_srun() {
    let line = "-n 2 --host n1:1,n2:1 --oversubscribe --tag-output --stdin none --bind-to core --wdir /elsewhere program";
    let arguments = arguments_of(handed(line, &[("SLURM_STEP_ID", "0")]));
    for expected in [
        "--overcommit",
        "--overlap",
        "--label",
        "--input=none",
        "--cpu-bind=cores",
        "--chdir=/elsewhere",
    ] {
        assert!(
            arguments.iter().any(|word| word == expected),
            "{expected}: {arguments:?}"
        );
    }
}

#[test]
fn several_programs_become_one_script_that_asks_for_its_rank() {
    let line = "-n 1 --host n1:4,n2:4 a b'c : -n 2 --host n2 -wdir /d -env X y;z e";
    let arguments = arguments_of(handed(line, &[]));
    let script = arguments.last().unwrap();
    assert_eq!(
        script,
        "if [ $SLURM_PROCID -lt 1 ]; then\nexec env PORTCULLIS_APPNUM=0 a 'b'\\''c'\nfi\n\
         if [ $SLURM_PROCID -lt 3 ]; then\ncd /d || exit 127\nexec env PORTCULLIS_APPNUM=1 'X=y;z' e\nfi\n"
    );
}

#[test]
fn options_that_srun_lacks_are_reported() {
    let Launcher::OurselvesBecause(why) =
        handed("-n 2 --host n1,n2 --timestamp-output program", &[])
    else {
        panic!("handed over");
    };
    assert_eq!(why, "srun has no --timestamp-output");
}

#[test]
fn a_job_that_survives_deaths_stays_ours() {
    let kept = handed("--with-ft ulfm -n 2 --host n1,n2 program", &[]);
    let Launcher::OurselvesBecause(why) = kept else {
        panic!("{kept:?}");
    };
    assert_eq!(why, "srun has no --with-ft that tells ranks of deaths");
    let given = handed("--with-ft no -n 2 --host n1,n2 program", &[]);
    assert!(matches!(given, Launcher::Srun(_)), "{given:?}");
}

#[test]
fn srun_gets_nothing_that_is_not_in_its_allocation() {
    for (line, more) in [
        ("-n 2 --host n1,elsewhere program", &[][..]),
        ("-n 2 --host localhost program", &[]),
        ("-n 2 --host n1,n2 program", &[("SLURM_JOB_NODELIST", "")]),
    ] {
        let launcher = handed(line, more);
        assert!(
            matches!(launcher, Launcher::Ourselves),
            "{line}: {launcher:?}"
        );
    }
}
