use super::*;

fn parsed(line: &str) -> Result<Plan, CliError> {
    plan(
        std::iter::once("mpirun")
            .chain(line.split_whitespace())
            .map(OsString::from),
    )
}

fn value<'a>(plan: &'a Plan, name: &str) -> Option<&'a OsStr> {
    plan.env
        .iter()
        .find(|(n, _)| n == name)
        .map(|(_, v)| v.as_os_str())
}

#[test]
fn every_way_to_say_the_number_is_understood() {
    for form in [
        "-n 4", "-np 4", "--np 4", "-c 4", "-n4", "--n 4", "--np=4", "-np=4",
    ] {
        let plan =
            parsed(&format!("{form} prog -n 9")).unwrap_or_else(|error| panic!("{form}: {error}"));
        assert_eq!(plan.apps[0].procs, 4, "{form}");
        assert_eq!(plan.apps[0].args, ["-n", "9"], "{form}");
    }
    assert_eq!(parsed("prog").unwrap().apps[0].procs, 1);
}

#[test]
fn colons_separate_programs() {
    let plan = parsed("-n 2 a x : -np 3 -wdir /tmp b : c").unwrap();
    let procs: Vec<usize> = plan.apps.iter().map(|app| app.procs).collect();
    assert_eq!(procs, [2, 3, 1]);
    assert_eq!(plan.apps[1].dir, Some("/tmp".into()));
    let error = parsed("-n 2 a : -n 3").unwrap_err().to_string();
    assert!(error.contains("part 2"), "{error}");
}

#[test]
fn parameters_reach_the_ranks_marked_as_from_the_command_line() {
    let plan = parsed("-mca btl self,sm --mca coll ^hwbarr -x A=b=c --explain prog").unwrap();
    assert_eq!(value(&plan, "PORTCULLIS_MCA_btl").unwrap(), "self,sm");
    assert_eq!(value(&plan, "PORTCULLIS_MCA_coll").unwrap(), "^hwbarr");
    assert_eq!(value(&plan, MARKER).unwrap(), "btl,coll,mpi_base_explain");
    assert_eq!(value(&plan, "A").unwrap(), "b=c");
}

#[test]
fn an_unknown_option_gets_a_suggestion() {
    let error = parsed("--tag-outptu prog").unwrap_err().to_string();
    assert!(error.contains("--tag-output"), "{error}");
}

#[test]
fn what_is_not_there_yet_is_refused_by_name() {
    for (line, part) in [
        (
            "-hostfile hosts prog",
            "-hostfile (running on other hosts) is not there yet",
        ),
        (
            "--bind-to core prog",
            "--bind-to (binding ranks to cores) is not there yet",
        ),
        (
            "--trace=f prog",
            "--trace (tracing messages) is not there yet",
        ),
        ("-host elsewhere prog", "cannot be started on elsewhere"),
    ] {
        let error = parsed(line).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    for line in [
        "--bind-to none prog",
        "-host localhost prog",
        "--stdin 0 prog",
        "-host localhost:4 prog",
    ] {
        assert!(parsed(line).is_ok(), "{line}");
    }
}

#[test]
fn options_of_the_whole_job_stand_before_the_first_program() {
    assert!(parsed("a : --timeout 3 b").is_err());
    assert_eq!(
        parsed("--timeout 90s a").unwrap().timeout,
        Some(Duration::from_secs(90))
    );
    assert!(
        parsed("--timeout soon a")
            .unwrap_err()
            .to_string()
            .contains("\"soon\"")
    );
}

#[test]
fn a_spawned_program_takes_the_infos_of_the_standard() {
    let app = spawned_app(pmi::App {
        procs: 2,
        program: "sh".into(),
        args: vec!["x".into()],
        info: vec![
            ("wdir".into(), "/tmp".into()),
            ("path".into(), "/nowhere:/bin".into()),
        ],
    });
    assert_eq!(app.program, "/bin/sh");
    assert_eq!(app.dir, Some("/tmp".into()));
}
