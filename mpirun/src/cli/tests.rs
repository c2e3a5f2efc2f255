//! Tests of command-line parsing and of the errors for malformed command lines.

mod documents;
mod peers;

use super::*;
use crate::launch::binding::Unit;
use crate::launch::program::StdinTo;
use mpi_base::param::MARKER;
use std::ffi::OsStr;
use std::time::Duration;

fn parsed(line: &str) -> Result<Plan, CliError> {
    let words = line.split_whitespace().map(OsString::from);
    match request(std::iter::once("mpirun".into()).chain(words))? {
        Request::Job(plan) => Ok(*plan),
        Request::Restart(_)
        | Request::Daemon
        | Request::DaemonWithImages
        | Request::Adoption { .. } => {
            panic!("{line} makes a daemon")
        }
    }
}

/// Returns the host index of each rank.
fn placed(line: &str) -> Vec<usize> {
    let plan = parsed(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    plan.place(&plan.apps).unwrap().concat()
}

fn value<'a>(plan: &'a Plan, name: &str) -> Option<&'a OsStr> {
    plan.env
        .iter()
        .find(|(n, _)| n == name)
        .map(|(_, v)| v.as_os_str())
}

#[test]
fn every_spelling_of_the_number_is_understood() {
    for form in [
        "-n 4", "-np 4", "--np 4", "-c 4", "-n4", "--n 4", "--np=4", "-np=4",
    ] {
        let plan =
            parsed(&format!("{form} prog -n 9")).unwrap_or_else(|error| panic!("{form}: {error}"));
        assert_eq!(plan.apps[0].procs, Some(4), "{form}");
        assert_eq!(plan.apps[0].args, ["-n", "9"], "{form}");
    }
    assert_eq!(parsed("prog").unwrap().apps[0].procs, Some(1));
}

#[test]
fn colons_separate_programs() {
    let plan = parsed("-n 2 a x : -np 3 -wdir /tmp b : c").unwrap();
    let procs: Vec<usize> = plan.apps.iter().filter_map(|app| app.procs).collect();
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
fn of_the_numbers_that_will_do_the_largest_that_fits_is_taken() {
    let placed = |line: &str| placed(line).len();
    assert_eq!(placed("-n 8 -soft 2:8:2 -host a:3,b:2 prog"), 4);
    assert_eq!(placed("-n 8 --soft 2:8:2 -host a:9,b:9 prog"), 8);
    // The second program gets the slots that the first program leaves free.
    assert_eq!(
        placed("-host a:3,b:2 -n 3 x : -host a:3,b:2 -n 4 -soft 1:4 y"),
        5
    );
    for (line, said) in [
        (
            "-n 8 -soft 6:8 -host a:3,b:2 prog",
            "6 ranks do not fit into the 5 slots",
        ),
        ("-n 8 -soft some prog", "--soft \"some\" is not understood"),
    ] {
        let error = parsed(line).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn an_unknown_option_gets_a_suggestion() {
    let error = parsed("--tag-outptu prog").unwrap_err().to_string();
    assert!(error.contains("--tag-output"), "{error}");
}

#[test]
fn a_misspelt_option_with_one_dash_gets_a_suggestion_too() {
    for (wrong, right) in [
        ("-hostfle", "--hostfile"),
        ("-bind-too", "--bind-to"),
        ("-wdri", "--wdir"),
    ] {
        let error = parsed(&format!("{wrong} x prog")).unwrap_err().to_string();
        assert!(error.contains(right), "{error}");
    }
}

#[test]
fn an_unsupported_option_is_refused_by_name() {
    let error = parsed("-arch pdp11 prog").unwrap_err().to_string();
    let part = "-arch (choosing hosts by their architecture) is not supported; --host and --hostfile name hosts";
    assert!(error.contains(part), "{error}");
    let here = std::env::consts::ARCH;
    assert!(parsed(&format!("-n 2 -arch {here} prog")).is_ok());
}

#[test]
fn programs_begin_with_the_error_handler_that_the_option_names() {
    let name = "PORTCULLIS_MCA_mpi_initial_errhandler";
    for line in [
        "--initial-errhandler mpi_errors_return prog",
        "-initial-errhandler mpi_errors_return prog",
        "--mca mpi_initial_errhandler mpi_errors_return prog",
    ] {
        let plan = parsed(line).unwrap();
        assert_eq!(value(&plan, name).unwrap(), "mpi_errors_return", "{line}");
    }
    assert!(parsed("--initial-errhandler MPI_ERRORS_ABORT prog").is_ok());
    let error = parsed("--initial-errhandler my_handler prog").unwrap_err();
    let part = "mpi_errors_are_fatal, mpi_errors_abort or mpi_errors_return";
    assert!(error.to_string().contains(part), "{error}");
}

#[test]
fn deaths_are_survived_when_the_option_or_the_parameter_says_so() {
    let name = "PORTCULLIS_MCA_mpi_ft_enable";
    for (line, told) in [
        ("--with-ft ulfm prog", "true"),
        ("-with-ft mpi prog", "true"),
        ("--enable-recovery prog", "true"),
        ("-disable-auto-cleanup prog", "true"),
        ("--mca mpi_ft_enable true prog", "true"),
        ("--with-ft no --mca mpi_ft_enable true prog", "false"),
    ] {
        let plan = parsed(line).unwrap();
        assert_eq!(value(&plan, name).unwrap(), told, "{line}");
        assert_eq!(plan.tolerates_deaths, told == "true", "{line}");
        let marked = value(&plan, MARKER).unwrap().to_string_lossy();
        assert!(marked.contains("mpi_ft_enable"), "{marked}");
    }
    assert!(!parsed("prog").unwrap().tolerates_deaths);
}

#[test]
fn a_rankfile_says_where_each_rank_runs() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("Ranks");
    std::fs::write(&file, "rank 0=b slot=0:0\nrank 1=a\nrank 2=b slot=1\n").unwrap();
    let file = file.display();
    assert_eq!(
        placed(&format!("-host a,b -rankfile {file} prog")),
        [1, 0, 1]
    );
    // A job without a host option uses the hosts of the rankfile.
    assert_eq!(placed(&format!("--rf {file} prog")), [0, 1, 0]);
    assert_eq!(
        placed(&format!("--map-by rankfile:file={file} -n 2 prog")),
        [0, 1]
    );
    let two = parsed(&format!("--rankfile {file} -n 1 x : -n 2 y")).unwrap();
    let placements = two.apps[1].placements.as_ref().unwrap();
    assert_eq!((placements.len(), placements[1].cores.len()), (2, 1));
    let error = parsed(&format!("--rankfile {file} -n 4 prog")).unwrap_err();
    assert!(error.to_string().ends_with("has no line for rank 3 of 4"));
    let error = parsed(&format!("--rankfile {file} -host a prog")).unwrap_err();
    assert!(error.to_string().contains("none of the job's hosts"));
}

#[test]
fn hosts_are_named_filled_and_dealt() {
    assert_eq!(placed("-host a:2,b:2 -n 3 prog"), [0, 0, 1]);
    assert_eq!(placed("-host a:2,b:2 --map-by node -n 3 prog"), [0, 1, 0]);
    assert_eq!(placed("-host a:2,b:2 prog"), [0, 0, 1, 1]);
    assert_eq!(placed("-host a,b -N 2 prog"), [0, 0, 1, 1]);
    assert_eq!(
        placed("-H a -host b --map-by ppr:3:node prog"),
        [0, 0, 0, 1, 1, 1]
    );
    assert_eq!(
        placed("-host a:4,b:4 --rank-by node -n 8 prog"),
        [0, 1, 0, 1, 0, 1, 0, 1]
    );
    // Each program runs on its own host, as in the standard's example (MPI 5.0, section 11.5).
    assert_eq!(placed("-n 1 -host a one : -n 2 -host b two"), [0, 1, 1]);
    assert_eq!(placed("-n 3 -host localhost prog"), [0, 0, 0]);
}

#[test]
fn a_hostfile_gives_slots_and_a_list_chooses_from_it() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "a slots=2\nb slots=3\n").unwrap();
    let file = file.path().display();
    for option in ["-hostfile", "--machinefile", "-f"] {
        assert_eq!(placed(&format!("{option} {file} prog")), [0, 0, 1, 1, 1]);
    }
    let plan = parsed(&format!("-hostfile {file} -host b prog")).unwrap();
    assert_eq!(plan.hosts[0].name, "b");
    // Several lists choose together, and a number of slots replaces that of the file.
    let both = format!("-hostfile {file} -host b:1 -host a prog");
    assert_eq!(placed(&both), [0, 0, 1]);
    for lists in ["-host c", "-host a,c", "-host a -host c"] {
        let refused = parsed(&format!("-hostfile {file} {lists} prog")).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "--host c is not among the hosts of --hostfile, which are a, b"
        );
    }
    let error = parsed(&format!("-hostfile {file} -n 6 prog"))
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "6 ranks do not fit into the 5 slots of a, b; give more slots, or allow it with --oversubscribe"
    );
    assert_eq!(
        placed(&format!("-hostfile {file} -n 6 --oversubscribe prog")).len(),
        6
    );
}

#[test]
fn binding_takes_the_words_of_open_mpi_and_mpich() {
    let binding = |line: &str| parsed(line).unwrap().binding;
    assert_eq!(binding("--bind-to socket prog").to, Some(Unit::Package));
    assert_eq!(
        binding("-bind-to core:overload-allowed prog").to,
        Some(Unit::Core)
    );
    assert_eq!(
        binding("--map-by numa --bind-to core prog").over,
        Some(Unit::Numa)
    );
    assert_eq!(binding("--map-by slot:PE=2 prog").each, 2);
    assert_eq!(binding("--bind-to none prog").to, None);
    let error = parsed("--bind-to chair prog").unwrap_err().to_string();
    assert!(
        error.starts_with("--bind-to \"chair\" is not understood; it takes none, core"),
        "{error}"
    );
}

#[test]
fn a_configuration_file_gives_the_programs() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "-n 2 one # first\n-n 1 -wdir /tmp two x\n").unwrap();
    let plan = parsed(&format!(
        "-x A=1 --tag-output -configfile {}",
        file.path().display()
    ))
    .unwrap();
    assert_eq!(plan.apps.len(), 2);
    assert_eq!(plan.apps[1].args, ["x"]);
    assert!(plan.io.tag);
    assert_eq!(value(&plan, "A").unwrap(), "1");
}

#[test]
fn input_and_output_go_where_they_are_told() {
    let io = |line: &str| parsed(line).unwrap().io;
    assert_eq!(io("--stdin all prog").stdin, StdinTo::All);
    assert_eq!(io("-stdin 3 -n 4 prog").stdin, StdinTo::Rank(3));
    assert!(
        io("--output /tmp/x:nocopy prog")
            .folder
            .is_some_and(|f| f.ends_with("x"))
    );
    assert!(!io("--output dir=/tmp/x:nocopy prog").echo);
    assert!(parsed("--stdin some prog").is_err());
}

#[test]
fn output_takes_a_folder_or_the_words_of_open_mpi() {
    let io = |line: &str| {
        let plan = parsed(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        plan.io
    };
    assert!(io("--output tag prog").tag);
    assert!(io("--output TAG,timestamp prog").timestamp);
    let all = io("--output rank,merge-stderr-to-stdout,dir=/tmp/x:NOCOPY prog");
    assert!(all.label && all.merge && !all.echo);
    assert_eq!(all.folder, Some("/tmp/x".into()));
    for (line, folder) in [
        ("--output ./tag prog", "tag"),
        ("--output-filename tag prog", "tag"),
        ("--output-directory a,b prog", "a,b"),
        ("--output a,b prog", "a,b"),
        ("--output x:y/z prog", "z"),
        ("--output x:y/ prog", "x:y"),
    ] {
        let io = io(line);
        assert!(io.echo && !io.tag, "{line}");
        assert!(io.folder.is_some_and(|f| f.ends_with(folder)), "{line}");
    }
    for line in [
        "--output D:nooocopy prog",
        "--output-filename D:nooocopy prog",
        "--output D: prog",
        "--output :nocopy prog",
        "--output dir= prog",
        "--output tag,xml prog",
        "--output tag,nowhere prog",
        "--output file=x prog",
        "--output D --output-filename E prog",
    ] {
        assert!(parsed(line).is_err(), "{line}");
    }
}

#[test]
fn input_is_never_sent_to_a_rank_that_is_not_there() {
    assert!(parsed("--stdin 1 -n 2 prog").is_ok());
    assert!(parsed("--stdin 2 -n 2 a : -n 1 b").is_ok());
    for (line, said) in [
        (
            "--stdin 5 -n 2 prog",
            "--stdin 5: the job has no rank 5, only ranks 0 to 1",
        ),
        (
            "--stdin 1 prog",
            "--stdin 1: the job has no rank 1, only rank 0",
        ),
    ] {
        assert_eq!(parsed(line).unwrap_err().to_string(), said);
    }
}

/// Returns the value of a variable in each program's ranks, in the order of the command line.
fn found_by_each(line: &str, name: &str) -> Vec<Option<String>> {
    let plan = parsed(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    let text = |value: &OsStr| value.to_string_lossy().into_owned();
    let of_job = value(&plan, name).map(text);
    let own = |app: &crate::launch::program::App| {
        let found = app.env.iter().find(|(own, _)| own == name);
        found.map(|(_, value)| text(value))
    };
    plan.apps
        .iter()
        .map(|app| own(app).or(of_job.clone()))
        .collect()
}

#[test]
fn a_variable_behind_a_colon_is_that_programs() {
    let each = |line: &str| {
        let found = found_by_each(line, "PORTCULLIS_TEST_MODE");
        let found = found.into_iter().map(|value| value.unwrap_or("-".into()));
        found.collect::<Vec<_>>().join(" ")
    };
    const M: &str = "PORTCULLIS_TEST_MODE";
    for (line, expected) in [
        (format!("a : -x {M}=1 b"), "- 1"),
        (format!("-x {M}=1 a : b"), "1 -"),
        (format!("-x {M}=1 a : -x {M}=2 b : -x {M}=1 c"), "1 2 1"),
        (format!("-x {M}=1 a : -x {M}=1 b"), "1 1"),
        (format!("-x {M}=1 -x {M}=2 a"), "2"),
        (format!("a : --env {M} 1 b"), "- 1"),
        (format!("a : --genv {M} 1 b"), "1 1"),
        (format!("--genv {M} 1 a : -x {M}=2 b"), "1 2"),
    ] {
        assert_eq!(each(&line), expected, "{line}");
    }
    // Variables that all programs share belong to the job, so that spawned programs get them.
    let plan = parsed(&format!("-x {M}=1 a : -x {M}=1 b")).unwrap();
    assert_eq!(value(&plan, M).unwrap(), "1");
    assert!(plan.apps.iter().all(|app| app.env.is_empty()));
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), format!("one\n-x {M}=2 two\n")).unwrap();
    let file = file.path().display();
    assert_eq!(each(&format!("-x {M}=1 -configfile {file}")), "1 2");
}

#[test]
fn a_variable_that_is_not_set_is_warned_of() {
    let warnings = |line: &str| parsed(line).unwrap().warnings;
    let warned = warnings("-x PORTCULLIS_NO_SUCH -x PATH -x A=1 a : -x PORTCULLIS_NO_SUCH_* b");
    let expected = [
        "-x PORTCULLIS_NO_SUCH: no such variable is set, so no rank gets it",
        "-x PORTCULLIS_NO_SUCH_*: no such variable is set, so no rank gets it",
    ];
    assert_eq!(warned, expected);
    assert!(warnings("-x PAT* prog").is_empty());
}

#[test]
fn a_negative_number_is_refused_by_the_option_that_takes_it() {
    for option in [
        "-n",
        "-N",
        "--cpus-per-rank",
        "--timeout",
        "--hang-after",
        "--stdin",
    ] {
        let line = format!("{option} -1 prog");
        let error = parsed(&line).unwrap_err().to_string();
        assert!(
            error.contains("\"-1\" is not understood; it takes"),
            "{line}: {error}"
        );
    }
    let error = parsed("-1 prog").unwrap_err().to_string();
    assert!(error.contains("there is no option"), "{error}");
}

#[test]
fn a_variable_has_a_name() {
    for line in [
        "-x =v prog",
        "-x= prog",
        "--genv A=B v prog",
        "--env =A v prog",
        "a : -x =v b",
    ] {
        let error = parsed(line).unwrap_err().to_string();
        assert!(
            error.contains("is not understood; it takes"),
            "{line}: {error}"
        );
    }
}

#[test]
fn what_users_of_both_peers_type_means_the_same_here() {
    let plan = |line: &str| parsed(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    for (line, each) in [
        ("--cpus-per-proc 2 prog", 2),
        ("--cpus-per-rank 3 prog", 3),
        ("--map-by core:PE=4 prog", 4),
        ("-bind-to core:2 prog", 2),
    ] {
        let binding = plan(line).binding;
        assert_eq!(
            (binding.each, binding.to),
            (each, Some(Unit::Core)),
            "{line}"
        );
    }
    for (line, unit) in [
        ("--bind-to l3cache prog", Unit::Cache(3)),
        ("--bind-to L2cache prog", Unit::Cache(2)),
        ("--bind-to-core prog", Unit::Core),
        ("-bind-to-socket prog", Unit::Package),
        ("--map-by ppr:1:package prog", Unit::Package),
        ("--map-by ppr:2:socket:PE=1 prog", Unit::Core),
        ("-npersocket 2 prog", Unit::Package),
    ] {
        assert_eq!(plan(line).binding.to, Some(unit), "{line}");
    }
    assert_eq!(plan("--bind-to-none prog").binding.to, None);
    assert_eq!(
        plan("--map-by numa:PE=2:SPAN prog").binding.over,
        Some(Unit::Numa)
    );
    // These options set the number of ranks per host, so `-n` is optional.
    let packages = placed("--map-by ppr:1:package prog").len();
    assert_eq!(placed("--map-by ppr:3:package prog").len(), 3 * packages);
    assert_eq!(placed("-N 2 prog"), [0, 0]);
    for (line, expected) in [
        (
            "-host a:4,b:4 -n 4 --map-by slot:SPAN prog",
            &[0, 0, 1, 1][..],
        ),
        ("-host a:4,b:4 -n 4 --bynode prog", &[0, 1, 0, 1]),
        ("-host a:4,b:4 -n 4 --map-by node:SPAN prog", &[0, 1, 0, 1]),
        ("-host a:4,b:4 --pernode prog", &[0, 1]),
        ("-host a:4,b:4 -perhost 2 prog", &[0, 0, 1, 1]),
        ("-host a:4,b:4 --ppr 1:node prog", &[0, 1]),
        ("-host LOCALHOST,localhost. -n 2 prog", &[0, 0]),
    ] {
        assert_eq!(placed(line), expected, "{line}");
    }
    for line in [
        "--display map prog",
        "--display map,bind,allocation prog",
        "--use-hwthread-cpus prog",
        "--noprefix prog",
        "-launcher ssh prog",
        "-rmk user prog",
        "--map-by slot:NOOVERSUBSCRIBE prog",
        "--rank-by fill prog",
        "--disable-recovery prog",
        "-n2 -N2 prog",
        "-xA=1 prog",
    ] {
        plan(line);
    }
    let shown = plan("--display map,bind,allocation prog");
    assert!(shown.display_map && shown.report_bindings && shown.display_allocation);
    assert!(plan("--map-by slot:NOOVERSUBSCRIBE prog").strict);
}

#[test]
fn every_refused_option_has_a_replacement_or_a_reason() {
    for option in refused::all() {
        let spelling = option.spelling();
        let value = if option.name == "fwd-environment" {
            "=0"
        } else {
            ""
        };
        let error = parsed(&format!("{spelling}{value} a b prog"));
        let error = error.unwrap_err().to_string();
        let (before, instead) = error.split_once(" is not supported; ").unwrap_or_default();
        assert!(before.starts_with(&format!("{spelling} (")), "{error}");
        assert!(instead.len() > 10, "{error}");
    }
}

#[test]
fn help_knows_options_and_the_topics_of_open_mpi() {
    let answer = |line: &str| match parsed(line) {
        Err(CliError::Answer(text)) => text,
        other => panic!("{line}: {other:?}"),
    };
    let mca = answer("--help mca");
    assert!(mca.contains("--mca <NAME> <VALUE>"), "{mca}");
    assert_eq!(mca.matches("--").count(), 1, "{mca}");
    assert_eq!(answer("--help --mca"), mca);
    assert!(answer("--help np").contains("-n, --np <N>"));
    assert!(answer("--help n").contains("-n, --np <N>"));
    assert!(answer("--help output-filename").contains("--output-filename"));
    assert_eq!(answer("--help mapping"), answer("--help hosts"));
    assert_eq!(answer("--help Hosts"), answer("--help hosts"));
    assert!(parsed("--help generate").is_err());
}

#[test]
fn a_report_that_could_not_be_written_is_refused_before_the_job() {
    for (line, begins) in [
        (
            "--io-report=/no/such/x.json prog",
            "--io-report /no/such/x.json: ",
        ),
        ("--trace /no/such/x.json prog", "--trace /no/such/x.json: "),
    ] {
        let said = parsed(line).unwrap_err().to_string();
        assert!(said.starts_with(begins), "{said}");
    }
    for line in [
        "--io-report prog",
        "--io-report=x.json prog",
        "--trace x.json prog",
    ] {
        assert!(parsed(line).is_ok(), "{line}");
    }
}

#[test]
fn the_first_help_fits_a_screen_and_topics_have_the_rest() {
    let answer = |line: &str| match parsed(line) {
        Err(CliError::Answer(text)) => text,
        other => panic!("{line}: {other:?}"),
    };
    let screen = answer("--help");
    assert!(
        screen.lines().count() <= 36,
        "{} lines",
        screen.lines().count()
    );
    insta::assert_snapshot!("help", screen);
    for topic in [
        "ranks",
        "hosts",
        "binding",
        "output",
        "ending",
        "checkpoints",
        "diagnostics",
    ] {
        insta::assert_snapshot!(format!("help_{topic}"), answer(&format!("--help {topic}")));
    }
    assert_eq!(answer("--help=hosts"), answer("-h hosts"));
    assert_eq!(answer("--help telling"), answer("--help diagnostics"));
    let error = parsed("--help cheese").unwrap_err().to_string();
    assert!(error.contains("topics are ranks, hosts"), "{error}");
}

#[test]
fn help_all_has_every_option_with_the_texts_of_all_topics() {
    use clap::CommandFactory as _;
    let Err(CliError::Answer(all)) = parsed("--help all") else {
        panic!("no help");
    };
    let command = Options::command();
    let shown = command
        .get_arguments()
        .filter(|option| !option.is_hide_set())
        .filter_map(|option| option.get_long());
    for long in shown {
        assert!(all.contains(&format!("--{long}")), "no --{long} in:\n{all}");
    }
    assert!(all.contains("A hostfile has one host per line"), "{all}");
}

#[test]
fn the_manual_page_and_completions_know_every_option() {
    use clap::CommandFactory as _;
    let make = |what: &str| match parsed(&format!("--generate {what}")) {
        Err(CliError::Answer(text)) => text,
        other => panic!("{what}: {other:?}"),
    };
    let (page, bash) = (make("man").replace('\\', ""), make("bash"));
    for option in Options::command()
        .get_arguments()
        .filter(|option| !option.is_hide_set())
    {
        if let Some(long) = option.get_long() {
            assert!(
                page.contains(&format!("--{long}")),
                "the page lacks --{long}"
            );
            assert!(bash.contains(&format!("--{long}")), "bash lacks --{long}");
        }
    }
    for shell in ["bash", "zsh", "fish"] {
        let script = make(shell);
        for word in [
            "hwthread",
            "diagnostics",
            "coll_tuned_bcast_algorithm",
            "plm_rsh_agent",
        ] {
            assert!(script.contains(word), "{shell} does not complete {word}");
        }
        assert!(!script.contains("--daemon"), "{shell} shows what is hidden");
    }
}

/// Returns the completions that bash offers for the last word of a line.
fn offered(line: &str) -> String {
    let Err(CliError::Answer(script)) = parsed("--generate bash") else {
        panic!("there is no script for bash");
    };
    let ask = format!(
        "{script}\nline='{line}'; cur=\"${{line##* }}\"; COMP_LINE=\"$line\"; COMP_POINT=${{#line}}; \
         read -ra COMP_WORDS <<< \"$line\"; [[ -n $cur ]] || COMP_WORDS+=(''); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 )); \
         _mpirun mpirun \"$cur\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"; echo \"${{COMPREPLY[@]}}\""
    );
    let output = std::process::Command::new("bash")
        .args(["-c", &ask])
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn behind_the_program_bash_offers_files_until_a_colon() {
    for line in [
        "--ti",
        "-n 2 --ti",
        "--mca btl self --ti",
        "-x A -q --ti",
        "-n 2 ./a --ti : --ti",
    ] {
        let offered = offered(&format!("mpirun {line}"));
        assert!(offered.contains("--timeout"), "{line}: {offered}");
    }
    for line in ["./a --ti", "-n 2 ./a --ti", "-n 2 ./a : ./b --ti"] {
        assert_eq!(offered(&format!("mpirun {line}")).trim(), "", "{line}");
    }
    assert!(offered("mpirun -n 2 ./a Cargo.t").contains("Cargo.toml"));
}

#[test]
fn mistakes_are_answered_in_sentences() {
    let mut said = String::new();
    for line in [
        "",
        "-n 2",
        "-n 0 prog",
        "-n prog",
        "-n -1 prog",
        "-n two prog",
        "-n",
        "-n 2 a : -n 3",
        ": -n 2 b",
        "--tag-output : b",
        "a : : b",
        "a : --timeout 3 b",
        "--tag-outptu prog",
        "--mac btl self prog",
        "-zzz prog",
        "-fwd prog",
        "-N 0 prog",
        "--stream-buffering 5 prog",
        "--cpus-per-proc none prog",
        "--stdin 5 -n 2 prog",
        "--output D:nooocopy prog",
        "--output tag,xml prog",
        "-x =v prog",
        "--map-by ppr:N:package prog",
        "-host a,b --map-by ppr:1:package prog",
        "--map-by pe-list=0,1 prog",
        "--map-by slot:NOLOCAL prog",
        "--cpu-list 0,1 prog",
        "--display everything prog",
        "--record a --replay b prog",
        "--tune f prog",
        "-host a;b prog",
        "--host , prog",
        "-hostfile /nowhere prog",
        "--map-by chance prog",
        "--bind-to chair prog",
        "--bind-to core:0 prog",
        "--soft some prog",
        "-n 4 --soft 9 prog",
        "--output dir= prog",
        "--timeout soon prog",
        "--with-ft maybe prog",
        "--mca mpi_ft_enable maybe prog",
        "-arch pdp11 prog",
        "--mca btl",
    ] {
        let error = parsed(line).unwrap_err().to_string();
        said += &format!("$ mpirun {line}\n{}\n\n", error.trim_end());
    }
    insta::assert_snapshot!(said);
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
