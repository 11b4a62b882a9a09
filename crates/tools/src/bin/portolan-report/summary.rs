//! Summary of the job in ten lines, for the page and for the terminal.

use crate::analyse::cores::ProcessorUse;
use crate::analyse::findings::ORDER;
use crate::model::{RankState, bytes, count, percent, time};
use crate::read::ranks_text;
use crate::run::AnalysedRun;
use std::fmt::Write;

pub fn facts(run: &AnalysedRun) -> Vec<(&'static str, String)> {
    let (trace, analysis) = (&run.trace, &run.analysis);
    let first = trace.files.first().map(|file| &file.meta);
    let mut facts = Vec::new();
    if let Some(meta) = first {
        facts.push(("program", meta.program.join(" ")));
    }
    facts.push(("ranks", format!("{} on {}", trace.ranks, hosts(run))));
    if let Some(meta) = first {
        facts.push((
            "MPI",
            format!(
                "{}; Portolan {}",
                meta.mpi.lines().next().unwrap_or("").replace('\t', " "),
                meta.version
            ),
        ));
        facts.push(("paths", meta.paths.clone()));
        let settings: Vec<String> = meta
            .settings
            .iter()
            .filter(|(name, _)| !name.starts_with("PORTOLAN_TRACE"))
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        facts.push(("settings", settings.join(" ")));
    }
    let all = trace.wall as f64 * trace.files.len() as f64;
    let (calls, waits) =
        (analysis.sum(|r| r.in_calls()) as f64, analysis.sum(|r| r.waiting()) as f64);
    facts
        .push(("wall time", format!("{}, begun {}", time(trace.wall as f64), date(trace.started))));
    facts.push(("cores", cores(run)));
    facts.push((
        "in calls",
        format!(
            "{} of all ranks' time, {} a rank; in {} calls",
            percent(calls, all),
            time(calls / trace.files.len().max(1) as f64),
            count(analysis.sum(|r| r.calls))
        ),
    ));
    let reasons: Vec<String> = RankState::all()
        .filter(|state| state.waits())
        .map(|state| (analysis.sum(|r| r.states[state as usize]), state))
        .filter(|(ns, _)| *ns > 0)
        .map(|(ns, state)| {
            format!("{} {}", percent(ns as f64, all), state.name().trim_start_matches("waiting "))
        })
        .collect();
    let reasons =
        if reasons.is_empty() { String::new() } else { format!(": {}", reasons.join(", ")) };
    facts.push(("waiting", format!("{} of all ranks' time{reasons}", percent(waits, all))));
    facts.push(("critical path", critical(run)));
    let moved = analysis.matrix.total();
    facts.push((
        "moved",
        format!(
            "{} in {} transfers and messages, {} on average",
            bytes(moved.bytes as f64),
            count(moved.calls),
            bytes(moved.bytes as f64 / moved.calls.max(1) as f64)
        ),
    ));
    facts.push(("recorded", recorded(run)));
    facts.retain(|(_, value)| !value.trim().is_empty());
    facts
}

fn critical(run: &AnalysedRun) -> String {
    let path = &run.analysis.critical;
    let all = path.whole();
    if path.is_unknown() {
        return format!(
            "{} in MPI calls that wait for ranks which the trace does not name, so it names no rank",
            percent(path.unknown as f64, all as f64)
        );
    }
    let ranks = path.ranks();
    let share =
        |(rank, ns): &(u32, u64)| format!("{} on rank {rank}", percent(*ns as f64, all as f64));
    let shares: Vec<String> = ranks.iter().take(3).map(share).collect();
    let gains = (0u32..).zip(path.gain.iter().copied());
    let most = gains.max_by_key(|&(rank, ns)| (ns, std::cmp::Reverse(rank)));
    let Some((rank, gain)) = most.filter(|_| !shares.is_empty()) else { return String::new() };
    let rest = ranks.len().saturating_sub(3);
    let more = match rest {
        0 => String::new(),
        _ => format!(", the rest on {}", plural(rest, "other rank")),
    };
    let unknown = match path.unknown {
        0 => String::new(),
        ns => format!(", {} in waits for unknown ranks", percent(ns as f64, all as f64)),
    };
    format!(
        "{}{more}{unknown}; with a faster rank {rank}, the job would be up to {} shorter",
        shares.join(", "),
        time(gain as f64)
    )
}

fn cores(run: &AnalysedRun) -> String {
    let cores = &run.analysis.cores;
    let Some(crowd) = &cores.crowd else { return String::new() };
    let threads = if crowd.threads > 0 {
        format!(" and {}", plural(crowd.threads, "progress thread"))
    } else {
        String::new()
    };
    let mut text = format!(
        "{} for {}{threads} on {}",
        plural(crowd.cores, "core"),
        plural(crowd.ranks, "rank"),
        crowd.host
    );
    if cores.used.iter().any(Option::is_some) {
        let all = run.trace.wall as f64 * run.trace.files.len() as f64;
        let cpu = cores.sum(ProcessorUse::cpu) as f64;
        let _ = write!(
            text,
            "; {} of processor time, {} of all ranks' time",
            time(cpu),
            percent(cpu, all)
        );
    }
    text
}

fn plural(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

fn hosts(run: &AnalysedRun) -> String {
    let hosts = &run.trace.hosts;
    let named: Vec<String> = hosts
        .iter()
        .enumerate()
        .take(4)
        .map(|(number, name)| {
            let on = run.trace.files.iter().filter(|f| f.host == number);
            format!("{name} ({})", ranks_text(&on.map(|f| f.rank).collect::<Vec<_>>()))
        })
        .collect();
    let rest =
        if hosts.len() > 4 { format!(" and {} more", hosts.len() - 4) } else { String::new() };
    let noun = if hosts.len() == 1 { "host" } else { "hosts" };
    format!("{} {noun}: {}{rest}", hosts.len(), named.join(", "))
}

fn recorded(run: &AnalysedRun) -> String {
    let trace = &run.trace;
    let mut text = format!("{} events in {} files", count(trace.events()), trace.files.len());
    let dropped: u64 = trace.files.iter().map(|file| file.dropped).sum();
    if dropped > 0 {
        let _ = write!(text, "; {} were dropped", count(dropped));
    }
    if trace.files.iter().any(|file| file.complete.is_none()) {
        text += "; by an earlier version, whose files do not show whether they are complete";
    }
    if trace.files.iter().any(|file| !file.has_mpi) {
        text += "; by an earlier version, without the MPI calls of the program";
    }
    if let Some(bound) = trace.clock_bound {
        let _ = write!(text, "; clocks of hosts aligned to within {}", time(bound as f64));
    }
    text
}

pub fn date(ns: u64) -> String {
    if ns == 0 {
        return "at an unknown time".into();
    }
    let (days, seconds) = (ns / 86_400_000_000_000, ns / 1_000_000_000 % 86_400);
    // Years are counted from March, so that a leap day is the last day of its year.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!(
        "{year}-{month:02}-{day:02} {:02}:{:02}:{:02} UTC",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    )
}

/// Escapes line breaks, because a name that contains one could add a line to the report.
/// [`output::print`](crate::output::print) escapes other characters.
pub fn one_line(text: &str) -> String {
    text.replace('\n', "\\n")
}

pub fn text(run: &AnalysedRun) -> String {
    let mut text = String::new();
    for (name, value) in facts(run) {
        let _ = writeln!(text, "{name:>13}  {}", one_line(&value));
    }
    if run.findings.is_empty() {
        text += "\nNo finding: no known problem costs 1 % of the time or more.\n";
    } else {
        let _ = writeln!(text, "\n{ORDER}");
    }
    for (number, finding) in run.findings.iter().enumerate() {
        let [title, words, advice] =
            [&finding.title, &finding.text, &finding.advice].map(|part| one_line(part));
        let _ = writeln!(text, "\n{}. {title} [{}]", number + 1, time(finding.worth));
        let _ = writeln!(text, "   {words}\n   {advice}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_does_not_add_a_line() {
        assert_eq!(one_line("node01\n1. forged"), "node01\\n1. forged");
    }

    #[test]
    fn the_documentation_defines_the_order_of_findings_alike() {
        let page = include_str!("../../../../../docs/observe.md");
        let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(ORDER));
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, text) in [
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (1_800_000_000, "2027-01-15 08:00:00 UTC"),
            (1_709_251_199, "2024-02-29 23:59:59 UTC"),
            (1_709_251_200, "2024-03-01 00:00:00 UTC"),
        ] {
            assert_eq!(date(seconds * 1_000_000_000), text);
        }
    }
}
