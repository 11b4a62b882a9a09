//! A trace and what it shows.

use crate::analyse::Analysis;
use crate::analyse::findings::{Finding, findings};
use crate::read::Trace;
use std::path::Path;

#[derive(Debug)]
pub struct AnalysedRun {
    /// Directory of the trace.
    pub name: String,
    /// The trace as it was read.
    pub trace: Trace,
    /// The findings and tables.
    pub analysis: Analysis,
    /// The figures in words.
    pub findings: Vec<Finding>,
}

impl AnalysedRun {
    pub fn read(directory: &Path) -> Result<AnalysedRun, String> {
        let mut trace = Trace::open(directory)?;
        let mut analysis = Analysis::of(&trace)?;
        trace.problems.append(&mut analysis.faults);
        let findings = findings(&trace, &analysis);
        let name = directory.display().to_string();
        Ok(AnalysedRun { name, trace, analysis, findings })
    }
}
