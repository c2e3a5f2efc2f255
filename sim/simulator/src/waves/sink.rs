//! Writes the signals and changes of a waveform to a file.

use super::draw::{Change, Drawing};
use barrier_waveform::dump::{Dump, Form, FstDump, Unit, Value, VcdDump};
use std::io;

impl Drawing {
    /// Writes all signals and changes; returns the number of changes.
    pub fn write<W: io::Write + io::Seek>(&self, sink: W, form: Form) -> io::Result<usize> {
        let unit = Unit::Picosecond;
        match form {
            Form::Vcd => self.dump(VcdDump::new(sink, unit)?),
            Form::Fst => self.dump(FstDump::new(sink, unit, "")?),
        }
    }

    fn dump(&self, mut dump: impl Dump) -> io::Result<usize> {
        let mut declared = Vec::with_capacity(self.signals.len());
        let mut open: Vec<&str> = Vec::new();
        for signal in &self.signals {
            let common = common(&open, &signal.scope);
            for _ in common..open.len() {
                dump.up_scope()?;
            }
            open.truncate(common);
            for scope in &signal.scope[common..] {
                dump.scope(scope)?;
                open.push(scope);
            }
            declared.push(dump.signal(&signal.name, signal.kind)?);
        }
        for _ in &open {
            dump.up_scope()?;
        }
        dump.declared()?;
        dump.initial_values()?;
        let mut written = 0;
        self.each(|change| {
            dump.time(change.at.ps())?;
            written += 1;
            dump.change(declared[change.signal], &change.value)
        })?;
        dump.finish()?;
        Ok(written)
    }

    /// Calls `take` for each change of a signal's value, in the order of time;
    /// a value that equals the signal's previous value is left out.
    fn each<E>(&self, mut take: impl FnMut(&Change) -> Result<(), E>) -> Result<(), E> {
        let mut last: Vec<Option<&Value>> = vec![None; self.signals.len()];
        for change in &self.changes {
            if last[change.signal] != Some(&change.value) {
                last[change.signal] = Some(&change.value);
                take(change)?;
            }
        }
        Ok(())
    }
}

/// Returns the number of leading scopes of `wanted` that are already open.
fn common(open: &[&str], wanted: &[String]) -> usize {
    let pairs = open.iter().zip(wanted);
    pairs.take_while(|(open, wanted)| *open == wanted).count()
}
