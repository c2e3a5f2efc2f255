//! Properties of the measuring machine that are relevant to results, without the host's identity.

use std::fs;

/// The properties on which the results depend.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The name of the processor.
    pub cpu: String,
    /// The number of cores that this process may use.
    pub cores: usize,
    /// The kernel's name and release.
    pub kernel: String,
    /// True for a virtual machine, whose cores may be shared with other guests.
    pub is_virtual: bool,
    /// The mean number of runnable processes in the minute before the first run (load average).
    pub load: String,
}

impl Machine {
    /// Returns the properties of this machine.
    pub fn this() -> Self {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let uname = rustix::system::uname();
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        Self {
            cpu: field(&cpuinfo, "model name").unwrap_or("unknown").into(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: format!(
                "{} {}",
                uname.sysname().to_string_lossy(),
                uname.release().to_string_lossy()
            ),
            is_virtual: is_virtual(&cpuinfo),
            load: load.split(' ').next().unwrap_or("unknown").into(),
        }
    }

    /// Returns true if the load shows that other processes used the cores before the first run.
    pub fn was_busy(&self) -> bool {
        self.load.parse::<f64>().is_ok_and(|load| load > 0.5)
    }
}

/// Returns the value of the first field with this name in `/proc/cpuinfo`; architectures have different fields.
fn field<'a>(cpuinfo: &'a str, name: &str) -> Option<&'a str> {
    let fields = cpuinfo.lines().filter_map(|line| line.split_once(':'));
    let mut values = fields.filter(|(key, _)| key.trim() == name);
    values.next().map(|(_, value)| value.trim())
}

fn is_virtual(cpuinfo: &str) -> bool {
    let flags = field(cpuinfo, "flags").unwrap_or_default();
    flags.split(' ').any(|flag| flag == "hypervisor")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_is_read_from_its_fields() {
        let cpuinfo = "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\nflags\t\t: fpu hypervisor\n\nmodel name\t: other\n";
        assert_eq!(field(cpuinfo, "model name"), Some("Some CPU @ 2 GHz"));
        assert!(is_virtual(cpuinfo));
        assert!(!is_virtual("flags : fpu\n"));
        assert_eq!(field("", "model name"), None);
    }
}
