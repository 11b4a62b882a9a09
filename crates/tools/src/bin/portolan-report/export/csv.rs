//! Exports tables as CSV with a header, and quotes only where needed. Times are seconds.
//!
//! Names of a trace may begin like a formula of a spreadsheet. Such a cell gets a leading apostrophe,
//! so that it remains a text.

use crate::model::RankState;
use crate::page::place_text;
use crate::run::AnalysedRun;
use std::fmt::{Display, Write};
use std::path::Path;

#[derive(Default)]
struct CsvTable(String);

impl CsvTable {
    fn new(header: &str) -> CsvTable {
        CsvTable(format!("{header}\n"))
    }

    fn row(&mut self, values: &[&dyn Display]) {
        for (k, value) in values.iter().enumerate() {
            let text = inert(value.to_string());
            let comma = if k > 0 { "," } else { "" };
            if text.contains([',', '"', '\n', '\r']) {
                let _ = write!(self.0, "{comma}\"{}\"", text.replace('"', "\"\""));
            } else {
                let _ = write!(self.0, "{comma}{text}");
            }
        }
        self.0.push('\n');
    }
}

/// Prevents a spreadsheet from evaluating a text. Numbers stay as they are.
fn inert(text: String) -> String {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']);
    if formula && text.parse::<f64>().is_err() { format!("'{text}") } else { text }
}

fn seconds(ns: f64) -> f64 {
    ns / 1e9
}

pub fn write(run: &AnalysedRun, directory: &Path) -> Result<(), String> {
    let failed = |e: std::io::Error| format!("cannot write to {}: {e}", directory.display());
    std::fs::create_dir_all(directory).map_err(failed)?;
    for (name, table) in [
        ("calls.csv", calls(run)),
        ("sites.csv", sites(run)),
        ("matrix.csv", matrix(run)),
        ("ranks.csv", ranks(run)),
        ("waits.csv", waits(run)),
        ("objects.csv", objects(run)),
        ("regions.csv", regions(run)),
        ("findings.csv", findings(run)),
    ] {
        std::fs::write(directory.join(name), table.0).map_err(failed)?;
    }
    Ok(())
}

fn calls(run: &AnalysedRun) -> CsvTable {
    let mut table = CsvTable::new(
        "call,path,blocks,count,bytes,seconds,own_seconds,min,median,p90,p99,p999,max,median_bytes,max_bytes",
    );
    for (key, stats) in &run.analysis.calls.0 {
        let at = |q| seconds(stats.time_at(q) as f64);
        table.row(&[
            &key.what.name(),
            &key.path.name(),
            &if key.strided { "several" } else { "one" },
            &stats.count,
            &stats.bytes,
            &seconds(stats.ns as f64),
            &seconds(stats.own as f64),
            &seconds(stats.shortest as f64),
            &at(0.5),
            &at(0.9),
            &at(0.99),
            &at(0.999),
            &seconds(stats.longest as f64),
            &stats.size_at(0.5),
            &stats.largest,
        ]);
    }
    table
}

fn sites(run: &AnalysedRun) -> CsvTable {
    let mut table =
        CsvTable::new("call,path,count,bytes,seconds,waiting,longest,longest_rank,called_at");
    for (line, call, path, of) in &run.analysis.sites.rows {
        let times = [of.ns, of.waited, of.longest.0].map(|ns| seconds(ns as f64));
        table.row(&[
            &call.name(),
            &path.name(),
            &of.count,
            &of.bytes,
            &times[0],
            &times[1],
            &times[2],
            &of.longest.1,
            line,
        ]);
    }
    table
}

/// Returns the transfers by pair of ranks, or by tile in a job of many ranks.
fn matrix(run: &AnalysedRun) -> CsvTable {
    let mut table =
        CsvTable::new("first_origin,first_target,ranks_of_a_tile,bytes,calls,mean_seconds");
    let matrix = &run.analysis.matrix;
    for (k, cell) in matrix.cells.iter().enumerate().filter(|(_, cell)| cell.calls > 0) {
        let (origin, target) = (k / matrix.size * matrix.tile, k % matrix.size * matrix.tile);
        let mean = seconds(cell.latency());
        table.row(&[&origin, &target, &matrix.tile, &cell.bytes, &cell.calls, &mean]);
    }
    table
}

fn ranks(run: &AnalysedRun) -> CsvTable {
    let names = "transfers,atomics,messages,others,wait_own,wait_mutex,wait_others,wait_room,wait_mpi,serving,progress_thread";
    let mut table = CsvTable::new(&format!(
        "rank,host,events,calls,bytes,in_calls,waiting,waited_for,{names},longest_queued,cores,user,system,voluntary,involuntary,threads,main_thread_delay,other_threads_delay,critical,critical_gain"
    ));
    for file in &run.trace.files {
        let totals = &run.analysis.ranks[file.rank as usize];
        let states: Vec<f64> =
            RankState::all().map(|s| seconds(totals.states[s as usize] as f64)).collect();
        let (calls, waiting) =
            (seconds(totals.in_calls() as f64), seconds(totals.waiting() as f64));
        let (awaited, queued) = (seconds(totals.awaited as f64), seconds(totals.queued as f64));
        let mut row: Vec<&dyn Display> = vec![
            &file.rank,
            &run.trace.hosts[file.host],
            &totals.events,
            &totals.calls,
            &totals.bytes,
            &calls,
            &waiting,
            &awaited,
        ];
        row.extend(states.iter().map(|s| s as &dyn Display));
        row.push(&queued);
        let used = &totals.used;
        let times = [used.user, used.system, used.main_delay.unwrap_or(0), used.other_delay];
        let [user, system, main, others] = times.map(|ns| seconds(ns as f64));
        row.extend([&file.meta.cores as &dyn Display, &user, &system]);
        row.extend([&used.voluntary as &dyn Display, &used.involuntary, &used.threads]);
        row.extend([&main as &dyn Display, &others]);
        let path = &run.analysis.critical;
        let on_path = [&path.time, &path.gain].map(|of| of.get(file.rank as usize).copied());
        let [critical, gain] = on_path.map(|ns| seconds(ns.unwrap_or(0) as f64));
        row.extend([&critical as &dyn Display, &gain]);
        table.row(&row);
    }
    table
}

fn waits(run: &AnalysedRun) -> CsvTable {
    let mut table = CsvTable::new("rank,begin,seconds,what,for_rank");
    for span in run.analysis.waits() {
        let peer = span.peer.map_or(String::new(), |peer| peer.to_string());
        let (begin, length) = (seconds(span.begin as f64), seconds(span.length() as f64));
        table.row(&[&span.rank, &begin, &length, &span.what.name(), &peer]);
    }
    table
}

fn objects(run: &AnalysedRun) -> CsvTable {
    let mut table =
        CsvTable::new("owner,place,kind,calls,ranks,seconds,waited,at_a_time,longest,longest_rank");
    for (object, used) in run.analysis.objects.hottest().iter().take(1000) {
        let kind = if object.mutex { "mutex" } else { "word" };
        table.row(&[
            &object.owner,
            &place_text(&object.place, object.mutex),
            &kind,
            &used.calls,
            &used.origins.len(),
            &seconds(used.ns as f64),
            &seconds(used.waited as f64),
            &used.crowd(),
            &seconds(used.longest.0 as f64),
            &used.longest.1,
        ]);
    }
    table
}

fn regions(run: &AnalysedRun) -> CsvTable {
    let mut table = CsvTable::new("region,rank,count_of_all_ranks,seconds,waiting_of_all_ranks");
    let regions = &run.analysis.regions;
    for (name, stats) in regions.names.iter().zip(&regions.stats) {
        for (rank, ns) in &stats.ranks {
            let (spent, waited) = (seconds(*ns as f64), seconds(stats.waited as f64));
            table.row(&[name, rank, &stats.count, &spent, &waited]);
        }
    }
    table
}

fn findings(run: &AnalysedRun) -> CsvTable {
    let mut table = CsvTable::new("kind,worth,sum,rank,begin,end,title,text,advice");
    for f in &run.findings {
        let (rank, from, to) = f.at;
        table.row(&[
            &f.kind,
            &seconds(f.worth),
            &seconds(f.sum),
            &rank,
            &seconds(from as f64),
            &seconds(to as f64),
            &f.title,
            &f.text,
            &f.advice,
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_needs_quotes_has_them() {
        let mut table = CsvTable::new("a,b");
        table.row(&[&"x, \"y\"", &1.5]);
        table.row(&[&"plain", &2]);
        assert_eq!(table.0, "a,b\n\"x, \"\"y\"\"\",1.5\nplain,2\n");
    }

    #[test]
    fn names_are_no_formulas() {
        let mut table = CsvTable::new("a,b");
        table.row(&[&"=HYPERLINK(\"x\")", &-1.5]);
        table.row(&[&"+1+1", &"-2e3"]);
        table.row(&[&"@SUM(A1)", &"\t=1"]);
        table.row(&[&"-1+cmd|x", &"a=b"]);
        let lines: Vec<&str> = table.0.lines().skip(1).collect();
        assert_eq!(
            lines,
            ["\"'=HYPERLINK(\"\"x\"\")\",-1.5", "'+1+1,-2e3", "'@SUM(A1),'\t=1", "'-1+cmd|x,a=b"]
        );
    }
}
