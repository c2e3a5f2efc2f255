//! Option spellings of Open MPI and MPICH, each with the equivalent options of this launcher.
//!
//! The parser accepts these spellings, but no help lists them: the help lists the equivalents.

/// An option spelling of another launcher.
#[derive(Debug)]
pub struct Translated {
    pub name: &'static str,
    /// The number of values that follow the option.
    pub values: usize,
    /// The equivalent options; `{}` marks the value.
    /// The list is empty if the spelling requests the default behaviour.
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
    // Placement and binding, as in Open MPI before --map-by and --bind-to.
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
    with_value("mapby", &["--map-by={}"]),
    with_value("rankby", &["--rank-by={}"]),
    with_value("bindto", &["--bind-to={}"]),
    with_value("binding", &["--bind-to={}"]),
    flag("display-devel-allocation", &["--display-allocation"]),
    flag("display-diffable-map", &["--display-map"]),
    // The option's value becomes the value of a parameter of the library.
    with_value(
        "memory-alloc-kinds",
        &["--mca", "mpi_base_memory_alloc_kinds", "{}"],
    ),
    // These options request the default behaviour.
    flag("use-hwthread-cpus", &[]),
    flag("noprefix", &[]),
    flag("no-prefix", &[]),
    flag("disable-recovery", &["--with-ft=no"]),
    flag("report-state-on-timeout", &[]),
    flag("enable-auto-cleanup", &["--with-ft=no"]),
    flag("disable-hostname-propagation", &[]),
    flag("disable-x", &[]),
    // Each message is printed as it is, and each host examines its own processors.
    flag("no-aggregate-help", &[]),
    flag("hetero-nodes", &[]),
    // Names of hosts are passed to ssh unchanged, and a launcher starts on hosts with ranks only.
    flag("do-not-resolve", &[]),
    flag("novm", &[]),
    flag("use-regexp", &[]),
    flag("fwd-mpirun-port", &[]),
    flag("enable-instant-on-support", &[]),
    with_value("personality", &[]),
    with_value("demux", &[]),
    // These options are other names of options of this launcher.
    flag("show-progress", &["--verbose"]),
    flag("info", &["--version"]),
];

/// Returns the entry of an option name; `None` if the name is not a translated spelling.
pub fn find(name: &str) -> Option<&'static Translated> {
    TABLE.iter().find(|spelling| spelling.name == name)
}

/// Returns the names of all translated spellings.
pub fn names() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|spelling| spelling.name)
}
