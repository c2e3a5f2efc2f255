//! The description of a job's programs in a checkpoint.
//! A restart without a command line runs these programs; a job with other programs is rejected.

use crate::words::{decode, encode};
use printable::name;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// One program of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The number of ranks that run this program.
    pub procs: u32,
    /// The length and the CRC-32 of the executable file, and of the script that an interpreter runs.
    pub fingerprint: String,
    /// The working directory, if the user chose one.
    pub dir: Option<PathBuf>,
    /// The program name as the user wrote it.
    pub program: OsString,
    pub args: Vec<OsString>,
}

/// All programs of a job, in the order of their ranks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Description {
    pub programs: Vec<Program>,
}

/// The first difference found between the job of a checkpoint and this job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// The number of ranks: in the checkpoint, in this job.
    Ranks(u32, u32),
    /// The names of the programs: in the checkpoint, in this job.
    Programs(String, String),
    /// The executable file or script of this program has other contents.
    Contents(String),
    /// This program has other arguments.
    Arguments(String),
}

/// The separator of programs in the encoded text.
const BETWEEN: char = '|';

impl Description {
    /// Returns the number of ranks of the job.
    pub fn ranks(&self) -> u32 {
        self.programs.iter().map(|program| program.procs).sum()
    }

    /// Returns the description as one line of text.
    pub fn write(&self) -> String {
        let programs = self.programs.iter().map(|program| {
            let dir = program.dir.as_ref().map(|dir| dir.as_os_str());
            let mut words = vec![
                program.procs.to_string(),
                program.fingerprint.clone(),
                encode(dir.unwrap_or_default()),
                encode(&program.program),
            ];
            words.extend(program.args.iter().map(|arg| encode(arg)));
            words.join(" ")
        });
        programs.collect::<Vec<_>>().join(&BETWEEN.to_string())
    }

    /// Parses the text that [`Description::write`] returns.
    pub fn read(text: &str) -> Option<Description> {
        let programs = text.split(BETWEEN).map(read_program);
        let programs = programs.collect::<Option<Vec<Program>>>()?;
        let ranks = programs
            .iter()
            .try_fold(0u32, |sum, program| sum.checked_add(program.procs));
        ranks.map(|_| Description { programs })
    }

    /// Returns the first difference between `self`, the checkpoint's job, and `now`, this job.
    pub fn difference(&self, now: &Description) -> Option<Difference> {
        let (then, ranks) = (self.ranks(), now.ranks());
        let of = |one: &Description| {
            let names = one.programs.iter();
            let names = names.map(|program| name(base(&program.program)).to_string());
            names.collect::<Vec<_>>().join(" : ")
        };
        if of(self) != of(now) {
            return Some(Difference::Programs(of(self), of(now)));
        }
        if then != ranks {
            return Some(Difference::Ranks(then, ranks));
        }
        let pairs = || self.programs.iter().zip(&now.programs);
        let named = |program: &Program| name(base(&program.program)).to_string();
        if let Some((_, now)) = pairs().find(|(then, now)| then.fingerprint != now.fingerprint) {
            return Some(Difference::Contents(named(now)));
        }
        let other = pairs().find(|(then, now)| then.args != now.args);
        other.map(|(_, now)| Difference::Arguments(named(now)))
    }
}

/// Returns the file name of a program without its directory.
fn base(program: &OsStr) -> &OsStr {
    Path::new(program).file_name().unwrap_or(program)
}

fn read_program(text: &str) -> Option<Program> {
    let mut words = text.split(' ');
    let procs = words.next()?.parse().ok()?;
    let fingerprint = words.next().filter(|word| !word.is_empty())?.to_owned();
    let dir = decode(words.next()?)?;
    Some(Program {
        procs,
        fingerprint,
        dir: (!dir.is_empty()).then(|| dir.into()),
        program: decode(words.next()?).filter(|program| !program.is_empty())?,
        args: words.map(decode).collect::<Option<_>>()?,
    })
}

/// Returns the fingerprint of a program: length and CRC-32 of the executable file,
/// and of the script among `args` if the executable is an interpreter.
pub fn fingerprint(file: &Path, dir: &Path, args: &[OsString]) -> io::Result<String> {
    let mut text = print_of(file)?;
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let interprets = ["python", "pypy", "perl", "ruby", "bash", "sh", "julia"];
    if interprets.iter().any(|word| name.starts_with(word)) {
        let files = args.iter().map(|arg| dir.join(arg));
        if let Some(script) = files.into_iter().find(|path| path.is_file()) {
            text = format!("{text}+{}", print_of(&script)?);
        }
    }
    Ok(text)
}

/// Returns the length and the CRC-32 of a file as text.
fn print_of(path: &Path) -> io::Result<String> {
    let (len, sum) = checksum(path)?;
    Ok(format!("{len}:{sum:08x}"))
}

/// Returns the length and the CRC-32 of a file.
pub fn checksum(path: &Path) -> io::Result<(u64, u32)> {
    let (mut file, mut hasher) = (File::open(path)?, crc32fast::Hasher::new());
    let (mut buffer, mut len) = (vec![0; 1 << 18], 0);
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok((len, hasher.finalize())),
            Ok(got) => {
                hasher.update(&buffer[..got]);
                len += got as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(ranks: u32, program: &str, fingerprint: &str, args: &[&str]) -> Description {
        let programs = vec![Program {
            procs: ranks,
            fingerprint: fingerprint.into(),
            dir: None,
            program: program.into(),
            args: args.iter().map(Into::into).collect(),
        }];
        Description { programs }
    }

    #[test]
    fn a_description_comes_back_from_its_text() {
        let mut two = job(3, "./a b", "9:00000001", &["", "50%", "x|y"]);
        two.programs.extend(job(1, "c", "8:00000002", &[]).programs);
        two.programs[1].dir = Some("/work dir".into());
        assert_eq!(Description::read(&two.write()), Some(two.clone()));
        assert_eq!(two.ranks(), 4);
        for text in ["", "x", "1 2 3", "4294967295 f % p|1 f % p"] {
            assert_eq!(Description::read(text), None, "{text}");
        }
    }

    #[test]
    fn the_first_difference_is_named() {
        let then = job(4, "/a/stencil", "9:1", &["20"]);
        assert_eq!(then.difference(&job(4, "./stencil", "9:1", &["20"])), None);
        let cases = [
            (job(6, "stencil", "9:1", &["20"]), Difference::Ranks(4, 6)),
            (
                job(4, "other", "9:1", &["20"]),
                Difference::Programs("stencil".into(), "other".into()),
            ),
            (
                job(4, "stencil", "9:2", &["20"]),
                Difference::Contents("stencil".into()),
            ),
            (
                job(4, "stencil", "9:1", &["21"]),
                Difference::Arguments("stencil".into()),
            ),
        ];
        for (now, expected) in cases {
            assert_eq!(then.difference(&now), Some(expected));
        }
    }

    #[test]
    fn a_fingerprint_covers_the_script_of_an_interpreter() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("a.py");
        let python = folder.path().join("python3");
        std::fs::write(&python, "interpreter").unwrap();
        let args = ["-u".into(), "a.py".into()];
        let print = || fingerprint(&python, folder.path(), &args).unwrap();
        std::fs::write(&script, "1").unwrap();
        let before = print();
        std::fs::write(&script, "2").unwrap();
        assert_ne!(print(), before);
    }
}
