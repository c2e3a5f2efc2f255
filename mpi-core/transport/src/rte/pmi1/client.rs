//! The client of PMI-1: sends requests and waits for each reply, over one socket.
//!
//! A server can also report deaths ([`DEATH`], on request) and failed spawns ([`SPAWN_FAILED`]) at any time.
//! These lines are not mistaken for replies.
//!
//! A value of [`Client::put`] is stored as one or more values of PMI-1: the value of the key `name.rank` is `COUNT:DIGITS`; the keys `name.rank.1`,
//! `name.rank.2` and so on contain the remaining hexadecimal digits.

use super::super::checkpoints::{Notice, Report};
use super::super::wire::{
    CHECKPOINT, CONNECTIONS, DEATH, HEARS_CHECKPOINTS, HEARS_DEATHS, HEX_SUFFIX, KEY_MAX, Line,
    Lines, Message, NO_JOBS, PROGRAM, PROGRAM_JOB, SEND_MAX, SPAWN_FAILED, TAKES_HEX, VALUE_MAX,
    WHY, WireError, hex, unhex,
};
use super::super::{Death, FailedSpawn, RteError, SpawnRequest, SpawnedApp};
use mpi_base::{fdpass, text};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use std::io;
use std::net::TcpStream;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;

/// The command of the reply to `init`.
const REPLY_TO_INIT: &str = "response_to_init";

pub struct Client {
    socket: OwnedFd,
    lines: Lines,
    kvsname: String,
    /// True if this client has requested death notices in its greeting.
    hears_deaths: bool,
    /// True if the server accepts hexadecimal values in a spawn request.
    takes_hex: bool,
    /// Received death notices that the caller has not fetched.
    deaths: Vec<Death>,
    failed_spawns: Vec<FailedSpawn>,
    checkpoints: Vec<Notice>,
    /// The descriptor that has arrived with the reply to `init`.
    memory: Option<OwnedFd>,
}

/// The services that a process asks for in its greeting.
#[derive(Clone, Copy, Default)]
pub struct Greeting {
    /// Whether the process wants death notices; the server must have announced that it reports deaths.
    pub hears_deaths: bool,
    /// Whether the process wants notices about checkpoints; the server must have announced these, too.
    pub hears_checkpoints: bool,
    /// The ID of this process if the server is the mpirun of this library ([`PROGRAM`]).
    pub program: Option<u32>,
}

/// The reply to a greeting.
pub enum Welcome {
    /// The process is its rank. In a later program of the rank, the name of the job and the memory of the node are new.
    Taken {
        job: Option<String>,
        memory: Option<OwnedFd>,
    },
    /// The process cannot be the next program of its rank.
    NotNext { why: String },
}

impl Client {
    /// Creates a client that uses an inherited socket.
    pub fn new(socket: OwnedFd) -> Client {
        Client {
            socket,
            lines: Lines::default(),
            kvsname: String::new(),
            hears_deaths: false,
            takes_hex: false,
            deaths: Vec::new(),
            failed_spawns: Vec::new(),
            checkpoints: Vec::new(),
            memory: None,
        }
    }

    /// Connects to a server. Returns the client, and the rank and the job size that the server sends.
    pub fn connect(address: &str, id: &str) -> Result<(Client, u32, u32), RteError> {
        let doing = format!("connecting to the launcher at {address} (PMI_PORT)");
        let stream = TcpStream::connect(address)
            .and_then(|stream| stream.set_nodelay(true).map(|()| stream))
            .map_err(|error| RteError::System {
                doing: doing.clone(),
                error,
            })?;
        let mut client = Client::new(stream.into());
        client.ask(Line::cmd("initack").with("pmiid", id), "initack")?;
        let (mut rank, mut size) = (None, None);
        // The server sends three lines, for size, rank and debug, in any order.
        for _ in 0..3 {
            let message = client.expect("set", &doing)?;
            let number = |key| message.number(key).ok().and_then(|n| u32::try_from(n).ok());
            rank = rank.or(number("rank"));
            size = size.or(number("size"));
        }
        match (rank, size) {
            (Some(rank), Some(size)) => Ok((client, rank, size)),
            _ => Err(RteError::Wire {
                doing,
                reason: WireError::Missing {
                    key: "rank or size".into(),
                    line: "cmd=set".into(),
                },
            }),
        }
    }

    /// Returns a duplicate of the socket.
    pub fn socket(&self) -> Option<OwnedFd> {
        rustix::io::fcntl_dupfd_cloexec(&self.socket, 3).ok()
    }

    pub fn set_kvsname(&mut self, name: &str) {
        self.kvsname = name.to_string();
    }

    /// Sends the greeting with version 1.1, which every server accepts, and waits for the reply.
    /// In a later program of a rank, the reply arrives when all ranks of the job have begun the program.
    pub fn init(&mut self, greeting: Greeting) -> Result<Welcome, RteError> {
        let doing = "init";
        let hello = Line::cmd(doing)
            .with("pmi_version", 1)
            .with("pmi_subversion", 1);
        let hello = match greeting.hears_deaths {
            true => hello.with(HEARS_DEATHS, 1),
            false => hello,
        };
        let hello = match greeting.hears_checkpoints {
            true => hello.with(HEARS_CHECKPOINTS, 1),
            false => hello,
        };
        self.hears_deaths = greeting.hears_deaths;
        let answer = match greeting.program {
            None => self.ask(hello, REPLY_TO_INIT)?,
            Some(program) => {
                self.send(hello.with(PROGRAM, program), doing)?;
                let answer = self.reply_to(program)?;
                if let Some(why) = answer.get(WHY).and_then(unhex) {
                    let why = String::from_utf8_lossy(&why).into_owned();
                    return Ok(Welcome::NotNext { why });
                }
                succeeded(answer, doing)?
            }
        };
        self.takes_hex = answer.get(TAKES_HEX) == Some("1");
        Ok(Welcome::Taken {
            job: answer.get(PROGRAM_JOB).map(str::to_string),
            memory: self.memory.take(),
        })
    }

    /// Returns the reply to `init` of this process. Lines before it were meant for an earlier process of the same rank.
    fn reply_to(&mut self, program: u32) -> Result<Message, RteError> {
        let doing = "init";
        let program = program.to_string();
        loop {
            let message = self.next_reply(doing)?;
            let named = message.get(PROGRAM);
            if message.cmd() == REPLY_TO_INIT && named.is_none_or(|named| named == program) {
                self.deaths.clear();
                self.failed_spawns.clear();
                self.checkpoints.clear();
                return Ok(message);
            }
            self.memory = None;
        }
    }

    /// Returns the deaths that were reported since the last call. Does not wait.
    pub fn take_deaths(&mut self) -> Vec<Death> {
        if self.hears_deaths {
            self.hear_notices();
        }
        std::mem::take(&mut self.deaths)
    }

    /// Returns the failed spawns that were reported since the last call. Does not wait.
    pub fn take_failed_spawns(&mut self) -> Vec<FailedSpawn> {
        self.hear_notices();
        std::mem::take(&mut self.failed_spawns)
    }

    /// Returns the notices about checkpoints since the last call. Does not wait.
    pub fn take_checkpoint_notices(&mut self) -> Vec<Notice> {
        self.hear_notices();
        std::mem::take(&mut self.checkpoints)
    }

    /// Sends a report about a checkpoint, which has no reply.
    pub fn tell_checkpoint(&mut self, report: &Report) -> Result<(), RteError> {
        self.tell(report.line())
    }

    /// Reports the other jobs to which this process is connected. The report has no reply.
    pub fn tell_connections(&mut self, jobs: &[u64]) -> Result<(), RteError> {
        let numbers: Vec<String> = jobs.iter().map(u64::to_string).collect();
        let jobs = match numbers.is_empty() {
            true => NO_JOBS.to_string(),
            false => numbers.join(","),
        };
        self.tell(Line::cmd(CONNECTIONS).with("jobs", jobs))
    }

    /// Sends a line to which the server does not reply.
    fn tell(&mut self, line: Line) -> Result<(), RteError> {
        let doing = line.name().to_string();
        let bytes = line.finish().map_err(|reason| RteError::Wire {
            doing: doing.clone(),
            reason,
        })?;
        send_all(&self.socket, &bytes).map_err(|error| lost_or(error, &doing))
    }

    /// Reads the notices that have arrived. Called while no request is pending.
    fn hear_notices(&mut self) {
        loop {
            // The lines may already be in the buffer, read together with the last reply.
            loop {
                match self.lines.next_line() {
                    // A line that is not a notice is dropped: without a pending request it cannot be a reply.
                    Ok(Some(line)) => {
                        let _ = Message::parse(&line).map(|message| self.note(&message));
                    }
                    Ok(None) => break,
                    // The next request reports the error.
                    Err(_) => return,
                }
            }
            let mut buffer = [0u8; 4096];
            match rustix::net::recv(&self.socket, &mut buffer, RecvFlags::DONTWAIT) {
                Ok((got @ 1.., _)) => self.lines.push(&buffer[..got]),
                Err(Errno::INTR) => {}
                // The end of the connection is detected elsewhere ([`Rte::lost`](super::super::Rte::lost)).
                _ => return,
            }
        }
    }

    /// Stores a notice. Returns true if the message is a notice.
    fn note(&mut self, message: &Message) -> bool {
        match message.cmd() {
            DEATH => self.note_death(message),
            SPAWN_FAILED => self.note_failed_spawn(message),
            CHECKPOINT => self.checkpoints.extend(Notice::read(message)),
            _ => return false,
        }
        true
    }

    fn note_death(&mut self, message: &Message) {
        let rank = message.number("rank").ok();
        let rank = rank.and_then(|rank| u32::try_from(rank).ok());
        if let (Some(job), Some(rank)) = (message.get("job"), rank) {
            let job = job.to_string();
            let left = message.get("left") == Some("1");
            self.deaths.push(Death { job, rank, left });
        }
    }

    fn note_failed_spawn(&mut self, message: &Message) {
        let why = message.get("why").and_then(unhex);
        let why = why.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        if let (Some(job), Some(why)) = (message.get("job"), why) {
            let job = job.to_string();
            self.failed_spawns.push(FailedSpawn { job, why });
        }
    }

    pub fn kvsname(&mut self) -> Result<String, RteError> {
        let message = self.ask(Line::cmd("get_my_kvsname"), "my_kvsname")?;
        let name = message.need("kvsname").map_err(|reason| RteError::Wire {
            doing: "get_my_kvsname".into(),
            reason,
        })?;
        Ok(name.to_string())
    }

    /// Returns the index of this process's program; `None` if the server does not know it.
    pub fn appnum(&mut self) -> Result<Option<u32>, RteError> {
        let message = self.ask(Line::cmd("get_appnum"), "appnum")?;
        Ok(message
            .number("appnum")
            .ok()
            .and_then(|n| u32::try_from(n).ok()))
    }

    /// Returns the universe size; `None` if the server does not know it.
    pub fn universe_size(&mut self) -> Result<Option<u32>, RteError> {
        let message = self.ask(Line::cmd("get_universe_size"), "universe_size")?;
        Ok(message
            .number("size")
            .ok()
            .and_then(|n| u32::try_from(n).ok()))
    }

    pub fn put(&mut self, rank: u32, key: &str, value: &[u8]) -> Result<(), RteError> {
        let name = wire_key(rank, key, 0)?;
        // Length of the line without the value; 16 characters are reserved for the index of a piece and the number of pieces.
        let around = "cmd=put kvsname= key= value=\n".len() + self.kvsname.len() + name.len() + 16;
        let digits = SEND_MAX.saturating_sub(around).min(VALUE_MAX) & !1;
        if digits == 0 {
            return Err(RteError::BadKey { key: key.into() });
        }
        let pieces: Vec<&[u8]> = match value.is_empty() {
            true => vec![value],
            false => value.chunks(digits / 2).collect(),
        };
        for (number, piece) in pieces.iter().enumerate() {
            let text = match number {
                0 => format!("{}:{}", pieces.len(), hex(piece)),
                _ => hex(piece),
            };
            let line = Line::cmd("put")
                .with("kvsname", &self.kvsname)
                .with("key", wire_key(rank, key, number)?)
                .with("value", text);
            self.ask(line, "put_result")?;
        }
        Ok(())
    }

    pub fn get(&mut self, rank: u32, key: &str) -> Result<Vec<u8>, RteError> {
        let garbled = || RteError::Garbled {
            key: key.into(),
            rank,
        };
        let first = self.get_piece(rank, key, 0)?;
        let (count, digits) = first.split_once(':').ok_or_else(garbled)?;
        let count: usize = count.parse().map_err(|_| garbled())?;
        let mut bytes = unhex(digits).ok_or_else(garbled)?;
        for number in 1..count {
            let piece = self.get_piece(rank, key, number)?;
            bytes.extend(unhex(&piece).ok_or_else(garbled)?);
        }
        Ok(bytes)
    }

    fn get_piece(&mut self, rank: u32, key: &str, number: usize) -> Result<String, RteError> {
        let line = Line::cmd("get")
            .with("kvsname", &self.kvsname)
            .with("key", wire_key(rank, key, number)?);
        match self.ask(line, "get_result") {
            Ok(message) => {
                message
                    .get("value")
                    .map(str::to_string)
                    .ok_or_else(|| RteError::NoSuchKey {
                        key: key.into(),
                        rank,
                    })
            }
            Err(RteError::Wire {
                reason: WireError::Refused { .. },
                ..
            }) => Err(RteError::NoSuchKey {
                key: key.into(),
                rank,
            }),
            Err(error) => Err(error),
        }
    }

    pub fn barrier(&mut self) -> Result<(), RteError> {
        self.ask(Line::cmd("barrier_in"), "barrier_out").map(drop)
    }

    /// Publishes a port under a service name. Both may contain any characters, so they are sent as hexadecimal digits.
    pub fn publish(&mut self, service: &str, port: &str) -> Result<(), RteError> {
        let line = Line::cmd("publish_name")
            .with("service", hex(&text::to_bytes(service)))
            .with("port", hex(&text::to_bytes(port)));
        self.ask(line, "publish_result").map(drop)
    }

    /// Returns the port of a service; `None` if the server does not know the service.
    pub fn lookup(&mut self, service: &str) -> Result<Option<String>, RteError> {
        let line = Line::cmd("lookup_name").with("service", hex(&text::to_bytes(service)));
        match self.ask(line, "lookup_result") {
            Ok(message) => {
                let port = message.get("port").and_then(unhex);
                Ok(port.map(|bytes| text::from_bytes(&bytes)))
            }
            Err(error) if is_refusal(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Withdraws a service name. Returns false if the server does not know it.
    pub fn unpublish(&mut self, service: &str) -> Result<bool, RteError> {
        let line = Line::cmd("unpublish_name").with("service", hex(&text::to_bytes(service)));
        match self.ask(line, "unpublish_result") {
            Ok(_) => Ok(true),
            Err(error) if is_refusal(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns the value that the parent job has stored under a key.
    pub fn left_by_parent(&mut self, key: &str) -> Option<String> {
        let line = Line::cmd("get")
            .with("kvsname", &self.kvsname)
            .with("key", key);
        let message = self.ask(line, "get_result").ok()?;
        message.get("value").map(str::to_string)
    }

    /// Requests a new job. The request has a block of lines for each program; a value extends to the end of its line.
    ///
    /// Returns the name of the job, if the server reports it.
    pub fn spawn(&mut self, request: &SpawnRequest) -> Result<Option<String>, RteError> {
        let doing = "spawn";
        let mut lines = SpawnLines {
            bytes: Vec::new(),
            takes_hex: self.takes_hex,
        };
        for (number, app) in request.apps.iter().enumerate() {
            lines.program(request, number, app)?;
        }
        send_all(&self.socket, &lines.bytes).map_err(|error| lost_or(error, doing))?;
        let message = self.expect("spawn_result", doing)?;
        let all_started = message
            .get("errcodes")
            .is_none_or(|codes| codes.split(',').all(|code| code == "0"));
        match message.succeeded() && all_started {
            true => Ok(message.get("jobid").map(str::to_string)),
            false => Err(RteError::NotStarted {
                why: message
                    .get("msg")
                    .unwrap_or("it says no more")
                    .replace('_', " "),
            }),
        }
    }

    pub fn finalize(&mut self) -> Result<(), RteError> {
        self.ask(Line::cmd("finalize"), "finalize_ack").map(drop)
    }

    /// Sends a request and returns the reply, whose command must be `answer`.
    fn ask(&mut self, line: Line, answer: &str) -> Result<Message, RteError> {
        let doing = line.name().to_string();
        self.send(line, &doing)?;
        succeeded(self.expect(answer, &doing)?, &doing)
    }

    fn send(&mut self, line: Line, doing: &str) -> Result<(), RteError> {
        let bytes = line.finish_short().map_err(wire_error(doing))?;
        send_all(&self.socket, &bytes).map_err(|error| lost_or(error, doing))
    }

    fn expect(&mut self, wanted: &str, doing: &str) -> Result<Message, RteError> {
        let message = self.next_reply(doing)?;
        if message.cmd() != wanted {
            return Err(wire_error(doing)(WireError::Unexpected {
                wanted: wanted.into(),
                line: message.shown().into(),
            }));
        }
        Ok(message)
    }

    /// Waits for the next line that is no notice.
    fn next_reply(&mut self, doing: &str) -> Result<Message, RteError> {
        loop {
            if let Some(line) = self.lines.next_line().map_err(wire_error(doing))? {
                let message = Message::parse(&line).map_err(wire_error(doing))?;
                if self.note(&message) {
                    continue;
                }
                return Ok(message);
            }
            let mut buffer = [0u8; 4096];
            match fdpass::receive(self.socket.as_fd(), &mut buffer) {
                Ok((0, _)) => {
                    return Err(RteError::LauncherLost {
                        doing: doing.into(),
                    });
                }
                Ok((got, memory)) => {
                    self.lines.push(&buffer[..got]);
                    self.memory = memory.or(self.memory.take());
                }
                Err(error) => match Errno::from_io_error(&error) {
                    Some(Errno::INTR) => {}
                    Some(error) => return Err(lost_or(error, doing)),
                    None => return Err(talking_failed(doing, error)),
                },
            }
        }
    }
}

fn wire_error(doing: &str) -> impl Fn(WireError) -> RteError {
    move |reason| RteError::Wire {
        doing: doing.to_string(),
        reason,
    }
}

/// Returns a reply if it reports success, otherwise an error.
fn succeeded(reply: Message, doing: &str) -> Result<Message, RteError> {
    match reply.succeeded() {
        true => Ok(reply),
        false => Err(wire_error(doing)(WireError::Refused {
            request: doing.to_string(),
            answer: reply.shown().into(),
        })),
    }
}

/// Builder of the lines of a spawn request.
struct SpawnLines {
    bytes: Vec<u8>,
    takes_hex: bool,
}

impl SpawnLines {
    /// Adds the block of lines for one program.
    fn program(
        &mut self,
        request: &SpawnRequest,
        number: usize,
        app: &SpawnedApp,
    ) -> Result<(), RteError> {
        self.number("nprocs", app.procs as usize, "mcmd=spawn\n");
        self.value("execname", app.program.as_bytes())?;
        self.number("totspawns", request.apps.len(), "");
        self.number("spawnssofar", number + 1, "");
        for (at, arg) in (1..).zip(&app.args) {
            self.value(&format!("arg{at}"), arg.as_bytes())?;
        }
        self.number("argcnt", app.args.len(), "");
        self.number("preput_num", request.left.len(), "");
        for (at, (key, value)) in request.left.iter().enumerate() {
            self.value(&format!("preput_key_{at}"), key.as_bytes())?;
            self.value(&format!("preput_val_{at}"), value.as_bytes())?;
        }
        self.number("info_num", app.info.len(), "");
        for (at, (key, value)) in app.info.iter().enumerate() {
            self.value(&format!("info_key_{at}"), &text::to_bytes(key))?;
            self.value(&format!("info_val_{at}"), value.as_bytes())?;
        }
        self.bytes.extend_from_slice(b"endcmd\n");
        Ok(())
    }

    fn number(&mut self, key: &str, number: usize, before: &str) {
        let line = format!("{before}{key}={number}\n");
        self.bytes.extend_from_slice(line.as_bytes());
    }

    /// Adds a line for a key and its value. A value that contains a newline is sent as hexadecimal digits.
    fn value(&mut self, key: &str, value: &[u8]) -> Result<(), RteError> {
        self.bytes.extend_from_slice(key.as_bytes());
        match (value.contains(&b'\n'), self.takes_hex) {
            (false, _) => {
                self.bytes.push(b'=');
                self.bytes.extend_from_slice(value);
            }
            (true, true) => {
                let rest = format!("{HEX_SUFFIX}={}", hex(value));
                self.bytes.extend_from_slice(rest.as_bytes());
            }
            (true, false) => {
                return Err(RteError::NotStarted {
                    why: format!(
                        "a newline is in {key}, which its protocol has no form for; the mpirun of this library takes it"
                    ),
                });
            }
        }
        self.bytes.push(b'\n');
        Ok(())
    }
}

fn is_refusal(error: &RteError) -> bool {
    let RteError::Wire { reason, .. } = error else {
        return false;
    };
    matches!(reason, WireError::Refused { .. })
}

fn lost_or(error: Errno, doing: &str) -> RteError {
    match error {
        Errno::PIPE | Errno::CONNRESET => RteError::LauncherLost {
            doing: doing.into(),
        },
        error => talking_failed(doing, error.into()),
    }
}

fn talking_failed(doing: &str, error: io::Error) -> RteError {
    RteError::System {
        doing: format!("speaking to the launcher ({doing})"),
        error,
    }
}

/// Sends the bytes of a line in one write if possible, because one kind of server treats the result of each read as a line.
fn send_all(socket: impl AsFd, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match rustix::net::send(&socket, bytes, SendFlags::NOSIGNAL) {
            Ok(sent) => bytes = &bytes[sent..],
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Requests that the launcher end the job. The request has no reply.
pub fn send_abort(socket: impl AsFd, code: i32, message: &str) {
    const LONGEST: usize = 400;
    let mut text = String::new();
    for c in message.chars().take(LONGEST) {
        match c {
            ' ' | '\\' => text.extend(['\\', c]),
            c if c.is_control() => text.push_str("\\ "),
            c => text.push(c),
        }
    }
    let line = Line::cmd("abort").with("exitcode", code);
    let line = match text.is_empty() {
        true => line,
        false => line.with("message", text),
    };
    if let Ok(bytes) = line.finish() {
        // An error is ignored: if the launcher has ended, only the exit status can report the abort.
        let _ = send_all(socket, &bytes);
    }
}

/// Returns the PMI-1 key for one piece of a rank's value.
fn wire_key(rank: u32, key: &str, piece: usize) -> Result<String, RteError> {
    let name = match piece {
        0 => format!("{key}.{rank}"),
        _ => format!("{key}.{rank}.{piece}"),
    };
    let clean = key
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
    if key.is_empty() || !clean || name.len() >= KEY_MAX {
        return Err(RteError::BadKey { key: key.into() });
    }
    Ok(name)
}

#[cfg(test)]
mod tests;
