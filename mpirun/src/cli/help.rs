//! Help texts, all generated from [`Options`]: the first screen, a topic, and the manual page.

use super::choices::Generated;
use super::completion;
use super::options::Options;
use super::topics::{TOPICS, topics};
use clap::{Arg, Command, CommandFactory};
use std::fmt::Write as _;

fn command(width: usize) -> Command {
    Options::command().term_width(width)
}

/// Returns the first screen of help: the most common options and the list of topics.
pub fn screen() -> String {
    let mut text = command(100).render_help().to_string();
    let _ = write!(
        text,
        "\nMore: mpirun --help TOPIC, where TOPIC is one of {}.\n",
        topics()
    );
    text
}

/// Returns the help of a topic (by its name here or in other launchers) or of one option.
/// Returns `None` if `name` names no topic and no option.
pub fn about(name: &str) -> Option<String> {
    let lower = name.to_lowercase();
    let other = OTHER_NAMES.iter().find(|(other, _)| *other == lower);
    topic(other.map_or(&lower, |(_, topic)| topic)).or_else(|| option(name.trim_start_matches('-')))
}

/// Topic names of Open MPI and of earlier versions, each with its present name.
const OTHER_NAMES: [(&str, &str); 8] = [
    ("general", "all"),
    ("launch", "ranks"),
    ("mapping", "hosts"),
    ("ranking", "hosts"),
    ("input", "output"),
    ("debug", "ending"),
    ("compatibility", "all"),
    ("telling", "diagnostics"),
];

/// Returns the help of one option, which any of its long or short names selects.
fn option(name: &str) -> Option<String> {
    let whole = command(100);
    let is_meant = |option: &&Arg| {
        let one = name.chars().next().filter(|_| name.chars().count() == 1);
        let longs = option.get_all_aliases().unwrap_or_default();
        let shorts = option.get_all_short_aliases().unwrap_or_default();
        option.get_long() == Some(name)
            || longs.contains(&name)
            || one.is_some_and(|one| option.get_short() == Some(one) || shorts.contains(&one))
    };
    let meant = whole
        .get_arguments()
        .filter(|option| !option.is_hide_set())
        .find(is_meant)
        .map(|option| option.get_id().to_string())?;
    Some(only(whole, |option| option.get_id() == meant.as_str()))
}

/// Returns the help lines of the options for which `is_meant` returns true.
fn only(whole: Command, is_meant: impl Fn(&Arg) -> bool) -> String {
    let mut some = whole.help_template("{options}").mut_args(|option| {
        let hidden = !is_meant(&option);
        option.hide(hidden).hide_short_help(hidden)
    });
    format!("{}\n", some.render_help().to_string().trim_end())
}

/// Returns a topic with its options; `None` if no topic has this name.
fn topic(name: &str) -> Option<String> {
    let topic = TOPICS.iter().find(|topic| topic.name == name)?;
    let Some(heading) = topic.heading else {
        let mut text = command(100).render_long_help().to_string();
        for topic in TOPICS.iter().filter(|topic| topic.heading.is_some()) {
            let _ = write!(text, "\n{}\n", wrapped(topic.text));
        }
        return Some(text);
    };
    let options = only(command(100), |option| {
        option.get_help_heading() == Some(heading) && !option.is_hide_set()
    });
    Some(format!("{}\n\n{options}", wrapped(topic.text)))
}

/// Wraps paragraphs at 96 columns; indented lines stay unchanged.
fn wrapped(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let mut column = 0;
        if line.starts_with(' ') {
            out += line;
        } else {
            for word in line.split_whitespace() {
                if column > 0 && column + word.len() > 96 {
                    out.push('\n');
                    column = 0;
                }
                if column > 0 {
                    out.push(' ');
                    column += 1;
                }
                out += word;
                column += word.len();
            }
        }
        out.push('\n');
    }
    out.trim_end().to_string()
}

/// Returns the output of `--generate` for the program `name`.
pub fn generate(what: Generated, name: &str, command: Command) -> String {
    match what {
        Generated::Manual => manual(command),
        Generated::Completions(shell) => completion::script(shell, name, &command),
    }
}

/// Returns the manual page of a program.
pub fn manual(command: Command) -> String {
    let mut bytes = Vec::new();
    // Writing into a `Vec` cannot fail.
    let _ = clap_mangen::Man::new(command).render(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the clap definition with the texts of all topics, for the manual page and completions.
pub fn whole() -> Command {
    let mut about = String::from("Start MPI programs, here or on other hosts.");
    for topic in TOPICS.iter().filter(|topic| topic.heading.is_some()) {
        let _ = write!(about, "\n\n{}", topic.text);
    }
    Options::command().long_about(about)
}
