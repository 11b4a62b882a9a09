//! Static charts as SVG, which can be printed: the load of the ranks, and small distributions.

use crate::analyse::RankTotals;
use crate::model::{RankState, percent, time};
use crate::run::AnalysedRun;
use maud::{Markup, html};

/// Maximum number of bars in a chart. If there are more ranks, several share a bar.
const BARS: usize = 256;
const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 150.0;

/// Draws the ranks sorted by waits for a core, by time spent waiting, by time spent on requests of
/// others, and by the time that others waited for them.
pub fn load(run: &AnalysedRun) -> Markup {
    let wall = run.trace.wall;
    html! {
        (sorted(run, "by the delay of their threads, which waited for a core", &|r| r.used.delay(), &[
            ("processor time of the program", "#0072b2", &|r| r.used.user),
            ("of the kernel", "#56b4e9", &|r| r.used.system),
            ("main thread waited for a core", "#d55e00", &|r| r.used.main_delay.unwrap_or(0)),
            ("other threads did", "#e69f00", &|r| r.used.other_delay),
        ], 0))
        (sorted(run, "by time spent waiting", &|r| r.waiting(), &[
            ("in calls, busy", "#0072b2", &|r| r.in_calls().saturating_sub(r.waiting())),
            ("waiting", "#e69f00", &|r| r.waiting()),
            ("outside of calls", "var(--row)", &|r| wall.saturating_sub(r.in_calls())),
        ], wall))
        (sorted(run, "by time spent on requests of others", &|r| r.serving(), &[
            ("serving in own calls", "#3d4148", &|r| r.states[RankState::Serving as usize]),
            ("serving on the progress thread", "#a5aab2", &|r| r.states[RankState::Beside as usize]),
        ], 0))
        (sorted(run, "by the time that other ranks waited for them", &|r| r.awaited, &[
            ("waited for by others", "#d55e00", &|r| r.awaited),
        ], 0))
    }
}

type Of<'a> = &'a dyn Fn(&RankTotals) -> u64;

/// Draws a bar for each rank, largest first. If `top` is 0, the largest fills the chart.
fn sorted(
    run: &AnalysedRun,
    title: &str,
    key: Of<'_>,
    parts: &[(&str, &str, Of<'_>)],
    top: u64,
) -> Markup {
    let mut ranks: Vec<(usize, &RankTotals)> = run.analysis.ranks.iter().enumerate().collect();
    ranks.sort_by_key(|(rank, totals)| (std::cmp::Reverse(key(totals)), *rank));
    let each = ranks.len().div_ceil(BARS).max(1);
    let whole = |totals: &RankTotals| parts.iter().map(|(.., of)| of(totals)).sum::<u64>();
    let top = if top > 0 { top } else { ranks.iter().map(|(_, t)| whole(t)).max().unwrap_or(0) };
    if top == 0 {
        return html! { p.note { "Ranks " (title) ": there was none." } };
    }
    let bars: Vec<&[(usize, &RankTotals)]> = ranks.chunks(each).collect();
    let wide = WIDTH / bars.len() as f64;
    let gap = if wide > 6.0 { 1.0 } else { 0.0 };
    let sizes = ranks.iter().map(|(_, totals)| key(totals) as f64);
    let (least, most) = (sizes.clone().fold(f64::MAX, f64::min), sizes.clone().fold(0.0, f64::max));
    let mean = sizes.sum::<f64>() / ranks.len() as f64;
    html! {
        figure {
            figcaption {
                b { "Ranks " (title) } ": from " (time(most)) " to " (time(least)) ", on average " (time(mean)) ". "
                @for (name, colour, _) in parts { span.key { i style={ "background:" (colour) } {} (name) } }
            }
            svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT + 16.0) } role="img" aria-label={ "Ranks " (title) } {
                @for (number, bar) in bars.iter().enumerate() {
                    g {
                        title { (bar_text(bar, parts)) }
                        @let heights = heights(bar, parts, top);
                        @for (k, (_, colour, _)) in parts.iter().enumerate() {
                            @let below: f64 = heights[..k].iter().sum();
                            rect x={ (fixed(number as f64 * wide)) } y={ (fixed(HEIGHT - below - heights[k])) }
                                width={ (fixed(wide - gap)) } height={ (fixed(heights[k])) } fill=(colour) {}
                        }
                        @if wide > 16.0 {
                            text x={ (fixed((number as f64 + 0.5) * wide)) } y={ (HEIGHT + 13.0) } text-anchor="middle" { (bar[0].0) }
                        }
                    }
                }
            }
        }
    }
}

pub fn fixed(value: f64) -> String {
    format!("{value:.2}")
}

fn heights(bar: &[(usize, &RankTotals)], parts: &[(&str, &str, Of<'_>)], top: u64) -> Vec<f64> {
    let of = |of: Of<'_>| bar.iter().map(|(_, totals)| of(totals)).sum::<u64>() as f64;
    parts.iter().map(|(.., part)| of(*part) / bar.len() as f64 / top as f64 * HEIGHT).collect()
}

fn bar_text(bar: &[(usize, &RankTotals)], parts: &[(&str, &str, Of<'_>)]) -> String {
    let who = match bar {
        [(rank, _)] => format!("rank {rank}"),
        _ => format!("{} ranks, as rank {}", bar.len(), bar[0].0),
    };
    let values: Vec<String> = parts
        .iter()
        .map(|(name, _, of)| {
            let sum: u64 = bar.iter().map(|(_, totals)| of(totals)).sum();
            format!("{name} {}", time(sum as f64 / bar.len() as f64))
        })
        .collect();
    format!("{who}: {}", values.join(", "))
}

/// Draws a distribution with one bar per power of two, on an axis of the exponents `from..to`.
pub fn powers(
    first: u32,
    counts: &[u64],
    from: u32,
    to: u32,
    text: &dyn Fn(u32) -> String,
) -> Markup {
    let most = counts.iter().copied().max().unwrap_or(0).max(1) as f64;
    let all = counts.iter().sum::<u64>() as f64;
    let bars = f64::from((to - from).max(1));
    html! {
        svg.spark viewBox={ "0 0 " (bars * 6.0) " 24" } preserveAspectRatio="none" role="img" aria-label="distribution" {
            @for (k, n) in counts.iter().enumerate().filter(|(_, n)| **n > 0) {
                // The square root keeps small counts visible beside large ones.
                @let high = ((*n as f64 / most).sqrt() * 23.0).max(1.0);
                rect x={ (f64::from(first - from) * 6.0 + k as f64 * 6.0) } y={ (fixed(24.0 - high)) } width="5" height={ (fixed(high)) } {
                    title { (text(first + k as u32)) " to " (text(first + k as u32 + 1)) ": " (percent(*n as f64, all)) " of them" }
                }
            }
        }
    }
}
