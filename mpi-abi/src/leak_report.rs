//! Warnings at `MPI_Finalize` about objects that the program has not freed.
//!
//! Windows are always reported, other objects if [`REPORT_LEAKS`] is set.
//! A nonblocking operation that was complete when its call returned has no request, so it is not reported.

use crate::abi::MPI_Comm;
use crate::crash;
use crate::lane_tools;
use crate::object::request::{RequestObject, RequestState};
use crate::origin::{self, Origin};
use crate::state::{current_call, state, this_rank};
use mpi_base::param::{Level, Param, Params};
use mpi_base::state::{About, Waits};
use mpi_core::Engine;
use mpi_core::request::Body;

/// Enables the report of all object kinds, for example in CI.
pub static REPORT_LEAKS: Param<bool> = Param::new(
    "mpi",
    "",
    "report_leaks",
    "false",
    Level::USER,
    "Whether each rank prints at MPI_Finalize the communicators, requests, windows, files, datatypes, groups and operators that it has made and not freed, a line for each kind, with the place in the program",
);

/// Maximum number of objects named in a line.
const SHOWN: usize = 4;

/// Prints one line with the unfreed windows.
/// Rank 0 of each window prints, and each rank with an open epoch on a window.
///
/// The standard requires that the program frees all windows.
/// Their memory is released at process exit in any case.
pub fn print() {
    if state().tables().sessions().borrow().iter().next().is_some() {
        // An open session may still use the windows.
        return;
    }
    let wins = state().tables().wins().borrow();
    let mut left: Vec<String> = Vec::new();
    for (_, object) in wins.iter() {
        let win = &object.win;
        match win.what_is_open() {
            Some(open) => left.push(format!("{}, while {open}", win.label())),
            None if win.rank() == 0 => left.push(win.label()),
            None => {}
        }
    }
    let more = left.len().saturating_sub(SHOWN);
    left.truncate(SHOWN);
    if more > 0 {
        left.push(format!("{more} more"));
    }
    if !left.is_empty() {
        let rank = this_rank();
        printable::eprintln!(
            "{rank}: MPI_Finalize is called, but MPI_Win_free was not for {}",
            left.join("; ")
        );
    }
}

/// Starts to record the program's call that creates each object, if the user wants the report.
pub fn prepare(params: &Params) {
    if params.get(&REPORT_LEAKS).unwrap_or(false) {
        origin::keep(current_call);
    }
}

/// Appends to a description the function and the code address by which the program created the object.
fn made_at(what: String, origin: Option<Origin>) -> String {
    let Some(Origin { address, call }) = origin else {
        return what;
    };
    let by = call.map_or_else(String::new, |call| format!(" by {call}"));
    // A return address belongs to the instruction after the call, so 1 is subtracted.
    format!("{what}, made{by} at {}", crash::describe(address - 1))
}

/// Prints one line for each kind of object that the program has
/// created and not freed, if the user wants the report.
pub fn print_all(engine: &Engine) {
    if !engine.params().get(&REPORT_LEAKS).unwrap_or(false) {
        return;
    }
    let tables = state().tables();
    let comms = tables.comms().borrow();
    // Communicators of a session are freed with the session.
    let of_program = comms.iter().filter(|(_, object)| object.session.is_none());
    let comm_labels = of_program.map(|(handle, one)| made_at(one.label(), comms.origin(handle)));
    let requests = tables.requests().borrow();
    let others = requests
        .iter()
        .map(|(handle, one)| made_at(describe(one), requests.origin(handle)));
    // Requests of a single engine operation have their handles in the engine's own table.
    // Their description names the operation.
    let direct = engine.pml().requests().all_named().into_iter();
    let direct = direct.map(|req| {
        describe(&RequestObject::Running {
            comm: req.held().and_then(|held| held.downcast().ok()),
            req,
            also: None,
        })
    });
    let label = |handle: MPI_Comm| comms.get(handle.0).map(|object| object.label());
    let in_lanes = lane_tools::left_requests().into_iter().map(|left| {
        let what = (left.about).map_or(PERSISTENT.to_owned(), |about| operation(&about));
        on_comm(left.state, &what, label(left.comm))
    });
    let wins = tables.wins().borrow();
    let files = tables.files().borrow();
    let types = tables.types().borrow();
    let (groups, ops) = (tables.groups().borrow(), tables.ops().borrow());
    let groups_left = groups.iter().filter(|(_, (_, session))| session.is_none());
    let named = |name: &Option<String>| match name {
        Some(name) => printable::name(name).to_string(),
        None => "one without a name".to_owned(),
    };
    let kinds: [(&str, Vec<String>); 7] = [
        ("communicator", comm_labels.collect()),
        ("request", direct.chain(others).chain(in_lanes).collect()),
        (
            "window",
            wins.iter()
                .map(|(handle, one)| made_at(one.win.label(), wins.origin(handle)))
                .collect(),
        ),
        (
            "file",
            files
                .iter()
                .map(|(handle, one)| made_at(one.file.label(), files.origin(handle)))
                .collect(),
        ),
        (
            "datatype",
            types
                .iter()
                .map(|(handle, one)| made_at(named(&one.name.borrow()), types.origin(handle)))
                .collect(),
        ),
        (
            "group",
            groups_left
                .map(|(handle, (group, _))| {
                    let what = format!("one of {} ranks", group.size());
                    made_at(what, groups.origin(handle))
                })
                .collect(),
        ),
        (
            "operator",
            ops.iter()
                .map(|(handle, _)| made_at("one of the program".to_owned(), ops.origin(handle)))
                .collect(),
        ),
    ];
    for (kind, left) in kinds {
        if let Some(sentence) = sentence(kind, &left) {
            printable::eprintln!("{}: MPI_Finalize is called, and {sentence}", this_rank());
        }
    }
}

/// Returns the text about one object kind. Equal descriptions are merged, with their number.
fn sentence(kind: &str, left: &[String]) -> Option<String> {
    let (verb, plural) = match left.len() {
        0 => return None,
        1 => ("was", ""),
        _ => ("were", "s"),
    };
    let mut alike: Vec<(&str, usize)> = Vec::new();
    for one in left {
        match alike.iter_mut().find(|(known, _)| known == one) {
            Some((_, count)) => *count += 1,
            None => alike.push((one, 1)),
        }
    }
    let mut named: Vec<String> = alike
        .iter()
        .take(SHOWN)
        .map(|(one, count)| match count {
            1 => (*one).to_owned(),
            _ => format!("{one} ({count} times)"),
        })
        .collect();
    let told: usize = alike.iter().take(SHOWN).map(|(_, count)| count).sum();
    if told < left.len() {
        named.push(format!("{} more", left.len() - told));
    }
    let count = left.len();
    Some(format!(
        "{count} {kind}{plural} {verb} never freed: {}",
        named.join("; ")
    ))
}

/// The description of a persistent request.
const PERSISTENT: &str = "persistent request";

/// Describes the operation of a request.
fn describe(object: &RequestObject) -> String {
    let what = match object.unstaged() {
        RequestObject::Running { req, .. } => match &*req.body.borrow() {
            Body::Send(send) => operation(&send.about()),
            Body::Recv(recv) => operation(&recv.about()),
            Body::Coll(_) => "collective operation".to_owned(),
            _ => "request".to_owned(),
        },
        RequestObject::Persistent(_) => PERSISTENT.to_owned(),
        RequestObject::General(_) => "generalized request".to_owned(),
        RequestObject::Staged(_) => "request".to_owned(),
    };
    on_comm(object.look(), &what, object.comm().map(|comm| comm.label()))
}

/// Adds the state and the communicator to the description of an operation.
fn on_comm(state: RequestState, what: &str, comm: Option<String>) -> String {
    let state = match state {
        RequestState::Inactive => "inactive ",
        RequestState::Running => "",
        RequestState::Complete => "completed ",
    };
    let on = comm.map_or_else(String::new, |comm| format!(" on {comm}"));
    format!("{state}{what}{on}")
}

/// Describes a send or a receive.
fn operation(about: &About) -> String {
    let tag = match about.tag {
        tag if tag >= 0 => format!("tag {tag}"),
        _ => "any tag".to_owned(),
    };
    match (about.waits, about.peer) {
        (Waits::Nothing, _) => "request".to_owned(),
        (Waits::Send, peer) => format!("send to rank {peer} with {tag}"),
        (_, peer) if peer >= 0 => format!("receive from rank {peer} with {tag}"),
        _ => format!("receive from any rank with {tag}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_objects_are_counted_and_only_some_are_named() {
        let text = |all: &[&str]| -> Vec<String> { all.iter().map(|one| (*one).into()).collect() };
        assert_eq!(sentence("file", &[]), None);
        assert_eq!(
            sentence("file", &text(&["file a"])).as_deref(),
            Some("1 file was never freed: file a")
        );
        let many = text(&["b", "c", "b", "d", "e", "f", "g"]);
        assert_eq!(
            sentence("request", &many).as_deref(),
            Some("7 requests were never freed: b (2 times); c; d; e; 2 more")
        );
    }
}
