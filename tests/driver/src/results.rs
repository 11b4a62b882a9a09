//! Reads the results of test programs from their output.
//!
//! Programs with Rust's own harness print `test NAME ... ok` for each case and end with `test
//! result: ok. 5 passed; 0 failed; ...`. All others print the lines of [`crate::report`], and end
//! with `5 passed, 0 failed`. The output of a command may contain several programs.

/// The lines of a failure that are shown.
const SHOWN: usize = 80;

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Results {
    pub passed: usize,
    pub failed: usize,
    /// The number of programs that printed their totals.
    pub programs: usize,
    /// The number of cases that have ended.
    pub cases: usize,
    pub skipped: Vec<String>,
    /// Each failure, and the lines below it, which show the state of the ranks.
    pub failures: Vec<String>,
}

/// Returns the totals in a line `5 passed, 0 failed`.
pub fn totals(line: &str) -> Option<(usize, usize)> {
    let (passed, failed) = line.split_once(" passed, ")?;
    Some((passed.parse().ok()?, failed.strip_suffix(" failed")?.parse().ok()?))
}

/// Returns the totals of Rust's harness.
fn harness_totals(line: &str) -> Option<(usize, usize)> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let mut numbers = counts.split("; ").map(|part| part.split(' ').next()?.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

/// Returns the name and the end, such as `ok`, in the line of a case of Rust's harness.
pub fn harness_case(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix("test ")?.rsplit_once(" ... ")
}

/// Returns the line of a case with a word before its name, and a line below a failed case as it
/// is. Returns `None` for other lines.
pub fn with_prefix(line: &str, word: &str) -> Option<String> {
    if line.starts_with("     |") {
        return Some(line.into());
    }
    let verdict = ["ok   ", "FAIL ", "skip "].into_iter().find(|verdict| line.starts_with(verdict));
    verdict.map(|verdict| format!("{verdict}{word} {}", &line[verdict.len()..]))
}

/// The part of the output that a line belongs to.
#[derive(PartialEq, Eq)]
enum Inside {
    Nothing,
    /// Below the line of a failed case, where only indented lines belong to it.
    Case,
    /// In the output of a failed unit test, which Rust's harness repeats at the end.
    UnitTest,
}

pub fn read(text: &str) -> Results {
    let mut results = Results::default();
    let (mut inside, mut shown) = (Inside::Nothing, 0);
    for line in text.lines() {
        if let Some((passed, failed)) = totals(line).or_else(|| harness_totals(line)) {
            results.passed += passed;
            results.failed += failed;
            results.programs += 1;
        }
        let of_harness = harness_case(line);
        let failed =
            line.starts_with("FAIL ") || of_harness.is_some_and(|(_, end)| end == "FAILED");
        let ended = failed || line.starts_with("ok   ") || of_harness.is_some();
        results.cases += usize::from(ended);
        results.skipped.extend(line.strip_prefix("skip ").map(String::from));
        if failed {
            (inside, shown) = (Inside::Case, 0);
        } else if line.starts_with("---- ") && line.ends_with(" ----") {
            (inside, shown) = (Inside::UnitTest, 0);
        } else if line == "failures:" || inside == Inside::Case && !line.starts_with(' ') {
            inside = Inside::Nothing;
        }
        if inside != Inside::Nothing && shown < SHOWN {
            shown += 1;
            results.failures.push(line.into());
        }
    }
    results
}

#[cfg(test)]
mod tests {
    use super::*;

    const HARNESS: &str = "\
running 3 tests
test a::one ... ok
test a::two ... FAILED
test three ... ignored, a measurement

failures:

---- a::two stdout ----
thread 'a::two' panicked at src/lib.rs:1:2:
left: 1

failures:
    a::two

test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s
";

    const SUITE: &str = "\
ranks on MPICH by mpiexec.mpich, seed 7
ok   c/rmw [n=2] 0.31s
FAIL c/rmw [n=3 path=rma] 90.02s: not at its end after 90 seconds
     | rank 1 was at: rmw
skip ga/ga_acc [n=4]: no Global Arrays for mpich-wheel
1 skipped
1 passed, 1 failed
";

    #[test]
    fn both_formats_are_read() {
        let results = read(&(HARNESS.to_string() + SUITE));
        assert_eq!((results.passed, results.failed), (2, 2));
        assert_eq!((results.programs, results.cases), (2, 5));
        assert_eq!(results.skipped, ["ga/ga_acc [n=4]: no Global Arrays for mpich-wheel"]);
        assert_eq!(
            results.failures,
            [
                "test a::two ... FAILED",
                "---- a::two stdout ----",
                "thread 'a::two' panicked at src/lib.rs:1:2:",
                "left: 1",
                "",
                "FAIL c/rmw [n=3 path=rma] 90.02s: not at its end after 90 seconds",
                "     | rank 1 was at: rmw",
            ]
        );
    }

    #[test]
    fn an_unfinished_program_has_cases_and_no_totals() {
        let results = read("ok   c/rmw [n=2] 0.31s\ntest x ... ok\nok then\n");
        assert_eq!((results.cases, results.programs, results.passed), (2, 0, 0));
        assert_eq!(read(""), Results::default());
    }

    #[test]
    fn other_lines_are_no_totals() {
        for line in ["3 passed, 1 failed, 2 warnings", "total: 3 passed, 1 failed", "3 passed"] {
            assert_eq!(totals(line), None, "{line}");
        }
        assert_eq!(totals("12 passed, 3 failed"), Some((12, 3)));
        assert_eq!(
            harness_totals("test result: ok. 12 passed; 3 failed; 0 ignored"),
            Some((12, 3))
        );
    }

    #[test]
    fn a_word_precedes_the_names_of_cases() {
        let lines = SUITE.lines().filter_map(|line| with_prefix(line, "asan"));
        assert_eq!(
            lines.collect::<Vec<_>>(),
            [
                "ok   asan c/rmw [n=2] 0.31s",
                "FAIL asan c/rmw [n=3 path=rma] 90.02s: not at its end after 90 seconds",
                "     | rank 1 was at: rmw",
                "skip asan ga/ga_acc [n=4]: no Global Arrays for mpich-wheel",
            ]
        );
    }

    #[test]
    fn a_long_failure_is_cut() {
        let text = format!("FAIL a 1.00s: why\n{}ok   b 1.00s\n", "     | line\n".repeat(200));
        assert_eq!(read(&text).failures.len(), SHOWN);
    }
}
