//! Where the figures are from: the machine, as far as a reader needs it, and nothing that names it.

use std::fs;

/// What figures depend on.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The processor's own name.
    pub cpu: String,
    /// That processes of ours may use.
    pub cores: usize,
    /// The kernel's name and release.
    pub kernel: String,
    /// Others may use the same cores without being seen.
    pub is_virtual: bool,
    /// Processes that wanted a core in the minute before the first run.
    pub load: String,
}

impl Machine {
    /// This one, now.
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

    /// Whether something else wanted the cores.
    pub fn was_busy(&self) -> bool {
        self.load.parse::<f64>().is_ok_and(|load| load > 0.5)
    }
}

/// The first of this name in `/proc/cpuinfo`; not every architecture has every one.
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
