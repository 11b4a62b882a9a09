//! Settings that must be equal on all ranks: otherwise ranks would wait forever for each other. The
//! first exchange at the start of the engine compares them, so that all ranks report a difference.

use super::{AmChoice, Config, PathChoice};
use crate::error::{Result, fail};

struct Setting {
    variable: &'static str,
    number: fn(&Config) -> u64,
    text: fn(u64) -> String,
}

const COUNT: usize = 11;

pub type Agreed = [u64; COUNT];

fn one_of(names: &[&str], number: u64) -> String {
    usize::try_from(number).ok().and_then(|n| names.get(n)).unwrap_or(&"unknown").to_string()
}

fn number(value: u64) -> String {
    value.to_string()
}

fn switch(value: u64) -> String {
    one_of(&["off", "on"], value)
}

const SETTINGS: [Setting; COUNT] = [
    Setting {
        variable: "PORTOLAN_PATH",
        number: |c| c.path as u64,
        text: |n| one_of(PathChoice::NAMES, n),
    },
    Setting { variable: "PORTOLAN_NODE_SIZE", number: |c| c.node_size as u64, text: number },
    Setting {
        variable: "PORTOLAN_AM",
        number: |c| c.am as u64,
        text: |n| one_of(AmChoice::NAMES, n),
    },
    Setting {
        variable: "PORTOLAN_AM_RING_BYTES",
        number: |c| c.am_ring_bytes as u64,
        text: number,
    },
    Setting { variable: "PORTOLAN_SLAB_BYTES", number: |c| c.arena_bytes as u64, text: number },
    Setting { variable: "PORTOLAN_KEEP_BYTES", number: |c| c.keep_bytes as u64, text: number },
    Setting { variable: "PORTOLAN_CHUNK_BYTES", number: |c| c.chunk_bytes as u64, text: number },
    Setting { variable: "PORTOLAN_FLIGHT_BYTES", number: |c| c.flight_bytes as u64, text: number },
    Setting { variable: "PORTOLAN_CHECK", number: |c| u64::from(c.check_races), text: switch },
    Setting { variable: "PORTOLAN_STATS", number: |c| u64::from(c.stats), text: switch },
    Setting {
        variable: "PORTOLAN_TRACE",
        number: |c| u64::from(!c.trace.is_empty()),
        text: |n| one_of(&["not set", "set"], n),
    },
];

pub fn settings(config: &Config) -> Agreed {
    SETTINGS.map(|setting| (setting.number)(config))
}

/// In rank order. Fails with `Argument`, the first setting that differs, and its values.
pub fn compare<'a>(all: impl Iterator<Item = &'a Agreed> + Clone) -> Result<()> {
    for (at, setting) in SETTINGS.iter().enumerate() {
        let mut values: Vec<(u64, Vec<usize>)> = Vec::new();
        for (rank, settings) in all.clone().enumerate() {
            match values.iter_mut().find(|(value, _)| *value == settings[at]) {
                Some((_, ranks)) => ranks.push(rank),
                None => values.push((settings[at], vec![rank])),
            }
        }
        if values.len() > 1 {
            let each: Vec<String> = values
                .iter()
                .map(|(value, ranks)| format!("{} on {}", (setting.text)(*value), listed(ranks)))
                .collect();
            fail!(
                Argument,
                "{} differs between ranks: {}; give all ranks the same environment",
                setting.variable,
                each.join(", ")
            );
        }
    }
    Ok(())
}

/// Abbreviates a long list.
pub fn listed(ranks: &[usize]) -> String {
    const MOST: usize = 16;
    let mut texts: Vec<String> = ranks.iter().take(MOST).map(usize::to_string).collect();
    if ranks.len() > MOST {
        texts.push("...".into());
    }
    format!("{} {}", if ranks.len() == 1 { "rank" } else { "ranks" }, texts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_names_the_variable_the_values_and_the_ranks() {
        let same = settings(&Config::default());
        let other = settings(&Config { node_size: 2, ..Config::default() });
        compare([same; 5].iter()).unwrap();
        let error = compare([same, other, same, other].iter()).unwrap_err();
        assert_eq!(
            error.detail(),
            "PORTOLAN_NODE_SIZE differs between ranks: 0 on ranks 0, 2, 2 on ranks 1, 3; give all \
             ranks the same environment"
        );
        let paths = [PathChoice::Rma, PathChoice::Message];
        let paths = paths.map(|path| settings(&Config { path, ..Config::default() }));
        let text = compare(paths.iter()).unwrap_err().detail().to_string();
        assert!(text.starts_with("PORTOLAN_PATH differs between ranks: rma on rank 0, message"));
    }

    #[test]
    fn each_setting_is_a_variable_of_the_table() {
        for setting in SETTINGS {
            let known = crate::config::VARIABLES.iter().any(|v| v.name == setting.variable);
            assert!(known, "{}", setting.variable);
        }
    }
}
