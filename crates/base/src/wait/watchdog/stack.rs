//! Finds the library call that a thread is in, and its callers, from the thread's own stack. Names
//! of calls are not recorded while the program runs, because the cheapest calls take only a few
//! nanoseconds.

use crate::process::message::is_of_library;
use crate::thread::PublicCall;
use std::backtrace::Backtrace;

const CALLERS: usize = 6;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stack {
    /// The name of a C function or of a Rust function of this crate.
    pub call: String,
    /// The source line of the call, if it is recorded or debug information has it.
    pub place: Option<String>,
    pub callers: String,
}

/// Functions of Rust's own libraries do not describe the call.
fn is_plumbing(name: &str) -> bool {
    let name = name.trim_start_matches('<');
    ["std::", "core::", "alloc::", "__rust_try", "&dyn "].iter().any(|p| name.starts_with(p))
}

fn is_ours(name: &str) -> bool {
    let name = name.trim_start_matches('<').trim_start_matches('&');
    is_of_library(name) || name == "unknown>"
}

/// Removes closures and generic arguments: `portolan::group::Group::barrier::{closure#0}`
/// becomes `portolan::group::Group::barrier`.
fn shorter(name: &str) -> &str {
    // In both mangling schemes `::{` starts a closure.
    name.split("::{").next().and_then(|n| n.split("::<").next()).unwrap_or(name)
}

/// Returns the name of a C function in programs. `PARMCI_Put` and `ARMCI_Put` are the same
/// code, and the symbol table may return either. The headers of Mercury 2.4 give `HG_Progress` the
/// symbol `mercury2_HG_Progress`.
fn user_name(name: &str) -> &str {
    let twin = |n: &&str| ["ARMCI_", "LAPI_", "armci_"].iter().any(|prefix| n.starts_with(prefix));
    let plain = name.strip_prefix(['P', 'p']).filter(twin);
    plain.or_else(|| name.strip_prefix("mercury2_")).unwrap_or(name)
}

/// The functions of a backtrace, innermost first, with their source lines if known. A line of its
/// text has the form `  12: name`, and `at file:line:column` may follow. A line without a number
/// names the function into which the previous one was inlined.
fn functions(trace: &str) -> Vec<(&str, Option<&str>)> {
    let mut all: Vec<(&str, Option<&str>)> = Vec::new();
    for line in trace.lines() {
        match (line.trim_start().split_once(": "), line.strip_prefix("      ")) {
            (Some((number, name)), _) if number.parse::<u32>().is_ok() => {
                all.push((user_name(shorter(name.trim())), None));
            }
            (_, Some(line)) if !line.starts_with(' ') => {
                all.push((user_name(shorter(line.trim())), None))
            }
            (_, Some(line)) => {
                if let (Some(last), Some(place)) = (all.last_mut(), line.trim().strip_prefix("at "))
                {
                    last.1 = Some(place);
                }
            }
            (_, None) => {}
        }
    }
    all
}

impl Stack {
    /// A recorded call of the Rust interface gives the name and the source line.
    pub(super) fn here() -> Stack {
        let stack = Stack::of(&Backtrace::force_capture().to_string());
        match PublicCall::current() {
            Some((call, place)) => {
                let place = crate::process::caller().unwrap_or_else(|| place.to_string());
                Stack { call: call.into(), place: Some(place), ..stack }
            }
            None => stack,
        }
    }

    /// Returns the call, with its source line or its callers.
    pub(super) fn name(&self) -> String {
        match &self.place {
            Some(place) => format!("{} ({place})", self.call),
            None => format!("{} (called by {})", self.call, self.callers),
        }
    }

    fn of(trace: &str) -> Stack {
        let functions = functions(trace).into_iter().skip_while(|(n, _)| !is_ours(n));
        let mut functions = functions.filter(|(n, _)| !is_plumbing(n)).peekable();
        let mut call = "a call";
        // `run` calls the body of the program, so it counts as a caller.
        let is_inner = |n: &str| is_ours(n) && n != "portolan::run::run";
        while let Some((name, _)) = functions.next_if(|(n, _)| is_inner(n)) {
            call = if name == "<unknown>" { "a call" } else { name };
        }
        // The outermost function of a C call has the name that C programs use.
        let is_c = |n: &str| !n.contains("::") && !n.contains('<') && n != "main";
        if let Some((name, _)) = functions.next_if(|(n, _)| is_c(n)) {
            call = name;
        }
        let caller = functions.peek().filter(|(name, _)| !is_ours(name));
        let place = caller.and_then(|(_, place)| place.map(str::to_string));
        let mut callers: Vec<&str> = Vec::new();
        let names = functions.map(|(name, _)| name);
        for name in names.filter(|n| !n.starts_with("__libc_start") && *n != "_start") {
            if callers.last() != Some(&name) && callers.len() < CALLERS {
                callers.push(name);
            }
        }
        let callers = if callers.is_empty() { "somebody".into() } else { callers.join(", by ") };
        Stack { call: call.to_string(), place, callers }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_c_call_has_its_c_name() {
        let trace = "\
   0: std::backtrace::Backtrace::create
   1: portolan_engine::wait::watchdog::Standing::report
             at /src/watchdog.rs:1:2
   2: portolan_engine::wait::until
   3: portolan::boundary::or_abort::{{closure}}
   4: std::panicking::catch_unwind
   5: PARMCI_Barrier
   6: exchange
   7: main
   8: __libc_start_call_main";
        let stack = Stack::of(trace);
        assert_eq!(stack.call, "ARMCI_Barrier");
        assert_eq!(stack.callers, "exchange, by main");
        assert_eq!(stack.name(), "ARMCI_Barrier (called by exchange, by main)");
        let named = |name: &str| Stack::of(&trace.replace("PARMCI_Barrier", name)).call;
        assert_eq!(named("PLAPI_Term"), "LAPI_Term");
        assert_eq!(named("parmci_notify_wait"), "armci_notify_wait");
        assert_eq!(named("HG_Forward"), "HG_Forward");
        assert_eq!(named("mercury2_HG_Progress"), "HG_Progress");
        let nested =
            trace.replace("exchange", "on_reply\n   7: mercury2_HG_Trigger\n   8: exchange");
        assert_eq!(Stack::of(&nested).callers, "on_reply, by HG_Trigger, by exchange, by main");
    }

    #[test]
    fn debug_information_has_the_line_of_the_call() {
        let trace = "\
   2: portolan_engine::wait::until
             at /src/wait.rs:1:2
   5: PARMCI_Barrier
             at /src/armci.rs:3:4
   6: exchange
             at ./src/solver.c:42:5
   7: main
             at ./src/solver.c:80:9";
        let stack = Stack::of(trace);
        assert_eq!(stack.name(), "ARMCI_Barrier (./src/solver.c:42:5)");
        assert_eq!(stack.callers, "exchange, by main");
        // A line of the library is not the program's.
        let trace = "\
   2: portolan::segment::Segment<T>::get
             at /src/segment.rs:1:2
   3: portolan::run::run
             at /src/run.rs:3:4
   4: main";
        let stack = Stack::of(trace);
        assert_eq!(stack.call, "portolan::segment::Segment<T>::get");
        assert_eq!((stack.callers.as_str(), stack.place), ("portolan::run::run, by main", None));
    }

    #[test]
    fn a_call_of_rust_has_its_path() {
        let trace = "\
   1: portolan_engine::wait::until
   2: <portolan_engine::runtime::Engine as portolan_engine::wait::Progress>::poll
   3: portolan::group::Group::barrier::{{closure}}
   4: heat::main
   5: core::ops::function::FnOnce::call_once
   6: main";
        let stack = Stack::of(trace);
        assert_eq!(stack.call, "portolan::group::Group::barrier");
        assert_eq!(stack.callers, "heat::main, by main");
    }

    #[test]
    fn inlined_calls_count() {
        let trace = "\
   3: core::ops::function::FnOnce::call_once
             at /rustc/1/function.rs:250:5
      <portolan_engine::wait::watchdog::Standing>::report
             at /src/watchdog.rs:1:2
   4: portolan_engine::wait::until::<portolan_engine::runtime::Engine>
      <portolan_engine::runtime::Engine>::lock
             at /src/lock.rs:1:2
      ranks::watchdog::held
   5: main";
        let stack = Stack::of(trace);
        assert_eq!(stack.call, "<portolan_engine::runtime::Engine>::lock");
        assert_eq!(stack.callers, "ranks::watchdog::held, by main");
    }

    #[test]
    fn a_library_without_names_still_has_those_that_it_exports() {
        let trace = "   0: <unknown>\n   1: <unknown>\n   2: ARMCI_Lock\n   3: main";
        assert_eq!(Stack::of(trace).call, "ARMCI_Lock");
        assert_eq!(Stack::of("   0: <unknown>\n   1: main").call, "a call");
        assert_eq!(Stack::of("disabled").call, "a call");
    }
}
