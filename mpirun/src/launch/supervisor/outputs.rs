//! Output of all jobs: the ranks' streams, and mpirun's own standard output and standard error.
//!
//! While one of mpirun's own outputs is full, the launcher does not read the ranks.

use super::super::local_ranks::LocalRanks;
use super::super::output::{Sink, Stream, StreamId, Style, Target};
use super::super::program::Io;
use super::super::starter::{StartError, system};
use super::super::wire::Order;
use super::front_end::FrontEnd;
use super::poller::{Poller, Watch};
use super::tracebacks::Tracebacks;
use crate::pmi::Proc;
use rustix::event::{PollFd, PollFlags};
use rustix::fd::{BorrowedFd, OwnedFd};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The two output streams of a rank; `None` for a stream that has ended.
type Streams = [Option<Stream>; 2];

pub(super) struct Outputs<'a> {
    io: &'a Io,
    /// Whether mpirun's own messages are suppressed (`--quiet`).
    quiet: bool,
    sinks: Sinks,
    streams: BTreeMap<Proc, Streams>,
    tracebacks: Tracebacks,
    /// Whether reading of the ranks is paused, because a sink is full.
    held: bool,
    watching_room: bool,
    /// Whether output that the user requested is incomplete.
    incomplete: bool,
}

/// mpirun's own standard output and standard error.
///
/// If both are one file (`2>&1`, a terminal), all bytes go through `out`,
/// which knows whether its last line is complete.
struct Sinks {
    out: Sink,
    err: Sink,
    are_one: bool,
}

impl Sinks {
    fn new(out: OwnedFd, err: OwnedFd) -> Sinks {
        Sinks {
            are_one: is_same_file(&out, &err),
            out: Sink::new(out),
            err: Sink::new(err),
        }
    }

    fn of(&mut self, target: Target) -> &mut Sink {
        match target {
            Target::Stdout => &mut self.out,
            Target::Stderr if self.are_one => &mut self.out,
            Target::Stderr => &mut self.err,
        }
    }
}

/// The streams of a job that is about to start.
pub(super) struct NewStreams(Vec<Streams>);

fn index(of: Target) -> usize {
    match of {
        Target::Stdout => 0,
        Target::Stderr => 1,
    }
}

impl<'a> Outputs<'a> {
    /// Creates the outputs without streams, on duplicates of standard output and standard error.
    pub(super) fn new(io: &'a Io, quiet: bool) -> Result<Outputs<'a>, StartError> {
        let own = |fd: BorrowedFd<'_>| {
            rustix::io::fcntl_dupfd_cloexec(fd, 3).map_err(system("copying an output"))
        };
        let (out, err) = (own(rustix::stdio::stdout())?, own(rustix::stdio::stderr())?);
        Ok(Outputs::to(io, quiet, (out, err)))
    }

    fn to(io: &'a Io, quiet: bool, (out, err): (OwnedFd, OwnedFd)) -> Outputs<'a> {
        Outputs {
            io,
            quiet,
            sinks: Sinks::new(out, err),
            streams: BTreeMap::new(),
            tracebacks: Tracebacks::default(),
            held: false,
            watching_room: false,
            incomplete: false,
        }
    }

    // ---- mpirun's own messages ------------------------------------------------------------------------------------

    /// Prints a message of mpirun on standard error, or on standard output if that fails.
    pub(super) fn say(&mut self, text: &str) {
        if self.quiet {
            return;
        }
        let sink = match self.sinks.err.is_broken() {
            true => &mut self.sinks.out,
            false => self.sinks.of(Target::Stderr),
        };
        sink.push(printable::text(&format!("mpirun: {text}\n")).as_bytes());
    }

    /// Reports that requested output is incomplete, which also makes the job's exit status nonzero.
    pub(super) fn lose(&mut self, sentence: &str) {
        self.say(sentence);
        self.incomplete = true;
    }

    /// Returns true if output that the user requested is incomplete.
    pub(super) fn is_incomplete(&self) -> bool {
        self.incomplete
    }

    // ---- the ranks' streams ---------------------------------------------------------------------------------------

    /// Creates the streams of a job's ranks and their files.
    pub(super) fn prepare(&self, order: &Order) -> Result<NewStreams, StartError> {
        let stream = |rank, of| self.stream(order.job, rank, of).map(Some);
        let ranks = 0..order.hosts.len() as u32;
        let streams =
            ranks.map(|rank| Ok([stream(rank, Target::Stdout)?, stream(rank, Target::Stderr)?]));
        streams.collect::<Result<_, StartError>>().map(NewStreams)
    }

    /// Registers the streams of a job whose rank 0 has process index `first`.
    pub(super) fn add(&mut self, first: usize, streams: NewStreams) {
        let procs = (first..).map(Proc);
        self.streams.extend(procs.zip(streams.0));
    }

    fn stream(&self, job: usize, rank: u32, of: Target) -> Result<Stream, StartError> {
        let io = self.io;
        let (name, output) = match of {
            Target::Stdout => ("stdout", "output"),
            Target::Stderr => ("stderr", "error"),
        };
        let tag = match (io.tag, io.label) {
            (true, _) => format!("[{},{rank}]<{name}>: ", job + 1),
            (false, true) => format!("[{rank}] "),
            (false, false) => String::new(),
        };
        let file = io.folder.as_deref().map(|folder| {
            let merged = if io.merge { "stdout" } else { name };
            create(folder, job, rank, merged)
        });
        let style = Style {
            tag,
            timestamp: io.timestamp,
            file: file.transpose()?,
            silent: io.folder.is_some() && !io.echo,
            unbuffered: io.unbuffered,
        };
        let to = if io.merge { Target::Stdout } else { of };
        let name = match job {
            0 => format!("rank {rank}'s standard {output}"),
            job => format!("the standard {output} of rank {rank} of spawned job {job}"),
        };
        Ok(Stream::new(StreamId::new(job, rank, of), name, to, style))
    }

    /// Processes bytes that a rank has written.
    pub(super) fn take(&mut self, proc: Proc, of: Target, bytes: &[u8]) {
        let streams = self.streams.get_mut(&proc);
        if let Some(stream) = streams.and_then(|streams| streams[index(of)].as_mut()) {
            stream.take(bytes, self.sinks.of(stream.to));
        }
        if of == Target::Stderr {
            self.tracebacks.take(proc, bytes);
        }
    }

    /// Returns the last line of a rank's latest Python traceback.
    pub(super) fn exception(&self, proc: Proc) -> Option<String> {
        self.tracebacks.exception(proc)
    }

    /// Ends one stream of a rank and prints its incomplete line.
    pub(super) fn end(&mut self, proc: Proc, of: Target) {
        let Some(streams) = self.streams.get_mut(&proc) else {
            return;
        };
        if let Some(mut stream) = streams[index(of)].take() {
            stream.flush(self.sinks.of(stream.to));
        }
        if streams.iter().all(Option::is_none) {
            self.streams.remove(&proc);
            self.tracebacks.end(proc);
        }
    }

    /// Ends both streams of a rank.
    pub(super) fn end_all(&mut self, proc: Proc) {
        self.end(proc, Target::Stdout);
        self.end(proc, Target::Stderr);
    }

    /// Returns true while a stream of a rank is open.
    pub(super) fn has_streams(&self, proc: Proc) -> bool {
        self.streams.contains_key(&proc)
    }

    /// Returns the time at which the next incomplete line is printed.
    pub(super) fn next_prompt(&self) -> Option<Instant> {
        let streams = self.streams.values().flatten().flatten();
        streams.filter_map(Stream::prompt_at).min()
    }

    /// Prints the incomplete lines that are due at `now`.
    pub(super) fn show_prompts(&mut self, now: Instant) {
        self.flush(|stream| stream.prompt_at().is_some_and(|at| at <= now));
    }

    /// Prints all incomplete lines.
    pub(super) fn flush_all(&mut self) {
        self.flush(|_| true);
    }

    fn flush(&mut self, is_due: impl Fn(&Stream) -> bool) {
        for stream in self.streams.values_mut().flatten().flatten() {
            if is_due(stream) {
                stream.flush(self.sinks.of(stream.to));
            }
        }
    }

    // ---- mpirun's own outputs -------------------------------------------------------------------------------------

    /// Writes queued bytes of both sinks without blocking.
    pub(super) fn drain(&mut self) {
        self.sinks.out.drain();
        self.sinks.err.drain();
    }

    fn is_empty(&self) -> bool {
        self.sinks.out.is_empty() && self.sinks.err.is_empty()
    }

    /// Returns true if one of the sinks is full.
    pub(super) fn is_full(&self) -> bool {
        self.sinks.out.is_full() || self.sinks.err.is_full()
    }

    /// Returns true if the reader of standard output has closed the pipe.
    pub(super) fn is_closed(&self) -> bool {
        self.sinks.out.is_closed()
    }

    /// Reports output that could not be written.
    /// Returns true if output of the ranks is permanently lost, so that the job must end.
    pub(super) fn check(&mut self) -> bool {
        let complaints = [&mut self.sinks.out, &mut self.sinks.err].map(Sink::take_complaints);
        for complaint in complaints.concat() {
            self.lose(&complaint);
        }
        let kept = self.io.folder.is_some();
        let errors = [
            ("standard output", self.sinks.out.take_write_error()),
            ("standard error", self.sinks.err.take_write_error()),
        ];
        let mut must_end = false;
        for (name, write_error) in errors {
            let Some(errno) = write_error else { continue };
            let error = std::io::Error::from(errno);
            let consequence = match kept {
                true => "The job goes on, since --output keeps its lines.",
                false => "The job is ended, since its lines are kept nowhere else.",
            };
            self.lose(&format!(
                "mpirun's {name} cannot be written any more: {error}. {consequence}"
            ));
            must_end |= !kept;
        }
        must_end
    }

    /// Pauses reading of the ranks while a sink is full, and resumes it afterwards.
    pub(super) fn throttle(&mut self, poller: &Poller, local: &LocalRanks) {
        self.watch_writable(poller);
        let full = self.is_full();
        if full == self.held {
            return;
        }
        self.held = full;
        for (proc, of, pipe) in local.pipes() {
            poller.watch_output(pipe, Watch::output(proc, of), !full);
        }
    }

    /// Watches the sinks for space while bytes are queued.
    fn watch_writable(&mut self, poller: &Poller) {
        if self.is_empty() != self.watching_room {
            return;
        }
        self.watching_room = !self.watching_room;
        for sink in [&self.sinks.out, &self.sinks.err] {
            // A regular file cannot be watched and is always writable.
            // If both sinks are one file, the epoll watches it once.
            match self.watching_room && !sink.is_empty() {
                true => poller.watch_full(sink),
                false => poller.unwatch(sink),
            }
        }
    }

    /// Writes all queued bytes; blocks while the reader is slow.
    /// The time limit, the front end's death or a signal from the user ends the wait.
    pub(super) fn write_all(&mut self, limit: Option<Instant>, front: &mut FrontEnd) {
        loop {
            self.drain();
            let late = limit.is_some_and(|limit| Instant::now() >= limit);
            if self.is_empty() || late || !front.is_alive() {
                return;
            }
            let slow = match self.sinks.out.is_empty() {
                true => &self.sinks.err,
                false => &self.sinks.out,
            };
            front.wait_for(vec![PollFd::new(slow, PollFlags::OUT)]);
            if front.asks_for_the_end() {
                return;
            }
        }
    }
}

/// Returns true if two descriptors are of one file, pipe or terminal.
fn is_same_file(one: &OwnedFd, other: &OwnedFd) -> bool {
    let id = |fd| rustix::fs::fstat(fd).map(|stat| (stat.st_dev, stat.st_ino));
    matches!((id(one), id(other)), (Ok(one), Ok(other)) if one == other)
}

/// Creates `FOLDER/JOB/rank.N/stdout`; JOB is counted from 1, as in `--tag-output`.
fn create(folder: &Path, job: usize, rank: u32, name: &str) -> Result<(PathBuf, File), StartError> {
    let of_rank = folder.join(format!("{}/rank.{rank}", job + 1));
    let path = of_rank.join(name);
    std::fs::create_dir_all(&of_rank)
        .and_then(|()| match name {
            // Two streams of a rank may share a file, so both append to it.
            "stdout" | "stderr" => File::options()
                .create(true)
                .append(true)
                .open(&path)
                .and_then(|file| file.set_len(0).map(|()| file)),
            _ => File::create(&path),
        })
        .map_err(|error| StartError::Output {
            path: path.display().to_string(),
            error,
        })
        .map(|file| (path, file))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::pipe::{PipeFlags, pipe_with};

    fn pipe() -> (OwnedFd, OwnedFd) {
        pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).unwrap()
    }

    fn read(fd: &OwnedFd) -> String {
        let mut buffer = [0; 4096];
        let got = rustix::io::read(fd, &mut buffer).unwrap_or(0);
        String::from_utf8(buffer[..got].to_vec()).unwrap()
    }

    /// Returns outputs with the streams of two ranks, and the read ends of mpirun's own outputs.
    fn of_two_ranks(io: &Io, quiet: bool) -> (Outputs<'_>, OwnedFd, OwnedFd) {
        let ((out, to_out), (err, to_err)) = (pipe(), pipe());
        let mut outputs = Outputs::to(io, quiet, (to_out, to_err));
        let both = |rank| {
            [Target::Stdout, Target::Stderr].map(|of| Some(outputs.stream(0, rank, of).unwrap()))
        };
        let streams = NewStreams([0, 1].map(both).into());
        outputs.add(7, streams);
        (outputs, out, err)
    }

    #[test]
    fn a_stream_ends_with_its_incomplete_line_and_later_bytes_are_of_no_stream() {
        let io = Io {
            label: true,
            ..Io::default()
        };
        let (mut outputs, out, err) = of_two_ranks(&io, false);
        outputs.take(Proc(8), Target::Stdout, b"one\ntw");
        outputs.take(Proc(7), Target::Stderr, b"no end");
        assert!(outputs.next_prompt().is_some());
        outputs.end_all(Proc(8));
        outputs.drain();
        assert_eq!(read(&out), "[1] one\n[1] tw");
        outputs.take(Proc(8), Target::Stdout, b"late\n");
        outputs.drain();
        assert_eq!(read(&out), "");
        assert!(outputs.has_streams(Proc(7)) && !outputs.has_streams(Proc(8)));
        outputs.end(Proc(7), Target::Stderr);
        outputs.drain();
        assert_eq!(read(&err), "[0] no end");
        assert!(outputs.has_streams(Proc(7)));
        assert_eq!(outputs.next_prompt(), None);
    }

    #[test]
    fn messages_of_mpirun_begin_a_line_if_both_outputs_are_one_pipe() {
        let io = Io::default();
        let (end, out) = pipe();
        let err = out.try_clone().unwrap();
        let mut outputs = Outputs::to(&io, false, (out, err));
        let both =
            [Target::Stdout, Target::Stderr].map(|of| Some(outputs.stream(0, 0, of).unwrap()));
        outputs.add(7, NewStreams(vec![both]));
        outputs.take(Proc(7), Target::Stdout, b"part");
        outputs.flush_all();
        outputs.say("a sentence");
        outputs.take(Proc(7), Target::Stderr, b"a line\n");
        outputs.drain();
        assert_eq!(read(&end), "part\nmpirun: a sentence\na line\n");
    }

    #[test]
    fn a_quiet_mpirun_shows_lost_output_by_its_exit_status_only() {
        let io = Io::default();
        let (mut outputs, _, err) = of_two_ranks(&io, true);
        assert!(!outputs.is_incomplete());
        outputs.lose("the trace cannot be written");
        outputs.drain();
        assert_eq!((read(&err).as_str(), outputs.is_incomplete()), ("", true));
    }

    #[test]
    fn output_that_is_kept_in_files_does_not_end_the_job_when_it_cannot_be_printed() {
        for folder in [None, Some("/tmp".into())] {
            let kept = folder.is_some();
            let io = Io {
                folder,
                ..Io::default()
            };
            let full = || OwnedFd::from(File::options().write(true).open("/dev/full").unwrap());
            let (err, to_err) = pipe();
            let mut outputs = Outputs::to(&io, false, (full(), to_err));
            outputs.sinks.out.push(b"a line\n");
            outputs.drain();
            assert_eq!(outputs.check(), !kept);
            outputs.drain();
            assert!(read(&err).starts_with("mpirun: mpirun's standard output cannot be written"));
        }
    }
}
