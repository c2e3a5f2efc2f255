//! Detection of network hardware of this machine in `/sys/class`.

use std::path::Path;

/// The directory in which the kernel lists devices by class.
pub const SYS: &str = "/sys/class";

/// Prefixes of the names of devices that libfabric supports and UCX does not.
const OF_OFI: [&str; 4] = ["efa", "hfi1", "opa", "cxi"];

/// Returns the InfiniBand and RoCE devices with an active port.
pub fn infiniband(class: &Path) -> Vec<String> {
    verbs(class, |name| {
        !OF_OFI.iter().any(|of_ofi| name.starts_with(of_ofi))
    })
}

/// Returns the devices of Slingshot, EFA and Omni-Path.
pub fn of_libfabric(class: &Path) -> Vec<String> {
    let mut all = names(&class.join("cxi"));
    all.extend(verbs(class, |name| {
        OF_OFI.iter().any(|of_ofi| name.starts_with(of_ofi))
    }));
    all
}

fn verbs(class: &Path, wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let folder = class.join("infiniband");
    let mut all = names(&folder);
    all.retain(|name| wanted(name) && is_active(&folder.join(name)));
    all
}

/// Returns true if a port of the device is active, that is, the port's file `state` contains "4: ACTIVE".
fn is_active(device: &Path) -> bool {
    let ports = device.join("ports");
    let state = |port: &String| std::fs::read_to_string(ports.join(port).join("state"));
    let active = |port: &String| state(port).is_ok_and(|state| state.contains("ACTIVE"));
    names(&ports).iter().any(active)
}

/// Returns the sorted names in a folder; empty if the folder does not exist.
fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = names.collect();
    names.sort_unstable();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_counts_if_a_port_is_active_and_belongs_to_one_library() {
        let class = tempfile::tempdir().expect("a folder");
        let port = |device: &str, port: &str, state: &str| {
            let folder = class
                .path()
                .join("infiniband")
                .join(device)
                .join("ports")
                .join(port);
            std::fs::create_dir_all(&folder).expect("a folder");
            std::fs::write(folder.join("state"), state).expect("a file");
        };
        assert_eq!(infiniband(class.path()), [""; 0]);
        port("mlx5_0", "1", "1: DOWN\n");
        port("mlx5_0", "2", "4: ACTIVE\n");
        port("mlx5_1", "1", "1: DOWN\n");
        port("efa_0", "1", "4: ACTIVE\n");
        port("hfi1_0", "1", "1: DOWN\n");
        std::fs::create_dir_all(class.path().join("cxi/cxi0")).expect("a folder");
        assert_eq!(infiniband(class.path()), ["mlx5_0"]);
        assert_eq!(of_libfabric(class.path()), ["cxi0", "efa_0"]);
    }
}
