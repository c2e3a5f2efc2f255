//! `mpicc` and `mpicxx`: the C or C++ compiler with the flags of an MPI program, for the installation that contains the wrapper.
//!
//! Both are one program, which acts by the name that it is called by.
//! It answers the queries of both families, as CMake's FindMPI, autoconf macros and users ask them:
//! Open MPI's `--showme`, `--showme:compile|link|incdirs|libdirs|libs|version|command|help` and MPICH's `-show`,
//! `-compile_info`, `-link_info`; each with one dash or two.
//! MPICH's `-help` has one dash only, because `--help` is the compiler's.
//! `MPICC_CC` selects the compiler, and `-cc=NAME` does for one call; for `mpicxx`, `MPICXX_CXX` and `-cxx=NAME`.

mod help;

use mpi_base::{environment, text};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// The language that a wrapper compiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// C, as `mpicc`.
    C,
    /// C++, as `mpicxx`.
    Cxx,
}

impl Language {
    /// Returns the language of a wrapper with this name, as Open MPI and MPICH name theirs.
    pub fn of_wrapper(called: &OsStr) -> Language {
        let name = Path::new(called).file_name().and_then(OsStr::to_str);
        // Debian also installs each wrapper under a name with the implementation's suffix.
        match name.map(|name| name.trim_end_matches(".portcullis")) {
            Some("mpicxx" | "mpic++" | "mpiCC") => Language::Cxx,
            _ => Language::C,
        }
    }

    /// Returns the wrapper's usual name.
    pub fn wrapper(self) -> &'static str {
        match self {
            Language::C => "mpicc",
            Language::Cxx => "mpicxx",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Language::C => "C",
            Language::Cxx => "C++",
        }
    }

    /// Returns the compiler that every system has under this name.
    fn compiler(self) -> &'static str {
        match self {
            Language::C => "cc",
            Language::Cxx => "c++",
        }
    }

    /// Returns the environment variable and the option that select another compiler.
    fn choices(self) -> (&'static str, &'static str) {
        match self {
            Language::C => ("MPICC_CC", "-cc="),
            Language::Cxx => ("MPICXX_CXX", "-cxx="),
        }
    }
}

/// The action of a wrapper call.
#[derive(Debug, PartialEq, Eq)]
pub enum Action {
    /// Print this answer to a query, with paths as bytes, and exit with 0.
    Print(OsString),
    /// Execute this command.
    Run(Vec<OsString>),
}

/// A wrapper of one installation.
#[derive(Clone, Debug)]
pub struct Wrapper {
    /// What it compiles.
    pub language: Language,
    /// The compiler's name, possibly with arguments of its own, as in `MPICC_CC="gcc -m64"`.
    pub compiler: OsString,
    /// The installation, which contains `include` and `lib`.
    pub prefix: PathBuf,
}

/// A query that is answered instead of compiling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Question {
    Command,
    Compile,
    Link,
    CompileInfo,
    LinkInfo,
    Compiler,
    IncDirs,
    LibDirs,
    Libs,
    Version,
    Help,
    Manual,
}

/// The options of each query, without dashes: the first name is shown by help.
const QUESTIONS: &[(&[&str], Question)] = &[
    (&["showme", "show"], Question::Command),
    (&["showme:command"], Question::Compiler),
    (&["showme:compile"], Question::Compile),
    (&["showme:link"], Question::Link),
    (&["showme:incdirs"], Question::IncDirs),
    (&["showme:libdirs"], Question::LibDirs),
    (&["showme:libs"], Question::Libs),
    (&["showme:version"], Question::Version),
    (&["showme:help"], Question::Help),
    (&["showme:manual"], Question::Manual),
    (&["compile_info", "compile-info"], Question::CompileInfo),
    (&["link_info", "link-info"], Question::LinkInfo),
];

/// The help option with one dash; with two it belongs to the compiler.
const HELP: &str = "-help";

/// Arguments that prevent linking.
const NO_LINK: &[&str] = &["-c", "-S", "-E", "-M", "-MM", "-fsyntax-only"];

impl Wrapper {
    /// Finds the installation that this program belongs to, and the compiler that the environment selects.
    pub fn of_this_process(language: Language) -> Result<Wrapper, String> {
        let (variable, _) = language.choices();
        let compiler = environment::var(variable)
            .filter(|name| !name.is_empty())
            .unwrap_or_else(|| language.compiler().into());
        let prefix = crate::prefix::prefix().ok_or_else(|| {
            format!(
                "{} does not lie in the bin folder of an installation, so it cannot say where mpi.h and the library are",
                language.wrapper()
            )
        })?;
        Ok(Wrapper {
            language,
            compiler,
            prefix,
        })
    }

    /// Returns the action for these arguments, without the program's own name.
    pub fn answer(&self, args: impl IntoIterator<Item = OsString>) -> Action {
        let mut compiler = self.compiler.clone();
        let mut question = None;
        let mut rest = Vec::new();
        let (_, choice) = self.language.choices();
        for arg in args {
            let bytes = arg.as_bytes();
            if let Some(name) = bytes.strip_prefix(choice.as_bytes()) {
                compiler = OsStr::from_bytes(name).to_owned();
            } else if let Some(asked) = arg.to_str().and_then(question_in) {
                question = Some(asked);
            } else {
                rest.push(arg);
            }
        }
        let Some(question) = question else {
            return Action::Run(self.command(compiler, rest));
        };
        Action::Print(match question {
            Question::Help => help::text(self, &compiler).into(),
            Question::Manual => help::manual(self.language).into(),
            Question::Command => line(self.command(compiler, rest)),
            Question::Compile => line(self.compile_flags()),
            Question::Link => line(self.link_flags()),
            Question::CompileInfo => line([vec![compiler], self.compile_flags()].concat()),
            Question::LinkInfo => {
                line([vec![compiler], self.compile_flags(), self.link_flags()].concat())
            }
            Question::Compiler => line(vec![compiler]),
            Question::IncDirs => self.include().into_os_string(),
            Question::LibDirs => self.lib().into_os_string(),
            Question::Libs => "mpi_abi".into(),
            Question::Version => format!(
                "{}: Portcullis {} (Language: {})",
                self.language.wrapper(),
                env!("CARGO_PKG_VERSION"),
                self.language.name()
            )
            .into(),
        })
    }

    fn include(&self) -> PathBuf {
        self.prefix.join("include")
    }

    fn lib(&self) -> PathBuf {
        self.prefix.join("lib")
    }

    fn compile_flags(&self) -> Vec<OsString> {
        vec![joined("-I", &self.include())]
    }

    fn link_flags(&self) -> Vec<OsString> {
        vec![
            joined("-L", &self.lib()),
            joined("-Wl,-rpath,", &self.lib()),
            "-lmpi_abi".into(),
        ]
    }

    fn command(&self, compiler: OsString, rest: Vec<OsString>) -> Vec<OsString> {
        let links = !rest
            .iter()
            .any(|arg| NO_LINK.iter().any(|stop| arg == stop));
        // The compiler may have arguments of its own, as in MPICC_CC="gcc -m64".
        let compiler = text::from_os(compiler);
        let mut command: Vec<OsString> = compiler.split_whitespace().map(text::to_os).collect();
        command.extend(self.compile_flags());
        command.extend(rest);
        if links {
            command.extend(self.link_flags());
        }
        command
    }
}

fn question_in(arg: &str) -> Option<Question> {
    if arg == HELP {
        return Some(Question::Help);
    }
    let name = arg.strip_prefix("--").or_else(|| arg.strip_prefix('-'))?;
    QUESTIONS
        .iter()
        .find(|(names, _)| names.contains(&name))
        .map(|(_, question)| *question)
}

fn joined(flag: &str, path: &Path) -> OsString {
    let mut text = OsString::from(flag);
    text.push(path);
    text
}

/// Quotes a command for a shell.
fn line(words: Vec<OsString>) -> OsString {
    let words: Vec<String> = words
        .iter()
        .map(|word| quoted(&text::from_os(word)))
        .collect();
    text::to_os(&words.join(" "))
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+.,:/@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_string()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer_of(language: Language, args: &str) -> Action {
        let wrapper = Wrapper {
            language,
            compiler: language.compiler().into(),
            prefix: "/opt/p".into(),
        };
        wrapper.answer(args.split_whitespace().map(OsString::from))
    }

    fn answer(args: &str) -> Action {
        answer_of(Language::C, args)
    }

    fn printed(args: &str) -> String {
        match answer(args) {
            Action::Print(text) => text.into_string().unwrap(),
            Action::Run(command) => panic!("{command:?}"),
        }
    }

    #[test]
    fn both_families_of_questions_are_answered() {
        let all = "cc -I/opt/p/include -L/opt/p/lib -Wl,-rpath,/opt/p/lib -lmpi_abi";
        for ask in ["-show", "--showme", "-showme", "-link_info"] {
            assert_eq!(printed(ask), all, "{ask}");
        }
        for (ask, answer) in [
            ("--showme:compile", "-I/opt/p/include"),
            (
                "--showme:link",
                "-L/opt/p/lib -Wl,-rpath,/opt/p/lib -lmpi_abi",
            ),
            ("-showme:incdirs", "/opt/p/include"),
            ("-showme:libdirs", "/opt/p/lib"),
            ("-showme:libs", "mpi_abi"),
            ("-showme:command", "cc"),
            ("-compile_info", "cc -I/opt/p/include"),
        ] {
            assert_eq!(printed(ask), answer, "{ask}");
        }
    }

    #[test]
    fn the_manual_page_has_every_query_and_no_folder_of_the_installation() {
        for language in [Language::C, Language::Cxx] {
            let Action::Print(page) = answer_of(language, "--showme:manual") else {
                panic!("no page");
            };
            let page = page.into_string().unwrap().replace('\\', "");
            for name in QUESTIONS.iter().flat_map(|(names, _)| *names) {
                assert!(page.contains(&format!("--{name}")), "{name}: {page}");
            }
            assert!(!page.contains("/opt/p"), "{page}");
        }
    }

    #[test]
    fn what_does_not_link_gets_no_libraries() {
        assert_eq!(printed("-show -c a.c"), "cc -I/opt/p/include -c a.c");
        assert!(
            printed("-show a.c -o a")
                .ends_with("a.c -o a -L/opt/p/lib -Wl,-rpath,/opt/p/lib -lmpi_abi")
        );
    }

    #[test]
    fn the_compiler_can_be_named() {
        assert!(printed("-show -cc=clang").starts_with("clang -I"));
        let Action::Run(command) = answer("-cc=tcc x.c") else {
            panic!("nothing was asked");
        };
        assert_eq!((&command[0], &command[2]), (&"tcc".into(), &"x.c".into()));
    }

    #[test]
    fn the_name_it_is_called_by_selects_the_language() {
        for (called, language) in [
            ("mpicc", Language::C),
            ("/opt/p/bin/mpicxx", Language::Cxx),
            ("./mpic++", Language::Cxx),
            ("/usr/bin/mpicxx.portcullis", Language::Cxx),
            ("/usr/bin/mpicc.portcullis", Language::C),
            ("", Language::C),
        ] {
            assert_eq!(Language::of_wrapper(called.as_ref()), language, "{called}");
        }
        let shown = answer_of(Language::Cxx, "-show -cxx=clang++ -cc=x a.cc -c");
        let line = "clang++ -I/opt/p/include -cc=x a.cc -c";
        assert_eq!(shown, Action::Print(line.into()));
        let Action::Run(command) = answer_of(Language::Cxx, "a.cc") else {
            panic!("nothing was asked");
        };
        assert_eq!(command[0], "c++");
    }

    #[test]
    fn help_is_asked_for_in_both_families_and_the_compilers_is_left_to_it() {
        let help = printed("-help");
        assert_eq!(printed("--showme:help"), help);
        assert_eq!(printed("-showme:help -c a.c"), help);
        for (names, _) in QUESTIONS {
            for name in *names {
                let shown = |line: &str| {
                    let mut words = line.split([' ', ',']);
                    words.any(|word| word.trim_start_matches('-') == *name)
                };
                assert!(help.lines().any(shown), "{name} is not in:\n{help}");
            }
        }
        for language in [Language::C, Language::Cxx] {
            let Action::Run(command) = answer_of(language, "--help") else {
                panic!("--help is the compiler's");
            };
            assert_eq!(command[2], "--help");
        }
    }

    #[test]
    fn help_is_that_of_the_language() {
        insta::assert_snapshot!("help_of_mpicc", printed("-help"));
        let Action::Print(help) = answer_of(Language::Cxx, "-help -cxx=clang++") else {
            panic!("help was asked for");
        };
        insta::assert_snapshot!("help_of_mpicxx", help.into_string().unwrap());
    }

    #[test]
    fn what_is_shown_can_be_given_to_a_shell() {
        assert_eq!(quoted("-DX=\"a b\""), "'-DX=\"a b\"'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
