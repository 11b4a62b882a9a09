//! `portolan-report` on made-up traces: what it writes for other programs, damage, memory; and the
//! page in a browser, by keys and the mouse. Figures on the page are compared with those of the tables
//! that the program writes beside it.

use super::super::browser::{self, Browser};
use super::super::system;
use super::special::Special;
use super::{Outcome, Suite, exit_code};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

pub const PAGE: &str = "report/the page in a browser [ranks=16]";
pub const LARGE: &str = "report/the page of many ranks [ranks=1024]";
pub const MEMORY: &str = "report/memory does not grow with events [ranks=16]";
pub const EXPORTS: &str = "report/exports, damage and two runs [ranks=8]";

/// A row of a table, by its columns.
type Row = BTreeMap<String, String>;

/// The program, and where its files are.
struct Bench<'s, 'a> {
    suite: &'s mut Suite<'a>,
    program: String,
    dir: PathBuf,
    last: Option<Outcome>,
}

impl<'s, 'a> Bench<'s, 'a> {
    fn new(suite: &'s mut Suite<'a>, name: &str) -> Bench<'s, 'a> {
        let program = suite.tools.prefix.join("bin/portolan-report").display().to_string();
        let dir = suite.builder.dir.join(name);
        let _ = std::fs::remove_dir_all(&dir);
        Bench { suite, program, dir, last: None }
    }

    fn file(&self, name: &str) -> String {
        self.dir.join(name).display().to_string()
    }

    /// Runs it; the code must be the one told.
    fn run(&mut self, code: i32, words: &[&str]) -> Result<(String, String), String> {
        let words: Vec<String> = words.iter().map(|word| word.to_string()).collect();
        let outcome = self.suite.launch(&[self.program.clone()], &[], &words, || {});
        let verdict = match (&outcome.why, outcome.ended.code) {
            (Some(why), _) => Err(why.clone()),
            (None, Some(c)) if c == code => Ok((outcome.out.clone(), outcome.err.clone())),
            (None, _) => Err(format!("{}: {}", words.join(" "), exit_code(&outcome.ended))),
        };
        self.last = Some(outcome);
        verdict
    }

    fn sample(
        &mut self,
        name: &str,
        ranks: u32,
        events: u64,
        hosts: u32,
    ) -> Result<String, String> {
        let dir = self.file(name);
        let numbers = [ranks.to_string(), events.to_string(), hosts.to_string()];
        let words = ["--sample", &dir, "--ranks", &numbers[0], "--events", &numbers[1]];
        self.run(0, &[&words[..], &["--hosts", &numbers[2]]].concat())?;
        Ok(dir)
    }

    fn table(&self, name: &str) -> Result<Vec<Row>, String> {
        let text =
            std::fs::read_to_string(self.dir.join(name)).map_err(|e| format!("{name}: {e}"))?;
        let mut lines = text.lines();
        let header: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
        // Columns of texts with commas are the last ones, and not looked at.
        let row = |line: &str| {
            let values = line.split(',').map(|value| value.trim_matches('"').to_string());
            header.iter().map(|name| name.to_string()).zip(values).collect()
        };
        Ok(lines.map(row).collect())
    }

    fn tell(self, label: &str, verdict: Result<(), String>) {
        let outcome = self.last.expect("something was run");
        self.suite.tell(label, &outcome, verdict);
    }
}

fn number(row: &Row, name: &str) -> f64 {
    row.get(name).and_then(|text| text.parse().ok()).unwrap_or(f64::NAN)
}

fn check(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}

/// Skips where there is no browser; with `--full` there must be one.
fn no_browser(special: &Special, suite: &mut Suite<'_>) -> bool {
    if browser::is_here() {
        return false;
    }
    if suite.args.full {
        let why = "there is no Chromium, which --full wants: scripts/setup.sh --tests installs it";
        suite.report.fail(special.label, 0.0, why, Vec::new());
    } else {
        suite.report.skip(special.label, "no Chromium");
    }
    true
}

/// The page of a short trace, all of whose events are in it.
pub(super) fn page(special: &Special, suite: &mut Suite<'_>) {
    if no_browser(special, suite) {
        return;
    }
    let mut bench = Bench::new(suite, "report-page");
    let verdict = looks(&mut bench);
    bench.tell(special.label, verdict);
}

fn looks(bench: &mut Bench<'_, '_>) -> Result<(), String> {
    let dir = bench.sample("trace", 16, 20_000, 2)?;
    let (tables, perfetto) = (bench.file("tables"), bench.file("events.json"));
    bench.run(0, &[&dir, "--csv", &tables, "--perfetto", &perfetto])?;
    let mut browser = Browser::start(bench.file("profile").into(), 1280, 1000)?;
    browser.open(&bench.dir.join("trace/report.html"), "document.body.dataset.ready")?;
    browser.drawn()?;
    browser.picture(&bench.dir.join("page.png"), true)?;
    matrix(bench, &mut browser)?;
    timeline(bench, &mut browser)?;
    waits(bench, &mut browser)?;
    messages(bench, &mut browser)?;
    looks_of(&mut browser)?;
    check(browser.faults.is_empty(), || browser.faults.join("; "))
}

/// The place of a cell in the canvas, in parts of its size.
fn cell_at(browser: &mut Browser, row: usize, column: usize) -> Result<(f64, f64), String> {
    let code = format!(
        "(() => {{ const c = matrix.canvas, f = matrix.frame(c.clientWidth, c.clientHeight); \
         return [(f.left + ({column} + 0.5) * f.cell) / c.clientWidth, (f.top + ({row} + 0.5) * f.cell) / c.clientHeight]; }})()"
    );
    let place = browser.value(&code)?;
    Ok((place[0].as_f64().unwrap_or(0.0), place[1].as_f64().unwrap_or(0.0)))
}

/// Each cell says what the table says; a click chooses, the arrows move, zoom and measures work.
fn matrix(bench: &Bench<'_, '_>, browser: &mut Browser) -> Result<(), String> {
    let rows = bench.table("tables/matrix.csv")?;
    check(rows.len() > 200, || format!("{} pairs in the table", rows.len()))?;
    for row in rows.iter().step_by(17) {
        let (from, to) =
            (number(row, "first_origin") as usize, number(row, "first_target") as usize);
        let (x, y) = cell_at(browser, from, to)?;
        browser.point("#matrix", x, y)?;
        let hint = browser.text("document.getElementById('hint').innerText")?;
        let (bytes, calls) = (number(row, "bytes"), number(row, "calls"));
        let shown = browser
            .text(&format!("bytesText({bytes}) + ' in ' + countText({calls}) + ' calls'"))?;
        check(
            hint.contains(&format!("rank {from} → rank {to}")) && hint.contains(&shown),
            || format!("the matrix shows '{hint}' for {from} to {to}, and the table has {shown}"),
        )?;
    }
    let (x, y) = cell_at(browser, 3, 4)?;
    browser.click("#matrix", x, y)?;
    let chosen =
        |browser: &mut Browser| browser.text("document.getElementById('matrix-chosen').innerText");
    let text = chosen(browser)?;
    check(text.contains("rank 3 → rank 4"), || format!("a click chooses '{text}'"))?;
    browser.keys(&["ArrowRight", "ArrowDown"])?;
    let text = chosen(browser)?;
    check(text.contains("rank 4 → rank 5"), || format!("the arrows choose '{text}'"))?;
    browser.keys(&["+"])?;
    check(browser.value("matrix.view.n")? == 8, || "+ does not zoom the matrix".into())?;
    let hosts = browser.value("report.hostRanges")?;
    check(hosts == serde_json::json!([[0, 8], [8, 8]]), || format!("hosts are {hosts}"))?;
    browser.keys(&["Home"])?;
    check(browser.value("matrix.view.n")? == 16, || "Home does not show all".into())?;
    let pixels = "matrix.canvas.toDataURL()";
    let before = browser.text(pixels)?;
    browser.click("[name=measure][value='2']", 0.5, 0.5)?;
    check(browser.text(pixels)? != before, || "another measure looks the same".into())
}

fn status(browser: &mut Browser) -> Result<String, String> {
    browser.text("document.getElementById('timeline-status').textContent")
}

fn view(browser: &mut Browser) -> Result<(f64, f64, f64, f64), String> {
    let v = browser
        .value("[timeline.view.from, timeline.view.to, timeline.view.top, timeline.view.rows]")?;
    let of = |k: usize| v[k].as_f64().unwrap_or(f64::NAN);
    Ok((of(0), of(1), of(2), of(3)))
}

/// All events are drawn; each way of moving moves.
fn timeline(bench: &Bench<'_, '_>, browser: &mut Browser) -> Result<(), String> {
    let all: f64 = bench.table("tables/ranks.csv")?.iter().map(|row| number(row, "events")).sum();
    let drawn = browser.text(&format!("countText({all}) + ' events'"))?;
    let text = status(browser)?;
    check(text.contains(&drawn) && text.contains("all events"), || {
        format!("of {drawn}: '{text}'")
    })?;
    browser.click("#timeline", 0.5, 0.5)?;
    let whole = view(browser)?;
    let moves: [(&str, Moved); 9] = [
        ("+", |old, new| new.1 - new.0 < 0.6 * (old.1 - old.0)),
        ("ArrowRight", |old, new| new.0 > old.0),
        ("a", |old, new| new.0 < old.0),
        ("w", |old, new| new.1 - new.0 < 0.6 * (old.1 - old.0)),
        ("[", |old, new| new.3 < 0.6 * old.3),
        ("ArrowDown", |old, new| new.2 > old.2),
        ("PageUp", |old, new| new.2 < old.2),
        ("-", |old, new| new.1 - new.0 > 1.8 * (old.1 - old.0)),
        ("]", |old, new| new.3 > 1.8 * old.3),
    ];
    for (key, moved) in moves {
        let old = view(browser)?;
        browser.keys(&[key])?;
        let new = view(browser)?;
        check(moved(old, new), || format!("{key} goes from {old:?} to {new:?}"))?;
    }
    let old = view(browser)?;
    browser.wheel("#timeline", 0.5, 0.5, -100.0)?;
    browser
        .until(&format!("timeline.view.to - timeline.view.from < {}", 0.95 * (old.1 - old.0)))?;
    let old = view(browser)?;
    browser.drag("#timeline", (0.4, 0.4), (0.6, 0.4), 0)?;
    let new = view(browser)?;
    check(new.0 < old.0, || format!("a drag goes from {old:?} to {new:?}"))?;
    browser.drag("#timeline", (0.4, 0.4), (0.6, 0.4), 8)?;
    let near = view(browser)?;
    check(near.1 - near.0 < 0.3 * (new.1 - new.0), || {
        format!("Shift zooms from {new:?} to {near:?}")
    })?;
    browser.keys(&["Home"])?;
    check(view(browser)? == whole, || "Home does not show all".into())?;
    browser.click("[data-do='+']", 0.5, 0.5)?;
    check(view(browser)? != whole, || "the button does not zoom".into())?;
    // A finding leads to its place.
    browser.keys(&["Home"])?;
    browser.click("#findings a[data-show]", 0.5, 0.5)?;
    let finding = bench.table("tables/findings.csv")?;
    let (from, to) = (number(&finding[0], "begin") * 1e9, number(&finding[0], "end") * 1e9);
    let shown = view(browser)?;
    check(shown.0 <= from && to <= shown.1 && shown.1 - shown.0 < 3.0 * (to - from), || {
        format!("the finding is from {from} to {to}, and {shown:?} is shown")
    })
}

type View = (f64, f64, f64, f64);
type Moved = fn(View, View) -> bool;

/// The longest wait is found by its key, under the pointer, and in its colour; the list is filtered.
fn waits(bench: &Bench<'_, '_>, browser: &mut Browser) -> Result<(), String> {
    let longest = bench.table("tables/waits.csv")?;
    let (rank, begin) = (number(&longest[0], "rank"), number(&longest[0], "begin") * 1e9);
    browser.click("#timeline", 0.5, 0.5)?;
    browser.keys(&["Home", "n"])?;
    let shown = view(browser)?;
    let length = number(&longest[0], "seconds") * 1e9;
    check(shown.0 < begin && begin + length < shown.1, || format!("n shows {shown:?}"))?;
    let code = format!(
        "(() => {{ const c = timeline.canvas, p = timeline.plot(), y = p.top + ({rank} + 0.7 - timeline.view.top) * timeline.rowHeight(); \
         return [timeline.x({}) / c.clientWidth, y / c.clientHeight]; }})()",
        begin + length / 2.0
    );
    let place = browser.value(&code)?;
    let (x, y) = (place[0].as_f64().unwrap_or(0.0), place[1].as_f64().unwrap_or(0.0));
    browser.point("#timeline", x, y)?;
    let hint = browser.text("document.getElementById('hint').innerText")?;
    let what = &longest[0]["what"];
    check(hint.contains(&format!("rank {rank}: {what}")), || {
        format!("under the pointer: '{hint}'")
    })?;
    let pixel = format!(
        "Array.from(timeline.canvas.getContext('2d').getImageData({x} * timeline.canvas.width, {y} * timeline.canvas.height, 1, 1).data).slice(0, 3)"
    );
    let colour = browser.value(&pixel)?;
    let wanted =
        browser.value("rgbOf(report.states.find(s => s.name.includes('other ranks')).colour)")?;
    check(colour == wanted, || format!("the wait is drawn in {colour}, not in {wanted}"))?;
    browser.click("#search", 0.5, 0.5)?;
    for letter in "rank 1".chars() {
        browser.ask("Input.insertText", serde_json::json!({"text": letter.to_string()}))?;
    }
    let items = "Array.from(document.querySelectorAll('#waits button')).map(b => b.textContent)";
    let listed = browser.value(items)?;
    let listed: Vec<&str> =
        listed.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let all = longest.iter().filter(|row| row["rank"] == "1").count();
    check(!listed.is_empty() && listed.len() == all.min(50), || {
        format!("{} of {all} waits of rank 1 are listed", listed.len())
    })?;
    check(listed.iter().all(|line| line.starts_with("rank 1 ")), || format!("{listed:?}"))
}

/// Near, each transfer to another rank is a line.
fn messages(bench: &Bench<'_, '_>, browser: &mut Browser) -> Result<(), String> {
    browser.value("timeline.show(2e6, 3e6, 0, 16)")?;
    browser.drawn()?;
    let (from, to, ..) = view(browser)?;
    let text = std::fs::read_to_string(bench.dir.join("events.json")).map_err(|e| e.to_string())?;
    let events: Value = serde_json::from_str(&text).map_err(|e| format!("events.json: {e}"))?;
    let expected = events["traceEvents"].as_array().into_iter().flatten().filter(|event| {
        let (begin, length) = (event["ts"].as_f64(), event["dur"].as_f64());
        let (Some(begin), Some(length)) = (begin, length) else { return false };
        let moves = ["put", "non-blocking put", "get", "read-modify-write"];
        event["cat"] == "call"
            && moves.iter().any(|name| event["name"] == *name)
            && event["args"]["peer"] != event["pid"]
            && begin * 1e3 <= to
            && (begin + length) * 1e3 >= from
    });
    let expected = expected.count();
    let text = status(browser)?;
    check(expected > 10 && text.ends_with(&format!(" {expected} messages drawn")), || {
        format!("of {expected} messages: '{text}'")
    })
}

/// The dark look, and print.
fn looks_of(browser: &mut Browser) -> Result<(), String> {
    let corner = "timeline.canvas.getContext('2d').getImageData(2, 2, 1, 1).data[0]";
    let light = browser.value(corner)?;
    let dark = serde_json::json!({"features": [{"name": "prefers-color-scheme", "value": "dark"}]});
    browser.ask("Emulation.setEmulatedMedia", dark)?;
    browser.until(&format!("{corner} < 60"))?;
    check(light == 255, || format!("the light page's canvas is {light}"))?;
    browser.ask("Emulation.setEmulatedMedia", serde_json::json!({"features": []}))?;
    let printed = browser.ask("Page.printToPDF", serde_json::json!({"printBackground": true}))?;
    let bytes = printed["data"].as_str().map_or(0, str::len);
    check(bytes > 20_000, || format!("the printed page has {bytes} bytes"))
}

/// The page of a trace of which only a part is in it.
pub(super) fn large(special: &Special, suite: &mut Suite<'_>) {
    if no_browser(special, suite) {
        return;
    }
    let full = suite.args.full;
    let mut bench = Bench::new(suite, "report-large");
    let verdict = opens(&mut bench, full);
    let _ = std::fs::remove_dir_all(bench.dir.join("trace"));
    bench.tell(special.label, verdict);
}

fn opens(bench: &mut Bench<'_, '_>, full: bool) -> Result<(), String> {
    let events = if full { 10_000_000 } else { 200_000 };
    let dir = bench.sample("trace", 1024, events, 32)?;
    let page = bench.file("page.html");
    bench.run(0, &[&dir, "-q", "-o", &page])?;
    let size = std::fs::metadata(&page).map_err(|e| e.to_string())?.len();
    check(size <= 5_000_000, || format!("the page has {size} bytes"))?;
    let mut browser = Browser::start(bench.file("profile").into(), 1280, 1000)?;
    let took = browser.open(Path::new(&page), "document.body.dataset.ready")?;
    browser.drawn()?;
    println!("     the page of {events} events opens in {:.2} s", took.as_secs_f64());
    // Not a measurement: ten times what it takes.
    check(!full || took < Duration::from_secs(30), || format!("it opens in {took:?}"))?;
    browser.picture(&bench.dir.join("page.png"), true)?;
    let text = status(&mut browser)?;
    check(text.contains("ranks 0–1023") && text.contains("level "), || format!("'{text}'"))?;
    let (x, y) = cell_at(&mut browser, 0, 0)?;
    browser.point("#matrix", x, y)?;
    let hint = browser.text("document.getElementById('hint').innerText")?;
    check(hint.contains("ranks 0–1 → ranks 0–1"), || {
        format!("the first tile shows '{hint}'")
    })?;
    // Around a finding all events are there.
    browser.click("#findings a[data-show]", 0.5, 0.5)?;
    browser.value("(() => { const [a, b] = report.events.windows[0]; timeline.show(a, b); })()")?;
    browser.drawn()?;
    let text = status(&mut browser)?;
    check(text.contains("all events"), || format!("near a finding: '{text}'"))?;
    browser.keys(&["Home", "n"])?;
    let text = status(&mut browser)?;
    check(!text.contains(" 0 events"), || format!("at the longest wait: '{text}'"))?;
    check(browser.faults.is_empty(), || browser.faults.join("; "))
}

/// Four times the events take no more memory, up to the indexes of their blocks.
pub(super) fn memory(special: &Special, suite: &mut Suite<'_>) {
    let full = suite.args.full;
    let mut bench = Bench::new(suite, "report-memory");
    let verdict = grows(&mut bench, if full { 4_000_000 } else { 1_000_000 });
    let _ = std::fs::remove_dir_all(&bench.dir);
    bench.tell(special.label, verdict);
}

fn grows(bench: &mut Bench<'_, '_>, events: u64) -> Result<(), String> {
    let mut peaks = Vec::new();
    for events in [events, 4 * events] {
        let dir = bench.sample("trace", 16, events, 2)?;
        peaks.push(peak(Command::new(&bench.program).args([&dir, "-q"]))?);
        let page =
            std::fs::metadata(bench.dir.join("trace/report.html")).map_err(|e| e.to_string())?;
        check(page.len() <= 5_000_000, || format!("the page has {} bytes", page.len()))?;
    }
    // Both are above what the whole trace would need as text, and below what it has as spans.
    check(peaks[1] < peaks[0] + (24 << 10), || {
        format!("{} KiB for {events} events, {} KiB for four times as many", peaks[0], peaks[1])
    })
}

/// The most memory that a command had, in KiB.
fn peak(command: &mut Command) -> Result<u64, String> {
    let child = command.spawn().map_err(|e| e.to_string())?;
    let begun = Instant::now();
    loop {
        let (mut code, mut used) = (0, std::mem::MaybeUninit::<libc::rusage>::zeroed());
        // SAFETY: the child is ours and was not waited for; both places are writable.
        let ended =
            unsafe { libc::wait4(child.id() as i32, &mut code, libc::WNOHANG, used.as_mut_ptr()) };
        if ended != 0 {
            // SAFETY: zeroes are a valid value, and the call has filled it.
            let used = unsafe { used.assume_init() };
            return if ended > 0 && code == 0 {
                Ok(used.ru_maxrss as u64)
            } else {
                Err(format!("it ends with {code}"))
            };
        }
        if begun.elapsed() > Duration::from_secs(super::LIMIT) {
            // SAFETY: as above.
            unsafe { libc::kill(child.id() as i32, libc::SIGKILL) };
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// What is written for other programs, and what is said of damage and of another run.
pub(super) fn exports(special: &Special, suite: &mut Suite<'_>) {
    let full = suite.args.full;
    let mut bench = Bench::new(suite, "report-exports");
    let verdict = writes(&mut bench, full).and_then(|()| damaged(&mut bench));
    bench.tell(special.label, verdict);
}

fn writes(bench: &mut Bench<'_, '_>, full: bool) -> Result<(), String> {
    let dir = bench.sample("trace", 8, 60_000, 2)?;
    let (tables, perfetto) = (bench.file("tables"), bench.file("events.json"));
    bench.run(0, &[&dir, "-q", "--no-page", "--csv", &tables, "--perfetto", &perfetto])?;
    let text = std::fs::read_to_string(&perfetto).map_err(|e| e.to_string())?;
    let json: Value = serde_json::from_str(&text).map_err(|e| format!("{perfetto}: {e}"))?;
    let of = |phase: &str| {
        json["traceEvents"].as_array().into_iter().flatten().filter(|e| e["ph"] == *phase).count()
    };
    let spans: f64 = bench.table("tables/ranks.csv")?.iter().map(|row| number(row, "events")).sum();
    check(of("X") == spans as usize && of("B") == of("E") && of("B") > 0, || {
        format!("{} spans of {spans}, {} begins, {} ends", of("X"), of("B"), of("E"))
    })?;
    // Two runs: twice the events are twice the transfers.
    let other = bench.sample("other", 8, 120_000, 2)?;
    let page = bench.file("compared.html");
    let (out, _) = bench.run(0, &[&dir, &other, "-o", &page])?;
    let compared = std::fs::read_to_string(&page).map_err(|e| e.to_string())?;
    let line = out.lines().find(|line| line.contains("transfers and messages")).unwrap_or_default();
    check(line.ends_with("2.0 times") && compared.contains("id=\"compared\""), || {
        format!("'{line}'")
    })?;
    let archive = bench.file("otf2");
    let words = [&dir, "-q", "--no-page", "--otf2", &archive];
    match bench.run(0, &words) {
        Ok(_) => otf2(bench, spans, of("B")),
        Err(_) if !full && bench.last.as_ref().is_some_and(|o| o.err.contains("not installed")) => {
            println!("     --otf2 is not tested: the OTF2 library is not installed");
            Ok(())
        }
        Err(why) => Err(why),
    }
}

/// As OTF2's own program reads it.
fn otf2(bench: &Bench<'_, '_>, spans: f64, regions: usize) -> Result<(), String> {
    if !system::on_path("otf2-print") {
        println!("     the OTF2 archive is not read: there is no otf2-print");
        return Ok(());
    }
    let output = Command::new("otf2-print").arg(bench.dir.join("otf2/traces.otf2")).output();
    let output = output.map_err(|e| format!("otf2-print: {e}"))?;
    let (text, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    check(output.status.success() && err.trim().is_empty(), || format!("otf2-print: {err}"))?;
    let of = |word: &str| {
        text.lines().filter(|line| line.split_whitespace().next() == Some(word)).count()
    };
    let all = spans as usize + regions;
    check(of("ENTER") == all && of("LEAVE") == all, || {
        format!("{} enters and {} leaves of {all}", of("ENTER"), of("LEAVE"))
    })?;
    let calls = bench.table("tables/calls.csv")?;
    let count = |name: &str| {
        let rows = calls.iter().filter(|row| row["call"] == name);
        rows.map(|row| number(row, "count")).sum::<f64>() as usize
    };
    for (word, name) in
        [("RMA_PUT", "non-blocking put"), ("RMA_GET", "get"), ("RMA_ATOMIC", "read-modify-write")]
    {
        check(of(word) == count(name) && of(word) > 0, || {
            format!("{} {word}, not {}", of(word), count(name))
        })?;
    }
    Ok(())
}

/// A cut file, one with wrong bytes, one that is none, and one that is missing are named; the rest is used.
fn damaged(bench: &mut Bench<'_, '_>) -> Result<(), String> {
    let dir = bench.file("trace");
    let file = |rank: usize| PathBuf::from(&dir).join(format!("rank-{rank:06}.ptrace"));
    let failed = |e: std::io::Error| e.to_string();
    let bytes = std::fs::read(file(1)).map_err(failed)?;
    std::fs::write(file(1), &bytes[..bytes.len() - 1000]).map_err(failed)?;
    let mut bytes = std::fs::read(file(2)).map_err(failed)?;
    let middle = bytes.len() / 2;
    bytes[middle..middle + 50].fill(0x55);
    std::fs::write(file(2), bytes).map_err(failed)?;
    std::fs::write(file(3), "no trace").map_err(failed)?;
    std::fs::remove_file(file(4)).map_err(failed)?;
    let page = bench.file("damaged.html");
    let (out, err) = bench.run(0, &[&dir, "-o", &page])?;
    let text = std::fs::read_to_string(&page).map_err(failed)?;
    for says in [
        "rank-000001.ptrace: ",
        "it ends too early",
        "rank-000002.ptrace: a block of ",
        "rank-000003.ptrace is left out: it does not begin as a trace does",
        "there is no file of rank 3, 4",
    ] {
        check(err.contains(says) && text.contains(says), || {
            format!("'{says}' is not said: {err}")
        })?;
    }
    check(out.contains("in 6 files"), || format!("the rest is not used: {out}"))?;
    let (_, err) = bench.run(1, &["/no/such/directory"])?;
    check(err.contains("cannot read /no/such/directory"), || err.clone())?;
    let empty = bench.file("empty");
    std::fs::create_dir_all(&empty).map_err(failed)?;
    let (_, err) = bench.run(1, &[&empty])?;
    check(err.contains("there is no trace in"), || err.clone())
}
