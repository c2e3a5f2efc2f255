//! `MPI_Comm_spawn` and `MPI_Comm_spawn_multiple` (section 11.8).
//!
//! The launcher starts the job, which then connects to a port of the root.
//!
//! Either all processes of a job start, or none of them.
//! The root broadcasts the error code of each process before its group waits for the new job.
//! So all members report a failure with the same text, and `array_of_errcodes` is correct on each.
//!
//! A job whose processes cannot execute the program, or exit without `MPI_Init`, never connects.
//! The launcher then ends the remaining processes and reports the failure ([`Rte::failed_spawns`]).
//! The root's accept fails, and the call fails on all members.
#![allow(unsafe_code)]

use super::parent::{HANDLER_KEY, PORT_KEY};
use super::{or_leader_error, register, root_of};
use crate::abi::*;
use crate::api::args::{InArray, InOutArray, Out, Strings, Text, UncountedOut, length};
use crate::error::{Failure, Outcome};
use crate::initial_handler::InitialHandler;
use crate::object::comm::CommObject;
use crate::{info, phase, state};
use mpi_base::param::Value;
use mpi_base::text;
use mpi_core::Engine;
use mpi_core::comm::ControlGroup;
use mpi_core::dynamic::PortName;
use mpi_core::rte::wire::HEARS_FAILURE;
use mpi_core::rte::{FailedSpawn, Rte, SpawnRequest, SpawnedApp};
use std::ffi::{OsStr, OsString, c_char, c_int};
use std::os::unix::ffi::OsStrExt as _;
use std::rc::Rc;

/// Maximum length of a command, which is a path (PATH_MAX of Linux).
const COMMAND_MAX: c_int = 4096;

/// The arguments of one command, as passed by the root.
struct Command<'a> {
    command: Text<'a>,
    argv: Strings<'a>,
    maxprocs: c_int,
    info: MPI_Info,
}

fn argument(why: String) -> Failure {
    Failure::new(MPI_ERR_ARG, why)
}

/// Returns the largest number of processes that the info key `soft` allows, up to `maxprocs`.
/// `soft` is a list of `a`, `a:b` and `a:b:c` (section 11.8.4).
fn most_allowed(soft: &str, maxprocs: u32) -> Option<u32> {
    let mut most = None;
    for triplet in soft.split(',') {
        let numbers: Vec<i64> = triplet
            .split(':')
            .map(|number| number.trim().parse().ok())
            .collect::<Option<_>>()?;
        let (first, last, step) = match numbers[..] {
            [one] => (one, one, 1),
            [first, last] => (first, last, 1),
            [first, last, step] if step != 0 => (first, last, step),
            _ => return None,
        };
        let (low, high) = (first.min(last), first.max(last).min(maxprocs.into()));
        let stride = step.abs();
        // The last number of the arithmetic sequence from `first` that does not exceed the limit.
        let best = match step > 0 && first <= last {
            true => first + (high - first).div_euclid(stride) * stride,
            false => {
                let above = (first - high).max(0);
                first - (above + stride - 1).div_euclid(stride) * stride
            }
        };
        if (low..=high).contains(&best) && best >= 0 {
            most = most.max(u32::try_from(best).ok());
        }
    }
    most
}

/// The spawn request to the launcher, and the argument `maxprocs` of each command.
struct Request {
    request: SpawnRequest,
    maxprocs: Vec<u32>,
}

impl Request {
    fn of(commands: &[Command]) -> Result<Request, Failure> {
        let mut asked = Request {
            request: SpawnRequest::default(),
            maxprocs: Vec::new(),
        };
        if commands.is_empty() {
            return Err(argument(
                "count is 0, and a job of no program cannot be spawned".into(),
            ));
        }
        for command in commands {
            asked.add(command)?;
        }
        Ok(asked)
    }

    fn add(&mut self, command: &Command) -> Result<(), Failure> {
        let program = (command.command).string(COMMAND_MAX, MPI_ERR_ARG, "command")?;
        let args = command.argv.all().into_iter();
        let args = args.map(|argument| OsStr::from_bytes(argument.to_bytes()).to_owned());
        let args = args.collect();
        if program.is_empty() {
            return Err(argument("command is an empty string".into()));
        }
        let maxprocs = u32::try_from(command.maxprocs).map_err(|_| {
            argument(format!(
                "maxprocs is {}, which is negative",
                command.maxprocs
            ))
        })?;
        let hints = info::hints(command.info)?;
        let mut procs = maxprocs;
        let mut kept: Vec<(String, OsString)> = Vec::new();
        for (key, value) in hints.iter() {
            match key {
                "soft" => {
                    procs = most_allowed(value, maxprocs).ok_or_else(|| {
                        let why = format!("the info key soft is `{value}`, which allows no number of processes up to maxprocs, {maxprocs}");
                        Failure::new(MPI_ERR_SPAWN, why)
                    })?;
                }
                "mpi_initial_errhandler" if InitialHandler::parse(value).is_ok() => {
                    let left = &mut self.request.left;
                    left.retain(|(known, _)| known != HANDLER_KEY);
                    left.push((HANDLER_KEY.into(), value.into()));
                }
                // The value of `env` has one line per variable.
                "env" => {
                    let variables = value.split('\n').filter(|line| !line.is_empty());
                    kept.extend(variables.map(|line| (key.into(), text::to_os(line))));
                }
                _ => kept.push((key.into(), text::to_os(value))),
            }
        }
        // The default working directory is that of the parent, not of the launcher.
        if hints.get("wdir").is_none()
            && let Ok(here) = std::env::current_dir()
        {
            kept.push(("wdir".into(), here.into_os_string()));
        }
        self.maxprocs.push(maxprocs);
        self.request.apps.push(SpawnedApp {
            procs,
            program: text::to_os(&program),
            args,
            info: kept,
        });
        Ok(())
    }

    /// Returns one error code per requested process.
    /// Processes beyond the number that `soft` allows were not started.
    fn codes(&self, started: c_int) -> Vec<c_int> {
        let each = self.maxprocs.iter().zip(&self.request.apps);
        each.flat_map(|(most, app)| {
            (0..*most).map(|at| {
                if at < app.procs {
                    started
                } else {
                    MPI_ERR_SPAWN
                }
            })
        })
        .collect()
    }
}

/// Starts the job at the root. Returns the port to which the new job connects, or the failure.
/// Also returns the error code of each process.
fn start(asked: Result<Request, Failure>) -> (Result<PortName, Failure>, Vec<c_int>) {
    let asked = match asked {
        Ok(asked) => asked,
        Err(failure) => return (Err(failure), Vec::new()),
    };
    let (mut request, codes) = (asked.request.clone(), |code| asked.codes(code));
    let begun = (|| {
        let launcher = phase::launcher().ok_or_else(state::not_running)?;
        let engine = state::engine()?;
        let port = engine.ports().open()?;
        request.left.push((PORT_KEY.into(), port.to_string()));
        request.left.push((HEARS_FAILURE.into(), "1".into()));
        match launcher.spawn_job(&request) {
            Ok(job) => {
                let job = job.map(|job| (job, port.clone()));
                state::state().jobs().spawning().borrow_mut().extend(job);
                Ok(port)
            }
            Err(error) => {
                engine.ports().close(&port);
                Err(Failure::new(MPI_ERR_SPAWN, error.to_string()))
            }
        }
    })();
    let code = if begun.is_ok() {
        MPI_SUCCESS
    } else {
        MPI_ERR_SPAWN
    };
    (begun, codes(code))
}

/// Ends the root's accept with an error for each spawned job that the launcher reports as failed.
pub(crate) fn poll_spawn_failures(engine: &Engine, launcher: &dyn Rte) {
    for FailedSpawn { job, why } in launcher.failed_spawns() {
        let spawning = state::state().jobs().spawning().borrow();
        if let Some((_, port)) = spawning.iter().find(|(known, _)| *known == job) {
            engine.ports().fail(port, why);
        }
    }
}

/// The part of a spawn that all members of the group execute.
fn spawn(
    object: &Rc<CommObject>,
    root: u32,
    begun: Option<(Result<PortName, Failure>, Vec<c_int>)>,
    errcodes: UncountedOut<c_int>,
) -> Result<MPI_Comm, Failure> {
    let engine = state::engine()?;
    let (port, codes) = match begun {
        Some((port, codes)) => (Some(port), codes),
        None => (None, Vec::new()),
    };
    let ours = port.as_ref().and_then(|port| port.as_ref().ok().cloned());
    let comm = &object.comm;
    let (codes, met) = engine.block_on(async {
        let bytes = codes.iter().flat_map(|code| code.to_le_bytes()).collect();
        let conversation = comm.internal().conversation();
        let group = ControlGroup::of(&conversation, comm.group(), comm.rank());
        match group.tell(bytes, root).await {
            Ok(codes) => {
                let met = comm
                    .ports()
                    .accept(root, port.map(or_leader_error), MPI_ERR_SPAWN)
                    .await;
                (codes, met)
            }
            // Other members may have received the root's error codes, and wait in `accept`.
            // In a fault-tolerant job this member takes part in the agreement of these members,
            // so all members fail with the same error.
            Err(error) => (Vec::new(), comm.ports().not_accepted(root, error).await),
        }
    });
    if let Some(port) = ours {
        engine.ports().close(&port);
        let mut spawning = state::state().jobs().spawning().borrow_mut();
        spawning.retain(|(_, known)| *known != port);
    }
    let codes = codes.as_chunks().0.iter().map(|code| match met {
        Ok(_) => c_int::from_le_bytes(*code),
        Err(_) => MPI_ERR_SPAWN,
    });
    if !errcodes.is_null() {
        // SAFETY: the array has one element per process that the root requested (section 11.8.2).
        let places = unsafe { errcodes.counted(codes.len()) }.get("array_of_errcodes")?;
        places
            .iter_mut()
            .zip(codes)
            .for_each(|(place, code)| *place = code);
    }
    register(met?, object)
}

pub fn MPI_Comm_spawn(
    command: Text,
    argv: Strings,
    maxprocs: c_int,
    info: MPI_Info,
    root: c_int,
    comm: MPI_Comm,
    intercomm: Out<MPI_Comm>,
    array_of_errcodes: UncountedOut<c_int>,
) -> Outcome {
    let object = state::comm(comm)?;
    let root = root_of(&object, root)?;
    let begun = (object.comm.rank() == root).then(|| {
        let command = Command {
            command,
            argv,
            maxprocs,
            info,
        };
        start(Request::of(&[command]))
    });
    let new = spawn(&object, root, begun, array_of_errcodes)?;
    intercomm.set(new, "intercomm")
}

pub fn MPI_Comm_spawn_multiple(
    count: c_int,
    array_of_commands: InOutArray<*mut c_char>,
    array_of_argv: InOutArray<*mut *mut c_char>,
    array_of_maxprocs: InArray<c_int>,
    array_of_info: InArray<MPI_Info>,
    root: c_int,
    comm: MPI_Comm,
    intercomm: Out<MPI_Comm>,
    array_of_errcodes: UncountedOut<c_int>,
) -> Outcome {
    let object = state::comm(comm)?;
    let root = root_of(&object, root)?;
    let begun = (object.comm.rank() == root).then(|| {
        start((|| {
            let count = length(count, "count")?;
            let (commands, maxprocs, infos) = (
                array_of_commands.input().get("array_of_commands")?,
                array_of_maxprocs.get("array_of_maxprocs")?,
                array_of_info.get("array_of_info")?,
            );
            // MPI_ARGVS_NULL is null: no command has arguments.
            let arguments = array_of_argv.input().get("array_of_argv").ok();
            let one = |at: usize| Command {
                // SAFETY: MPI_Comm_spawn_multiple requires C strings of its caller.
                command: unsafe { Text::new(commands[at]) },
                // SAFETY: MPI_Comm_spawn_multiple requires NULL-terminated lists of its caller.
                argv: unsafe {
                    Strings::new(arguments.map_or(std::ptr::null_mut(), |all| all[at]))
                },
                maxprocs: maxprocs[at],
                info: infos[at],
            };
            let commands: Vec<Command> = (0..count).map(one).collect();
            Request::of(&commands)
        })())
    });
    let new = spawn(&object, root, begun, array_of_errcodes)?;
    intercomm.set(new, "intercomm")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn soft_lists_name_numbers_as_the_standard_says() {
        for (list, maxprocs, most) in [
            ("1:4", 4, Some(4)),
            ("1:8", 4, Some(4)),
            ("2:100:2", 7, Some(6)),
            ("1,2,5", 4, Some(2)),
            ("3", 2, None),
            ("9:1:2", 6, Some(5)),
            ("0", 3, Some(0)),
            ("a", 3, None),
            ("1:2:0", 3, None),
        ] {
            assert_eq!(most_allowed(list, maxprocs), most, "{list} of {maxprocs}");
        }
    }

    proptest! {
        #[test]
        fn a_triplet_allows_what_counting_finds(first in 0i64..20, last in 0i64..20, step in -4i64..5, maxprocs in 0u32..20) {
            prop_assume!(step != 0 && (last - first).signum() * step.signum() >= 0);
            let mut counted = None;
            let mut at = first;
            while (step > 0 && at <= last) || (step < 0 && at >= last) {
                if at <= i64::from(maxprocs) {
                    counted = counted.max(Some(at as u32));
                }
                at += step;
            }
            prop_assert_eq!(most_allowed(&format!("{first}:{last}:{step}"), maxprocs), counted);
        }
    }
}
