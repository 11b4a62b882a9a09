//! Warnings about environment variables that the library does not know.

use super::VARIABLES;
use std::sync::Once;

const OURS: &str = "PORTOLAN_";
/// Variables of the tests, the scripts and the build.
const OTHERS: &[&str] = &[
    "PORTOLAN_BLAS",
    "PORTOLAN_BLESS",
    "PORTOLAN_MPI",
    "PORTOLAN_MPIEXEC",
    "PORTOLAN_MPIRUN_FLAGS",
    "PORTOLAN_MPI_AS_IT_IS",
    "PORTOLAN_PREFIX",
    "PORTOLAN_UNION",
];
const OTHERS_BEGIN: &[&str] = &["PORTOLAN_TEST_", "PORTOLAN_SOAK_"];

/// Once per process, about each unknown variable that starts with `PORTOLAN_`.
pub fn warn_of_unknown() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        for text in names.filter_map(|name| complaint(&name)) {
            log::warn!("{text}");
        }
    });
}

fn complaint(name: &str) -> Option<String> {
    let known = || VARIABLES.iter().map(|v| v.name);
    if !name.starts_with(OURS)
        || OTHERS_BEGIN.iter().any(|begin| name.starts_with(begin))
        || known().chain(OTHERS.iter().copied()).any(|known| known == name)
    {
        return None;
    }
    let nearest = known().min_by_key(|known| distance(known, name))?;
    let meant = match distance(nearest, name) {
        // A larger distance means another word.
        0..=4 => format!("; did you mean {nearest}?"),
        _ => String::new(),
    };
    Some(format!(
        "the environment sets {name}, which is not a variable of this library and has no \
         effect{meant} (portolan-info lists all)"
    ))
}

/// The edit distance: the number of bytes to insert, remove or replace.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut corner = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.bytes().enumerate() {
            let replaced = corner + usize::from(x != y);
            corner = row[j + 1];
            row[j + 1] = replaced.min(corner + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        assert_eq!(distance("PATH", "PATH"), 0);
        assert_eq!(distance("PATH", "PATHS"), 1);
        assert_eq!(distance("STATS", "STAST"), 2);
        assert_eq!(distance("", "abc"), 3);
    }

    #[test]
    #[cfg_attr(miri, ignore = "slow, and safe code")]
    fn a_misspelt_variable_has_a_neighbour() {
        let of = |name| complaint(name).unwrap_or_default();
        assert!(of("PORTOLAN_WATCHDOGS").contains("did you mean PORTOLAN_WATCHDOG?"));
        assert!(of("PORTOLAN_SHMDIR").contains("did you mean PORTOLAN_SHM_DIR?"));
        assert!(
            of("PORTOLAN_NOTHING_OF_THE_KIND").ends_with("no effect (portolan-info lists all)")
        );
    }

    #[test]
    fn what_is_known_or_of_others_is_not_complained_of() {
        let others = ["PATH", "ARMCI_VERBOSE", "PORTOLAN_TEST_SEED", "PORTOLAN_MPIEXEC"];
        for name in VARIABLES.iter().map(|v| v.name).chain(others) {
            assert_eq!(complaint(name), None);
        }
    }
}
