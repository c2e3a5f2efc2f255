//! Help texts and manual pages of the compiler wrappers, with a line for every query and option.

use super::{HELP, Language, QUESTIONS, Question, Wrapper};
use std::ffi::OsStr;
use std::fmt::Write as _;

impl Question {
    /// Returns true if the answer to the query contains compilation flags.
    pub(super) fn shows_flags(self) -> bool {
        match self {
            Question::Command
            | Question::Compile
            | Question::Link
            | Question::CompileInfo
            | Question::LinkInfo
            | Question::IncDirs => true,
            Question::Compiler
            | Question::LibDirs
            | Question::Libs
            | Question::Version
            | Question::Manual
            | Question::Help => false,
        }
    }

    /// Returns true if the answer to the query depends on the compiler.
    pub(super) fn needs_compiler(self) -> bool {
        self.shows_flags() || self == Question::Compiler
    }

    /// Describes the output of the query.
    fn what(self) -> &'static str {
        match self {
            Question::Command => "the command that these arguments make",
            Question::Compiler => "the compiler",
            Question::Compile => "the compiler's options for compiling",
            Question::Link => "the compiler's options for linking",
            Question::CompileInfo => "the compiler with its options for compiling",
            Question::LinkInfo => "the compiler with its options for compiling and linking",
            Question::IncDirs => "the folder of mpi.h",
            Question::LibDirs => "the folder of the library",
            Question::Libs => "the name of the library",
            Question::Version => "the version of Portcullis",
            Question::Help => "this text",
            Question::Manual => "the manual page, for packagers",
        }
    }
}

/// Returns the help text without a newline at its end.
pub(super) fn text(wrapper: &Wrapper, compiler: &OsStr) -> String {
    let language = wrapper.language;
    let (name, compiler) = (language.wrapper(), compiler.to_string_lossy());
    let mut text = format!(
        "{name} compiles {} programs against the installation in {}.\n\
         Usage: {name} [OPTION]... [ARGUMENT]...\n\n\
         Printed, and nothing is compiled (with one dash or two):\n",
        language.name(),
        wrapper.prefix.display(),
    );
    for (names, question) in QUESTIONS {
        line(&mut text, &options(names, *question), question.what());
    }
    let (variable, choice) = language.choices();
    text += "\nThe compiler for this call:\n";
    line(
        &mut text,
        &format!("{choice}NAME"),
        &format!("in place of {compiler}"),
    );
    text += "\nRead from the environment:\n";
    let usual = format!(
        "the compiler, also with arguments of its own; by default {}",
        language.names_usual_compiler()
    );
    line(&mut text, variable, &usual);
    let _ = write!(text, "\nEverything else goes to the compiler, --help too.");
    text
}

/// Returns the options of a query, separated by commas.
fn options(names: &[&str], question: Question) -> String {
    let mut names: Vec<String> = names.iter().map(|name| format!("--{name}")).collect();
    if question == Question::Help {
        names.push(HELP.into());
    }
    names.join(", ")
}

/// Returns the manual page, which mentions no installation folder.
pub(super) fn manual(language: Language) -> String {
    let (name, compiler) = (language.wrapper(), language.names_usual_compiler());
    let (variable, choice) = language.choices();
    let mut page = format!(
        ".TH {name} 1 \"\" \"Portcullis {}\"\n\
         .SH NAME\n{name} \\- compile and link {} programs with MPI\n\
         .SH SYNOPSIS\n.B {name}\n[OPTION]... [ARGUMENT]...\n\
         .SH DESCRIPTION\n\
         {name} runs the compiler with the header and the library of the installation that contains it.\n\
         Its arguments go to the compiler, except the options below, which are taken with one dash or two.\n\
         .SH OPTIONS\n",
        env!("CARGO_PKG_VERSION"),
        language.name(),
    );
    let mut item = |options: &str, what: &str| {
        let options = options.replace('-', "\\-");
        let what = what.replace('-', "\\-");
        let _ = writeln!(page, ".TP\n.B {options}\n{what}");
    };
    for (names, question) in QUESTIONS {
        let what = match question {
            Question::Help => "print a summary",
            other => other.what(),
        };
        item(&options(names, *question), what);
    }
    item(
        &format!("{choice}NAME"),
        &format!("use this compiler for this call [default: {compiler}]"),
    );
    let _ = write!(
        page,
        ".SH ENVIRONMENT\n.TP\n.B {variable}\nthe compiler, also with arguments of its own [default: {compiler}]\n\
         .SH SEE ALSO\n.BR mpirun (1),\n.BR mpi\\-info (1)"
    );
    page
}

/// Appends a line with two columns. Writing to a `String` cannot fail.
fn line(text: &mut String, left: &str, right: &str) {
    let _ = writeln!(text, "  {left:<30} {right}");
}
