//! Compiler wrappers `mpicc`, `mpicxx` and `mpifort`: a compiler with this installation's flags.
//!
//! The wrappers are one program, which derives the language from the name of its executable.
//! CMake's FindMPI and autoconf macros use the queries of Open MPI's and MPICH's wrappers.
//! Open MPI: `--showme`, `--showme:compile|link|incdirs|libdirs|libs|version|command|help`.
//! MPICH: `-show`, `-compile_info`, `-link_info`. Each query is accepted with one dash or two.
//! MPICH's `-help` has one dash only, because `--help` is the compiler's option.
//! `MPICC_CC` or, for one call, `-cc=NAME` selects the compiler;
//! for `mpicxx`, `MPICXX_CXX` or `-cxx=NAME`; for `mpifort`, `MPIFORT_FC` or `-fc=NAME`.
//! By default `mpifort` uses the first Fortran compiler in PATH (see module `fortran`).
//! `mpifort` compiles the modules `mpi` and `mpi_f08` at the first use of a compiler (`modules`).

mod fortran;
mod help;
mod modules;

use modules::VersionError;
use mpi_base::{environment, text};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// The language that a wrapper compiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// C, compiled by `mpicc`.
    C,
    /// C++, compiled by `mpicxx`.
    Cxx,
    /// Fortran, compiled by `mpifort`.
    Fortran,
}

impl Language {
    /// Returns the language of a wrapper's name, also of the wrappers of Open MPI and MPICH.
    pub fn of_wrapper(called: &OsStr) -> Language {
        let name = Path::new(called).file_name().and_then(OsStr::to_str);
        // Debian also installs each wrapper under a name with the suffix `.portcullis`.
        match name.map(|name| name.trim_end_matches(".portcullis")) {
            Some("mpicxx" | "mpic++" | "mpiCC") => Language::Cxx,
            Some("mpifort" | "mpif77" | "mpif90") => Language::Fortran,
            _ => Language::C,
        }
    }

    /// Returns the wrapper's usual name.
    pub fn wrapper(self) -> &'static str {
        match self {
            Language::C => "mpicc",
            Language::Cxx => "mpicxx",
            Language::Fortran => "mpifort",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Language::C => "C",
            Language::Cxx => "C++",
            Language::Fortran => "Fortran",
        }
    }

    /// Returns the default compiler.
    fn usual_compiler(self) -> Result<OsString, String> {
        match self {
            Language::C => Ok("cc".into()),
            Language::Cxx => Ok("c++".into()),
            Language::Fortran => fortran::compiler_in_path(),
        }
    }

    /// Returns a description of the default compiler, for help texts.
    fn names_usual_compiler(self) -> &'static str {
        match self {
            Language::C => "cc",
            Language::Cxx => "c++",
            Language::Fortran => "the first in PATH of gfortran, flang, ifx, nvfortran and others",
        }
    }

    /// Returns the environment variable and the option that select another compiler.
    fn choices(self) -> (&'static str, &'static str) {
        match self {
            Language::C => ("MPICC_CC", "-cc="),
            Language::Cxx => ("MPICXX_CXX", "-cxx="),
            Language::Fortran => ("MPIFORT_FC", "-fc="),
        }
    }
}

/// The action of a wrapper call.
#[derive(Debug, PartialEq, Eq)]
pub enum Action {
    /// Print this answer to a query and exit with 0; paths may contain any bytes.
    Print(OsString),
    /// Execute this command.
    Run(Vec<OsString>),
}

/// A compiler wrapper of one installation.
#[derive(Clone, Debug)]
pub struct Wrapper {
    /// The language that the wrapper compiles.
    pub language: Language,
    /// The compiler's name, possibly with arguments, as in `MPICC_CC="gcc -m64"`.
    pub compiler: OsString,
    /// The root of the installation, which contains `include` and `lib`.
    pub prefix: PathBuf,
    /// The folder with the modules compiled for this Fortran compiler.
    pub modules: Option<PathBuf>,
    /// The flag that allows argument mismatches, which programs with `mpif.h` cause.
    pub mismatch_flag: Option<&'static str>,
}

/// A query, which the wrapper answers instead of compiling.
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

/// The options of each query, without dashes; the help shows the first name.
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

/// The help option with one dash; `--help` belongs to the compiler.
const HELP: &str = "-help";

/// Arguments that prevent linking.
const NO_LINK: &[&str] = &["-c", "-S", "-E", "-M", "-MM", "-fsyntax-only"];

/// Options that request a program without shared libraries.
const STATIC: &[&str] = &["-static", "--static", "-static-pie"];

/// Returns an error if the arguments link a program without shared libraries.
fn refuse_static(args: &[OsString]) -> Result<(), String> {
    let stops = |arg: &OsString| NO_LINK.iter().any(|stop| arg == stop);
    if asked_in(args).is_some() || args.iter().any(stops) {
        return Ok(());
    }
    match args
        .iter()
        .find_map(|arg| STATIC.iter().find(|flag| arg == *flag))
    {
        Some(flag) => Err(format!(
            "{flag}: there is no static library of MPI; the program must be linked with the shared library libmpi_abi.so.1. \
             Without {flag}, a path to a file such as libx.a, or -Wl,-Bstatic -lx -Wl,-Bdynamic, links single libraries statically."
        )),
        None => Ok(()),
    }
}

impl Wrapper {
    /// Finds this installation, and the compiler that the arguments or the environment select.
    ///
    /// For Fortran, compiles the modules that these arguments may need; `say` prints messages.
    pub fn of_this_process(
        language: Language,
        args: &[OsString],
        say: impl Fn(&str),
    ) -> Result<Wrapper, String> {
        refuse_static(args)?;
        let (variable, choice) = language.choices();
        let by_option = args.iter().rev().find_map(|arg| chosen(arg, choice));
        let by_variable = || environment::var(variable).filter(|name| !name.is_empty());
        let compiler = match by_option.or_else(by_variable) {
            Some(compiler) => compiler,
            // Machines without a Fortran compiler can print the manual page too.
            None if asked_in(args).is_some_and(|question| !question.needs_compiler()) => {
                language.names_usual_compiler().into()
            }
            None => language.usual_compiler()?,
        };
        let prefix = crate::prefix::prefix().ok_or_else(|| {
            format!(
                "{} is not in the bin folder of an installation, so it cannot find the installation's headers and library",
                language.wrapper()
            )
        })?;
        let mut wrapper = Wrapper {
            language,
            compiler,
            prefix,
            modules: None,
            mismatch_flag: None,
        };
        if language == Language::Fortran {
            wrapper.prepare_modules(args, say)?;
        }
        Ok(wrapper)
    }

    /// Compiles the Fortran modules if these arguments may need them.
    /// Without the modules, programs that include `mpif.h` still compile.
    fn prepare_modules(&mut self, args: &[OsString], say: impl Fn(&str)) -> Result<(), String> {
        let needed = match asked_in(args) {
            Some(question) => question.shows_flags(),
            None => fortran::has_source(args) || links_objects(args),
        };
        if !needed {
            return Ok(());
        }
        if let Some(flag) = fortran::long_integers(args) {
            return Err(format!(
                "{flag} makes default INTEGER 8 bytes long, but the integers of the MPI interface have 4 bytes; \
                 compile without it, and declare the integers that need 8 bytes as INTEGER(8)"
            ));
        }
        let flags = fortran::kind_flags(args);
        let version = match modules::version(&self.compiler) {
            Ok(version) => version,
            Err(VersionError::NotRun(reason)) => return Err(reason),
            Err(VersionError::NotPrinted(reason)) => {
                say(&reason);
                return Ok(());
            }
        };
        self.mismatch_flag = fortran::mismatch_flag(&version);
        let compiler = (self.compiler.as_os_str(), version.as_str());
        match modules::folder(&self.prefix, compiler, &flags, &say) {
            Ok(folder) => self.modules = Some(folder),
            Err(reason) => say(&reason),
        }
        Ok(())
    }

    /// Returns the action for these arguments, which exclude the program's name.
    pub fn answer(&self, args: impl IntoIterator<Item = OsString>) -> Action {
        let compiler = self.compiler.clone();
        let mut question = None;
        let mut rest = Vec::new();
        let (_, choice) = self.language.choices();
        for arg in args {
            if let Some(asked) = arg.to_str().and_then(question_in) {
                question = Some(asked);
            } else if chosen(&arg, choice).is_none() {
                rest.push(arg);
            }
        }
        let Some(question) = question else {
            // Without an input file, as in `mpicc -v`, the link would fail for lack of `main`.
            return Action::Run(match names_no_file(&rest) {
                true => self.compile_only(compiler, rest),
                false => self.command(compiler, rest),
            });
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
            Question::IncDirs => self.include_folders(),
            Question::LibDirs => self.lib().into_os_string(),
            Question::Libs => self.libraries().join(" ").into(),
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

    /// Returns the libraries in link order.
    fn libraries(&self) -> &'static [&'static str] {
        match self.language {
            Language::C | Language::Cxx => &["mpi_abi"],
            Language::Fortran => &["mpifort_abi", "mpi_abi"],
        }
    }

    /// Returns the folders of headers and modules, separated by spaces.
    fn include_folders(&self) -> OsString {
        let mut folders = self.include().into_os_string();
        if let Some(modules) = &self.modules {
            folders.push(" ");
            folders.push(modules);
        }
        folders
    }

    fn compile_flags(&self) -> Vec<OsString> {
        let folders = [Some(self.include()), self.modules.clone()];
        let folders = folders.iter().flatten();
        let folders = folders.map(|folder| joined("-I", folder));
        // The mismatch flag precedes the user's flags, which may override it.
        let mismatch = self.mismatch_flag.map(OsString::from);
        mismatch.into_iter().chain(folders).collect()
    }

    fn link_flags(&self) -> Vec<OsString> {
        let mut flags = match &self.modules {
            Some(modules) => modules::link_flags(modules),
            None => Vec::new(),
        };
        flags.push(joined("-L", &self.lib()));
        flags.push(joined("-Wl,-rpath,", &self.lib()));
        let libraries = self.libraries().iter();
        flags.extend(libraries.map(|name| format!("-l{name}").into()));
        flags
    }

    fn command(&self, compiler: OsString, rest: Vec<OsString>) -> Vec<OsString> {
        let links = !rest
            .iter()
            .any(|arg| NO_LINK.iter().any(|stop| arg == stop));
        let mut command = self.compile_only(compiler, rest);
        if links {
            command.extend(self.link_flags());
        }
        command
    }

    fn compile_only(&self, compiler: OsString, rest: Vec<OsString>) -> Vec<OsString> {
        // The compiler's name may contain arguments, as in MPICC_CC="gcc -m64".
        let compiler = text::from_os(compiler);
        let mut command: Vec<OsString> = compiler.split_whitespace().map(text::to_os).collect();
        command.extend(self.compile_flags());
        command.extend(rest);
        command
    }
}

/// Returns true if all arguments are options other than libraries and linker inputs.
fn names_no_file(args: &[OsString]) -> bool {
    let inputs = ["-l", "-Wl,", "-Xlinker"];
    args.iter().map(|arg| arg.as_bytes()).all(|arg| {
        arg.len() != 1
            && arg.starts_with(b"-")
            && !inputs.iter().any(|start| arg.starts_with(start.as_bytes()))
    })
}

/// Returns the compiler that an argument such as `-fc=NAME` selects.
fn chosen(arg: &OsStr, choice: &str) -> Option<OsString> {
    let name = arg.as_bytes().strip_prefix(choice.as_bytes())?;
    Some(OsStr::from_bytes(name).to_owned())
}

/// Returns true if one of the arguments is an object file or a library.
fn links_objects(args: &[OsString]) -> bool {
    let ending = |arg: &OsString| Path::new(arg).extension().map(OsStr::to_owned);
    args.iter()
        .filter_map(ending)
        .any(|ending| ending == "o" || ending == "a" || ending == "so")
}

/// Returns the last query among the arguments.
fn asked_in(args: &[OsString]) -> Option<Question> {
    let questions = args.iter().rev();
    let mut questions = questions.filter_map(|arg| arg.to_str().and_then(question_in));
    questions.next()
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

/// Quotes a command for a POSIX shell.
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

    fn wrapper_of(language: Language) -> Wrapper {
        Wrapper {
            language,
            compiler: match language {
                Language::C => "cc",
                Language::Cxx => "c++",
                Language::Fortran => "gfortran",
            }
            .into(),
            prefix: "/opt/p".into(),
            modules: (language == Language::Fortran).then(|| "/opt/p/m".into()),
            mismatch_flag: None,
        }
    }

    fn answer_of(language: Language, args: &str) -> Action {
        let wrapper = wrapper_of(language);
        let args: Vec<OsString> = args.split_whitespace().map(OsString::from).collect();
        let (_, choice) = language.choices();
        let compiler = args.iter().rev().find_map(|arg| chosen(arg, choice));
        let wrapper = Wrapper {
            compiler: compiler.unwrap_or(wrapper.compiler.clone()),
            ..wrapper
        };
        wrapper.answer(args)
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
    fn a_query_of_the_compiler_itself_links_nothing() {
        for args in ["", "-v", "--version", "-print-prog-name=ld"] {
            let Action::Run(command) = answer(args) else {
                panic!("nothing was asked");
            };
            let alone: Vec<_> = ["cc", "-I/opt/p/include"]
                .into_iter()
                .chain(args.split_whitespace())
                .collect();
            assert_eq!(command, alone, "{args}");
        }
        for args in ["-", "a.o", "-lmine", "@files", "-Wl,mine.o"] {
            let Action::Run(command) = answer(args) else {
                panic!("nothing was asked");
            };
            assert_eq!(command.last().unwrap(), "-lmpi_abi", "{args}");
        }
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
            ("mpifort", Language::Fortran),
            ("/usr/bin/mpif90.portcullis", Language::Fortran),
            ("mpif77", Language::Fortran),
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
    fn fortran_has_the_folder_of_its_modules_and_a_library_of_its_own() {
        let printed = |args| match answer_of(Language::Fortran, args) {
            Action::Print(text) => text.into_string().unwrap(),
            Action::Run(command) => panic!("{command:?}"),
        };
        let link = "-L/opt/p/lib -Wl,-rpath,/opt/p/lib -lmpifort_abi -lmpi_abi";
        let all = format!("gfortran -I/opt/p/include -I/opt/p/m {link}");
        assert_eq!(printed("-show"), all);
        assert_eq!(printed("--showme:link"), link);
        assert_eq!(printed("-showme:libs"), "mpifort_abi mpi_abi");
        assert_eq!(printed("-showme:incdirs"), "/opt/p/include /opt/p/m");
        assert!(printed("-show -fc=ifx -c a.f90").starts_with("ifx -I"));
    }

    #[test]
    fn flags_of_the_program_follow_the_one_that_accepts_old_programs() {
        let wrapper = Wrapper {
            mismatch_flag: Some("-fallow-argument-mismatch"),
            ..wrapper_of(Language::Fortran)
        };
        let args = ["-c", "-fno-allow-argument-mismatch", "a.f"].map(OsString::from);
        let Action::Run(command) = wrapper.answer(args.clone()) else {
            panic!("nothing was asked");
        };
        assert_eq!(command[1], "-fallow-argument-mismatch");
        assert_eq!(command[command.len() - 3..], args);
    }

    #[test]
    fn help_is_that_of_the_language() {
        insta::assert_snapshot!("help_of_mpicc", printed("-help"));
        let Action::Print(help) = answer_of(Language::Cxx, "-help -cxx=clang++") else {
            panic!("help was asked for");
        };
        insta::assert_snapshot!("help_of_mpicxx", help.into_string().unwrap());
        let Action::Print(help) = answer_of(Language::Fortran, "-help") else {
            panic!("help was asked for");
        };
        insta::assert_snapshot!("help_of_mpifort", help.into_string().unwrap());
    }

    #[test]
    fn what_is_shown_can_be_given_to_a_shell() {
        assert_eq!(quoted("-DX=\"a b\""), "'-DX=\"a b\"'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }

    #[test]
    fn a_static_link_is_refused_with_the_reason() {
        let args = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        for flag in STATIC {
            let said = refuse_static(&args(&["-O2", "hello.c", flag])).unwrap_err();
            assert!(said.starts_with(&format!("{flag}: there is no static library")));
            assert!(said.contains("libmpi_abi.so.1"), "{said}");
        }
        // Objects without a link, queries, and the compiler's own libraries.
        for words in [
            &["-static", "-c", "hello.c"][..],
            &["-static", "--showme:link"],
            &["-static-libgcc", "hello.c"],
        ] {
            assert_eq!(refuse_static(&args(words)), Ok(()), "{words:?}");
        }
    }
}
