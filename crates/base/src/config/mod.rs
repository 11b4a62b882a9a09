//! All environment variables in one table: name, default, description and parser. The engine reads
//! the variables into a [`Config`] when it starts. Other modules do not read the environment.
//! `portolan-info --markdown` generates `docs/environment.md` from the table. A value that cannot
//! be parsed is an error at start.

pub mod agreed;
mod unknown;
mod variables;

pub use unknown::warn_of_unknown;
pub use variables::CHECKSUMS;
pub use variables::VARIABLES;

use crate::error::{Result, fail};
use std::ffi::OsString;
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    Common,
    Tuning,
    Testing,
}

impl Group {
    pub const ALL: [Group; 3] = [Group::Common, Group::Tuning, Group::Testing];

    pub fn title(self) -> &'static str {
        match self {
            Group::Common => "Common",
            Group::Tuning => "Tuning",
            Group::Testing => "Testing",
        }
    }

    pub fn purpose(self) -> &'static str {
        match self {
            Group::Common => "The path, what a job reports, and when it gives up.",
            Group::Tuning => {
                "For particular programs, machines and networks. The defaults suit most."
            }
            Group::Testing => {
                "For tests and measurements, to reach every path on one machine. Jobs do not need them."
            }
        }
    }
}

#[derive(Debug)]
pub struct Variable {
    pub name: &'static str,
    pub group: Group,
    /// A variable of another library with the same meaning, read if ours is unset.
    pub alias: Option<&'static str>,
    pub default: &'static str,
    pub meaning: &'static str,
    /// Parses a value. An invalid one changes nothing.
    pub set: fn(&mut Config, &str) -> std::result::Result<(), String>,
}

/// Defines settings with a fixed set of values, and the names of these.
macro_rules! choices {
    ($(pub enum $ty:ident { $($(#[$doc:meta])* $value:ident = $name:literal,)+ })+) => { $(
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $ty { $($(#[$doc])* $value,)+ }

        impl $ty {
            const ALL: &[$ty] = &[$($ty::$value,)+];
            const NAMES: &[&str] = &[$($name,)+];

            fn parse(text: &str) -> std::result::Result<$ty, String> {
                let at = Self::NAMES.iter().position(|name| *name == text);
                at.map(|at| Self::ALL[at]).ok_or_else(|| {
                    let (last, others) = Self::NAMES.split_last().expect("there are values");
                    format!("expected {} or {last}", others.join(", "))
                })
            }
        }
    )+ };
}

choices! {
    pub enum PathChoice {
        /// Direct on a node, and messages between nodes.
        Auto = "auto",
        /// The engine does not start if the ranks are not all on one node.
        Direct = "direct",
        DirectRma = "direct+rma",
        /// MPI windows, also on a node.
        Rma = "rma",
        /// Two-sided messages, also on a node.
        Message = "message",
    }

    pub enum SplitChoice {
        /// If hosts are connected without RDMA, as far as the kernel shows it.
        Auto = "auto",
        On = "on",
        Off = "off",
    }

    pub enum AmChoice {
        /// Rings if there is shared memory, else MPI messages.
        Auto = "auto",
        Node = "node",
        Mpi = "mpi",
    }
}

/// Defines [`Config`]. A setting without a value here gets one from the table of variables.
macro_rules! settings {
    ($($(#[$doc:meta])* $name:ident: $ty:ty $(= $value:expr)?,)+) => {
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct Config { $($(#[$doc])* pub $name: $ty,)+ }

        impl Default for Config {
            fn default() -> Self {
                let mut config = Config { $($name: settings!(@ $($value)?),)+ };
                for variable in VARIABLES {
                    (variable.set)(&mut config, variable.default).expect("the default parses");
                }
                config
            }
        }
    };
    (@ $value:expr) => { $value };
    (@) => { Default::default() };
}

settings! {
    path: PathChoice = PathChoice::Auto,
    /// 0 does not split nodes.
    node_size: usize,
    /// A progress thread runs if some pair of ranks needs it and MPI's thread level allows it.
    progress_thread: bool,
    idle_poll: Duration,
    /// Number of polls of a waiting rank before it yields its core.
    spin: u32 = 200,
    /// `PORTOLAN_SLAB_BYTES`
    arena_bytes: usize,
    keep_bytes: usize,
    shm_dir: String,
    /// 0 means `auto` until the engine starts.
    chunk_bytes: usize,
    /// Not `Auto` once the engine has started.
    split: SplitChoice = SplitChoice::Auto,
    flight_bytes: usize,
    am: AmChoice = AmChoice::Auto,
    am_ring_bytes: usize,
    cross_memory: bool,
    cross_help: bool,
    /// Age at which collected active messages are sent even if their buffer is not full.
    aggregate_age: Duration = Duration::from_millis(1),
    compose_dir: String,
    raise_thread_level: bool,
    launcher_check: bool,
    mpi_waits: bool,
    /// Zero turns it off.
    watchdog: Duration,
    /// When a collective warns of missing ranks, unless `watchdog` is zero.
    watchdog_warn: Duration = Duration::from_secs(30),
    rpc_checksum: String,
    rpc_listen: String,
    /// Empty if there is none.
    rpc_secret_file: String,
    /// Empty if there is none.
    rpc_tls_dir: String,
    /// Zero means never.
    watchdog_abort: Duration,
    /// Zero turns it off.
    watchdog_host: Duration,
    /// `PORTOLAN_CHECK`
    check_races: bool,
    /// `X10_MAX_AGG_SIZE`
    x10_aggregate: usize,
    stats: bool,
    /// Empty if no trace is written.
    trace: String,
    /// 0 means no limit.
    trace_bytes: usize,
    /// The time-stamp counter may be used.
    trace_counter: bool,
    /// Offset added to the clock of traces, for tests.
    trace_shift: Duration,
    /// Number of earlier starts of the engine in this process.
    trace_start: usize,
    log: String,
}

impl Variable {
    /// Returns the value under our name or the alias. Empty values count as unset.
    pub fn current(&self) -> Option<String> {
        self.found().map(|(_, value)| value.to_string_lossy().into_owned())
    }

    fn found(&self) -> Option<(&'static str, OsString)> {
        let read = |name| Some((name, std::env::var_os(name).filter(|v| !v.is_empty())?));
        read(self.name).or_else(|| self.alias.and_then(read))
    }
}

impl Config {
    /// Fails with `Argument`, the variable and the value if it cannot be parsed.
    pub fn from_env() -> Result<Config> {
        Self::from_lookup(Variable::found)
    }

    fn from_lookup(
        lookup: impl Fn(&Variable) -> Option<(&'static str, OsString)>,
    ) -> Result<Config> {
        let mut config = Config::default();
        for variable in VARIABLES {
            let Some((name, value)) = lookup(variable) else { continue };
            let set = match value.to_str() {
                Some(value) => (variable.set)(&mut config, value),
                None => Err("expected UTF-8".into()),
            };
            if let Err(why) = set {
                fail!(Argument, "{name}={}: {why}", value.display());
            }
        }
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::variables::parse_bytes;
    use super::*;

    #[test]
    fn defaults_parse_and_names_are_unique() {
        let config = Config::default();
        assert_eq!(config.arena_bytes, 4 << 20);
        let mut names: Vec<_> = VARIABLES.iter().map(|v| v.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), VARIABLES.len());
        assert!(VARIABLES.is_sorted_by_key(|v| v.group), "the table is in the order of the groups");
    }

    #[test]
    fn a_bad_value_names_the_variable() {
        let with = |name: &str, value: &str| {
            let given = |name: &'static str| (name, OsString::from(value));
            Config::from_lookup(|v| {
                (v.name == name)
                    .then(|| given(v.name))
                    .or(v.alias.filter(|a| *a == name).map(given))
            })
        };
        for (name, value) in [
            ("PORTOLAN_PATH", "tcp"),
            ("ARMCI_PROGRESS_THREAD", "5"),
            ("PORTOLAN_LOG", "warning"),
            ("PORTOLAN_LOG", "1"),
            ("PORTOLAN_LOG", "portolan=loud"),
            ("PORTOLAN_CHUNK_BYTES", "1"),
            ("PORTOLAN_AM_RING_BYTES", "1"),
            ("PORTOLAN_TRACE_BYTES", "10"),
        ] {
            let error = with(name, value).unwrap_err();
            assert!(error.detail().starts_with(&format!("{name}={value}: expected ")), "{error}");
        }
        let bytes = std::os::unix::ffi::OsStringExt::from_vec(b"dir\xff".into());
        let error = Config::from_lookup(|v| {
            (v.name == "PORTOLAN_TRACE").then(|| (v.name, OsString::clone(&bytes)))
        });
        assert!(error.unwrap_err().detail().ends_with("expected UTF-8"));
        for (name, value) in [
            ("PORTOLAN_LOG", "portolan_engine::am=debug,warn"),
            ("PORTOLAN_LOG", "Info/put"),
            ("PORTOLAN_CHUNK_BYTES", "4K"),
            ("PORTOLAN_TRACE_BYTES", "0"),
        ] {
            assert!(with(name, value).is_ok(), "{name}={value}");
        }
    }

    #[test]
    fn sizes_take_suffixes() {
        assert_eq!(parse_bytes("64K"), Ok(65536));
        assert_eq!(parse_bytes("3"), Ok(3));
        assert!(parse_bytes("x").is_err());
        assert!(parse_bytes("99999999999999G").is_err());
    }
}
