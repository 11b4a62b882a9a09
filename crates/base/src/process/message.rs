//! Messages to the user: their format, and how they are written to standard error. A line has the
//! form `portolan: rank 3: ARMCI_Put: ...`. A warning has `warning: ` before its text. The rank is
//! omitted while it is unknown. A message of several lines is one write, so that messages of ranks
//! that share a terminal do not mix.

use crate::process;
use log::{Level, Record};
use std::fmt;

/// In paths of functions and log records. The first is the C library and the Rust interface.
pub const CRATES: [&str; 7] = [
    "portolan",
    "portolan_base",
    "portolan_engine",
    "portolan_compose",
    "portolan_rpc",
    "portolan_interpose",
    "portolan_trace_format",
];

/// A path such as `portolan_base::wait::until` names something of the library.
pub fn is_of_library(path: &str) -> bool {
    path.split_once("::").is_some_and(|(krate, _)| CRATES.contains(&krate))
}

/// `rank 3: `, or nothing while it is unknown.
#[derive(Debug)]
pub(crate) struct RankPrefix(pub Option<usize>);

impl RankPrefix {
    pub fn own() -> RankPrefix {
        RankPrefix(process::world_rank())
    }
}

impl fmt::Display for RankPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |rank| write!(f, "rank {rank}: "))
    }
}

/// Does not repeat a rank at the start of the text, as in the text of an error.
pub fn line(text: &str) -> String {
    of("portolan", "", text)
}

fn of(name: &str, kind: &str, text: &str) -> String {
    let rank = RankPrefix::own().to_string();
    let text = text.strip_prefix(&rank).unwrap_or(text);
    format!("{name}: {rank}{kind}{text}\n")
}

/// Debug and trace messages name their module.
pub fn of_record(record: &Record<'_>) -> String {
    let target = record.target();
    let name = match target.split("::").next().unwrap_or(target) {
        name if CRATES.contains(&name) => CRATES[0],
        name => name,
    };
    let kind = match record.level() {
        Level::Error | Level::Info => String::new(),
        Level::Warn => "warning: ".into(),
        Level::Debug | Level::Trace => format!("{target}: "),
    };
    of(name, &kind, &record.args().to_string())
}

pub fn say(text: &str) {
    write(line(text).as_bytes());
}

/// To standard error, by one system call unless the system accepts only a part. Takes no lock,
/// because a forked child inherits locks of threads that it does not have.
pub fn write(mut bytes: &[u8]) {
    while !bytes.is_empty() {
        // SAFETY: the slice is live. On a closed descriptor, the call fails without harm.
        let n = unsafe { libc::write(libc::STDERR_FILENO, bytes.as_ptr().cast(), bytes.len()) };
        match usize::try_from(n) {
            Ok(written) => bytes = &bytes[written..],
            Err(_) if std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted => {
            }
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_a_line_without_modules() {
        let of = |level, target, text: &str| {
            let args = format_args!("{text}");
            of_record(&Record::builder().level(level).target(target).args(args).build())
        };
        let rank = RankPrefix::own();
        let text = of(Level::Error, "portolan::capi::boundary", &format!("{rank}a fault"));
        assert_eq!(text, format!("portolan: {rank}a fault\n"));
        let text = of(Level::Warn, "portolan_engine::runtime", "no room");
        assert_eq!(text, format!("portolan: {rank}warning: no room\n"));
        let text = of(Level::Debug, "heat::solver", "step 1");
        assert_eq!(text, format!("heat: {rank}heat::solver: step 1\n"));
    }

    #[test]
    fn a_rank_is_named_once_it_is_known() {
        assert_eq!(RankPrefix(Some(3)).to_string(), "rank 3: ");
        assert_eq!(RankPrefix(None).to_string(), "");
    }
}
