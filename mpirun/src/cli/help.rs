//! Help in three sizes: a screen, a topic, and the manual page; all made from [`Options`].

use super::completion;
use super::options::{self, Options};
use clap::{Command, CommandFactory};
use std::fmt::Write as _;

/// A topic of `--help TOPIC`: its name, the heading of its options if it has one, and what is worth knowing.
struct Topic {
    name: &'static str,
    heading: Option<&'static str>,
    text: &'static str,
}

const TOPICS: &[Topic] = &[
    Topic {
        name: "ranks",
        heading: Some(options::RANKS),
        text: "Options stand before the program; what follows it is the program's own. Parts between colons are programs of one job \
               with ranks numbered on; options of the whole job stand in the first part:\n\n  \
               mpirun -n 1 ./manager : -n 8 -x MODE=fast ./worker\n\n\
               Ranks get mpirun's whole environment and working directory, on every host. Long options are taken with one dash or two.",
    },
    Topic {
        name: "hosts",
        heading: Some(options::HOSTS),
        text: "Without --host and --hostfile ranks run on the hosts that Slurm, PBS or LSF has set aside, else here. \
               A hostfile has one host to a line:\n\n  \
               node1 slots=4\n  node2:4\n\n\
               Other hosts are reached by ssh, or by what --launch-agent names: it is called with the host and one shell command. \
               The same mpirun must be there, in the same place or under --prefix. The launcher itself opens no port.",
    },
    Topic {
        name: "binding",
        heading: Some(options::BINDING),
        text: "With --bind-to each rank of a host gets units of its own, next to each other, or with --map-by package or numa dealt over those. \
               --map-by slot:PE=2 gives each rank two. More ranks than units are not bound at all, unless \":overload-allowed\" follows the unit.",
    },
    Topic {
        name: "output",
        heading: Some(options::OUTPUT),
        text: "Output comes line by line, so that no line of one rank is broken by another's. \
               Standard input goes to rank 0; the others find it empty.",
    },
    Topic {
        name: "ending",
        heading: Some(options::ENDING),
        text: "The first rank that fails ends the job, and mpirun says who, where, why and in which MPI call. \
               All processes get a signal they can handle (SIGTERM, or the one that mpirun got) and 200 ms later SIGKILL (--mca mpirun_grace 1s). \
               Ctrl-C twice does not wait. SIGUSR1 to mpirun prints who waits for whom; SIGUSR2, SIGTSTP and SIGCONT are passed on.\n\n\
               Exit status: that of the first rank that failed, 128 + signal if it was killed, the code of MPI_Abort, \
               124 after a time-out, 127 if there is no such program, 2 for a mistake on the command line.\n\n\
               With --with-ft ulfm the job goes on without ranks that die, by a signal, with another status than 0, or without MPI_Finalize; \
               mpirun says so at once and lists them at the end. MPI_Abort still ends all. \
               Exit status: that of the ranks that are left; if none is, that of the first that died.",
    },
    Topic {
        name: "telling",
        heading: Some(options::TELLING),
        text: "mpi-info lists frameworks, components and parameters; --explain says what a job selected.",
    },
    Topic {
        name: "all",
        heading: None,
        text: "",
    },
];

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

/// The names of all topics.
pub fn names() -> impl Iterator<Item = &'static str> {
    TOPICS.iter().map(|topic| topic.name)
}

/// The same for a user who asks for one that is not there.
pub fn topics() -> String {
    names().collect::<Vec<_>>().join(", ")
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
