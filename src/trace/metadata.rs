//! What a trace's file says of its rank: JSON behind the file's header.
//!
//! The library writes it, without a serializer; tools read it with `serde_json` into the same structure.
//! A reader takes a field that is missing as empty, and ignores one that it does not know.

use serde::Deserialize;

/// What a file says of its rank.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Metadata {
    /// The rank in the job.
    pub rank: u64,
    /// Ranks of the job.
    pub ranks: u64,
    /// The name of the rank's host.
    pub host: String,
    /// The number of its host: ranks with the same number share a clock.
    pub host_number: u64,
    /// The number of its node, which may be a virtual one.
    pub node: u64,
    /// Its process.
    pub pid: u64,
    /// The MPI library and its version.
    pub mpi: String,
    /// Portolan's version.
    pub version: String,
    /// The paths to other ranks: as `direct to 3 ranks, message to 4`.
    pub paths: String,
    /// Whether a progress thread serves beside the program: 1 or 0.
    pub progress_thread: u64,
    /// Settings: the variables `PORTOLAN_*` that are set, and their values.
    pub settings: Vec<(String, String)>,
    /// The program and its arguments.
    pub program: Vec<String>,
    /// The number of the engine in its process: a program may start Portolan several times.
    pub engine: u64,
    /// Nanoseconds since 1970 at the start of the trace.
    pub started_wall: u64,
    /// The rank's clock at the same moment: that of the events.
    pub started_clock: u64,
    /// The clock of the events: `tsc` or `monotonic`; both count nanoseconds.
    pub clock: String,
    /// Of short calls, one in so many has an event, which says for how many it stands; 1: all have.
    pub sample: u64,
    /// Calls shorter than this, in nanoseconds, are sampled.
    pub sample_below: u64,
    /// The most bytes of a file; 0: no limit.
    pub limit_bytes: u64,
}

impl Metadata {
    /// As JSON.
    pub fn to_json(&self) -> String {
        let mut json = String::from("{");
        for (name, value) in [
            ("rank", self.rank),
            ("ranks", self.ranks),
            ("host_number", self.host_number),
            ("node", self.node),
            ("pid", self.pid),
            ("engine", self.engine),
            ("started_wall", self.started_wall),
            ("started_clock", self.started_clock),
            ("sample", self.sample),
            ("sample_below", self.sample_below),
            ("limit_bytes", self.limit_bytes),
            ("progress_thread", self.progress_thread),
        ] {
            json.push_str(&format!("\"{name}\":{value},\n"));
        }
        for (name, value) in [
            ("host", &self.host),
            ("mpi", &self.mpi),
            ("version", &self.version),
            ("paths", &self.paths),
            ("clock", &self.clock),
        ] {
            json.push_str(&format!("\"{name}\":{},\n", quoted(value)));
        }
        let settings: Vec<String> = self
            .settings
            .iter()
            .map(|(name, value)| format!("[{},{}]", quoted(name), quoted(value)))
            .collect();
        let program: Vec<String> = self.program.iter().map(|word| quoted(word)).collect();
        json.push_str(&format!("\"settings\":[{}],\n", settings.join(",")));
        json.push_str(&format!("\"program\":[{}]}}", program.join(",")));
        json
    }
}

/// A JSON string.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c < ' ' || c == '\x7f' => quoted.push_str(&format!("\\u{:04x}", c as u32)),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    // A reader of JSON reads it in tests/ranks.
    #[test]
    fn words_are_quoted() {
        assert_eq!(quoted("a \"b\" \\ c"), r#""a \"b\" \\ c""#);
        assert_eq!(quoted("\n\u{1}\u{7f}ä🦀"), "\"\\u000a\\u0001\\u007fä🦀\"");
        let metadata = Metadata {
            rank: 7,
            settings: vec![("A".into(), "1".into()), ("B".into(), String::new())],
            program: vec!["./a b".into()],
            ..Metadata::default()
        };
        let json = metadata.to_json();
        assert!(json.starts_with("{\"rank\":7,\n\"ranks\":0,"), "{json}");
        assert!(
            json.ends_with("\"settings\":[[\"A\",\"1\"],[\"B\",\"\"]],\n\"program\":[\"./a b\"]}")
        );
    }
}
