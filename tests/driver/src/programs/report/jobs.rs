//! Reports of larger jobs: active messages, remote calls, a killed job, hosts whose clocks differ,
//! a full disk.

use super::super::super::system;
use super::super::Suite;
use super::super::special::Special;
use super::{Bench, Ended, case, check, number};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

impl Bench<'_, '_> {
    /// Runs a program under a launcher, with its trace in a directory of this name. Returns the
    /// exit code, the standard output and the standard error.
    fn job(
        &mut self,
        launcher: &[String],
        name: &str,
        settings: &[(&str, &str)],
        words: &[&str],
        meanwhile: impl FnMut(),
    ) -> Result<Ended, String> {
        let dir = self.file(name);
        std::fs::create_dir_all(&dir).map_err(|e| format!("{dir}: {e}"))?;
        let trace = [("PORTOLAN_TRACE", dir.as_str())];
        let all = trace.iter().chain(settings);
        let all: Vec<_> = all.map(|(name, value)| (name.to_string(), value.to_string())).collect();
        self.launch(launcher, &all, words, meanwhile)
    }

    /// Fails if the exit code is not 0 or the output does not contain `says`.
    pub(super) fn good_job(
        &mut self,
        name: &str,
        settings: &[(&str, &str)],
        words: &[&str],
        says: &str,
    ) -> Result<(), String> {
        let launcher = self.suite.tools.launcher.clone();
        let (code, out, _) = self.job(&launcher, name, settings, words, || {})?;
        check(code == Some(0) && out.contains(says), || format!("{words:?}: {code:?}, {out}"))
    }

    /// Runs `portolan-report` on a directory and writes its tables. Returns stdout and stderr.
    pub(super) fn report(&mut self, name: &str) -> Result<(String, String), String> {
        let (dir, tables) = (self.file(name), self.file(&format!("{name}-tables")));
        self.run(0, &[&dir, "--csv", &tables])
    }

    pub(super) fn calls(&self, name: &str, call: &str) -> Result<(f64, f64), String> {
        let rows = self.table(&format!("{name}-tables/calls.csv"))?;
        let of = rows.iter().filter(|row| row["call"] == call);
        Ok(of.fold((0.0, 0.0), |(n, all), row| {
            (n + number(row, "count"), all + number(row, "bytes"))
        }))
    }
}

fn head(directory: &str, rank: usize) -> Option<Value> {
    let bytes = std::fs::read(Path::new(directory).join(format!("rank-{rank:06}.ptrace"))).ok()?;
    let length = u32::from_le_bytes(bytes.get(12..16)?.try_into().ok()?) as usize;
    serde_json::from_slice(bytes.get(16..16 + length)?).ok()
}

/// RandomAccess: with aggregation it sends few messages, and without aggregation one per update.
/// The report shows the difference.
pub(in super::super) fn random_access(special: &Special, suite: &mut Suite<'_>) {
    case(special, suite, "report-random", updates);
}

fn updates(bench: &mut Bench<'_, '_>, program: &str) -> Result<(), String> {
    // The program makes four updates per word, twice. Three quarters of them are remote.
    let remote = 2.0 * 4.0 * f64::from(1 << 11) * 0.75;
    let mut sent = Vec::new();
    for (name, batch) in [("aggregated", "65536"), ("single", "8")] {
        let words = ["-n", "4", program, "11", batch];
        bench.good_job(name, &[("PORTOLAN_NODE_SIZE", "1")], &words, " 0 wrong at the end")?;
        let (out, err) = bench.report(name)?;
        check(err.lines().count() == 1 && out.contains("random_access 11"), || err.clone())?;
        let (messages, bytes) = bench.calls(name, "aggregated message")?;
        check(bytes >= 8.0 * 0.9 * remote, || format!("{name}: {bytes} bytes of updates"))?;
        let matrix = bench.table(&format!("{name}-tables/matrix.csv"))?;
        let pairs = matrix.iter().filter(|row| row["first_origin"] != row["first_target"]);
        check(pairs.filter(|row| number(row, "bytes") > 0.0).count() == 12, || {
            format!("{name}: not every rank has sent to every other one")
        })?;
        sent.push(messages);
    }
    check(sent[0] < 0.05 * remote && sent[1] > 0.9 * remote, || {
        format!(
            "{} messages with aggregation and {} without, for {remote} updates",
            sent[0], sent[1]
        )
    })
}

/// Remote calls and bulk transfers: the report counts at least the number that the program makes.
pub(in super::super) fn rpc(special: &Special, suite: &mut Suite<'_>) {
    case(special, suite, "report-rpc", forwards);
}

fn forwards(bench: &mut Bench<'_, '_>, program: &str) -> Result<(), String> {
    let words = ["-n", "3", program, "--size", "3M", "--files", "3"];
    bench.good_job("trace", &[("PORTOLAN_NODE_SIZE", "1")], &words, "digests agree")?;
    let (out, err) = bench.report("trace")?;
    check(err.lines().count() == 1 && out.contains("io_forwarding"), || err.clone())?;
    let (calls, _) = bench.calls("trace", "remote call")?;
    let (bulk, bytes) = bench.calls("trace", "bulk transfer")?;
    // Two clients write three files of 3 MiB each and read them again.
    let least = 2.0 * 2.0 * 3.0 * f64::from(3 << 20);
    check(calls >= 12.0 && bulk >= 12.0 && bytes >= least, || {
        format!("{calls} calls, {bulk} bulk transfers of {bytes} bytes: below {least}")
    })?;
    // The matrix counts bytes that arrive in messages only once.
    let matrix = bench.table("trace-tables/matrix.csv")?;
    let moved: f64 = matrix.iter().map(|row| number(row, "bytes")).sum();
    check(moved >= least && moved < 1.5 * bytes, || {
        format!("the matrix has {moved} bytes, and bulk transfers {bytes}")
    })?;
    let ranks = bench.table("trace-tables/ranks.csv")?;
    let served = ranks.iter().filter(|row| number(row, "events") > 0.0).count();
    check(served == 3, || format!("{served} ranks have events"))
}

/// MPI calls of the program are in the trace with their ranks and bytes.
pub(in super::super) fn mpi(special: &Special, suite: &mut Suite<'_>) {
    case(special, suite, "report-mpi", blocks);
}

/// The calls that each rank makes once, with the `long`s that each moves.
const BLOCKING: [(&str, f64); 29] = [
    ("MPI_Bcast", 3.0),
    ("MPI_Reduce", 1.0),
    ("MPI_Allreduce", 1.0),
    ("MPI_Gather", 1.0),
    ("MPI_Gatherv", 1.0),
    ("MPI_Scatter", 1.0),
    ("MPI_Scatterv", 1.0),
    ("MPI_Allgather", 1.0),
    ("MPI_Allgatherv", 1.0),
    ("MPI_Alltoall", 3.0),
    ("MPI_Alltoallv", 3.0),
    ("MPI_Alltoallw", 3.0),
    ("MPI_Reduce_scatter", 3.0),
    ("MPI_Reduce_scatter_block", 1.0),
    ("MPI_Scan", 1.0),
    ("MPI_Exscan", 1.0),
    ("MPI_Send", 1.0),
    ("MPI_Ssend", 1.0),
    ("MPI_Rsend", 1.0),
    ("MPI_Sendrecv", 1.0),
    ("MPI_Sendrecv_replace", 1.0),
    ("MPI_Probe", 0.0),
    ("MPI_Wait", 0.0),
    ("MPI_Waitall", 0.0),
    ("MPI_Waitany", 0.0),
    ("MPI_Waitsome", 0.0),
    ("MPI_Comm_dup", 0.0),
    ("MPI_Comm_split", 0.0),
    ("MPI_Win_fence", 0.0),
];

fn blocks(bench: &mut Bench<'_, '_>, program: &str) -> Result<(), String> {
    bench.good_job("trace", &[("PORTOLAN_NODE_SIZE", "1")], &["-n", "3", program], "PASS")?;
    let (out, err) = bench.report("trace")?;
    check(err.lines().count() == 1 && out.contains("in MPI calls of the program"), || {
        format!("{out}{err}")
    })?;
    for (call, longs) in BLOCKING {
        let (count, bytes) = bench.calls("trace", call)?;
        check((count, bytes) == (3.0, 3.0 * 8.0 * longs), || {
            format!("{call}: {count} calls of {bytes} bytes")
        })?;
    }
    let twice = ["MPI_Barrier", "MPI_Recv"].map(|call| bench.calls("trace", call));
    for of in twice {
        check(of.as_ref().is_ok_and(|(count, _)| *count == 6.0), || format!("{of:?}"))?;
    }
    // Rank 0 of the communicator is the last rank of the job.
    let waits = bench.table("trace-tables/waits.csv")?;
    let with = |call: &str, rank: &str| {
        let of = waits.iter().filter(|row| row["what"] == call && row["rank"] == rank);
        of.map(|row| row["for_rank"].clone()).collect::<Vec<_>>()
    };
    check(with("MPI_Bcast", "0") == ["2"] && with("MPI_Ssend", "0") == ["2"], || {
        format!("the root of a broadcast, or the target of a send: {waits:?}")
    })?;
    if cfg!(target_arch = "x86_64") {
        let sites = bench.table("trace-tables/sites.csv")?;
        let is_there = |row: &&BTreeMap<String, String>| {
            row["call"] == "MPI_Exscan" && row["called_at"].starts_with("mpi_calls.c:")
        };
        check(sites.iter().any(|row| is_there(&row)), || format!("the call sites: {sites:?}"))?;
    }
    Ok(())
}

/// Kills both ranks while they work. The report has their calls and names the truncated files.
pub(in super::super) fn killed(special: &Special, suite: &mut Suite<'_>) {
    case(special, suite, "report-killed", dies);
}

fn dies(bench: &mut Bench<'_, '_>, program: &str) -> Result<(), String> {
    let dir = bench.file("trace");
    let launcher = bench.suite.tools.launcher.clone();
    let mut victims = Vec::new();
    // The job is much longer than the time until the ranks are killed.
    let words = ["-n", "2", program, "23", "8"];
    let settings = [("PORTOLAN_NODE_SIZE", "1")];
    let (code, ..) = bench.job(&launcher, "trace", &settings, &words, || {
        let long = |rank: usize| {
            let path = Path::new(&dir).join(format!("rank-{rank:06}.ptrace"));
            path.metadata().is_ok_and(|metadata| metadata.len() > 100_000)
        };
        if victims.is_empty() && long(0) && long(1) {
            let pids = (0..2).filter_map(|rank| head(&dir, rank)?["pid"].as_i64());
            victims = pids.collect();
            for &pid in &victims {
                // SAFETY: `kill` accesses no memory of this process. The process id belongs to a
                // running rank of this launch.
                unsafe { libc::kill(pid as i32, libc::SIGKILL) };
            }
        }
    })?;
    check(victims.len() == 2, || "the ranks were not killed: their traces did not grow".into())?;
    check(code != Some(0) || system::forgets_exit_codes(), || "exit code 0".into())?;
    let (out, err) = bench.report("trace")?;
    check(out.contains("in 2 files"), || out.clone())?;
    let incomplete = "the trace of ranks 0, 1 is incomplete: ";
    check(err.contains(incomplete), || format!("the report does not say that: {err}"))?;
    // The other permitted messages are about truncated files and dropped events.
    let cut = |line: &str| {
        line.contains(incomplete) || line.contains("truncated") || line.contains("dropped")
    };
    let others = err.lines().filter(|line| !cut(line) && !line.contains("the report is in"));
    let others: Vec<&str> = others.collect();
    check(others.is_empty(), || others.join("; "))?;
    let (sent, _) = bench.calls("trace", "aggregated message")?;
    check(sent >= 5_000.0, || format!("{sent} messages"))?;
    let page = std::fs::read_to_string(format!("{dir}/report.html")).map_err(|e| e.to_string())?;
    check(page.contains(incomplete), || "the page does not say it".into())?;
    check(page.contains("random_access 23"), || "the page is of another job".into())
}

/// Two hosts whose clocks differ by 5 s: the collective calls of both ranks overlap in the report,
/// within the error that it states.
pub(in super::super) fn clocks(special: &Special, suite: &mut Suite<'_>) {
    if let Some(why) = system::no_hosts() {
        return suite.report.skip(special.label, &why);
    }
    case(special, suite, "report-clocks", aligned);
}

fn aligned(bench: &mut Bench<'_, '_>, program: &str) -> Result<(), String> {
    let launcher = system::launcher_on("1,1");
    let (code, out, _) =
        bench.job(&launcher, "trace", &[], &["-n", "2", program, "1", "0", "200"], || {})?;
    check(code == Some(0) && out.contains("0 wrong"), || format!("the example: {out}"))?;
    let dir = bench.file("trace");
    let clock = |rank| head(&dir, rank)?["started_clock"].as_i64();
    let (Some(a), Some(b)) = (clock(0), clock(1)) else { return Err("no heads".into()) };
    // Both ranks start their traces within seconds of each other.
    check((a - b).abs() > 2_500_000_000, || format!("the clocks show {a} and {b}"))?;
    let events = bench.file("events.json");
    let (out, err) = bench.run(0, &[&dir, "--perfetto", &events])?;
    check(err.lines().count() == 1 && out.contains("on 2 hosts"), || format!("{out}{err}"))?;
    let said = out.split("aligned to within ").nth(1).and_then(nanoseconds);
    let Some(bound) = said else { return Err(format!("no bound is stated: {out}")) };
    check(bound < 1e9, || format!("the clocks are only known to within {bound} ns"))?;
    let text = std::fs::read_to_string(&events).map_err(|e| e.to_string())?;
    let json: Value = serde_json::from_str(&text).map_err(|e| format!("{events}: {e}"))?;
    let mut barriers: BTreeMap<u64, Vec<(f64, f64)>> = BTreeMap::new();
    for event in json["traceEvents"].as_array().into_iter().flatten() {
        if event["cat"] == "call" && event["name"] == "barrier" {
            let [begin, length] =
                ["ts", "dur"].map(|name| 1e3 * event[name].as_f64().unwrap_or(0.0));
            let of = barriers.entry(event["pid"].as_u64().unwrap_or(0)).or_default();
            of.push((begin, begin + length));
        }
    }
    let count = barriers.values().map(Vec::len).collect::<Vec<_>>();
    check(count.len() == 2 && count[0] == count[1] && count[0] >= 2, || {
        format!("{count:?} barriers of the ranks")
    })?;
    for (n, (a, b)) in barriers[&0].iter().zip(&barriers[&1]).enumerate() {
        // No rank leaves a barrier before the other one has entered it.
        let late = (a.0 - b.1).max(b.0 - a.1);
        check(late <= bound, || {
            format!("barrier {n}: {a:?} and {b:?}, with a bound of {bound} ns")
        })?;
    }
    Ok(())
}

/// Parses a time as the report prints it. Returns nanoseconds.
fn nanoseconds(text: &str) -> Option<f64> {
    let mut words = text.split_whitespace();
    let value: f64 = words.next()?.parse().ok()?;
    let unit = words.next()?.trim_end_matches([';', ',']);
    let units = [("ns", 1.0), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)];
    units.iter().find(|(name, _)| *name == unit).map(|(_, scale)| value * scale)
}

/// A file system of 512 KiB for the traces: the job continues when it is full, and the report
/// counts the dropped events.
pub(in super::super) fn full(special: &Special, suite: &mut Suite<'_>) {
    let mount = ["-m", "mount", "-t", "tmpfs", "tmpfs", "/tmp"];
    let mut tried = std::process::Command::new("unshare");
    let tried = tried.args(mount).stderr(std::process::Stdio::null()).status();
    if !tried.is_ok_and(|status| status.success()) {
        return suite.report.skip(special.label, "mounting a file system is not permitted");
    }
    case(special, suite, "report-full", overflows);
}

fn overflows(bench: &mut Bench<'_, '_>, program: &str) -> Result<(), String> {
    let kept = bench.file("kept");
    // Only this job sees the mount, so the script copies the files before it ends.
    let script = "mount -t tmpfs -o size=512k tmpfs \"$PORTOLAN_TRACE\" || exit 99; \
                  kept=$1; shift; \"$@\"; code=$?; cp -r \"$PORTOLAN_TRACE\" \"$kept\"; exit $code";
    let head = ["unshare", "-m", "sh", "-c", script, "sh", &kept].map(String::from);
    let launcher = [head.to_vec(), bench.suite.tools.launcher.clone()].concat();
    let settings = [("PORTOLAN_NODE_SIZE", "1")];
    let words = ["-n", "2", program, "1", "0", "4000"];
    let (code, out, err) = bench.job(&launcher, "trace", &settings, &words, || {})?;
    check(code == Some(0) && out.contains("0 wrong"), || format!("the job: {code:?} {out}"))?;
    for says in
        ["the job continues, and events are dropped until space is available", "events are missing"]
    {
        check(err.contains(says), || format!("'{says}' is not said: {err}"))?;
    }
    let (out, problems) = bench.report("kept")?;
    let (puts, _) = bench.calls("kept", "put")?;
    let dropped = out.split(" were dropped").next().and_then(|text| text.rsplit("; ").next());
    let digits = |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>();
    let dropped: f64 = dropped.and_then(|text| digits(text).parse().ok()).unwrap_or(0.0);
    // Each of the 4,000 tasks puts 32 results.
    check(puts > 1_000.0 && puts + dropped >= 128_000.0, || {
        format!("{puts} puts are in the files, and {dropped} events are counted as dropped: {out}")
    })?;
    check(problems.contains("events were dropped"), || problems)
}
