//! Making programs and scripts that can be executed immediately.
//!
//! The kernel does not execute a file that a process has open for writing (`ETXTBSY`, execve(2)).
//! If this process wrote the file, a child that another thread forks at that time would inherit the writable descriptor.
//! The child keeps the descriptor until it calls execve(2), which may be after this process has closed its own.
//! So this process never opens the file for writing: a shell or cp(1) writes it, and this process waits for its end.
//! A test of `cargo xtask` permits executable files to be made only by these functions (`xtask/tests/tidy/programs.rs`).

use std::fs::{File, Permissions};
use std::io::{self, Seek as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};

use crate::running::memory_file;
use crate::{ProcessError, output, run, spelled};

/// Time limit for writing a script.
const WRITING: Duration = Duration::from_secs(60);

/// The shell's commands; `$1` is the path.
const WRITE: &str = r#"cat >"$1" && chmod 755 "$1""#;

/// Copies a program, which may then be executed immediately.
pub fn copy_program(from: &Path, to: &Path) -> Result<(), ProcessError> {
    run(Command::new("cp").arg("--").args([from, to]))
}

/// Writes a script, executable for all users, which may then be executed immediately.
pub fn write_program(path: &Path, text: &str) -> Result<(), ProcessError> {
    // A path that begins with `-` would be an option of chmod.
    let path = Path::new(".").join(path);
    let mut shell = Command::new("sh");
    shell.args(["-c", WRITE, "write_program"]).arg(path);
    let input = memory_file().and_then(|(mut file, input)| {
        // The shell shares this descriptor's position.
        file.write_all(text.as_bytes())?;
        file.rewind()?;
        Ok(input)
    });
    let input = input.map_err(|reason| ProcessError::Start {
        program: spelled(&shell),
        reason,
    })?;
    output(shell.stdin(input), WRITING).map(drop)
}

/// Sets the mode of a folder. Returns an error if the path is not a folder.
pub fn set_folder_mode(folder: &Path, mode: u32) -> io::Result<()> {
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = File::from(rustix::fs::open(folder, flags, Mode::empty())?);
    folder.set_permissions(Permissions::from_mode(mode))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use std::fs;
    use std::io::Read as _;
    use std::os::unix::process::CommandExt as _;
    use std::path::PathBuf;

    /// A folder that is removed at the end of the test.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let name = format!("bounded-{}-{name}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::create_dir(&path).unwrap();
            Folder(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    /// Returns true if this process has the file open for writing.
    fn is_open_for_writing(path: &Path) -> bool {
        let entries = fs::read_dir("/proc/self/fd").unwrap();
        let is_writable = |number: &str| {
            let info = fs::read_to_string(format!("/proc/self/fdinfo/{number}")).ok()?;
            let flags = info.lines().find_map(|line| line.strip_prefix("flags:"))?;
            let access = u32::from_str_radix(flags.trim(), 8).ok()? & OFlags::ACCMODE.bits();
            Some(access != OFlags::RDONLY.bits())
        };
        entries.map(Result::unwrap).any(|entry| {
            fs::read_link(entry.path()).is_ok_and(|target| target == path)
                && is_writable(&entry.file_name().to_string_lossy()) == Some(true)
        })
    }

    /// Writes more than a pipe holds to a pipe in the file system, from which this test does not read,
    /// so the writer has the pipe open until the test closes it.
    /// Returns true if this process is the writer.
    fn is_written_by_this_process(make: impl Fn(&Path, &str) -> bool + Sync) -> bool {
        let text = "#".repeat(1 << 20);
        let folder = Folder::new("pipe");
        let pipe = folder.0.join("pipe");
        run(Command::new("mkfifo").arg(&pipe)).unwrap();
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let reader = rustix::fs::open(&pipe, flags, Mode::empty()).unwrap();
        std::thread::scope(|scope| {
            let made = scope.spawn(|| make(&pipe, &text));
            let minute = Timespec {
                tv_sec: 60,
                tv_nsec: 0,
            };
            let ready = poll(&mut [PollFd::new(&reader, PollFlags::IN)], Some(&minute));
            let found = is_open_for_writing(&pipe);
            drop(reader);
            assert_eq!(ready, Ok(1), "no process has written");
            assert!(!made.join().unwrap(), "the pipe held the whole text");
            found
        })
    }

    #[test]
    fn this_process_never_has_a_program_open_for_writing() {
        let folder = Folder::new("source");
        let source = folder.0.join("source");
        assert!(is_written_by_this_process(|path, text| {
            fs::write(path, text).is_ok()
        }));
        assert!(!is_written_by_this_process(|path, text| {
            write_program(path, text).is_ok()
        }));
        assert!(!is_written_by_this_process(|path, text| {
            fs::write(&source, text).unwrap();
            copy_program(&source, path).is_ok()
        }));
    }

    /// Calls `during` while a child of this process exists that has not called execve(2) yet.
    #[allow(unsafe_code, reason = "the child waits between fork and execve")]
    fn while_a_child_is_forked<T>(during: impl FnOnce() -> T) -> T {
        let (mut forked, mut report) = io::pipe().unwrap();
        let (mut go_on, mut release) = io::pipe().unwrap();
        let mut child = Command::new("true");
        // SAFETY: the closure runs between fork and execve, without allocation or locks.
        // read(2) and write(2) are async-signal-safe.
        unsafe {
            child.pre_exec(move || {
                report.write_all(b"f")?;
                go_on.read_exact(&mut [0])
            });
        }
        std::thread::scope(|scope| {
            let child = scope.spawn(move || child.status());
            forked.read_exact(&mut [0]).unwrap();
            let result = during();
            release.write_all(b"g").unwrap();
            assert!(child.join().unwrap().unwrap().success());
            result
        })
    }

    /// Shows what this module prevents: the script was closed and is nevertheless open for writing, in a child.
    #[test]
    fn a_script_that_this_process_wrote_itself_is_busy_until_a_forked_child_executes() {
        let folder = Folder::new("busy");
        let script = folder.0.join("script");
        let mut file = File::create(&script).unwrap();
        file.write_all(b"#!/bin/sh\n").unwrap();
        file.set_permissions(Permissions::from_mode(0o755)).unwrap();
        let is_busy = || match Command::new(&script).status() {
            Ok(_) => false,
            Err(reason) => {
                assert_eq!(reason.kind(), io::ErrorKind::ExecutableFileBusy);
                true
            }
        };
        // Linux 6.11 executes files that are open for writing.
        let is_refused = is_busy();
        let was_busy = while_a_child_is_forked(|| {
            drop(file);
            is_busy()
        });
        assert_eq!(was_busy, is_refused);
        // Children that other tests have forked may also have copies of the descriptor.
        while is_busy() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_script_and_its_copy_have_their_text_and_mode_and_run() {
        let folder = Folder::new("script");
        let (script, copy) = (folder.0.join("a 'script'"), folder.0.join("-copy"));
        for text in ["#!/bin/sh\nexit 1 # longer\n", "#!/bin/sh\nexit 7\n"] {
            write_program(&script, text).unwrap();
            assert_eq!(fs::read_to_string(&script).unwrap(), text);
        }
        let mode = script.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o755);
        copy_program(&script, &copy).unwrap();
        for program in [script, copy] {
            let status = Command::new(program).status().unwrap();
            assert_eq!(status.code(), Some(7));
        }
    }

    #[test]
    fn a_script_that_cannot_be_written_is_named_with_the_reason() {
        let said = write_program(Path::new("/no/such/script"), "").unwrap_err();
        let said = said.to_string();
        assert!(said.contains("/no/such/script"), "{said}");
        assert!(said.to_lowercase().contains("directory"), "{said}");
    }

    #[test]
    fn only_a_folder_gets_the_mode_of_a_folder() {
        let folder = Folder::new("mode");
        set_folder_mode(&folder.0, 0o711).unwrap();
        let mode = folder.0.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o711);
        let file = folder.0.join("file");
        fs::write(&file, "").unwrap();
        let error = set_folder_mode(&file, 0o755).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotADirectory);
    }
}
