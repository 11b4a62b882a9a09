//! The command line.

use crate::sample::Size;
use clap::Parser;
use std::path::PathBuf;

/// Reads the trace that a job wrote with PORTOLAN_TRACE=DIR, and reports what it did on one HTML
/// page.
///
/// The page contains a summary, findings in words, the communication matrix, a timeline,
/// distributions and the load of the ranks. It needs no network. With a second directory, it
/// compares the two runs.
#[derive(Debug, Parser)]
#[command(name = "portolan-report", version)]
pub struct Args {
    /// Directory that PORTOLAN_TRACE named
    #[arg(value_name = "DIR", required_unless_present = "sample")]
    pub trace: Option<PathBuf>,
    /// Directory of a later run, to report what changed since the first one
    #[arg(value_name = "LATER")]
    pub other: Option<PathBuf>,
    /// File of the page [default: report.html in the (later) directory]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Do not write the page
    #[arg(long, conflicts_with = "output")]
    pub no_page: bool,
    /// Do not print the summary and the findings
    #[arg(short, long)]
    pub quiet: bool,
    /// Write CSV tables: calls, call sites, matrix, ranks, waits, counters and mutexes, regions, findings
    #[arg(long, value_name = "DIR")]
    pub csv: Option<PathBuf>,
    /// Write all events as JSON for ui.perfetto.dev and chrome://tracing
    #[arg(long, value_name = "FILE")]
    pub perfetto: Option<PathBuf>,
    /// Write all events as an OTF2 archive for Vampir and other tools; needs libotf2
    #[arg(long, value_name = "DIR")]
    pub otf2: Option<PathBuf>,
    /// Write a synthetic trace to this directory, and exit
    #[arg(long, value_name = "DIR", conflicts_with = "trace")]
    pub sample: Option<PathBuf>,
    /// Number of ranks in the synthetic trace
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=100_000), requires = "sample")]
    pub ranks: u32,
    /// Number of events in the synthetic trace, over all ranks
    #[arg(long, default_value_t = 20_000, requires = "sample")]
    pub events: u64,
    /// Number of hosts in the synthetic trace
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=1000), requires = "sample")]
    pub hosts: u32,
}

impl Args {
    /// Returns the path of the page, or `None` if no page is to be written.
    pub fn page(&self) -> Option<PathBuf> {
        if self.no_page {
            return None;
        }
        let directory = self.other.as_ref().or(self.trace.as_ref());
        self.output.clone().or_else(|| Some(directory?.join("report.html")))
    }

    /// Returns the size of the synthetic trace.
    pub fn size(&self) -> Size {
        Size { ranks: self.ranks, events: self.events, hosts: self.hosts.min(self.ranks) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Args::command().debug_assert();
        let args = |line: &str| Args::try_parse_from(line.split(' '));
        assert!(args("portolan-report").is_err());
        let page = |line: &str| args(line).expect("it is valid").page();
        assert_eq!(page("portolan-report a"), Some("a/report.html".into()));
        assert_eq!(page("portolan-report a b"), Some("b/report.html".into()));
        assert_eq!(page("portolan-report a -o x.html"), Some("x.html".into()));
        assert_eq!(page("portolan-report a --no-page"), None);
    }
}
