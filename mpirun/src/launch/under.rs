//! Ranks under a debugger: `mpirun --gdb` and `mpirun --rr`.
//!
//! Such a rank begins as a shell with the rank's environment and descriptors, so it stays mpirun's child and speaks PMI as any other.
//! * `--gdb`: the shell opens a pane of tmux with a gdb that attaches to the shell, waits until gdb has, and becomes the program.
//!   gdb follows it and stops at `main`. All panes of a job on a host are in one tmux session.
//! * `--rr`: the shell becomes `rr record` of the program.

use mpi_base::ranges;
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};

/// The debugger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Debugger {
    /// gdb in a pane of tmux.
    Gdb,
    /// A recording by rr.
    Rr,
}

/// The ranks of the launched job that run under a debugger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Under {
    /// The debugger.
    pub debugger: Debugger,
    /// The ranks; empty means all.
    pub ranks: Vec<u32>,
    /// The name of the tmux session.
    pub session: String,
}

/// Becomes the program `$0` in a gdb that runs in a pane of the session `$PORTCULLIS_TMUX`.
///
/// gdb attaches to this shell and waits for its exec. If it does not attach within 10 s, the rank goes on without it.
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

/// The variable that names the session to the shell.
const SESSION: &str = "PORTCULLIS_TMUX";

impl Under {
    /// Returns true if a rank runs under the debugger.
    pub fn includes(&self, rank: u32) -> bool {
        self.ranks.is_empty() || self.ranks.contains(&rank)
    }

    /// Returns the programs that it needs.
    pub fn programs(debugger: Debugger) -> &'static [&'static str] {
        match debugger {
            Debugger::Gdb => &["gdb", "tmux"],
            Debugger::Rr => &["rr"],
        }
    }

    /// Returns the arguments of the shell that becomes the program.
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

    /// Returns the variable that the shell needs.
    pub fn variable(&self) -> (OsString, OsString) {
        (SESSION.into(), self.session.clone().into())
    }

    /// Returns the sentence that tells the user where the debuggers are.
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
