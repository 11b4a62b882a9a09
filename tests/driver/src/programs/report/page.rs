//! Tests the page in a browser, and compares its figures with the tables that the program writes.

use super::super::super::browser::{self, Browser};
use super::super::Suite;
use super::super::special::Special;
use super::{Bench, case, check, number};
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

/// Skips the case if no browser is installed. With `--release`, fails instead.
fn no_browser(special: &Special, suite: &mut Suite<'_>) -> bool {
    if browser::is_here() {
        return false;
    }
    if suite.args.release {
        let why =
            "there is no Chromium, which --release wants: scripts/setup.sh --tests installs it";
        suite.report.fail(special.label, 0.0, why, Vec::new());
    } else {
        suite.report.skip(special.label, "no Chromium");
    }
    true
}

/// The page of a short trace, which contains all events.
pub(in super::super) fn page(special: &Special, suite: &mut Suite<'_>) {
    if no_browser(special, suite) {
        return;
    }
    case(special, suite, "report-page", |bench, _| looks(bench));
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

fn cell_at(browser: &mut Browser, row: usize, column: usize) -> Result<(f64, f64), String> {
    let code = format!(
        "(() => {{ const c = matrix.canvas, f = matrix.frame(c.clientWidth, c.clientHeight); \
         return [(f.left + ({column} + 0.5) * f.cell) / c.clientWidth, (f.top + ({row} + 0.5) * f.cell) / c.clientHeight]; }})()"
    );
    let place = browser.value(&code)?;
    Ok((place[0].as_f64().unwrap_or(0.0), place[1].as_f64().unwrap_or(0.0)))
}

/// Each cell shows the figures of the table. A click selects a cell, the arrow keys move the
/// selection, and zoom and the choice of measure work.
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

/// All events are drawn, and every way to move the view works.
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
    // A finding links to its place in the timeline.
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

/// The key `n` shows the longest wait. It has the right text under the pointer and the right
/// colour, and the list can be filtered.
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

/// At a close zoom, each transfer to another rank is drawn as a line.
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

/// The page of a trace that does not fit in the page as a whole.
pub(in super::super) fn large(special: &Special, suite: &mut Suite<'_>) {
    if no_browser(special, suite) {
        return;
    }
    let release = suite.args.release;
    case(special, suite, "report-large", |bench, _| {
        let verdict = opens(bench, release);
        let _ = std::fs::remove_dir_all(bench.dir.join("trace"));
        verdict
    });
}

fn opens(bench: &mut Bench<'_, '_>, release: bool) -> Result<(), String> {
    let events = if release { 10_000_000 } else { 200_000 };
    let dir = bench.sample("trace", 1024, events, 32)?;
    let page = bench.file("page.html");
    bench.run(0, &[&dir, "-q", "-o", &page])?;
    let size = std::fs::metadata(&page).map_err(|e| e.to_string())?.len();
    check(size <= 5_000_000, || format!("the page has {size} bytes"))?;
    let mut browser = Browser::start(bench.file("profile").into(), 1280, 1000)?;
    let took = browser.open(Path::new(&page), "document.body.dataset.ready")?;
    browser.drawn()?;
    println!("     the page of {events} events opens in {:.2} s", took.as_secs_f64());
    // Not a measurement: the limit is ten times the usual time.
    check(!release || took < Duration::from_secs(30), || format!("it opens in {took:?}"))?;
    browser.picture(&bench.dir.join("page.png"), true)?;
    let text = status(&mut browser)?;
    check(text.contains("ranks 0–1023") && text.contains("level "), || format!("'{text}'"))?;
    // A tile covers two ranks. Zoom in until the pointer can select one tile.
    browser.click("#matrix", 0.5, 0.5)?;
    browser.keys(&["Home", "+", "+", "+", "+"])?;
    let first = browser.value("[matrix.view.y, matrix.view.x]")?;
    let first = [0, 1].map(|k| first[k].as_u64().unwrap_or(0) as usize + 1);
    let (x, y) = cell_at(&mut browser, 1, 1)?;
    browser.point("#matrix", x, y)?;
    let hint = browser.text("document.getElementById('hint').innerText")?;
    let [from, to] = first.map(|tile| format!("ranks {}–{}", 2 * tile, 2 * tile + 1));
    check(hint.contains(&format!("{from} → {to}")), || format!("{from} → {to}: '{hint}'"))?;
    // All events near a finding are in the page.
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
