//! Wording of clap's errors: the option as users write it, the given and the accepted values.

use super::value_error::ValueError;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::error::Error as _;

/// Returns the message for a clap error, as one sentence.
pub fn sentence(error: &clap::Error) -> String {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let number = |kind| match error.get(kind) {
        Some(ContextValue::Number(number)) => *number,
        _ => 0,
    };
    let usage = text(ContextKind::InvalidArg).unwrap_or_default();
    let option = short(usage);
    match (error.kind(), text(ContextKind::InvalidValue)) {
        (ErrorKind::InvalidValue, None | Some("")) => {
            format!("{option} needs a value: {usage}")
        }
        (ErrorKind::InvalidValue, Some(value)) => {
            let words = match error.get(ContextKind::ValidValue) {
                Some(ContextValue::Strings(words)) => alternatives(words),
                _ => usage.to_owned(),
            };
            not_understood(&option, value, &words)
        }
        (ErrorKind::ValueValidation, Some(value)) => {
            let reason = error.source().map_or_else(String::new, ToString::to_string);
            let typed = error.source().and_then(|reason| reason.downcast_ref());
            match typed {
                Some(ValueError::Refused { .. }) => reason,
                _ => not_understood(&option, value, &reason),
            }
        }
        (ErrorKind::UnknownArgument, _) => {
            format!("there is no option or argument {}", printable::name(usage))
        }
        (ErrorKind::InvalidSubcommand, _) => {
            let command = text(ContextKind::InvalidSubcommand).unwrap_or_default();
            let command = printable::name(command);
            format!("there is no command {command}; --help lists those there are")
        }
        (ErrorKind::WrongNumberOfValues, _) => format!(
            "{option} needs {} values, and here it has {}: {usage}",
            number(ContextKind::ExpectedNumValues),
            number(ContextKind::ActualNumValues)
        ),
        (ErrorKind::ArgumentConflict, _) => match text(ContextKind::PriorArg) {
            Some(other) if short(other) == option => {
                format!("{option} is given twice; give it once")
            }
            Some(other) => format!(
                "{option} and {} exclude each other; give one of them",
                short(other)
            ),
            None => rendered(error),
        },
        _ => rendered(error),
    }
}

/// Returns the message for a value that an option does not accept; every check uses this wording.
pub fn not_understood(option: &str, value: &str, wanted: &str) -> String {
    let value = printable::name(value);
    format!("{option} \"{value}\" is not understood; it takes {wanted}")
}

/// Returns an option as users type it, such as `-n` for clap's `--np <N>`.
fn short(usage: &str) -> String {
    // The usage of an argument without an option is its name in brackets, such as `[JOB]`.
    let named = usage.trim_start_matches(['[', '<']);
    let end = [' ', '=', '[', ']', '>'];
    let option = named.split(end).next().unwrap_or(usage);
    match option {
        "--np" => "-n".to_owned(),
        "--x" => "-x".to_owned(),
        "--ppn" => "-N".to_owned(),
        option => option.to_owned(),
    }
}

/// Joins words to a list such as "ulfm, mpi or no".
fn alternatives(words: &[String]) -> String {
    match words {
        [most @ .., last] if !most.is_empty() => format!("{} or {last}", most.join(", ")),
        words => words.concat(),
    }
}

/// Returns the first line of clap's own message.
fn rendered(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let line = text.lines().next().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Arg, Command};

    fn said(line: &[&str]) -> String {
        let number = |name: &'static str| Arg::new(name).value_parser(clap::value_parser!(u32));
        let wait = Command::new("wait")
            .arg(number("JOB"))
            .arg(number("SECONDS").long("for"));
        let tool = Command::new("tool").subcommand(wait);
        let refused = tool.try_get_matches_from(std::iter::once(&"tool").chain(line));
        sentence(&refused.unwrap_err())
    }

    #[test]
    fn an_argument_is_named_with_and_without_an_option() {
        let told = said(&["wait", "x"]);
        assert!(
            told.starts_with("JOB \"x\" is not understood; it takes "),
            "{told}"
        );
        let told = said(&["wait", "--for", "x"]);
        assert!(told.starts_with("--for \"x\" is not understood"), "{told}");
        assert_eq!(
            said(&["wiat"]),
            "there is no command wiat; --help lists those there are"
        );
    }
}
