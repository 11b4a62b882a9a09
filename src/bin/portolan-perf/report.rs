//! What a run has measured: the structure that is stored as JSON, compared and drawn.
//!
//! **Invariant.** All times are seconds of one operation of one origin. What people read is made
//! of that where it is printed: [`Row::bandwidth`], [`Row::rate`].

use crate::Result;
use crate::plan::{Pattern, Target};
use crate::stats::Figure;
use serde::{Deserialize, Serialize};
use std::io::Read;

/// The number of the format; a file with another one is refused.
pub const FORMAT: u32 = 1;

/// What stands for the path to a target where all ranks do the same.
pub const ALL_RANKS: &str = "all";

/// What the figures of a test are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// One operation after the other.
    Latency,
    /// Many operations at a time.
    Bandwidth,
}

/// All of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Report {
    /// [`FORMAT`].
    pub format: u32,
    /// Of Portolan.
    pub version: String,
    /// What MPI says of itself.
    pub mpi: String,
    /// Number of ranks.
    pub ranks: usize,
    /// The name of each node, and how many ranks it has.
    pub nodes: Vec<(String, usize)>,
    /// Cores of the first rank's host.
    pub cores: usize,
    /// `PORTOLAN_*` and `ARMCI_*` variables that were set.
    pub settings: Vec<(String, String)>,
    /// The figures.
    pub rows: Vec<Row>,
    /// What was asked for and could not be measured, and why.
    pub skipped: Vec<String>,
    /// Settings that were found to be better than others.
    #[serde(default)]
    pub advice: Vec<Advice>,
}

/// A figure and what it could be.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Row {
    /// The name of the test.
    pub test: String,
    /// What the test shows.
    pub metric: Metric,
    /// Who took part.
    pub pattern: Pattern,
    /// What the target did.
    pub target: Target,
    /// The path that was asked for, as `PORTOLAN_PATH` has it.
    pub path: String,
    /// The path to the target.
    pub taken: String,
    /// The type of numbers, where there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub element: Option<String>,
    /// Of one operation; `None` where a test has no size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<usize>,
    /// How many ranks had operations under way.
    pub origins: usize,
    /// Seconds of an operation.
    pub time: Figure,
    /// What it is compared with, measured in turn.
    pub bounds: Vec<Bound>,
    /// Which of them is the bound: what the machine could give.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<String>,
    /// How much of the bound's speed is reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_bound: Option<Figure>,
}

/// Another way to the same end.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Bound {
    /// As in the head of a table.
    pub name: String,
    /// Seconds of an operation.
    pub time: Figure,
}

/// A setting, and what speaks for it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Advice {
    /// The variable, if there is one.
    pub variable: Option<String>,
    /// The value that it should have.
    pub value: String,
    /// Whether it is the default.
    pub default: bool,
    /// What was measured.
    pub reason: String,
}

impl Row {
    /// Bytes a second of all origins together; 0 where there is no size.
    pub fn bandwidth(&self, time: f64) -> f64 {
        (self.bytes.unwrap_or(0) * self.origins) as f64 / time
    }

    /// Operations a second of all origins together.
    pub fn rate(&self, time: f64) -> f64 {
        self.origins as f64 / time
    }

    /// Who took part, in words.
    pub fn who(&self, ranks: usize) -> String {
        if self.taken == ALL_RANKS { "all ranks".into() } else { self.pattern.words(ranks) }
    }

    /// What tells a row from all others of a run.
    pub fn key(&self) -> (String, Option<usize>) {
        (self.series(), self.bytes)
    }

    /// What rows have in common that differ in size only.
    pub fn series(&self) -> String {
        format!("{}, path {}", self.chart(), self.path)
    }

    /// What rows have in common that differ in size and path only.
    pub fn chart(&self) -> String {
        let mut text = format!("{} {}", self.test, self.pattern.name());
        if let Some(element) = &self.element {
            text += &format!(" {element}");
        }
        if self.target == Target::Computes {
            text += ", the target computes";
        }
        text
    }
}

impl Report {
    /// Ranks on the host of the first one, which virtual nodes cut and do not enlarge.
    pub fn ranks_on_first_host(&self) -> usize {
        let first = self.nodes.first().map(|(name, _)| name);
        self.nodes.iter().filter(|(name, _)| Some(name) == first).map(|(_, ranks)| ranks).sum()
    }

    /// Reads what [`Report::to_json`] wrote.
    pub fn from_json(text: &str) -> Result<Report> {
        #[derive(Deserialize)]
        struct Head {
            format: Option<u32>,
        }
        let head: Head = serde_json::from_str(text)?;
        match head.format {
            Some(FORMAT) => Ok(serde_json::from_str(text)?),
            Some(other) => Err(format!("its format is {other}, and {FORMAT} is known").into()),
            None => Err("it is no result of portolan-perf: it has no 'format'".into()),
        }
    }

    /// The results in a file, `-` for standard input.
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

    /// For `--json`.
    pub fn to_json(&self) -> Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// For `--csv`: a line for each figure, with its bounds as lines of their own.
    pub fn to_csv(&self) -> String {
        let mut text = String::from(
            "test,metric,pattern,target,path,taken,type,bytes,origins,what,seconds,low,high,rounds,of_bound\n",
        );
        let name = |value: serde_json::Value| value.as_str().unwrap_or_default().to_string();
        for row in &self.rows {
            let head = format!(
                "{},{},{},{},{},{},{},{},{}",
                row.test,
                name(serde_json::json!(row.metric)),
                row.pattern.name(),
                name(serde_json::json!(row.target)),
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

    /// A row with this time, for tests.
    pub fn row(test: &str, path: &str, bytes: usize, seconds: f64) -> Row {
        let time = |s: f64| Figure { median: s, low: s * 0.95, high: s * 1.05, rounds: 5 };
        Row {
            test: test.into(),
            metric: if test.ends_with("_bw") { Metric::Bandwidth } else { Metric::Latency },
            pattern: Pattern::Pair,
            target: Target::Waits,
            path: path.into(),
            taken: path.into(),
            element: None,
            bytes: Some(bytes),
            origins: 1,
            time: time(seconds),
            bounds: vec![Bound { name: "memcpy".into(), time: time(seconds / 2.0) }],
            bound: Some("memcpy".into()),
            of_bound: Some(time(0.5)),
        }
    }

    /// A report with these rows, for tests.
    pub fn report(rows: Vec<Row>) -> Report {
        Report {
            format: FORMAT,
            version: "0.1.0".into(),
            mpi: "MPI <x> & more".into(),
            ranks: 2,
            nodes: vec![("a".into(), 2)],
            cores: 2,
            settings: vec![("PORTOLAN_SPIN".into(), "1".into())],
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
        // The last digit of a number may be another one.
        for (a, b) in [(is.time, was.time), (is.bounds[0].time, was.bounds[0].time)] {
            assert!((a.low / b.low - 1.0).abs() < 1e-12 && a.rounds == b.rounds, "{a:?} {b:?}");
        }
    }

    #[test]
    fn other_files_are_refused() {
        let error = |text: &str| Report::from_json(text).unwrap_err().to_string();
        assert!(error("{\"format\": 7}").contains("format is 7"));
        assert!(error("{}").contains("no result of portolan-perf"));
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
