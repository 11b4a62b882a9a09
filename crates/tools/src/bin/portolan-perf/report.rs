//! The results of a run, in the structure that is stored as JSON, compared and drawn.
//!
//! **Invariant.** All times are seconds per operation of one origin. The output derives bandwidths
//! and rates from them with [`ResultRow::bandwidth`] and [`ResultRow::rate`].

use crate::plan::{Pattern, TargetActivity};
use crate::result::Result;
use crate::stats::Figure;
use serde::{Deserialize, Serialize};
use std::io::Read;

/// Version of the file format. Files with another version are refused.
pub const FORMAT: u32 = 1;

/// Value of [`ResultRow::taken`] for collective tests.
pub const ALL_RANKS: &str = "all";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// Time of an operation when only one is in flight.
    Latency,
    /// Throughput of many operations in flight.
    Bandwidth,
}

impl Metric {
    /// Returns the unit of [`ResultRow::value`].
    pub fn unit(self) -> &'static str {
        match self {
            Metric::Latency => "us",
            Metric::Bandwidth => "MB/s",
        }
    }
}

/// Returns the name of a metric, a pattern, a type of numbers or an activity of the target.
pub fn name(value: impl Serialize) -> String {
    serde_json::json!(value).as_str().unwrap_or_default().into()
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Report {
    pub format: u32,
    pub version: String,
    pub mpi: String,
    pub ranks: usize,
    /// Host name and number of ranks of each node.
    pub nodes: Vec<(String, usize)>,
    /// Number of cores of the first rank's host.
    pub cores: usize,
    /// `PORTOLAN_*` and `ARMCI_*` variables that were set.
    pub settings: Vec<(String, String)>,
    pub rows: Vec<ResultRow>,
    /// Requested cases that could not be measured, with the reasons.
    pub skipped: Vec<String>,
    /// Recommended settings, including those that should keep their default.
    #[serde(default)]
    pub advice: Vec<Advice>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ResultRow {
    pub test: String,
    pub metric: Metric,
    pub pattern: Pattern,
    pub target: TargetActivity,
    /// The requested path, as a value of `PORTOLAN_PATH`.
    pub path: String,
    /// The path that was used to reach the target.
    pub taken: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub element: Option<String>,
    /// Bytes per operation, or `None` for a test without a size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<usize>,
    /// Number of ranks that issued operations.
    pub origins: usize,
    pub time: Figure,
    /// Other implementations, measured in turn with the test.
    pub bounds: Vec<BoundFigure>,
    /// Name of the entry in `bounds` that shows what the machine can reach.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_bound: Option<Figure>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BoundFigure {
    pub name: String,
    pub time: Figure,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Advice {
    pub variable: Option<String>,
    pub value: String,
    pub default: bool,
    /// The measurements behind the advice.
    pub reason: String,
}

impl ResultRow {
    /// Returns the bytes per second of all origins together, or 0 for a test without a size.
    pub fn bandwidth(&self, time: f64) -> f64 {
        (self.bytes.unwrap_or(0) * self.origins) as f64 / time
    }

    /// Returns the operations per second of all origins together.
    pub fn rate(&self, time: f64) -> f64 {
        self.origins as f64 / time
    }

    /// Converts seconds per operation to the figure that the table and the page show.
    pub fn value(&self, time: f64) -> f64 {
        match self.metric {
            Metric::Latency => time * 1e6,
            Metric::Bandwidth => self.bandwidth(time) / 1e6,
        }
    }

    pub fn who(&self, ranks: usize) -> String {
        if self.taken == ALL_RANKS { "all ranks".into() } else { self.pattern.words(ranks) }
    }

    /// Returns the key that identifies a row within a run.
    pub fn key(&self) -> (String, Option<usize>) {
        (self.series(), self.bytes)
    }

    /// Returns a name shared by all rows that differ only in size.
    pub fn series(&self) -> String {
        format!("{}, path {}", self.chart(), self.path)
    }

    /// Returns a name shared by all rows that differ only in size and path.
    pub fn chart(&self) -> String {
        let mut text = format!("{} {}", self.test, name(self.pattern));
        if let Some(element) = &self.element {
            text += &format!(" {element}");
        }
        if self.target == TargetActivity::Computes {
            text += ", the target computes";
        }
        text
    }
}

impl Report {
    /// Virtual nodes split a host, so several nodes can have its name.
    pub fn ranks_on_first_host(&self) -> usize {
        let first = self.nodes.first().map(|(name, _)| name);
        self.nodes.iter().filter(|(name, _)| Some(name) == first).map(|(_, ranks)| ranks).sum()
    }

    /// Reads the output of [`Report::to_json`]. Fails if the format is not [`FORMAT`].
    pub fn from_json(text: &str) -> Result<Report> {
        #[derive(Deserialize)]
        struct FormatField {
            format: Option<u32>,
        }
        let head: FormatField = serde_json::from_str(text)?;
        match head.format {
            Some(FORMAT) => Ok(serde_json::from_str(text)?),
            Some(other) => {
                Err(format!("its format is {other}, but this program reads format {FORMAT}").into())
            }
            None => Err("it is not a result of portolan-perf: it has no 'format'".into()),
        }
    }

    /// Reads the results from a file, or from standard input if `file` is `-`.
    pub fn read(file: &str) -> Result<Report> {
        let text = if file == "-" {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).map(|_| text)
        } else {
            std::fs::read_to_string(file)
        };
        let report = text
            .map_err(|e| e.to_string())
            .and_then(|text| Report::from_json(&text).map_err(|e| e.to_string()));
        report.map_err(|e| format!("cannot read the results in {file}: {e}").into())
    }

    pub fn to_json(&self) -> Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// Returns the output of `--csv`. Each figure has a line, and so has each of its bounds.
    pub fn to_csv(&self) -> String {
        let mut text = String::from(
            "test,metric,pattern,target,path,taken,type,bytes,origins,what,seconds,low,high,rounds,of_bound\n",
        );
        for row in &self.rows {
            let head = format!(
                "{},{},{},{},{},{},{},{},{}",
                row.test,
                name(row.metric),
                name(row.pattern),
                name(row.target),
                row.path,
                row.taken,
                row.element.as_deref().unwrap_or_default(),
                row.bytes.map(|n| n.to_string()).unwrap_or_default(),
                row.origins
            );
            let part = row.of_bound.map(|f| format!("{:.4}", f.median)).unwrap_or_default();
            let own = [("portolan", &row.time, part)];
            let others = row.bounds.iter().map(|b| (b.name.as_str(), &b.time, String::new()));
            for (what, time, part) in own.into_iter().chain(others) {
                text += &format!(
                    "{head},{what},{:e},{:e},{:e},{},{part}\n",
                    time.median, time.low, time.high, time.rounds
                );
            }
        }
        text
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub fn row(test: &str, path: &str, bytes: usize, seconds: f64) -> ResultRow {
        let time = |s: f64| Figure { median: s, low: s * 0.95, high: s * 1.05, rounds: 5 };
        ResultRow {
            test: test.into(),
            metric: if test.ends_with("_bw") { Metric::Bandwidth } else { Metric::Latency },
            pattern: Pattern::Pair,
            target: TargetActivity::Waits,
            path: path.into(),
            taken: path.into(),
            element: None,
            bytes: Some(bytes),
            origins: 1,
            time: time(seconds),
            bounds: vec![BoundFigure { name: "memcpy".into(), time: time(seconds / 2.0) }],
            bound: Some("memcpy".into()),
            of_bound: Some(time(0.5)),
        }
    }

    pub fn report(rows: Vec<ResultRow>) -> Report {
        Report {
            format: FORMAT,
            version: "0.1.0".into(),
            mpi: "MPI <x> & more".into(),
            ranks: 2,
            nodes: vec![("a".into(), 2)],
            cores: 2,
            settings: vec![("PORTOLAN_AM".into(), "1".into())],
            rows,
            skipped: Vec::new(),
            advice: Vec::new(),
        }
    }

    #[test]
    fn json_comes_back() {
        let before = report(vec![row("put_lat", "direct", 8, 1e-6)]);
        let after = Report::from_json(&before.to_json().unwrap()).unwrap();
        let (was, is) = (&before.rows[0], &after.rows[0]);
        assert_eq!((is.key(), &is.bound), (was.key(), &was.bound));
        assert_eq!((is.metric, is.pattern, is.target), (was.metric, was.pattern, was.target));
        assert_eq!((&after.nodes, &after.settings), (&before.nodes, &before.settings));
        // JSON may change the last digit of a number.
        for (a, b) in [(is.time, was.time), (is.bounds[0].time, was.bounds[0].time)] {
            assert!((a.low / b.low - 1.0).abs() < 1e-12 && a.rounds == b.rounds, "{a:?} {b:?}");
        }
    }

    #[test]
    fn other_files_are_refused() {
        let error = |text: &str| Report::from_json(text).unwrap_err().to_string();
        assert!(error("{\"format\": 7}").contains("format is 7"));
        assert!(error("{}").contains("not a result of portolan-perf"));
        assert!(error("x").contains("expected value"));
        let missing = Report::read("/no/such/file").unwrap_err().to_string();
        assert!(missing.contains("/no/such/file"), "{missing}");
    }

    #[test]
    fn bandwidth_and_rate_are_of_all_origins() {
        let mut row = row("put_bw", "direct", 1000, 1e-6);
        row.origins = 3;
        assert!((row.bandwidth(1e-6) - 3e9).abs() < 1.0);
        assert!((row.rate(1e-6) - 3e6).abs() < 1e-3);
    }

    #[test]
    fn csv_has_a_line_for_each_figure() {
        let text = report(vec![row("put_lat", "rma", 8, 1e-6)]).to_csv();
        let lines: Vec<&str> = text.lines().collect();
        let columns = lines[0].split(',').count();
        assert_eq!(lines.len(), 3);
        assert!(lines.iter().all(|line| line.split(',').count() == columns), "{text}");
        assert!(lines[1].starts_with("put_lat,latency,pair,waits,rma,rma,,8,1,portolan,1e-6,"));
        assert!(lines[2].contains(",memcpy,5e-7,"), "{text}");
    }
}
