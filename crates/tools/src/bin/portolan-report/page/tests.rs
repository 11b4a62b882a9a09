use super::*;
use crate::compare::compare;
use crate::run::AnalysedRun;
use crate::sample::{self, Size};
use tempfile::tempdir;

fn run(size: Size) -> AnalysedRun {
    let directory = tempdir().expect("it can be made");
    sample::write(directory.path(), size).expect("it can be written");
    AnalysedRun::read(directory.path()).expect("it can be read")
}

#[test]
fn the_page_names_nothing_outside_and_escapes_what_it_shows() {
    let mut run = run(Size { ranks: 4, events: 2000, hosts: 2 });
    run.trace.hosts[0] = "<script>&\"".into();
    run.trace.problems.push("</script><b>".into());
    run.analysis.regions.names[0] = "</script><img src=x>".into();
    let page = page(&run, Some(&compare(&run, &run))).expect("it can be made");
    for outside in ["http:", "https:", "src=\"", "@import", "url(", "<link", "<img", "</script><b>"]
    {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(page.contains("&lt;script&gt;&amp;&quot;") && page.contains("\\u003c/script>"));
    assert_eq!(page.matches("<script").count(), page.matches("</script>").count());
    // The encoded data may contain these letters by chance.
    let before_data = page.split("<script id=\"blob-").next().unwrap_or_default();
    assert!(!before_data.contains("NaN"));
    for id in
        ["data", "blob-matrix", "blob-levels", "blob-events", "timeline", "matrix", "compared"]
    {
        assert_eq!(page.matches(&format!("id=\"{id}\"")).count(), 1, "{id}");
    }
}

#[test]
fn the_page_of_an_empty_trace_is_a_page() {
    let directory = tempdir().expect("it can be made");
    let metadata = sample::metadata(0, 1, 0);
    let file = sample::RankWriter::new(directory.path(), &metadata).expect("it can be made");
    file.end().expect("it can be written");
    let run = AnalysedRun::read(directory.path()).expect("it can be read");
    assert_eq!((run.trace.wall, run.findings.len()), (1, 0));
    assert!(!page(&run, None).expect("it can be made").contains("NaN"));
}

#[test]
fn numbers_of_the_matrix_keep_three_digits() {
    for value in [0.0, 1.0, 7.0, 123.0, 99_999.0, 1e12, 3e18] {
        let back = (f64::from(blobs::scaled(value)) / 1000.0).exp2() - 1.0;
        assert!((back - value).abs() <= value * 0.0008 + 1e-9, "{value} comes back as {back}");
    }
}

/// Vision without red or without green cones, as matrices (Machado, Oliveira, Fernandes 2009).
const BLIND: [[[f64; 3]; 3]; 2] = [
    [
        [0.152_286, 1.052_583, -0.204_868],
        [0.114_503, 0.786_281, 0.099_216],
        [-0.003_882, -0.048_116, 1.051_998],
    ],
    [
        [0.367_322, 0.860_646, -0.227_968],
        [0.280_085, 0.672_501, 0.047_413],
        [-0.011_820, 0.042_940, 0.968_881],
    ],
];

#[test]
fn the_colour_blind_can_tell_states_apart() {
    let parts = |state: RankState| {
        let at = |k: usize| {
            i64::from_str_radix(&state.colour()[1 + 2 * k..3 + 2 * k], 16).expect("hexadecimal")
        };
        [0, 1, 2].map(|k| (at(k) as f64 / 255.0).powf(2.2))
    };
    for (number, matrix) in BLIND.iter().enumerate() {
        let seen = |state: RankState| {
            matrix.map(|row| {
                let light: f64 = row.iter().zip(parts(state)).map(|(a, b)| a * b).sum();
                light.clamp(0.0, 1.0).powf(1.0 / 2.2) * 255.0
            })
        };
        for a in RankState::all() {
            for b in RankState::all().filter(|b| *b as usize > a as usize) {
                let (x, y) = (seen(a), seen(b));
                let apart: f64 = (0..3).map(|k| (x[k] - y[k]).powi(2)).sum::<f64>().sqrt();
                assert!(
                    apart > 28.0,
                    "kind {number}: {} and {} are {apart:.0} apart",
                    a.name(),
                    b.name()
                );
            }
        }
    }
}
