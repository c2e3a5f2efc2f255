//! Help in three sizes: a screen, a topic, and the manual page; all made from [`Options`].

use super::completion;
use super::options::Options;
use super::topics::{TOPICS, topics};
use clap::{Command, CommandFactory};
use std::fmt::Write as _;

fn command(width: usize) -> Command {
    Options::command().term_width(width)
}

/// The first screen: what is used most, and the topics.
pub fn screen() -> String {
    let mut text = command(100).render_help().to_string();
    let _ = write!(
        text,
        "\nMore: mpirun --help TOPIC, where TOPIC is one of {}.\n",
        topics()
    );
    text
}

/// A topic with its options; `None` if there is none of that name.
pub fn topic(name: &str) -> Option<String> {
    let topic = TOPICS.iter().find(|topic| topic.name == name)?;
    let Some(heading) = topic.heading else {
        let mut text = command(100).render_long_help().to_string();
        for topic in TOPICS.iter().filter(|topic| topic.heading.is_some()) {
            let _ = write!(text, "\n{}\n", wrapped(topic.text));
        }
        return Some(text);
    };
    let whole = command(100);
    let others: Vec<String> = whole
        .get_arguments()
        .filter(|option| option.get_help_heading() != Some(heading))
        .map(|option| option.get_id().to_string())
        .collect();
    let mut only = whole.help_template("{options}").mut_args(|option| {
        let hidden = others.iter().any(|other| option.get_id() == other.as_str());
        option.hide(hidden).hide_short_help(hidden)
    });
    let options = only.render_help().to_string();
    Some(format!(
        "{}\n\n{}\n",
        wrapped(topic.text),
        options.trim_end()
    ))
}

/// Breaks paragraphs at 96 columns; indented lines stay.
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

/// What `--generate` makes: "man", or completions of `name` for "bash", "zsh", "fish", "elvish" or "powershell".
pub fn generate(what: &str, name: &str, command: Command) -> Option<Vec<u8>> {
    if what != "man" {
        return completion::script(what, name, &command);
    }
    let mut bytes = Vec::new();
    clap_mangen::Man::new(command).render(&mut bytes).ok()?;
    Some(bytes)
}

/// The definition with everything that the topics say, for the manual page and the completions.
pub fn whole() -> Command {
    let mut about = String::from("Start MPI programs, here or on other hosts.");
    for topic in TOPICS.iter().filter(|topic| topic.heading.is_some()) {
        let _ = write!(about, "\n\n{}", topic.text);
    }
    Options::command().long_about(about)
}
