//! Shell completion: the option definitions, with the keywords, files or folders that each accepts.
//!
//! The parser does not use these lists: it accepts more spellings and has its own error messages.

use super::topics;
use crate::frameworks;
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Arg, Command, ValueHint};
use clap_complete::Shell;
use mpi_base::param::{About, Params};

/// Options that take one of a few keywords: the option's id and its keywords.
const WORDS: &[(&str, &[&str])] = &[
    (
        "bind_to",
        &["core", "hwthread", "l3cache", "numa", "package", "none"],
    ),
    ("map_by", &["slot", "node", "package", "numa"]),
    ("rank_by", &["slot", "node"]),
    ("stdin", &["0", "all", "none"]),
    ("display", &["map", "bind", "allocation"]),
];

/// The ids of options that take a folder.
const FOLDERS: &[&str] = &[
    "wdir",
    "path",
    "prefix",
    "output",
    "output_filename",
    "record",
    "replay",
];

/// Returns the completion script of a shell for the command `name`.
pub fn script(shell: Shell, name: &str, options: &Command) -> String {
    let shown = options.get_arguments().filter(|option| {
        // Hidden options are not completed; the hidden argument PROGRAM is.
        option.is_positional() || !option.is_hide_set()
    });
    let mut command = Command::new("mpirun")
        .disable_help_flag(true)
        .disable_version_flag(true)
        .args(shown.cloned().map(with_values));
    let mut bytes = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut bytes);
    let script = String::from_utf8_lossy(&bytes).into_owned();
    match shell {
        Shell::Bash => script.replacen(AFTER, &(AFTER.to_string() + &stop_at_program(options)), 1),
        _ => script,
    }
}

/// The line of clap's bash script after which [`stop_at_program`]'s code is inserted.
const AFTER: &str = "    prev=\"$3\"\n";

/// Extends the generated bash script.
/// Words after the program complete to file names until a colon begins the next section.
fn stop_at_program(options: &Command) -> String {
    let taking = |values: usize| {
        let takes = |option: &&Arg| match option.is_require_equals_set() {
            true => false,
            false => {
                let names = option.get_value_names().map_or(1, <[_]>::len);
                option.get_action().takes_values() && names == values
            }
        };
        let spellings = options.get_arguments().filter(takes).flat_map(|option| {
            let mut longs = option.get_all_aliases().unwrap_or_default();
            longs.extend(option.get_long());
            let long = longs
                .into_iter()
                .flat_map(|long| [format!("--{long}"), format!("-{long}")]);
            let short = option.get_short().map(|short| format!("-{short}"));
            long.chain(short).collect::<Vec<_>>()
        });
        spellings.collect::<Vec<_>>().join("|")
    };
    let (one, two) = (taking(1), taking(2));
    format!(
        r#"
    local word skip=0 program=""
    local -a before
    read -ra before <<< "${{COMP_LINE:0:COMP_POINT}}"
    if [[ "${{COMP_LINE:0:COMP_POINT}}" != *[[:space:]] ]]; then
        before=("${{before[@]:0:${{#before[@]}}-1}}")
    fi
    for word in "${{before[@]:1}}"; do
        if (( skip > 0 )); then
            skip=$(( skip - 1 ))
        elif [[ "${{word}}" == : ]]; then
            program=""
        elif [[ -z "${{program}}" ]]; then
            case "${{word}}" in
                {two}) skip=2 ;;
                {one}) skip=1 ;;
                -*) ;;
                *) program="${{word}}" ;;
            esac
        fi
    done
    if [[ -n "${{program}}" ]]; then
        COMPREPLY=($(compgen -f -- "${{cur}}"))
        compopt -o filenames 2> /dev/null
        return 0
    fi
"#
    )
}

/// Adds the completion values of an option.
fn with_values(option: Arg) -> Arg {
    let id = option.get_id().as_str();
    if let Some((_, words)) = WORDS.iter().find(|(name, _)| *name == id) {
        return option.value_parser(PossibleValuesParser::new(*words));
    }
    if FOLDERS.contains(&id) {
        return option.value_hint(ValueHint::DirPath);
    }
    match id {
        "help" => option.value_parser(PossibleValuesParser::new(topics::names())),
        "mca" => option.value_parser(PossibleValuesParser::new(parameters())),
        "command" => option
            .last(false)
            .trailing_var_arg(true)
            .value_hint(ValueHint::CommandWithArguments),
        _ => option,
    }
}

/// Returns the parameters of the library and of mpirun as completion values.
fn parameters() -> Vec<PossibleValue> {
    let all = frameworks::all(&Params::default());
    let abouts = all.into_iter().flat_map(|framework| {
        let components = framework.components.into_iter();
        let inner = components.flat_map(|component| component.params);
        framework.params.into_iter().chain(inner)
    });
    let mut abouts: Vec<&'static About> = abouts.collect();
    abouts.sort_by_key(|about| about.full_name());
    abouts.dedup_by_key(|about| about.full_name());
    // `leak` is harmless: the process prints the script and exits.
    let value =
        |about: &About| PossibleValue::new(about.full_name().leak() as &str).help(about.help);
    abouts.into_iter().map(value).collect()
}
