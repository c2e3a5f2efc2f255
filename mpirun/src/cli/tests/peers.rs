//! Options of MPICH and Open MPI: this launcher supports or refuses each of them by name.
//!
//! The lists are complete: the table of options of Hydra in MPICH 5.0.2
//! (`src/pm/hydra/mpiexec/options.c`, `match_table`), that of mpirun in Open MPI 5.0.11
//! (PRRTE, `src/mca/schizo/ompi/schizo_ompi.c`, `ompioptions`),
//! and `mpirun --help all` of Open MPI 4.1.4.

use super::super::options::Options;
use super::super::{refused, translated};
use super::{CliError, parsed};
use clap::CommandFactory as _;

const MPICH: &str = "help h genv genvlist genvnone genvall f hostfile machinefile machine machines \
    machinelist host hosts hostlist rankmap ppn profile output-from prepend-rank l prepend-pattern \
    outfile-pattern errfile-pattern outfile errfile wdir configfile env envlist envnone envall n np \
    memory-alloc-kinds launcher launcher-exec bootstrap bootstrap-exec enable-x disable-x rmk topolib \
    binding bind-to map-by membind report-bindings demux debug disable-auto-cleanup \
    disable-hostname-propagation enable-auto-cleanup enable-hostname-propagation g gpus-per-proc \
    gpu-subdevs-per-proc hybrid-hosts iface info localhost nameserver order-nodes pmi-port \
    print-all-exitcodes skip-launch-node usize v verbose version pmi_args";

const OPEN_MPI_5: &str = "help h version V verbose v parseable parsable report-pid report-uri \
    personality dvm prtemca pmixmca omca gomca tune launch-agent max-vm-size debug-daemons \
    debug-daemons-file leave-session-attached tmpdir prefix noprefix forward-signals \
    allow-run-as-root report-child-jobs-separately hetero-nodes xterm stop-on-exec stop-in-init \
    stop-in-app timeout report-state-on-timeout get-stack-traces spawn-timeout no-aggregate-help np c n \
    N app output stdin preload-files preload-binary s x prepend-env append-env unset-env wdir wd path \
    show-progress pset hostfile machinefile default-hostfile host H fwd-environment \
    memory-alloc-kinds gpu-support app-pmix-prefix no-app-prefix mapby map-by rankby rank-by bindto \
    bind-to display do-not-launch rtos runtime-options enable-recovery max-restarts disable-recovery \
    continuous with-ft initial-errhandler display-comm display-comm-finalize soft arch file mca gmca \
    xml tag-output timestamp-output output-directory output-filename merge-stderr-to-stdout \
    display-devel-map display-topo report-bindings display-map display-allocation nolocal \
    oversubscribe nooversubscribe use-hwthread-cpus cpu-set cpu-list bind-to-core bynode bycore byslot \
    cpus-per-proc cpus-per-rank npernode pernode npersocket ppr amca am rankfile output-proctable \
    debug stream-buffering";

const OPEN_MPI_4: &str = "allow-run-as-root am app bind-to bind-to-core bind-to-socket bycore bynode \
    byslot c np cf cartofile continuous cpu-list cpu-set cpus-per-proc cpus-per-rank d debug-devel debug \
    debug-daemons debug-daemons-file debugger default-hostfile disable-recovery display-allocation \
    display-devel-allocation display-devel-map display-diffable-map display-map display-topo \
    do-not-launch do-not-resolve dvm enable-instant-on-support enable-recovery fwd-mpirun-port \
    get-stack-traces gmca h help H host hnp hostfile index-argv-by-rank launch-agent \
    leave-session-attached machinefile map-by max-restarts max-vm-size mca merge-stderr-to-stdout N n \
    nolocal nooversubscribe noprefix novm npernode npersocket ompi-server output-filename \
    output-proctable oversubscribe path pernode personality ppr prefix preload-files q quiet rank-by \
    report-bindings report-child-jobs-separately report-events report-pid report-state-on-timeout \
    report-uri rf rankfile s preload-binary set-cwd-to-session-dir show-progress stdin tag-output \
    timeout timestamp-output tune tv use-hwthread-cpus use-regexp v verbose V version wd wdir x xml \
    xml-file xterm";

#[test]
fn every_option_of_mpich_and_open_mpi_is_supported_or_refused_by_name() {
    let lists = [MPICH, OPEN_MPI_5, OPEN_MPI_4];
    for name in lists.iter().flat_map(|list| list.split_whitespace()) {
        // MPICH's users write one dash, and a letter has one dash everywhere.
        let error = parsed(&format!("-{name}"));
        let is_unknown = matches!(error, Err(CliError::NoOption { .. }));
        assert!(!is_unknown, "-{name} is unknown");
        if name.len() > 1 {
            let error = parsed(&format!("--{name}"));
            let is_unknown = matches!(error, Err(CliError::NoOption { .. }));
            assert!(!is_unknown, "--{name} is unknown");
        }
    }
}

#[test]
fn a_name_of_another_launcher_has_one_meaning() {
    let command = Options::command();
    for option in refused::all() {
        assert!(translated::find(option.name).is_none(), "{}", option.name);
        let is_own = command.get_arguments().any(|known| {
            known.get_long() == Some(option.name)
                || known
                    .get_all_aliases()
                    .is_some_and(|names| names.contains(&option.name))
        });
        assert!(!is_own, "{} is supported and refused", option.name);
        let same = refused::all().filter(|other| other.name == option.name);
        assert_eq!(same.count(), 1, "{} is refused twice", option.name);
    }
}

#[test]
fn the_label_of_mpich_is_a_label_here() {
    for line in [
        "-l prog",
        "-n 2 -l prog",
        "--prepend-rank prog",
        "--label prog",
    ] {
        assert!(parsed(line).unwrap().io.label, "{line}");
    }
    assert!(parsed("-fwd-environment prog").is_ok());
    let binding = parsed("-binding core prog").unwrap().binding;
    assert!(binding.to.is_some());
    assert_eq!(parsed("-machinelist a,b prog").unwrap().hosts.len(), 2);
}
