//! Normalisation of dashes: other launchers' users type `-np`, `-wdir`, `-host`; clap takes `--np`.
//!
//! This module parses the options before the program; clap's definition gives the number of values.
//! Long names get two dashes. Spellings of other launchers are translated ([`super::translated`]).
//! Unsupported ([`super::refused`]), unknown and misplaced options are errors.

use super::options::{Options, Section};
use super::{CliError, refused, translated};
use clap::{Arg, Command, CommandFactory};
use mpi_base::text;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use strsim::normalized_damerau_levenshtein;

/// The position of an application's section on the command line; `:` separates the sections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionPosition {
    /// The section of the first program, which may also contain options of the whole job.
    First,
    /// A section after a colon, or a line of a configuration file.
    Later,
}

/// Returns the options of one section in clap's form, with two dashes before long names.
pub fn normalised(part: &[OsString], position: OptionPosition) -> Result<Vec<OsString>, CliError> {
    let command = Options::command();
    let mut out = Vec::with_capacity(part.len());
    let mut rest = part.iter();
    while let Some(arg) = rest.next() {
        // A value after "=" may contain any bytes, so `text` converts the word without loss.
        let text = text::from_os(arg);
        let Some(text) = Some(text.as_str()).filter(|text| text.len() > 1 && text.starts_with('-'))
        else {
            // This word is the program; all following words are its arguments.
            out.extend(["--".into(), arg.clone()]);
            break;
        };
        if text == "--" {
            out.push(arg.clone());
            break;
        }
        let bare = text.trim_start_matches('-');
        let (name, attached) = match bare.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (bare, None),
        };
        // `-d4` and `--d` are not the option `-d`.
        let is_word = name.chars().count() > 1 || !text.starts_with("--");
        if let Some(option) = refused::find(name).filter(|_| is_word) {
            refuse(option, text, attached, &mut rest)?;
            continue;
        }
        if let Some(spelling) = translated::find(name) {
            out.extend(translate(spelling, text, attached, &mut rest, position)?);
            continue;
        }
        let values = match find(&command, name, text) {
            Some(option) => {
                check_position(option, text, position)?;
                // A single letter with one dash is already a short option in clap's form.
                let long = text.starts_with("--") || name.len() > 1;
                if long && option.get_id() == "help" && attached.is_none() {
                    out.push(help_about(&mut rest));
                    continue;
                }
                out.push(if long {
                    text::to_os(&format!("--{bare}"))
                } else {
                    arg.clone()
                });
                if attached.is_some() {
                    0
                } else {
                    values_of(option)
                }
            }
            None => {
                let option = with_its_value(&command, text).ok_or_else(|| CliError::NoOption {
                    option: option_of(text).into(),
                    nearest: nearest(&command, name),
                })?;
                check_position(option, text, position)?;
                out.push(arg.clone());
                0
            }
        };
        out.extend(rest.by_ref().take(values).cloned());
    }
    out.extend(rest.cloned());
    Ok(out)
}

/// Returns the name of an option with its dashes: the text before `=`.
fn option_of(text: &str) -> &str {
    text.split('=').next().unwrap_or(text)
}

/// Converts `--help mca` and `--help --mca` to `--help=mca`; the word is a topic or an option.
fn help_about(rest: &mut std::slice::Iter<'_, OsString>) -> OsString {
    match rest.next() {
        None => "--help".into(),
        Some(topic) => {
            let mut word = OsString::from("--help=");
            word.push(topic.to_string_lossy().trim_start_matches('-'));
            word
        }
    }
}

/// Reports an unsupported option as an error, unless its value requests the default behaviour.
fn refuse(
    option: &refused::Refused,
    text: &str,
    attached: Option<&str>,
    rest: &mut std::slice::Iter<'_, OsString>,
) -> Result<(), CliError> {
    let mut values: Vec<&OsStr> = attached.map(OsStr::new).into_iter().collect();
    while values.len() < option.values {
        values.push(rest.next().map_or(OsStr::new(""), OsString::as_os_str));
    }
    if values.is_empty() {
        // An option whose value may be omitted; "" stands for the omitted value.
        values.push(OsStr::new(""));
    }
    let is_harmless = |value: &&OsStr| option.harmless.iter().any(|harmless| value == harmless);
    match values.iter().any(is_harmless) {
        true => Ok(()),
        false => Err(CliError::Refused {
            option: option_of(text).into(),
            what: option.what,
            instead: option.instead,
        }),
    }
}

/// Translates an option of another launcher to options of this launcher.
fn translate(
    spelling: &translated::Translated,
    text: &str,
    attached: Option<&str>,
    rest: &mut std::slice::Iter<'_, OsString>,
    position: OptionPosition,
) -> Result<Vec<OsString>, CliError> {
    let is_of_job = |word: &&str| !word.starts_with("--hostfile");
    if position == OptionPosition::Later && spelling.words.iter().any(is_of_job) {
        return Err(CliError::WholeJob {
            option: option_of(text).into(),
        });
    }
    let value = match (spelling.values, attached) {
        (0, _) => String::new(),
        (_, Some(value)) => value.to_owned(),
        (_, None) => {
            let next = rest.next().ok_or_else(|| CliError::NoValue {
                option: option_of(text).into(),
            })?;
            next.to_string_lossy().into_owned()
        }
    };
    let words = spelling.words.iter();
    Ok(words
        .map(|word| word.replace("{}", &value).into())
        .collect())
}

/// Checks that options of the whole job precede the first program.
fn check_position(option: &Arg, text: &str, position: OptionPosition) -> Result<(), CliError> {
    let of_program = Section::command();
    let mut of_program = of_program.get_arguments();
    match position == OptionPosition::First
        || of_program.any(|known| known.get_id() == option.get_id())
    {
        true => Ok(()),
        false => Err(CliError::WholeJob {
            option: option_of(text).into(),
        }),
    }
}

fn find<'c>(command: &'c Command, name: &str, text: &str) -> Option<&'c Arg> {
    if !text.starts_with("--") && name.chars().count() == 1 {
        return short(command, name.chars().next()?);
    }
    command.get_arguments().find(|option| {
        option.get_long() == Some(name)
            || option
                .get_all_aliases()
                .is_some_and(|names| names.contains(&name))
    })
}

fn short(command: &Command, letter: char) -> Option<&Arg> {
    command.get_arguments().find(|option| {
        option.get_short() == Some(letter)
            || option
                .get_all_short_aliases()
                .is_some_and(|letters| letters.contains(&letter))
    })
}

/// Splits `-n4` and `-xNAME=VALUE`: returns the short option whose value is in the same word.
///
/// The value of `-n` must begin with a digit, so `-npernod` counts as a misspelt long name.
/// The value of `-x` may be any text.
fn with_its_value<'c>(command: &'c Command, text: &str) -> Option<&'c Arg> {
    let word = text
        .strip_prefix('-')
        .filter(|word| !word.starts_with('-'))?;
    let mut letters = word.chars();
    let option = short(command, letters.next()?).filter(|option| values_of(option) > 0)?;
    let takes_number = ["procs", "per_node"].contains(&option.get_id().as_str());
    let is_value = match option.get_id().as_str() {
        _ if takes_number => letters.next().is_some_and(|c| c.is_ascii_digit()),
        "export" => true,
        "hostfile" => Path::new(letters.as_str()).is_file(),
        _ => nearest(command, word).is_none(),
    };
    is_value.then_some(option)
}

/// Returns the known option name that is closest to a misspelt name.
fn nearest(command: &Command, name: &str) -> Option<String> {
    /// The minimum similarity (0 to 1) at which a name is suggested.
    const NEAR: f64 = 0.6;
    let mut known: Vec<&str> = Vec::new();
    for option in command
        .get_arguments()
        .filter(|option| !option.is_hide_set())
    {
        known.extend(option.get_long());
        known.extend(option.get_all_aliases().unwrap_or_default());
    }
    for other in translated::names().chain(refused::names()) {
        known.push(other);
    }
    // Single letters are always similar, so short names are never suggested.
    let known = known.into_iter().filter(|known| known.len() > 1);
    let alike = known.map(|known| (normalized_damerau_levenshtein(name, known), known));
    alike
        .filter(|(likeness, _)| *likeness >= NEAR)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, known)| format!("--{known}"))
}

fn values_of(option: &Arg) -> usize {
    match option.get_num_args() {
        Some(range) => range.min_values(),
        None if option.get_action().takes_values() => 1,
        None => 0,
    }
}
