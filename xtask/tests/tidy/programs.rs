//! Test that executable files are made only by the functions of the package `bounded`.
//!
//! A program that writes a file and executes it can fail: a child that another of its threads forks at that time
//! has the file open for writing until its execve(2), and the kernel refuses to execute the file (`bounded/src/programs.rs`).
//! The test finds calls that make a file executable, and `fs::copy`, which copies the mode.

use super::{files, name, read};

/// The file with the functions that make executable files, and the file of this test.
const EXEMPT: &[&str] = &["bounded/src/programs.rs", "xtask/tests/tidy/programs.rs"];

/// Calls that may remain: the file, the call's text, and why no executed file was written by the same process.
const ALLOWED: &[(&str, &str, &str)] = &[
    (
        "bounded/src/lib.rs",
        "PermissionsExt::from_mode(0o755)",
        "the test of waiting for a file that is open for writing",
    ),
    (
        "coll-hwbarr/plugin/tests/plugin_file.rs",
        "fs::copy(made_by_cargo()",
        "a library",
    ),
    (
        "mpi-core/coll/src/plugin/tests/loading.rs",
        "Permissions::from_mode(mode)",
        "a library and a folder",
    ),
    (
        "mpi-core/transport/src/btl/plugin/tests.rs",
        "fs::copy(made",
        "a library",
    ),
    (
        "mpirun/src/wrapper/fortran.rs",
        "Permissions::from_mode(mode)",
        "an empty file that is not executed",
    ),
    ("tests/tests/building/fortran.rs", "fs::copy(", "sources"),
    ("tests/tests/foreign.rs", "fs::copy(component", "a library"),
    ("tests/tests/on.rs", "fs::copy(built.path()", "a library"),
    (
        "tests/tests/packages/clean_root.rs",
        "fs::copy(workspace::programs()",
        "sources",
    ),
    ("tests/tests/plugin.rs", "fs::copy(", "a library"),
    ("tests/tests/privileged.rs", "fs::copy(built", "a library"),
    (
        "tests/tests/privileged.rs",
        "(&self.program, fs::Permissions::from_mode(mode))",
        "the compiler has written the program",
    ),
    (
        "tests/tests/zero.rs",
        "(&path, fs::Permissions::from_mode(0o711))",
        "copy_program has made the program",
    ),
    (
        "xtask/src/machines.rs",
        "fs::copy(&unpacked",
        "a kernel for an emulator",
    ),
    (
        "xtask/src/mpich_tests/plugins.rs",
        "fs::copy(&made",
        "a library",
    ),
    (
        "xtask/src/package/debian.rs",
        "Permissions::from_mode(mode)",
        "a script that dpkg unpacks from the package",
    ),
    (
        "xtask/src/package/files.rs",
        "fs::copy(&from",
        "files that are packed, and executed from where they are unpacked",
    ),
    (
        "xtask/src/package/hwbarr_wheel.rs",
        "fs::copy(from",
        "files of a wheel",
    ),
];

/// Functions whose argument is a file mode.
const MODES: &[&str] = &["from_mode(", ".mode(0", ".set_mode(0", "chmod(", "chmodat("];
/// Other calls: the program chmod, and the function that copies a file with its mode.
const OTHERS: &[&str] = &["\"chmod\"", "fs::copy("];

/// Returns true if the text begins with an octal number that gives no right to execute.
fn is_plain(mode: &str) -> bool {
    let digits = mode.strip_prefix("0o").unwrap_or_default();
    let end = digits.find(|c: char| !c.is_ascii_digit() && c != '_');
    let digits = digits.split_at(end.unwrap_or(digits.len())).0;
    let mode = u32::from_str_radix(&digits.replace('_', ""), 8);
    mode.is_ok_and(|mode| mode & 0o111 == 0)
}

/// Returns true if a line of code may make an executable file.
fn makes_a_program(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    let is_folder = code.contains("DirBuilder");
    let sets = |call: &str| {
        let arguments = code.split(call).skip(1);
        // The call `.mode(0` includes the first digit of its argument.
        let digit = if call.ends_with('0') { "0" } else { "" };
        arguments
            .map(|rest| format!("{digit}{rest}"))
            .any(|rest| !is_plain(&rest))
    };
    !is_folder
        && (MODES.iter().any(|call| sets(call)) || OTHERS.iter().any(|call| code.contains(call)))
}

#[test]
fn executable_files_are_made_by_the_functions_for_this() {
    let (mut found, mut used) = (Vec::new(), vec![false; ALLOWED.len()]);
    for path in files("rs") {
        let name = name(&path);
        if EXEMPT.contains(&&*name) {
            continue;
        }
        for (number, line) in (1..).zip(read(&path).lines()) {
            if !makes_a_program(line) {
                continue;
            }
            let is_it = |(file, call, _): &(&str, &str, &str)| *file == name && line.contains(call);
            match ALLOWED.iter().position(is_it) {
                Some(allowed) => used[allowed] = true,
                None => found.push(format!("{name}:{number}: {}", line.trim())),
            }
        }
    }
    assert!(
        found.is_empty(),
        "use bounded::write_program, copy_program or set_folder_mode, \
         or add the call to ALLOWED in xtask/tests/tidy/programs.rs with the reason why the file is not executed:\n{}",
        found.join("\n")
    );
    let unused = ALLOWED.iter().zip(used).filter(|(_, used)| !used);
    let unused: Vec<_> = unused.map(|(allowed, _)| allowed).collect();
    assert!(unused.is_empty(), "these calls are gone: {unused:#?}");
}

#[test]
fn calls_that_make_programs_are_known_from_others() {
    let programs = [
        "fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();",
        "let mode = PermissionsExt::from_mode(mode);",
        "let file = options.mode(0o700).open(path)?;",
        "permissions.set_mode(0o100_755);",
        "rustix::fs::chmod(path, Mode::RWXU)?;",
        "Command::new(\"chmod\").arg(\"+x\")",
        "std::fs::copy(from, to)?;",
    ];
    let others = [
        "fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();",
        "let mut file = options.mode(0o600).open(path)?;",
        "match DirBuilder::new().mode(0o700).create(&folder) {",
        "// from_mode(0o755)",
        "set_mode(stream, mode);",
        "\"every user may write it; chmod o-w makes it usable\"",
    ];
    for line in programs {
        assert!(makes_a_program(line), "{line}");
    }
    for line in others {
        assert!(!makes_a_program(line), "{line}");
    }
}
