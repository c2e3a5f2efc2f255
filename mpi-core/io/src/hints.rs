//! The info hints that have an effect, and ROMIO's names for them (MPI 5.0, section 14.2.8).
//!
//! Accesses use the values in a [`Tuning`]. Its sources, in order of precedence:
//! the info object, a file of hints ([`HINTS`], or the variable `ROMIO_HINTS` as in ROMIO),
//! and defaults that depend on the file system.
//! All members use rank 0's values, so a hint that differs between ranks cannot cause a hang.
//! Invalid values are ignored, as the standard requires. Hints without an effect are ignored too,
//! such as the striping hints, which only special file systems support.

use mpi_base::param::{Level, Param};
use std::fmt;
use std::path::PathBuf;

/// Parameter `io_base_hints`: the file of hints.
pub static HINTS: Param<PathBuf> = Param::new(
    "io",
    "base",
    "hints",
    "",
    Level::USER,
    "Path of a file with hints for all opened files, one name and value per line; hints in info objects take precedence; empty: the path in ROMIO_HINTS",
);

/// The value of a hint that enables or disables an optimisation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Switch {
    /// The library uses the optimisation if it expects a gain.
    #[default]
    Automatic,
    Enable,
    Disable,
}

impl Switch {
    fn parse(text: &str) -> Option<Switch> {
        match text.to_ascii_lowercase().as_str() {
            "automatic" => Some(Switch::Automatic),
            "enable" | "true" => Some(Switch::Enable),
            "disable" | "false" => Some(Switch::Disable),
            _ => None,
        }
    }

    fn from_word(word: u64) -> Switch {
        match word {
            1 => Switch::Enable,
            2 => Switch::Disable,
            _ => Switch::Automatic,
        }
    }
}

impl fmt::Display for Switch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Switch::Automatic => "automatic",
            Switch::Enable => "enable",
            Switch::Disable => "disable",
        })
    }
}

/// The order in which the program will access a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    Unknown,
    Sequential,
    Random,
}

/// The keywords of the hint `access_style`, in the order in which the program gave them.
///
/// Only keywords that imply an order have an effect. `MPI_File_get_info` returns all keywords.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Styles {
    /// 4 bits for each keyword: its index in [`STYLES`] plus 1; the first one has the lowest bits.
    words: u32,
}

/// The standard's keywords (MPI 5.0, section 14.2.8), each with the order that it implies.
const STYLES: [(&str, Style); 7] = [
    ("read_once", Style::Unknown),
    ("write_once", Style::Unknown),
    ("read_mostly", Style::Unknown),
    ("write_mostly", Style::Unknown),
    ("sequential", Style::Sequential),
    ("reverse_sequential", Style::Sequential),
    ("random", Style::Random),
];

impl Styles {
    /// Parses a comma-separated list. Returns `None` if it contains no keyword of the standard.
    fn parse(list: &str) -> Option<Styles> {
        let places = list.split(',').filter_map(|word| {
            let word = word.trim();
            STYLES.iter().position(|(known, _)| *known == word)
        });
        let styles = places.fold(Styles::default(), |styles, place| {
            styles.with(place as u32 + 1)
        });
        Some(styles).filter(|styles| styles.words != 0)
    }

    /// Decodes the field `words` as another member has sent it; ignores invalid indices.
    fn from_word(word: u64) -> Styles {
        let places = (0..STYLES.len()).map(|at| (word >> (4 * at) & 0xf) as u32);
        let known = places.filter(|place| (1..=STYLES.len() as u32).contains(place));
        known.fold(Styles::default(), Styles::with)
    }

    /// Appends a keyword unless it is present already.
    /// So `words` has at most seven keywords of 4 bits, which fit into 32 bits.
    fn with(self, place: u32) -> Styles {
        let mut places = self.places();
        match places.any(|known| known == place) {
            true => self,
            false => {
                let words = self.words | place << (4 * self.places().count());
                Styles { words }
            }
        }
    }

    fn places(self) -> impl Iterator<Item = u32> {
        let places = (0..STYLES.len()).map(move |at| self.words >> (4 * at) & 0xf);
        places.take_while(|place| *place != 0)
    }

    fn named(self) -> impl Iterator<Item = &'static (&'static str, Style)> {
        self.places()
            .filter_map(|place| STYLES.get(place as usize - 1))
    }

    /// Returns the order of the last keyword that implies an order.
    pub fn order(self) -> Style {
        let orders = self.named().map(|(_, style)| *style);
        orders
            .filter(|style| *style != Style::Unknown)
            .last()
            .unwrap_or(Style::Unknown)
    }
}

impl fmt::Display for Styles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<&str> = self.named().map(|(word, _)| *word).collect();
        f.write_str(&words.join(","))
    }
}

/// The hint values that accesses use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// Settings of collective buffering for reads and writes.
    pub cb_read: Switch,
    pub cb_write: Switch,
    /// Settings of data sieving for reads and writes of one process; sieving saves system calls.
    pub ds_read: Switch,
    pub ds_write: Switch,
    /// The maximum number of aggregators; 0: a default that depends on cores and nodes.
    pub cb_nodes: u32,
    /// The buffer size of an aggregator in bytes.
    pub cb_buffer_size: i64,
    /// The maximum span of one sieving read and of one sieving write, in bytes.
    pub ind_rd_buffer_size: i64,
    pub ind_wr_buffer_size: i64,
    pub styles: Styles,
    /// The mode of a created file, before the umask applies.
    pub permissions: u32,
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning {
            cb_read: Switch::Automatic,
            cb_write: Switch::Automatic,
            ds_read: Switch::Automatic,
            ds_write: Switch::Automatic,
            cb_nodes: 0,
            cb_buffer_size: 4 << 20,
            ind_rd_buffer_size: 256 << 10,
            ind_wr_buffer_size: 512 << 10,
            styles: Styles::default(),
            permissions: 0o666,
        }
    }
}

/// The names of the hints that have an effect if their values are valid.
pub const ACTING: [&str; 11] = [
    "access_style",
    "cb_buffer_size",
    "cb_nodes",
    "collective_buffering",
    "file_perm",
    "ind_rd_buffer_size",
    "ind_wr_buffer_size",
    "romio_cb_read",
    "romio_cb_write",
    "romio_ds_read",
    "romio_ds_write",
];

const WORDS: usize = 10;

/// The allowed buffer sizes in bytes.
const BUFFERS: std::ops::RangeInclusive<i64> = 4096..=1 << 30;

/// All bits of a file mode: set-user-ID, set-group-ID, sticky, and the permissions of user, group and others.
const MODES: u32 = 0o7777;

/// Parses a file mode in octal digits; `None` if it is not valid.
fn mode(text: &str) -> Option<u32> {
    let mode = u32::from_str_radix(text.trim(), 8).ok();
    mode.filter(|mode| *mode <= MODES)
}

fn bytes(text: &str) -> Option<i64> {
    text.trim().parse().ok().filter(|n| *n > 0)
}

impl Tuning {
    /// Sets a hint. Returns true if the hint has an effect and the value is valid.
    pub fn set(&mut self, key: &str, value: &str) -> bool {
        let buffer = || bytes(value).map(|n| n.clamp(*BUFFERS.start(), *BUFFERS.end()));
        let switch = || Switch::parse(value);
        match key {
            "collective_buffering" => {
                put(&mut self.cb_read, switch()) && put(&mut self.cb_write, switch())
            }
            "romio_cb_read" => put(&mut self.cb_read, switch()),
            "romio_cb_write" => put(&mut self.cb_write, switch()),
            "romio_ds_read" => put(&mut self.ds_read, switch()),
            "romio_ds_write" => put(&mut self.ds_write, switch()),
            "cb_nodes" => put(
                &mut self.cb_nodes,
                bytes(value).and_then(|n| u32::try_from(n).ok()),
            ),
            "cb_buffer_size" => put(&mut self.cb_buffer_size, buffer()),
            "ind_rd_buffer_size" => put(&mut self.ind_rd_buffer_size, buffer()),
            "ind_wr_buffer_size" => put(&mut self.ind_wr_buffer_size, buffer()),
            "file_perm" => put(&mut self.permissions, mode(value)),
            "access_style" => put(&mut self.styles, Styles::parse(value)),
            _ => false,
        }
    }

    /// Returns the names and values of the hints in use, for `MPI_File_get_info`.
    /// `aggregators` is the value of [`Tuning::cb_nodes`] in use.
    pub fn echo(&self, aggregators: u32) -> Vec<(&'static str, String)> {
        let both = match (self.cb_read, self.cb_write) {
            (Switch::Disable, Switch::Disable) => "false",
            _ => "true",
        };
        let mut all = vec![
            ("collective_buffering", both.to_owned()),
            ("romio_cb_read", self.cb_read.to_string()),
            ("romio_cb_write", self.cb_write.to_string()),
            ("romio_ds_read", self.ds_read.to_string()),
            ("romio_ds_write", self.ds_write.to_string()),
            ("cb_nodes", aggregators.to_string()),
            ("cb_buffer_size", self.cb_buffer_size.to_string()),
            ("ind_rd_buffer_size", self.ind_rd_buffer_size.to_string()),
            ("ind_wr_buffer_size", self.ind_wr_buffer_size.to_string()),
            ("file_perm", format!("{:o}", self.permissions)),
        ];
        if self.styles != Styles::default() {
            all.push(("access_style", self.styles.to_string()));
        }
        all
    }

    pub(super) fn words(&self) -> [u64; WORDS] {
        [
            self.cb_read as u64,
            self.cb_write as u64,
            self.ds_read as u64,
            self.ds_write as u64,
            self.cb_nodes.into(),
            self.cb_buffer_size as u64,
            self.ind_rd_buffer_size as u64,
            self.ind_wr_buffer_size as u64,
            self.styles.words.into(),
            self.permissions.into(),
        ]
    }

    /// Decodes the hints of rank 0 from 64-bit words, and clamps them to valid values.
    pub(super) fn from_words(words: &[u64]) -> Tuning {
        let word = |at: usize| words.get(at).copied().unwrap_or(0);
        let buffer = |at: usize| {
            i64::try_from(word(at)).map_or(*BUFFERS.end(), |n| {
                n.clamp(*BUFFERS.start(), *BUFFERS.end())
            })
        };
        Tuning {
            cb_read: Switch::from_word(word(0)),
            cb_write: Switch::from_word(word(1)),
            ds_read: Switch::from_word(word(2)),
            ds_write: Switch::from_word(word(3)),
            cb_nodes: u32::try_from(word(4)).unwrap_or(0),
            cb_buffer_size: buffer(5),
            ind_rd_buffer_size: buffer(6),
            ind_wr_buffer_size: buffer(7),
            styles: Styles::from_word(word(8)),
            permissions: (word(9) & u64::from(MODES)) as u32,
        }
    }
}

fn put<T>(place: &mut T, value: Option<T>) -> bool {
    match value {
        Some(value) => {
            *place = value;
            true
        }
        None => false,
    }
}

/// The cost of a system call, as the number of bytes whose transfer takes the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Costs {
    /// `read_gap`: number of bytes that can be read in the time of one read call.
    /// `write_gap`: number of bytes read and written back in the time of one write call.
    pub read_gap: i64,
    pub write_gap: i64,
}

impl Costs {
    /// Returns the costs for a type of file system (statfs(2)).
    /// The default costs were measured with runs of 64 bytes in the page cache.
    pub fn of(magic: i64) -> Costs {
        const TMPFS: i64 = 0x0102_1994;
        const RAMFS: i64 = 0x8584_58f6;
        // On a network or FUSE file system each call costs a round trip.
        const FAR: [i64; 6] = [
            0x6969,      // NFS
            0xff53_4d42, // CIFS
            0xfe53_4d42, // SMB2
            0x6573_5546, // FUSE
            0x0bd0_0bd0, // Lustre
            0x4750_4653, // GPFS
        ];
        match magic {
            TMPFS | RAMFS => Costs {
                read_gap: 1_600,
                write_gap: 1_700,
            },
            _ if FAR.contains(&magic) => Costs {
                read_gap: 256 << 10,
                write_gap: 128 << 10,
            },
            _ => Costs {
                read_gap: 8_000,
                write_gap: 7_000,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_that_act_are_taken_and_echoed_and_others_are_ignored() {
        let mut tuning = Tuning::default();
        assert!(tuning.set("cb_buffer_size", "8388608"));
        assert!(tuning.set("romio_cb_write", "ENABLE"));
        assert!(tuning.set("cb_nodes", "3"));
        assert!(tuning.set("file_perm", "0640"));
        for (key, value) in [
            ("striping_unit", "65536"),
            ("no_such_hint", "1"),
            ("cb_nodes", "-1"),
            ("file_perm", "rw"),
            ("file_perm", "10000"),
            ("cb_buffer_size", "much"),
            ("romio_ds_read", "perhaps"),
        ] {
            assert!(!tuning.set(key, value), "{key}");
        }
        let echo = tuning.echo(2);
        let said = |key: &str| {
            echo.iter()
                .find(|(known, _)| *known == key)
                .map(|(_, v)| &**v)
        };
        assert_eq!(said("cb_buffer_size"), Some("8388608"));
        assert_eq!(said("romio_cb_write"), Some("enable"));
        assert_eq!(said("cb_nodes"), Some("2"));
        assert_eq!(said("file_perm"), Some("640"));
        assert_eq!(said("striping_unit"), None);
    }

    #[test]
    fn rank_0_s_values_arrive_as_they_are_and_nonsense_within_bounds() {
        let mut tuning = Tuning::default();
        tuning.set("access_style", "read_once,random");
        tuning.set("collective_buffering", "false");
        tuning.set("file_perm", "600");
        assert_eq!(Tuning::from_words(&tuning.words()), tuning);
        let odd = Tuning::from_words(&[u64::MAX; WORDS]);
        assert_eq!(odd.cb_buffer_size, *BUFFERS.end());
        assert_eq!(Tuning::from_words(&[]).cb_buffer_size, *BUFFERS.start());
    }

    #[test]
    fn access_style_comes_back_as_it_was_set_and_its_last_order_acts() {
        for (set, said, order) in [
            ("write_once,random", "write_once,random", Style::Random),
            ("read_once", "read_once", Style::Unknown),
            (
                " random , reverse_sequential",
                "random,reverse_sequential",
                Style::Sequential,
            ),
            ("random,no_such_word,random", "random", Style::Random),
            (
                "random,sequential,write_mostly,read_mostly,write_once,read_once,reverse_sequential",
                "random,sequential,write_mostly,read_mostly,write_once,read_once,reverse_sequential",
                Style::Sequential,
            ),
        ] {
            let mut tuning = Tuning::default();
            assert!(tuning.set("access_style", "sequential"));
            assert!(tuning.set("access_style", set), "{set}");
            assert!(!tuning.set("access_style", "no_such_word"));
            let far = Tuning::from_words(&tuning.words());
            assert_eq!(far.styles.order(), order, "{set}");
            let echo = far.echo(1);
            assert!(
                echo.contains(&("access_style", said.to_owned())),
                "{set}: {echo:?}"
            );
        }
        assert_eq!(Styles::from_word(u64::MAX), Styles::default());
    }

    #[test]
    fn every_name_that_is_echoed_acts() {
        let mut tuning = Tuning::default();
        tuning.set("access_style", "random");
        let echo = tuning.echo(1);
        assert_eq!(echo.len(), ACTING.len());
        for (key, value) in echo {
            assert!(ACTING.contains(&key), "{key}");
            assert!(tuning.set(key, &value), "{key} {value}");
        }
    }
}
