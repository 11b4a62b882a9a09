//! The options of a suite. The driver and the test program `ranks` have them in common.

use clap::Args as Options;
use std::path::PathBuf;

/// The options of Rust's test harness that a suite accepts and ignores.
#[derive(Debug, Clone, Default, Options)]
pub struct Ignored {
    #[arg(long, hide = true)]
    format: Option<String>,
    #[arg(long, hide = true)]
    color: Option<String>,
    #[arg(long, hide = true)]
    test_threads: Option<String>,
    #[arg(long, hide = true)]
    logfile: Option<String>,
    #[arg(short = 'Z', hide = true)]
    unstable: Option<String>,
    #[arg(
        long = "nocapture",
        aliases = ["no-capture", "include-ignored", "show-output", "test", "bench", "report-time", "shuffle"],
        action = clap::ArgAction::Count,
        hide = true
    )]
    flag: u8,
    #[arg(short, long, hide = true)]
    quiet: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Level {
    Quick,
    /// Each program with every setting, but not with every combination of settings.
    Full,
}

impl Level {
    pub fn word(self) -> &'static str {
        match self {
            Level::Quick => "quick",
            Level::Full => "full",
        }
    }
}

/// The regression suite's selection of cases on several hosts.
#[derive(Debug, Clone)]
pub struct Selection {
    pub level: Level,
    pub hosts: Vec<usize>,
    /// Whether the MPI supports windows between hosts.
    pub windows: bool,
}

#[derive(Debug, Clone, Default, Options)]
pub struct Args {
    /// Run only cases whose line contains a FILTER
    #[arg(value_name = "FILTER")]
    pub filters: Vec<String>,
    /// A FILTER is the complete name of a case or a check
    #[arg(long)]
    pub exact: bool,
    /// Leave out cases whose line contains FILTER
    #[arg(long = "skip", value_name = "FILTER")]
    pub skips: Vec<String>,
    /// List the cases without running them
    #[arg(long)]
    pub list: bool,
    /// Fewer cases: does the library work here? Also PORTOLAN_TEST_QUICK=1
    #[arg(long, overrides_with_all = ["full", "release"])]
    pub quick: bool,
    /// The default: all cases in a selection of combinations
    #[arg(long, overrides_with_all = ["quick", "release"])]
    full: bool,
    /// All combinations, for a release. Also PORTOLAN_TEST_RELEASE=1
    #[arg(long, overrides_with_all = ["quick", "full"])]
    pub release: bool,
    /// Also write a JUnit report
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Suite `programs`: only build the programs that the cases need
    #[arg(long)]
    pub build: bool,
    /// Suite `ranks`: numbers of ranks on several hosts, and configurations, as in 2,1:default
    #[arg(long = "hosts", value_name = "L")]
    pub layouts: Vec<String>,
    /// Suites `programs` and `ranks`: the regression suite's selection of cases on several hosts
    #[arg(long, value_name = "LEVEL")]
    select: Option<Level>,
    /// For --select: only these numbers of hosts
    #[arg(long, value_name = "1,2,3", value_delimiter = ',', default_value = "1,2,3",
          value_parser = clap::value_parser!(u64).range(1..=3))]
    on_hosts: Vec<u64>,
    /// For --select: the MPI supports no windows between hosts
    #[arg(long)]
    no_windows: bool,
    /// Run only ignored tests. No test is ignored
    #[arg(long, hide = true)]
    pub ignored: bool,
    #[command(flatten)]
    other: Ignored,
}

fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty())
}

impl Args {
    /// Applies the environment's level if the command line has none.
    pub fn with_environment(mut self) -> Args {
        if !(self.quick || self.full || self.release) {
            self.quick = is_set("PORTOLAN_TEST_QUICK");
            self.release = is_set("PORTOLAN_TEST_RELEASE") && !self.quick;
        }
        self
    }

    /// Returns the options of the regression suite for the suites `programs` and `ranks`.
    pub fn selected(level: Level, hosts: Vec<u64>, windows: bool, quick: bool, list: bool) -> Args {
        let (select, on_hosts) = (Some(level), hosts);
        Args { select, on_hosts, no_windows: !windows, quick, list, ..Args::default() }
    }

    pub fn with_filter(mut self, filter: Option<&str>) -> Args {
        self.filters.extend(filter.map(String::from));
        self
    }

    pub fn selection(&self) -> Option<Selection> {
        let hosts = self.on_hosts.iter().map(|hosts| *hosts as usize).collect();
        self.select.map(|level| Selection { level, hosts, windows: !self.no_windows })
    }

    /// Returns the command line that these options were read from.
    pub fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        let flags = [
            ("--exact", self.exact),
            ("--list", self.list),
            ("--quick", self.quick),
            ("--full", self.full),
            ("--release", self.release),
            ("--build", self.build),
            ("--no-windows", self.no_windows),
        ];
        words.extend(flags.iter().filter(|(_, set)| *set).map(|(name, _)| name.to_string()));
        if let Some(level) = self.select {
            let hosts: Vec<String> = self.on_hosts.iter().map(u64::to_string).collect();
            words.push(format!("--select={}", level.word()));
            words.push(format!("--on-hosts={}", hosts.join(",")));
        }
        words.extend(self.junit.iter().map(|file| format!("--junit={}", file.display())));
        words.extend(self.skips.iter().map(|skip| format!("--skip={skip}")));
        words.extend(self.layouts.iter().map(|layout| format!("--hosts={layout}")));
        words.push("--".into());
        words.extend(self.filters.iter().cloned());
        words
    }

    /// Returns whether the caller selects nothing, like `cargo test` without arguments.
    pub fn is_plain(&self) -> bool {
        let selects = self.quick || self.release || self.ignored || self.selection().is_some();
        !is_set("PORTOLAN_PREFIX") && !selects && self.filters.is_empty() && self.layouts.is_empty()
    }

    /// Returns whether the command line selects a case. `--exact` compares filters with `name` and
    /// with the whole `line`.
    pub fn wants(&self, name: &str, line: &str) -> bool {
        let hit = |f: &String| {
            if self.exact { *f == name || *f == line } else { line.contains(f.as_str()) }
        };
        (self.filters.is_empty() || self.filters.iter().any(hit)) && !self.skips.iter().any(hit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        args: Args,
    }

    fn parse(line: &str) -> Args {
        Command::parse_from(std::iter::once("ranks").chain(line.split_whitespace())).args
    }

    #[test]
    fn options_survive_as_words() {
        let line = "--exact --list --release --select=full --on-hosts=1,3 --no-windows \
                    --junit=a.xml --skip=x --hosts=2,1:default -- c/rmw --odd";
        let args = parse(line);
        assert_eq!(args.words().join(" "), parse(&args.words().join(" ")).words().join(" "));
        let selection = args.selection().expect("--select");
        assert_eq!((selection.level, selection.windows), (Level::Full, false));
        assert_eq!(selection.hosts, [1, 3]);
        assert_eq!(args.filters, ["c/rmw", "--odd"]);
        assert!(args.release && args.exact && args.list);
    }

    #[test]
    fn options_of_the_harness_are_accepted() {
        let args = parse("--nocapture --show-output --format terse --test-threads 1 -q -Z x name");
        assert_eq!(args.filters, ["name"]);
        assert!(!args.exact && !args.ignored);
        assert!(parse("--ignored --list").ignored);
    }

    #[test]
    fn the_last_level_counts() {
        let args = parse("--quick --release");
        assert!(args.release && !args.quick);
        let args = parse("--release --quick");
        assert!(args.quick && !args.release);
    }

    #[test]
    fn a_filter_selects_by_a_part_or_the_whole() {
        let args = parse("rmw --skip n=3");
        assert!(args.wants("rmw", "rmw [n=2]") && !args.wants("rmw", "rmw [n=3]"));
        let args = parse("--exact rmw");
        assert!(args.wants("rmw", "rmw [n=2]") && !args.wants("c/rmw", "c/rmw [n=2]"));
    }
}
