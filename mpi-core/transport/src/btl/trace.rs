//! Trace: a decorator that records all messages in the Trace Event Format (JSON array), which Perfetto and `chrome://tracing` can read.
//!
//! Each process writes a file per transport, FILE.RANK.NUMBER.json. Each line is one event, `send` or `deliver`,
//! with the peer, the active message, its header and length, and the result of a send.
//! Times are in microseconds of the machine's monotonic clock, so files of one machine can be merged.
//! The format does not require the closing bracket, so the file of a process that died is valid except for an incomplete last line.

use super::decorate::Decorator;
use super::{
    Am, Btl, Capabilities, Endpoint, Header, Info, OpenContext, OpenError, Payload, ProcId, Reach,
    SendError, Sink, Transport,
};
use mpi_base::param::{Level, Param};
use mpi_base::text;
use std::cell::RefCell;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::Range;

static FILE: Param<String> = Param::new(
    "btl",
    "trace",
    "file",
    "",
    Level::DEVELOPER,
    "Path prefix of a trace of all messages, written as FILE.rank.transport.json for Perfetto; empty: no trace",
);

pub(super) const DECORATOR: Decorator = Decorator {
    name: "trace",
    params: &[FILE.about()],
    wrap,
};

fn wrap(around: &OpenContext<'_>, number: u32, inner: Transport) -> Result<Transport, OpenError> {
    let file = around.params.get(&FILE).map_err(OpenError::Param)?;
    if file.is_empty() {
        return Ok(inner);
    }
    let path = format!("{file}.{}.{number}.json", around.me);
    let file = File::create(text::to_path(&path)).map_err(|error| OpenError::System {
        doing: "creating the file of btl_trace_file",
        reason: format!("{path}: {error}"),
    })?;
    let mut out = BufWriter::new(file);
    // An error is ignored: a trace that cannot be written must not end the job.
    let _ = out.write_all(b"[\n");
    Ok(Box::new(Traced {
        me: around.me,
        number,
        inner,
        out: RefCell::new(out),
    }))
}

struct Traced {
    me: ProcId,
    number: u32,
    inner: Transport,
    out: RefCell<BufWriter<File>>,
}

impl Traced {
    fn event(&self, name: &str, peer: u32, am: Am, header: Header, len: usize, result: &str) {
        let now = mpi_base::clock::now_ns();
        let (us, ns) = (now / 1000, now % 1000);
        let (me, number, [first, second]) = (self.me, self.number, header);
        let layer = self.inner.info().name;
        if let Ok(mut out) = self.out.try_borrow_mut() {
            let _ = writeln!(
                out,
                r#"{{"name":"{name}","cat":"{layer}","ph":"i","s":"t","ts":{us}.{ns:03},"pid":{me},"tid":{number},"args":{{"peer":{peer},"am":{am},"header":["{first:#x}","{second:#x}"],"len":{len},"result":"{result}"}}}},"#
            );
        }
    }
}

impl Btl for Traced {
    fn info(&self) -> &Info {
        self.inner.info()
    }

    fn reach(&self, peer: ProcId) -> Reach {
        self.inner.reach(peer)
    }

    fn send(
        &self,
        to: Endpoint,
        am: Am,
        header: Header,
        payload: Payload<'_>,
    ) -> Result<(), SendError> {
        let len = payload.len();
        let result = self.inner.send(to, am, header, payload);
        let text = match &result {
            Ok(()) => "taken".to_string(),
            Err(error) => error.to_string(),
        };
        self.event("send", to.0, am, header, len, &text);
        result
    }

    fn progress(&self, sink: &dyn Sink) -> usize {
        self.inner.progress(&Tracing { outer: self, sink })
    }

    fn pending(&self) -> bool {
        self.inner.pending()
    }

    /// Withholds lending and delivery in place, because their data would not be traced.
    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities {
            lending: None,
            in_place: None,
            ..self.inner.capabilities()
        }
    }
}

struct Tracing<'a> {
    outer: &'a Traced,
    sink: &'a dyn Sink,
}

impl Sink for Tracing<'_> {
    fn deliver(&self, from: ProcId, am: Am, header: Header, payload: &[u8]) {
        self.outer
            .event("deliver", from, am, header, payload.len(), "delivered");
        self.sink.deliver(from, am, header, payload);
    }

    fn begin(&self, from: ProcId, am: Am, header: Header, len: usize, begun: &[u8]) -> bool {
        self.sink.begin(from, am, header, len, begun)
    }

    fn land(
        &self,
        from: ProcId,
        am: Am,
        header: Header,
        range: Range<usize>,
        fill: &mut dyn FnMut(&mut [u8]),
    ) -> bool {
        self.sink.land(from, am, header, range, fill)
    }

    fn landed(&self, from: ProcId, am: Am, header: Header, len: usize) {
        self.outer
            .event("deliver", from, am, header, len, "read into place");
        self.sink.landed(from, am, header, len);
    }

    fn lost(&self, peer: ProcId, why: &str) {
        self.outer.event("lost", peer, 0, [0; 2], 0, "lost");
        self.sink.lost(peer, why);
    }

    fn parted(&self, peer: ProcId) {
        self.sink.parted(peer);
    }

    fn link_lost(&self, peer: ProcId, what: Option<&str>) {
        self.sink.link_lost(peer, what);
    }
}
