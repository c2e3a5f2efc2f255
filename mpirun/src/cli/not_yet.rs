//! Options that users know from other launchers and that this one does not have yet, each with what it would do.
//!
//! They are refused by name: an option that is ignored misleads more than one that is missing.
//! A value that asks for what happens anyway is accepted.

/// A known option that is missing.
#[derive(Debug)]
pub struct NotYet {
    pub name: &'static str,
    /// How many values follow it.
    pub values: usize,
    /// Values that ask for what happens anyway.
    pub harmless: &'static [&'static str],
    pub what: &'static str,
}

const fn missing(name: &'static str, values: usize, what: &'static str) -> NotYet {
    NotYet {
        name,
        values,
        harmless: &[],
        what,
    }
}

const TABLE: &[NotYet] = &[
    NotYet {
        name: "bind-to",
        values: 1,
        harmless: &["none"],
        what: "binding ranks to cores",
    },
    NotYet {
        name: "stdin",
        values: 1,
        harmless: &["0"],
        what: "standard input for other ranks than 0",
    },
    missing("hostfile", 1, "running on other hosts"),
    missing("machinefile", 1, "running on other hosts"),
    missing("map-by", 1, "placing ranks on hosts"),
    missing("rank-by", 1, "numbering ranks by place"),
    missing("ppn", 1, "ranks for each host"),
    missing(
        "report-bindings",
        0,
        "showing which cores ranks are bound to",
    ),
    missing("display-map", 0, "showing where ranks run"),
    missing("timestamp-output", 0, "putting the time before each line"),
    missing("output", 1, "writing each rank's output to a file"),
    missing("output-filename", 1, "writing each rank's output to a file"),
    missing("hang-after", 1, "explaining a hang"),
    missing("trace", 1, "tracing messages"),
    missing("record", 1, "recording the order of messages"),
    missing("replay", 1, "replaying the order of messages"),
    missing("configfile", 1, "reading the programs from a file"),
    missing("app", 1, "reading the programs from a file"),
    missing("path", 1, "searching programs in other places than PATH"),
    missing("with-ft", 1, "surviving the death of ranks"),
    missing("enable-recovery", 0, "surviving the death of ranks"),
];

pub fn find(name: &str) -> Option<&'static NotYet> {
    TABLE.iter().find(|option| option.name == name)
}
