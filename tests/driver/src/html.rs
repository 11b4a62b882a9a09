//! The report as an HTML page.

use crate::report::{Case, Kind};
use crate::summary::Summary;
use std::fmt::Write;
use std::process::Command;

const STYLE: &str = "
body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 72em; padding: 0 1em; color: #222 }
h1 { font-size: 1.5em } h2 { font-size: 1.15em; margin-top: 2em }
table { border-collapse: collapse } td, th { padding: .2em .8em; text-align: left; border-bottom: 1px solid #ddd }
td.n { text-align: right; font-variant-numeric: tabular-nums }
pre { background: #f6f6f6; padding: .7em; overflow-x: auto; font-size: 12px }
.passed { color: #1a7f37 } .failed { color: #c00; font-weight: 600 } .pinned { color: #9a6700 } .skipped { color: #777 }
summary { cursor: pointer }
";

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn setting<'c>(case: &'c Case, name: &str) -> Option<&'c str> {
    let (_, rest) = case.name.split_once(&format!("{name}="))?;
    Some(rest.split([' ', ']']).next().unwrap_or(rest))
}

pub fn hosts(case: &Case) -> usize {
    setting(case, "hosts").map_or(1, |layout| layout.split(',').count())
}

pub fn full_name(case: &Case) -> String {
    format!("{} {} {}", case.mpi, case.suite, case.name)
}

fn count(cases: &[&Case], kind: Kind) -> usize {
    cases.iter().filter(|case| case.kind == kind).count()
}

fn table(cases: &[Case], heads: &[&str], key: impl Fn(&Case) -> Vec<String>) -> String {
    let mut keys: Vec<Vec<String>> = cases.iter().map(&key).collect();
    keys.sort();
    keys.dedup();
    let mut text = String::from("<table><tr>");
    for head in heads.iter().copied().chain(Kind::ALL.map(Kind::word)) {
        let _ = write!(text, "<th>{head}</th>");
    }
    text += "</tr>\n";
    for row in keys {
        let members: Vec<&Case> = cases.iter().filter(|case| key(case) == row).collect();
        text += "<tr>";
        for cell in &row {
            let _ = write!(text, "<td>{}</td>", escaped(cell));
        }
        for kind in Kind::ALL {
            let _ = match count(&members, kind) {
                0 => write!(text, "<td class=\"n\"></td>"),
                number => write!(text, "<td class=\"n {}\">{number}</td>", kind.word()),
            };
        }
        text += "</tr>\n";
    }
    text + "</table>\n"
}

fn now() -> String {
    let output = Command::new("date").arg("+%Y-%m-%d %H:%M").output();
    output.map_or_else(|_| String::new(), |o| String::from_utf8_lossy(&o.stdout).trim().into())
}

/// Returns the text of a count, in the colour of its kind unless it is 0.
fn coloured(kind: Kind, count: usize) -> String {
    let word = kind.word();
    if count == 0 {
        format!("0 {word}")
    } else {
        format!("<span class=\"{word}\">{count} {word}</span>")
    }
}

pub fn page(cases: &[Case], summary: &Summary) -> String {
    let all: Vec<&Case> = cases.iter().collect();
    let counts: Vec<String> = Kind::ALL
        .iter()
        .filter(|kind| count(&all, **kind) > 0 || matches!(kind, Kind::Passed | Kind::Failed))
        .map(|kind| coloured(*kind, count(&all, *kind)))
        .collect();
    let minutes = cases.iter().map(|case| case.seconds).sum::<f64>() / 60.0;
    let mut text = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><title>{0}</title><style>{STYLE}</style>\n\
         <h1>{0}</h1><p>{1}, {2} cases: {3}; {minutes:.1} minutes of runs.</p>\n",
        escaped(&summary.title),
        now(),
        cases.len(),
        counts.join(", ")
    );
    text += "<table>\n";
    for (name, value) in &summary.facts {
        let _ = writeln!(text, "<tr><td>{}<td>{}</tr>", escaped(name), escaped(value));
    }
    text += "</table>\n";
    for note in &summary.notes {
        let _ = writeln!(text, "<p>{}</p>", escaped(note));
    }
    text += "<h2>By MPI and suite</h2>\n";
    text += &table(cases, &["MPI", "suite"], |c| vec![c.mpi.clone(), c.suite.clone()]);
    text += "<h2>By MPI, hosts and path</h2>\n";
    text += &table(cases, &["MPI", "hosts", "path"], |case| {
        let path = setting(case, "path").unwrap_or("auto");
        vec![case.mpi.clone(), hosts(case).to_string(), path.into()]
    });
    for (kind, head) in [
        (Kind::Failed, "Failed"),
        (Kind::Pinned, "Pinned: faults of an MPI"),
        (Kind::Skipped, "Skipped"),
    ] {
        let members: Vec<&&Case> = all.iter().filter(|case| case.kind == kind).collect();
        if !members.is_empty() {
            let _ = writeln!(text, "<h2>{head}</h2>");
        }
        for case in members {
            details(&mut text, case);
        }
    }
    text += "<h2>All cases</h2><table><tr><th>case<th>seconds<th></tr>\n";
    for case in cases {
        let (name, kind) = (escaped(&full_name(case)), case.kind.word());
        let _ = writeln!(
            text,
            "<tr><td>{name}<td class=n>{:.2}<td class={kind}>{kind}</tr>",
            case.seconds
        );
    }
    text + "</table></html>\n"
}

fn details(text: &mut String, case: &Case) {
    let open = if case.kind == Kind::Failed { " open" } else { "" };
    let pin = if case.pin.is_empty() {
        String::new()
    } else {
        format!(" &mdash; {}", escaped(&case.pin))
    };
    let (name, kind) = (escaped(&full_name(case)), case.kind.word());
    let why = escaped(&case.why);
    let _ = writeln!(text, "<details{open}><summary class={kind}>{name}: {why}{pin}</summary>");
    if case.kind == Kind::Failed {
        let _ = writeln!(text, "<p>Again: <code>scripts/dev regress --case '{name}'</code></p>");
    }
    if !case.output.is_empty() {
        let _ = writeln!(text, "<pre>{}</pre>", escaped(&case.output.join("\n")));
    }
    *text += "</details>\n";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_states_what_was_tested() {
        let fact = ("commit".to_string(), "0123abc <dirty>".to_string());
        let summary = Summary { title: "A & B".into(), facts: vec![fact], ..Summary::default() };
        let text = page(&[], &summary);
        assert!(text.contains("<h1>A &amp; B</h1>"), "{text}");
        assert!(text.contains("<tr><td>commit<td>0123abc &lt;dirty&gt;</tr>"), "{text}");
        assert!(
            text.contains("0 passed, 0 failed") && !text.contains("class=\"failed\""),
            "{text}"
        );
    }
}
