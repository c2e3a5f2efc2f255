//! Builds the plugins of docs/plugins.md outside of the repository: the C component for tests
//! of collectives, the lossy Rust transport for all other tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::{MpichTestsError, file};
use crate::fences;
use crate::process;
use crate::workspace;

const PAGE: &str = "docs/plugins.md";
/// The files of the page from which the plugins are built.
const FILES: [&str; 3] = ["tree.c", "udp/Cargo.toml", "udp/src/lib.rs"];
/// The transport drops one of this number of datagrams.
const LOSS: &str = "20";
/// Slow programs, which send 700,000 messages or 2 GiB:
/// if one datagram in twenty is lost, they take minutes, as on any lossy network.
const SLOW: [&str; 2] = ["sendflood", "large_message"];
/// Time limit of a slow program over the lossy transport, as a multiple of the usual limit.
const PATIENCE: u32 = 15;
/// The test folders that are run by default.
pub const FOLDERS: &[&str] = &["coll", "pt2pt"];

/// The folder with the plugins.
#[derive(Debug)]
pub struct Plugins(PathBuf);

/// Builds the plugins below the target folder, with the headers of the installation `prefix`.
pub fn build(prefix: &Path) -> Result<Plugins, MpichTestsError> {
    let page = workspace::root().join(PAGE);
    let text = fs::read_to_string(&page).map_err(file(&page))?;
    let folder = workspace::target().join("mpich-plugins");
    let files = folder.join("files");
    fs::create_dir_all(&files).map_err(file(&files))?;
    for name in FILES {
        let path = folder.join(name);
        let parent = path.parent().unwrap_or(&folder);
        fs::create_dir_all(parent).map_err(file(parent))?;
        let text = fences::file(&text, name).unwrap_or_default();
        fs::write(&path, text).map_err(file(&path))?;
    }
    let sources = folder.join("portcullis");
    if !sources.exists() {
        std::os::unix::fs::symlink(workspace::root(), &sources).map_err(file(&sources))?;
    }
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-I"])
        .arg(prefix.join("include"))
        .arg("-o")
        .arg(files.join("coll_tree.so"))
        .arg(folder.join("tree.c"));
    let built = folder.join("built");
    let mut cargo = Command::new("cargo");
    cargo
        .args(["build", "--quiet", "--offline", "--manifest-path"])
        .arg(folder.join("udp/Cargo.toml"))
        .arg("--target-dir")
        .arg(&built);
    for command in [&mut cc, &mut cargo] {
        process::output(command, Duration::from_secs(600)).map_err(MpichTestsError::Process)?;
    }
    let (made, to) = (built.join("debug/libudp.so"), files.join("btl_udp.so"));
    fs::copy(&made, &to).map_err(file(&made))?;
    Ok(Plugins(files))
}

impl Plugins {
    /// Returns the time limit of a program that runs over the lossy transport.
    pub fn limit(&self, program: &str, usual: Duration) -> Duration {
        match SLOW.contains(&program) {
            true => usual * PATIENCE,
            false => usual,
        }
    }

    /// Returns the `--mca` parameters of the runs in a test folder.
    pub fn parameters(&self, folder: &str) -> Vec<String> {
        let path = self.0.display().to_string();
        let search = ["mca_component_path", &path];
        let transport = ["btl", "self,udp", "btl_udp_loss", LOSS];
        let is_of_collectives = folder.rsplit('/').next() == Some("coll");
        let more = if is_of_collectives {
            &[]
        } else {
            &transport[..]
        };
        search
            .iter()
            .chain(more)
            .map(|word| (*word).to_owned())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_of_collectives_get_the_component_and_all_others_the_transport() {
        let plugins = Plugins("/p".into());
        for folder in ["coll", "threads/coll"] {
            assert_eq!(plugins.parameters(folder), ["mca_component_path", "/p"]);
        }
        let of_messages = plugins.parameters("pt2pt");
        assert_eq!(of_messages[2..4], ["btl", "self,udp"]);
        let text = fs::read_to_string(workspace::root().join(PAGE)).expect("the page");
        for name in FILES {
            assert!(fences::file(&text, name).is_some(), "{PAGE} has no {name}");
        }
    }
}
