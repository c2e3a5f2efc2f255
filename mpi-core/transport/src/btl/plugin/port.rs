//! The port of a plugin's transport: calls the functions of the plugin's table.
#![allow(unsafe_code)]

use super::events::{Lent, Poll};
use super::file::Plugin;
use super::host::{HOST, JobFacts};
use super::page_of;
use crate::btl::fabric::card::MOST_ADDRESS;
use crate::btl::fabric::pool::Slot;
use crate::btl::fabric::port::{Close, Events, Memory, Port, Posted};
use crate::btl::{OpenContext, ProcId};
use mpi_base::plugin_file::{Owner, guarded, reported};
use mpi_base::state::FileCall;
use mpi_base::text;
use portcullis_plugin::btl::abi::{DONE, FAILED, NO_SPACE, SENDING, SENT, Transport, Why};
use std::cell::{Cell, RefCell};
use std::ffi::{CString, c_void};
use std::os::fd::BorrowedFd;
use std::ptr::{from_ref, null_mut};
use std::time::Duration;

/// An open transport of a plugin.
pub struct PluginPort {
    plugin: Plugin,
    shown: String,
    pub(super) this: *mut c_void,
    /// False if the user has disabled access to peers' memory.
    reads: bool,
    /// The address for the card: the version's length, the version, and the transport's own address.
    address: Vec<u8>,
    lent: Lent,
    last: Cell<u64>,
    /// Buffer for the reason of a failed send. It is reused, because clearing a new one takes longer than sending a short message.
    why: RefCell<Why>,
    /// The object to which the plugin's `portcullis_job` pointer points. It is boxed, and dropped after the plugin's `free`.
    facts: Box<JobFacts>,
}

// SAFETY: only the plugin uses the pointer, and `transport.h` permits calls from any thread, one at a time. `Port` calls one at a time.
unsafe impl Send for PluginPort {}

impl Owner for PluginPort {
    fn component(&self) -> &str {
        self.plugin.name
    }

    fn file(&self) -> &str {
        &self.shown
    }
}

/// Maximum length in bytes of the transport's own address; the rest of a card's address contains the version.
const MOST_OWN: usize = MOST_ADDRESS - 64;

impl PluginPort {
    /// Opens the transport by the plugin's function `open`.
    pub fn open(
        plugin: &Plugin,
        context: &OpenContext<'_>,
        reads: bool,
    ) -> Result<PluginPort, String> {
        let value = |name: &str, text: &str| {
            let text = text.replace('\0', " ");
            let bytes = text::to_bytes(&text);
            Some((CString::new(name).ok()?, CString::new(bytes).ok()?))
        };
        let values = plugin.params.iter();
        let values = values.filter_map(|about| value(about.name, context.params.text(about)));
        let facts = Box::new(JobFacts {
            me: context.me,
            size: context.size,
            transport: plugin.name,
            values: values.collect(),
        });
        let mut port = PluginPort {
            shown: plugin.file.to_string_lossy().into_owned(),
            plugin: plugin.clone(),
            this: null_mut(),
            reads,
            address: Vec::new(),
            lent: Lent::default(),
            last: Cell::new(0),
            why: RefCell::new(Why::new()),
            facts,
        };
        let open = plugin.table.open.ok_or("it has no function open")?;
        let (mut this, mut why) = (null_mut(), Why::new());
        let job = from_ref(&*port.facts).cast_mut().cast();
        let page = page_of(context);
        let code = reported(page.as_deref(), FileCall::PluginOpen, &port.shown, || {
            // SAFETY: as `transport.h` requires, the host table is static, and the facts live until after `free`.
            port.guarded("open", || unsafe { open(&HOST, job, &mut this, &mut why) })
        });
        if code != DONE {
            return Err(sentence(code, &why));
        }
        port.this = this;
        port.address = port.published()?;
        Ok(port)
    }

    pub(super) fn table(&self) -> &Transport {
        &self.plugin.table
    }

    /// Calls a function of the plugin. Aborts the process if the function throws an exception.
    pub(super) fn guarded<R>(&self, function: &'static str, call: impl FnOnce() -> R) -> R {
        guarded(self, function, call)
    }

    /// Returns the address for the card, with the version.
    fn published(&self) -> Result<Vec<u8>, String> {
        let address = self.table().address.ok_or("it has no function address")?;
        let mut own = vec![0; MOST_OWN];
        // SAFETY: `this` is valid until `drop` calls `free`, and `own` has the capacity that is passed.
        let len = self.guarded("address", || unsafe {
            address(self.this, own.as_mut_ptr().cast(), own.len())
        });
        if len > own.len() {
            return Err(format!(
                "its address has {len} bytes, and a transport's has at most {MOST_OWN}"
            ));
        }
        let version = self.plugin.version.as_bytes();
        let mut all = vec![version.len() as u8];
        all.extend(version);
        all.extend(&own[..len]);
        Ok(all)
    }

    /// Returns a peer's own address without the version. Returns an error if the peer has another version of the transport.
    fn checked<'a>(&self, published: &'a [u8]) -> Result<&'a [u8], String> {
        let parts = published.split_first().and_then(|(len, rest)| {
            let (version, own) = rest.split_at_checked(usize::from(*len))?;
            Some((std::str::from_utf8(version).ok()?, own))
        });
        let (theirs, own) = parts.ok_or("its published address is malformed")?;
        let Plugin { name, version, .. } = &self.plugin;
        match theirs == *version {
            true => Ok(own),
            false => Err(format!(
                "it has version {theirs} of the transport {name}, and this process version {version} from {}",
                self.shown
            )),
        }
    }
}

/// Returns the reason in `why`, or a text with the code `code` if the plugin gave no reason.
fn sentence(code: i32, why: &Why) -> String {
    let text = why.sentence();
    match code {
        FAILED => text,
        code if why.is_empty() => format!("it answered {code}, which means nothing here"),
        _ => text,
    }
}

impl Port for PluginPort {
    fn address(&self) -> &[u8] {
        &self.address
    }

    fn connect(&self, peer: ProcId, address: &[u8]) -> Result<(), String> {
        let own = self.checked(address)?;
        let connect = self.table().connect.ok_or("it has no function connect")?;
        let mut why = Why::new();
        // SAFETY: `this` is valid until `drop` calls `free`, and `own` is readable for the length that is passed.
        let code = self.guarded("connect", || unsafe {
            connect(self.this, peer, own.as_ptr().cast(), own.len(), &mut why)
        });
        match code {
            DONE => Ok(()),
            code => Err(sentence(code, &why)),
        }
    }

    fn close(&self, peer: ProcId, how: Close) {
        if let Some(close) = self.table().close {
            let at_once = (how == Close::AtOnce).into();
            // SAFETY: `this` is valid until `drop` calls `free`.
            self.guarded("close", || unsafe { close(self.this, peer, at_once) });
        }
    }

    fn post(&self, peer: ProcId, slot: Slot) -> Posted {
        let Some(send) = self.table().send else {
            return Posted::Gone(slot, "it has no function send".into());
        };
        let number = self.last.get() + 1;
        self.last.set(number);
        // `transport.h` forbids a plugin to report the message as sent before `send` returns.
        // If the plugin does so, the message's memory is valid nevertheless, because it is boxed.
        let (data, bytes) = (slot.message().as_ptr(), slot.message().len());
        let mut kept = self.why.try_borrow_mut();
        let mut own;
        let why = match &mut kept {
            Ok(why) => &mut **why,
            Err(_) => {
                own = Why::new();
                &mut own
            }
        };
        // SAFETY: `this` is valid until `drop` calls `free`; the buffer holds the message until `sent` or the result of the call returns it.
        let code = self.guarded("send", || unsafe {
            send(self.this, peer, data.cast(), bytes, number, &mut *why)
        });
        match code {
            SENT => Posted::Done(slot),
            SENDING => {
                self.lent.borrow_mut().insert(number, slot);
                Posted::Pending
            }
            NO_SPACE => Posted::Again(slot),
            code => {
                let reason = sentence(code, why);
                *why = Why::new();
                Posted::Gone(slot, reason)
            }
        }
    }

    fn progress(&self, events: &dyn Events) {
        let Some(progress) = self.table().progress else {
            return;
        };
        let poll = Poll {
            events,
            lent: &self.lent,
            size: self.facts.size,
        };
        let pointer = from_ref(&poll).cast_mut().cast();
        // SAFETY: `this` is valid until `drop` calls `free`, and `poll` outlives the call.
        self.guarded("progress", || unsafe { progress(self.this, pointer) });
    }

    /// Does nothing: a plugin transmits accepted messages by itself, in its polls.
    fn flush(&self) {}

    fn is_quiet(&self) -> bool {
        let Some(is_quiet) = self.table().is_quiet else {
            return self.lent.borrow().is_empty();
        };
        // SAFETY: `this` is valid until `drop` calls `free`.
        self.guarded("is_quiet", || unsafe { is_quiet(self.this) }) != 0
    }

    fn may_sleep(&self) -> bool {
        self.wait_on().0 >= 0
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        let descriptor = self.wait_on().0;
        // SAFETY: by `transport.h` the descriptor remains open as long as the transport, from which it is borrowed.
        (descriptor >= 0).then(|| unsafe { BorrowedFd::borrow_raw(descriptor) })
    }

    fn memory(&self) -> Option<&dyn Memory> {
        (self.reads && self.table().access.is_some()).then_some(self as &dyn Memory)
    }

    fn longest_sleep(&self) -> Option<Duration> {
        match self.wait_on().1 {
            0 => None,
            longest => Some(Duration::from_nanos(longest)),
        }
    }
}

impl PluginPort {
    /// Returns the file descriptor to wait on (negative if there is none), and the maximum time to sleep in nanoseconds.
    fn wait_on(&self) -> (i32, u64) {
        let Some(wait_on) = self.table().wait_on else {
            return (-1, 0);
        };
        let mut longest = 0;
        // SAFETY: `this` is valid until `drop` calls `free`, and `longest` is a local variable.
        let descriptor = self.guarded("wait_on", || unsafe { wait_on(self.this, &mut longest) });
        (descriptor, longest)
    }
}

impl Drop for PluginPort {
    fn drop(&mut self) {
        if let (Some(free), false) = (self.table().free, self.this.is_null()) {
            // SAFETY: `open` returned the pointer, and this is the last call with it.
            self.guarded("free", || unsafe { free(self.this) });
        }
    }
}
