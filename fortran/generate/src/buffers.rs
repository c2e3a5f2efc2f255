//! Generation of Rust code that passes choice buffers with a descriptor to C.

use std::fmt::Write as _;

use crate::kinds::Width;
use crate::requests;
use crate::signatures::{by_value, c_name, c_type, rust_name};
use crate::statements::Statements;
use crate::table::{Direction, Parameter, Procedure};

/// Returns the names of a buffer's count and datatype arguments, if they follow the buffer.
fn message<'p>(procedure: &'p Procedure, buffer: &Parameter) -> Option<(&'p str, &'p str)> {
    let all = &procedure.parameters;
    let at = all.iter().position(|p| p.name == buffer.name)?;
    let (count, datatype) = (all.get(at + 1)?, all.get(at + 2)?);
    let is_count = count.kind.contains("NUM_ELEM") && count.length.is_none();
    let is_type = datatype.kind == "DATATYPE" && datatype.length.is_none();
    // In a buffer with one block per rank, the count is that of one block.
    let lower = procedure.name.to_lowercase();
    let receives = buffer.name == "recvbuf";
    let blocks = lower.contains("alltoall")
        || (lower.contains("scatter") && !receives)
        || (lower.contains("gather") && receives)
        || (lower.contains("reduce") && !lower.contains("reduce_local"));
    let shared = lower.contains("reduce") || lower.contains("scan");
    (is_count && is_type && !blocks && !shared).then_some((&count.name, &datatype.name))
}

/// The method by which a noncontiguous array section is passed to C.
enum Section<'p> {
    /// A new datatype describes the section, and replaces count and datatype of the message.
    Message { count: &'p str, datatype: &'p str },
    /// A new datatype describes each partition of a partitioned send or receive.
    Partitions { count: &'p str, datatype: &'p str },
    /// C gets the address of the first element; the procedure uses only that element.
    Address,
    /// The section is rejected, because the procedure needs contiguous memory.
    Refused,
    /// C gets a contiguous copy that exists until the request is complete.
    KeptCopy,
    /// C gets a contiguous copy that exists until the procedure returns.
    Copy,
}

/// Returns the method by which a procedure passes a section to C.
/// A handwritten body converts count and datatype itself.
fn section<'p>(procedure: &'p Procedure, buffer: &Parameter, by_hand: bool) -> Section<'p> {
    let name = procedure.name.as_str();
    if let (Some((count, datatype)), false) = (message(procedure, buffer), by_hand) {
        return Section::Message { count, datatype };
    }
    if let ("MPI_Psend_init" | "MPI_Precv_init", false) = (name, by_hand) {
        let (count, datatype) = ("count", "datatype");
        return Section::Partitions { count, datatype };
    }
    if uses_memory(name) {
        return Section::Refused;
    }
    if !buffer.asynchronous {
        return Section::Copy;
    }
    if requests::of(procedure).is_some() {
        return Section::KeptCopy;
    }
    Section::Address
}

/// Returns true if the procedure attaches, detaches or frees memory, or creates a window in it.
fn uses_memory(name: &str) -> bool {
    name.contains("attach")
        || name.contains("detach")
        || name.contains("Win_create")
        || name.contains("Free_mem")
}

/// Generates the conversion of a buffer with a descriptor.
pub fn described(
    statements: &mut Statements,
    procedure: &Procedure,
    buffer: &Parameter,
    width: Width,
    by_hand: bool,
) {
    let name = rust_name(&buffer.name);
    let back = buffer.direction != Direction::In;
    let comm = communicator(procedure, width);
    let found = match section(procedure, buffer, by_hand) {
        Section::Message { count, datatype } => {
            replace(statements, procedure, width, &name, (count, datatype));
            format!(
                "section::message::<C>({name}, *{count} as i64, input::<handle::Datatype>({datatype}))"
            )
        }
        Section::Partitions { count, datatype } => {
            replace(statements, procedure, width, &name, (count, datatype));
            format!(
                "section::partitions::<C>({name}, *partitions, *{count} as i64, input::<handle::Datatype>({datatype}))"
            )
        }
        Section::Address => format!("section::first_element({name})"),
        Section::Refused => format!("section::in_place({name})"),
        Section::Copy => {
            if back {
                let _ = writeln!(statements.after, "        {name}_section.restore(outcome);");
            }
            copied(procedure, buffer, &name, &comm)
        }
        Section::KeptCopy => {
            statements.kept.push(format!("{name}_section"));
            copied(procedure, buffer, &name, &comm)
        }
    };
    let call = c_name(procedure, width);
    let _ = writeln!(
        statements.before,
        "        let {name}_section = match {found} {{ Ok(found) => found, Err(refused) => return section::refuse::<C>(refused, \"{call}\", \"{name}\", {comm}) }};"
    );
    statements.passed.push(format!("{name}_section.address()"));
}

/// Returns the call that copies a buffer with a noncontiguous section.
fn copied(procedure: &Procedure, buffer: &Parameter, name: &str, comm: &str) -> String {
    let back = buffer.direction != Direction::In;
    let root = if buffer.root { "root" } else { NONE };
    let written = written(procedure, buffer);
    format!("copies::copied::<C, {back}>({name}, ({root}, {comm}), {written})")
}

/// Returns the code for a `Written`: the elements that the call overwrites on every rank.
/// The code is `None` for other calls,
/// and for persistent calls, whose buffers may change between starts.
fn written(procedure: &Procedure, buffer: &Parameter) -> String {
    let reduces = ["allreduce", "iallreduce", "scan", "iscan"];
    let name = procedure.name.to_lowercase();
    if buffer.name == "recvbuf" && reduces.contains(&name.trim_start_matches("mpi_")) {
        let message = "sendbuf, count: *count as i64, datatype: input::<handle::Datatype>(datatype), calls: std::marker::PhantomData";
        return format!("Some(copies::Written::<C> {{ {message} }})");
    }
    "None".into()
}

/// The Rust expression passed for an argument that a procedure does not have.
const NONE: &str = "std::ptr::null()";

/// Returns the name of the communicator argument.
fn communicator(procedure: &Procedure, width: Width) -> String {
    let mut all = procedure.parameters.iter();
    let comm = all.find(|p| p.kind == "COMMUNICATOR" && by_value(p, width));
    comm.map_or(NONE.into(), |p| rust_name(&p.name))
}

/// Replaces the count and datatype arguments by those of the section's new datatype.
fn replace(
    statements: &mut Statements,
    procedure: &Procedure,
    width: Width,
    name: &str,
    (count, datatype): (&str, &str),
) {
    let mut all = procedure.parameters.iter();
    let of = all
        .find(|p| p.name == count)
        .map_or("i64", |p| c_type(p, width));
    let count_now = format!("{name}_section.count as {of}");
    statements.replaced.push((count.to_string(), count_now));
    let type_now = format!("{name}_section.datatype");
    statements.replaced.push((datatype.to_string(), type_now));
}
