//! One dash or two: users of every launcher write `-np`, `-wdir`, `-host`; clap wants `--np`.
//!
//! This walks over the options up to the program, knowing from the definition how many values each takes,
//! and writes long names with two dashes. What it does not know it leaves for clap to suggest a name for.

use super::options::Options;
use super::{CliError, not_yet};
use clap::{Arg, Command, CommandFactory};
use mpi_base::text;
use std::ffi::{OsStr, OsString};

/// The options of one part with long names in clap's form, and what is missing refused.
pub fn normalised(part: &[OsString]) -> Result<Vec<OsString>, CliError> {
    let command = Options::command();
    let mut out = Vec::with_capacity(part.len());
    let mut rest = part.iter();
    while let Some(arg) = rest.next() {
        // A value behind "=" may be any bytes, so the word is read as text that keeps them.
        let text = text::from_os(arg);
        let Some(text) = Some(text.as_str()).filter(|text| text.len() > 1 && text.starts_with('-'))
        else {
            // The program; what follows is its own, whatever it looks like.
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
        if let Some(option) = not_yet::find(name) {
            let mut values: Vec<&OsStr> = attached.map(OsStr::new).into_iter().collect();
            while values.len() < option.values {
                values.push(rest.next().map_or(OsStr::new(""), OsString::as_os_str));
            }
            if values
                .iter()
                .any(|value| option.harmless.iter().any(|harmless| value == harmless))
            {
                continue;
            }
            let option_text = text.split('=').next().unwrap_or(text).to_string();
            return Err(CliError::NotYet {
                option: option_text,
                what: option.what,
            });
        }
        let values = match find(&command, name, text) {
            Some(option) => {
                // One letter with one dash is a short option already.
                let long = text.starts_with("--") || name.len() > 1;
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
                let clustered = name
                    .chars()
                    .next()
                    .and_then(|letter| short(&command, letter));
                let with_value = clustered.is_some_and(|option| values_of(option) > 0);
                // `-n4` is clap's; another word with one dash is a long name that clap has to suggest one for.
                out.push(match text.starts_with("--") || with_value {
                    true => arg.clone(),
                    false => text::to_os(&format!("-{text}")),
                });
                0
            }
        };
        out.extend(rest.by_ref().take(values).cloned());
    }
    out.extend(rest.cloned());
    Ok(out)
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

fn values_of(option: &Arg) -> usize {
    match option.get_num_args() {
        Some(range) => range.min_values(),
        None if option.get_action().takes_values() => 1,
        None => 0,
    }
}
