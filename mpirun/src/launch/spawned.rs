//! Programs of `MPI_Comm_spawn`, built from its arguments and info keys.

use super::program::App;
use crate::hosts::{Host, named};
use crate::pmi;
use crate::rank_environment::split_at_sign;
use std::path::PathBuf;

/// Builds a program of `MPI_Comm_spawn` from the standard's info keys; `hosts` are the job's hosts.
///
/// Returns an error message if a key names a host that the job does not have.
pub fn spawned_app(app: pmi::App, hosts: &[Host]) -> Result<App, String> {
    let info = |key: &str| {
        app.info
            .iter()
            .find(|(name, _)| name == key)
            .map(|(_, value)| value.clone())
    };
    let named = info("host").or_else(|| info("hosts"));
    let named = named.map(|names| chosen_hosts(&names.to_string_lossy(), hosts));
    let lines = app.info.iter().filter(|(name, _)| name == "env");
    let env = lines.filter_map(|(_, line)| {
        let (name, value) = split_at_sign(line)?;
        Some((name.to_owned(), value.to_owned()))
    });
    Ok(App {
        procs: Some(app.procs),
        hosts: named.transpose()?.unwrap_or_default(),
        placements: None,
        dir: info("wdir").map(PathBuf::from),
        path: info("path"),
        env: env.collect(),
        program: app.program,
        args: app.args,
    })
}

/// Returns the hosts in the info key `host`, as indexes into the job's hosts.
fn chosen_hosts(names: &str, hosts: &[Host]) -> Result<Vec<usize>, String> {
    let asked = "the info key host of MPI_Comm_spawn is";
    let chosen = named::list(names).map_err(|error| format!("{asked} `{names}`: {error}"))?;
    let index = |host: &Host| {
        let known = hosts.iter().position(|known| known.is_same(host));
        known.ok_or_else(|| {
            let has: Vec<&str> = hosts.iter().map(|host| host.name.as_str()).collect();
            let (name, has) = (&host.name, has.join(", "));
            format!("{asked} `{names}`, but the job has no host {name}; it has {has}")
        })
    };
    chosen.iter().map(index).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spawn_on_a_host_that_the_job_does_not_have_is_refused() {
        let hosts = ["a", "b"].map(|name| Host::named(name, None).unwrap());
        for key in ["host", "hosts"] {
            let app = pmi::App {
                procs: 1,
                program: "sh".into(),
                args: Vec::new(),
                info: vec![(key.into(), "b,c".into())],
            };
            let why = spawned_app(app, &hosts).unwrap_err();
            assert_eq!(
                why,
                "the info key host of MPI_Comm_spawn is `b,c`, but the job has no host c; it has a, b"
            );
        }
    }

    #[test]
    fn a_spawned_program_takes_the_infos_of_the_standard() {
        let hosts = ["a", "b"].map(|name| Host::named(name, None).unwrap());
        let app = spawned_app(
            pmi::App {
                procs: 2,
                program: "sh".into(),
                args: vec!["x".into()],
                info: vec![
                    ("wdir".into(), "/tmp".into()),
                    ("path".into(), "/nowhere:/bin".into()),
                    ("host".into(), "b".into()),
                ],
            },
            &hosts,
        )
        .unwrap();
        assert_eq!(app.hosts, [1]);
        assert_eq!(app.dir, Some("/tmp".into()));
        let found = app.resolve(&[("PATH".into(), "/nowhere".into())], None);
        assert_eq!(found.unwrap(), std::path::Path::new("/bin/sh"));
    }
}
