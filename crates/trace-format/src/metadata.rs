//! The metadata of a trace file: a description of its rank in JSON. [`Metadata::to_json`] writes it
//! without a serializer, because the library does not depend on one. In a reader, missing fields
//! are empty and unknown fields are ignored.

/// The description of a rank.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "read", derive(serde::Deserialize), serde(default))]
pub struct Metadata {
    /// Rank in `MPI_COMM_WORLD`.
    pub rank: u64,
    /// Number of ranks of the job.
    pub ranks: u64,
    /// Name of the host.
    pub host: String,
    /// Number of the host. Ranks with the same number share a clock.
    pub host_number: u64,
    /// Number of the node, which may be virtual.
    pub node: u64,
    /// Process id.
    pub pid: u64,
    /// The MPI library and its version.
    pub mpi: String,
    /// Portolan's version.
    pub version: String,
    /// Paths to the other ranks, such as `direct to 3 ranks, message to 4`.
    pub paths: String,
    /// 1 if there is a progress thread, else 0.
    pub progress_thread: u64,
    /// The cores that the rank may run on, such as `0-3,8`; empty if they are unknown.
    pub cores: String,
    /// Number of cores that the rank may use at the same time.
    pub usable_cores: u64,
    /// Number of the machine: a hash of its kernel's boot ID, or 0 if this is unknown.
    pub machine: u64,
    /// Names and values of the `PORTOLAN_*` variables in the environment.
    pub settings: Vec<(String, String)>,
    /// The program and its arguments.
    pub program: Vec<String>,
    /// Number of the engine in its process; a program may start Portolan several times.
    pub engine: u64,
    /// Unix time at the start of the trace in nanoseconds.
    pub started_wall: u64,
    /// Time of the event clock at the same moment.
    pub started_clock: u64,
    /// Source of the event clock, `tsc` or `monotonic`; both count nanoseconds.
    pub clock: String,
    /// Size limit of the file in bytes; 0 means no limit.
    pub limit_bytes: u64,
    /// 1 if the trace is known to lack the program's MPI calls, else 0.
    pub lacks_mpi: u64,
}

impl Metadata {
    /// Encodes the metadata as JSON.
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
            ("limit_bytes", self.limit_bytes),
            ("progress_thread", self.progress_thread),
            ("usable_cores", self.usable_cores),
            ("machine", self.machine),
            ("lacks_mpi", self.lacks_mpi),
        ] {
            json.push_str(&format!("\"{name}\":{value},\n"));
        }
        for (name, value) in [
            ("host", &self.host),
            ("mpi", &self.mpi),
            ("version", &self.version),
            ("paths", &self.paths),
            ("clock", &self.clock),
            ("cores", &self.cores),
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

    // tests/ranks parses the result with a JSON reader.
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
