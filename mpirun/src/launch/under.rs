//! Ranks under a debugger: `mpirun --gdb` and `mpirun --rr`.
//!
//! A rank under a debugger starts as a shell with the rank's environment and descriptors.
//! The rank remains mpirun's child and speaks PMI as usual.
//! * `--gdb`: the shell opens a tmux pane with a gdb that attaches to the shell.
//!   Then the shell executes the program, and gdb stops at `main`.
//!   All panes of a job on one host are in one tmux session.
//! * `--rr`: the shell executes `rr record` with the program.

use mpi_base::ranges;
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};

/// The kind of debugger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Debugger {
    /// gdb in a tmux pane.
    Gdb,
    /// Recording by rr.
    Rr,
}

/// The ranks of the launched job that run under a debugger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Under {
    /// The kind of debugger.
    pub debugger: Debugger,
    /// The ranks; an empty list means all ranks.
    pub ranks: Vec<u32>,
    /// The name of the tmux session.
    pub session: String,
}

/// The shell script that executes `$0` under gdb in a pane of session `$PORTCULLIS_TMUX`.
///
/// gdb attaches to the shell and waits for its exec.
/// If gdb does not attach within 10 s, the rank runs without gdb.
const GDB: &str = r#"pane="gdb -q -iex 'set debuginfod enabled off' -iex 'set confirm off' -ex 'set prompt (rank $PMI_RANK) ' -ex 'catch exec' -ex continue -ex 'delete 1' -ex 'tbreak main' -ex continue -p $$"
tmux new-session -d -x 200 -y 50 -s "$PORTCULLIS_TMUX" "$pane" 2>/dev/null ||
tmux split-window -t "$PORTCULLIS_TMUX" "$pane" 2>/dev/null ||
tmux new-window -t "$PORTCULLIS_TMUX" "$pane"
tmux select-layout -t "$PORTCULLIS_TMUX" tiled >/dev/null 2>&1
left=100
traced() { while read -r name value; do [ "$name" = TracerPid: ] && [ "$value" != 0 ] && return 0; done < /proc/$$/status; return 1; }
until traced; do
    left=$((left - 1))
    [ $left = 0 ] && { echo "mpirun: gdb has not attached to rank $PMI_RANK within 10 s (kernel.yama.ptrace_scope may forbid it), so the rank runs without it" >&2; break; }
    sleep 0.1
done
unset PORTCULLIS_TMUX
exec "$0" "$@"
"#;

const RR: &str = r#"exec rr record "$0" "$@""#;

/// The variable that passes the session's name to the shell.
const SESSION: &str = "PORTCULLIS_TMUX";

impl Under {
    /// Returns true if the rank runs under the debugger.
    pub fn includes(&self, rank: u32) -> bool {
        self.ranks.is_empty() || self.ranks.contains(&rank)
    }

    /// Returns the programs that the debugger needs.
    pub fn programs(debugger: Debugger) -> &'static [&'static str] {
        match debugger {
            Debugger::Gdb => &["gdb", "tmux"],
            Debugger::Rr => &["rr"],
        }
    }

    /// Returns the arguments of the shell that executes the program.
    pub fn arguments<'a>(
        &self,
        program: &OsStr,
        args: impl Iterator<Item = &'a OsString>,
    ) -> Vec<OsString> {
        let script = match self.debugger {
            Debugger::Gdb => GDB,
            Debugger::Rr => RR,
        };
        let mut all: Vec<OsString> = ["sh", "-c", script].map(OsString::from).into();
        all.push(program.to_owned());
        all.extend(args.cloned());
        all
    }

    /// Returns the environment variable that the shell needs.
    pub fn variable(&self) -> (OsString, OsString) {
        (SESSION.into(), self.session.clone().into())
    }

    /// Returns the message that shows the user how to reach the debuggers.
    pub fn sentence(&self) -> String {
        match self.debugger {
            Debugger::Gdb => {
                let ranks = match self.ranks.as_slice() {
                    [] => String::new(),
                    some => {
                        let some: Vec<usize> = some.iter().map(|rank| *rank as usize).collect();
                        format!(" of {}", ranges::write(&some))
                    }
                };
                format!(
                    "each rank{ranks} waits at main in a gdb: \"tmux attach -t {}\" shows them until mpirun ends",
                    self.session
                )
            }
            Debugger::Rr => {
                "ranks are recorded by rr: \"rr ls\" lists the recordings, and \"rr replay NAME\" replays one".into()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shell_gets_the_program_and_its_arguments_apart_from_the_script() {
        let under = Under {
            debugger: Debugger::Rr,
            ranks: vec![1],
            session: "s".into(),
        };
        assert!(under.includes(1) && !under.includes(0));
        let args = [OsString::from("a b"), OsString::from("$c")];
        let all = under.arguments(OsStr::new("/bin/prog"), args.iter());
        assert_eq!(all[..2], ["sh", "-c"]);
        assert_eq!(all[3..], ["/bin/prog", "a b", "$c"]);
    }
}
