//! Other spellings that users know from Open MPI and MPICH, each with the words that mean the same here.
//!
//! They are taken, and no help shows them: for each there is one spelling that the help does show.

/// Another spelling.
#[derive(Debug)]
pub struct Translated {
    pub name: &'static str,
    /// How many values follow it.
    pub values: usize,
    /// What it means; `{}` is its value. Empty is what happens anyway.
    pub words: &'static [&'static str],
}

const fn flag(name: &'static str, words: &'static [&'static str]) -> Translated {
    Translated {
        name,
        values: 0,
        words,
    }
}

const fn with_value(name: &'static str, words: &'static [&'static str]) -> Translated {
    Translated {
        name,
        values: 1,
        words,
    }
}

const TABLE: &[Translated] = &[
    // Placement and binding, as Open MPI had them before --map-by and --bind-to.
    flag("pernode", &["--ppn=1"]),
    flag("bynode", &["--map-by=node"]),
    flag("byslot", &["--map-by=slot"]),
    flag("bycore", &["--map-by=core"]),
    flag("bysocket", &["--map-by=package"]),
    with_value("npersocket", &["--map-by=ppr:{}:package"]),
    with_value("npernuma", &["--map-by=ppr:{}:numa"]),
    with_value("ppr", &["--map-by=ppr:{}"]),
    flag("bind-to-core", &["--bind-to=core"]),
    flag("bind-to-socket", &["--bind-to=package"]),
    flag("bind-to-none", &["--bind-to=none"]),
    with_value("default-hostfile", &["--hostfile={}"]),
    // What is so here without being asked.
    flag("use-hwthread-cpus", &[]),
    flag("noprefix", &[]),
    flag("no-prefix", &[]),
    flag("disable-recovery", &["--with-ft=no"]),
    flag("report-state-on-timeout", &[]),
    with_value("personality", &[]),
    with_value("demux", &[]),
    // What has another name here.
    flag("show-progress", &["--verbose"]),
    flag("info", &["--version"]),
];

/// The spelling with this name.
pub fn find(name: &str) -> Option<&'static Translated> {
    TABLE.iter().find(|spelling| spelling.name == name)
}

/// The names of all.
pub fn names() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|spelling| spelling.name)
}
