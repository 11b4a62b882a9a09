//! The unit tests of modules with unsafe code, under Miri.

use super::Sanitize;
use crate::{launch, system};
use regex::Regex;
use std::path::Path;

/// Modules with unsafe code whose tests map files, call the kernel or MPI, or use assembly. The C
/// interfaces (portolan-capi) do so everywhere, and the kernels and the tests on ranks need MPI.
const LEFT_OUT: &str = "any_memory atomics::node_queue collective::shared_area futex \
    hg::class::shares memory::large_buffer memory::registered memory::shm_export thread::stack mpi \
    path::cma na::blocking_wait na::links na::memory na::private_file na::wait_descriptor \
    na::zeroed_buffer runtime::oversubscription runtime::statistics shm thread topology \
    trace::call_site trace::clock trace::log wait::watchdog";

/// Modules whose tests run without strict provenance, because they make pointers from addresses of
/// other ranks, as the interfaces do, or contend for locks of parking_lot, which does so.
const WITH_ADDRESSES: &str = "bulk core::answers layout::array loops sync::append_lists \
    sync::biased_lock sync::brlock memory::runs memory::shared_bytes na::service path::lock_stripe";

const SOURCES: [&str; 5] =
    ["src", "crates/base/src", "crates/compose/src", "crates/engine/src", "crates/rpc/src"];

/// Returns the modules of a crate that have both unsafe code and tests.
fn unsafe_modules(sources: &Path) -> Vec<String> {
    let unsafe_code = Regex::new(r"unsafe (\{|fn|impl)").expect("a pattern");
    let (mut modules, mut left) = (Vec::new(), vec![sources.to_path_buf()]);
    while let Some(path) = left.pop() {
        if path.is_dir() {
            left.extend(std::fs::read_dir(path).into_iter().flatten().flatten().map(|e| e.path()));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = launch::text_of(&path);
            if unsafe_code.is_match(&text) && text.contains("#[test]") {
                let path = path.with_extension("");
                let name = path.strip_prefix(sources).unwrap_or(&path).display().to_string();
                modules.push(name.trim_end_matches("/mod").replace('/', "::") + "::");
            }
        }
    }
    modules
}

impl Sanitize {
    pub fn miri(&mut self) -> Result<(), String> {
        if self.run(self.mpi.command(&["cargo", "+nightly", "miri", "setup"]))? != Some(0) {
            let how = "rustup toolchain install nightly --component miri,rust-src";
            self.report.skip("miri", &format!("there is no Miri ({how})"));
            return Ok(());
        }
        let flags = "-Zmiri-tree-borrows -Zmiri-disable-isolation";
        let command = |flags: &str, packages: &str, selection: &[String]| {
            let words = format!("cargo +nightly miri test {packages} --lib --no-fail-fast --");
            let words = words.split_whitespace().map(String::from);
            let words: Vec<String> = words.chain(selection.iter().cloned()).collect();
            let mut command = self.command(&words, &self.dir.join("miri"));
            command.env("MIRIFLAGS", flags).env("PROPTEST_CASES", "4");
            command
        };
        let modules = |names: &str| -> Vec<String> {
            names.split_whitespace().map(|name| format!("{name}::")).collect()
        };
        let sources = SOURCES.map(|sources| system::root().join(sources));
        let filters = sources.iter().flat_map(|sources| unsafe_modules(sources));
        let left_out = [modules(LEFT_OUT), modules(WITH_ADDRESSES)].concat();
        let skips = left_out.into_iter().flat_map(|name| ["--skip".into(), name]);
        let selection: Vec<String> = filters.chain(skips).collect();
        let others = "-p portolan-base -p portolan-compose -p portolan-engine -p portolan-rpc";
        let strict = format!("-Zmiri-strict-provenance {flags}");
        let first = command(&strict, &format!("-p portolan {others}"), &selection);
        let second = command(flags, others, &modules(WITH_ADDRESSES));
        self.tests("miri", first)?;
        self.tests("miri-addresses", second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_modules_left_out_exist() {
        for name in LEFT_OUT.split_whitespace().chain(WITH_ADDRESSES.split_whitespace()) {
            let path = name.replace("::", "/");
            let exists = SOURCES.iter().any(|sources| {
                let sources = system::root().join(sources);
                [format!("{path}.rs"), format!("{path}/mod.rs")]
                    .iter()
                    .any(|file| sources.join(file).exists())
            });
            assert!(exists, "there is no module {name}");
        }
    }

    #[test]
    fn modules_with_unsafe_code_and_tests_are_found() {
        let modules = unsafe_modules(&system::root().join("crates/base/src"));
        assert!(modules.contains(&"sync::brlock::".into()), "{modules:?}");
        assert!(modules.iter().all(|module| !module.contains('/') && !module.contains("::mod")));
    }
}
