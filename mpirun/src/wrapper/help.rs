//! The wrappers' own help: a line for every query and every option.

use super::{HELP, QUESTIONS, Question, Wrapper};
use std::ffi::OsStr;
use std::fmt::Write as _;

impl Question {
    /// Returns true if the answer contains flags of the compilation.
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
            | Question::Help => false,
        }
    }

    /// Describes the output of the query.
    fn what(self) -> &'static str {
        match self {
            Question::Command => "the whole command, as these arguments make it",
            Question::Compiler => "the compiler",
            Question::Compile => "what the compiler is told in order to compile",
            Question::Link => "what the compiler is told in order to link",
            Question::CompileInfo => "the compiler, and what it is told in order to compile",
            Question::LinkInfo => "the compiler, and what it is told in order to compile and link",
            Question::IncDirs => "the folder of mpi.h",
            Question::LibDirs => "the folder of the library",
            Question::Libs => "the name of the library",
            Question::Version => "the version of Portcullis",
            Question::Help => "this text",
        }
    }
}

/// Returns the whole text, without a newline at its end.
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
        let mut names: Vec<String> = names.iter().map(|name| format!("--{name}")).collect();
        if *question == Question::Help {
            names.push(HELP.into());
        }
        line(&mut text, &names.join(", "), question.what());
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

/// Writing into a String cannot fail.
fn line(text: &mut String, left: &str, right: &str) {
    let _ = writeln!(text, "  {left:<30} {right}");
}
