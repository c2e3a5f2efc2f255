//! `mpicc`, `mpicxx`, `mpifort`: a compiler wrapper that takes the language from its own name.

use mpirun::wrapper::{Action, Language, Wrapper};
use std::ffi::OsString;
use std::io::Write as _;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let mut args = std::env::args_os();
    let called = args.next().unwrap_or_default();
    let language = Language::of_wrapper(&called);
    let name = language.wrapper();
    let args: Vec<OsString> = args.collect();
    let say = |sentence: &str| printable::eprintln!("{name}: {sentence}");
    let wrapper = match Wrapper::of_this_process(language, &args, say) {
        Ok(wrapper) => wrapper,
        Err(reason) => {
            printable::eprintln!("{name}: {reason}");
            return ExitCode::FAILURE;
        }
    };
    match wrapper.answer(args) {
        Action::Print(text) => {
            let mut bytes = text.into_vec();
            bytes.push(b'\n');
            // A closed stdout pipe, as with `| head`, is not an error.
            let _ = std::io::stdout().write_all(&bytes);
            ExitCode::SUCCESS
        }
        Action::Run(command) => {
            let Some((program, args)) = command.split_first() else {
                printable::eprintln!("{name}: no compiler is named");
                return ExitCode::FAILURE;
            };
            let error = Command::new(program).args(args).exec();
            printable::eprintln!(
                "{name}: the compiler {} cannot be run: {error}",
                printable::name(program)
            );
            ExitCode::from(127)
        }
    }
}
