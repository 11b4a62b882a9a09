//! Which call of the library a thread is in, and which functions called it: read from its own
//! stack.
//!
//! The names of calls are not kept anywhere while the program runs, because the
//! cheapest of them take some nanoseconds. A report is rare and may take long.

use super::PublicCall;
use std::backtrace::Backtrace;

/// Callers that a report names.
const CALLERS: usize = 6;

/// What was read from the stack.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stack {
    /// The call of the library: the name of a C function, or of one of ours.
    pub call: String,
    /// Where it was made, if that was noted.
    pub place: Option<String>,
    /// The functions that called it, the nearest first.
    pub callers: String,
}

/// A function of the language's own library, which says nothing about the call.
fn is_plumbing(name: &str) -> bool {
    let name = name.trim_start_matches('<');
    ["std::", "core::", "alloc::", "__rust_try", "&dyn "].iter().any(|p| name.starts_with(p))
}

fn is_ours(name: &str) -> bool {
    let name = name.trim_start_matches('<').trim_start_matches('&');
    // A library without names, of which only the C functions are known.
    name.starts_with("portolan::") || name.starts_with("<portolan::") || name == "unknown>"
}

/// `portolan::api::group::Group::barrier::{closure#0}` is the group's barrier.
fn shorter(name: &str) -> &str {
    // Both ways of writing names, and arguments of types.
    name.split("::{").next().and_then(|n| n.split("::<").next()).unwrap_or(name)
}

impl Stack {
    /// The calling thread's. A call of the Rust interface that was noted has its name and its line.
    pub(super) fn here() -> Stack {
        let stack = Stack::of(&Backtrace::force_capture().to_string());
        match PublicCall::current() {
            Some((call, place)) => {
                Stack { call: call.into(), place: Some(place.to_string()), ..stack }
            }
            None => stack,
        }
    }

    /// The call, and where it was made or which function made it.
    pub(super) fn name(&self) -> String {
        match &self.place {
            Some(place) => format!("{} ({place})", self.call),
            None => format!("{} (called by {})", self.call, self.callers),
        }
    }

    fn of(trace: &str) -> Stack {
        // Lines are `  12: name`, each with a line `at file` behind it where known.
        let names = trace.lines().filter_map(|line| {
            let name = match line.trim_start().split_once(": ") {
                Some((number, name)) if number.parse::<u32>().is_ok() => name,
                // One into which the one before it was inlined has no number.
                _ => line.strip_prefix("      ").filter(|l| !l.starts_with(' '))?,
            };
            Some(shorter(name.trim()))
        });
        let mut names = names.skip_while(|n| !is_ours(n)).filter(|n| !is_plumbing(n)).peekable();
        let mut call = "a call";
        // The function that runs a program's body is one of its callers.
        while let Some(name) = names.next_if(|n| is_ours(n) && !n.ends_with("api::run::run")) {
            call = if name == "<unknown>" { "a call" } else { name };
        }
        // The face's own function carries the name that C knows.
        let is_c = |n: &&str| !n.contains("::") && !n.contains('<') && *n != "main";
        if let Some(name) = names.next_if(is_c) {
            // Some calls have two names, of which the symbol table gives either.
            let twin =
                |n: &&str| ["ARMCI_", "LAPI_", "armci_"].iter().any(|prefix| n.starts_with(prefix));
            call = name.strip_prefix(['P', 'p']).filter(twin).unwrap_or(name);
        }
        let mut callers: Vec<&str> = Vec::new();
        for name in names.filter(|n| !n.starts_with("__libc_start") && *n != "_start") {
            if callers.last() != Some(&name) && callers.len() < CALLERS {
                callers.push(name);
            }
        }
        let callers = if callers.is_empty() { "somebody".into() } else { callers.join(", by ") };
        Stack { call: call.to_string(), place: None, callers }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_c_call_has_its_c_name() {
        let trace = "\
   0: std::backtrace::Backtrace::create
   1: portolan::watchdog::Standing::report
             at /src/watchdog.rs:1:2
   2: portolan::wait::until
   3: portolan::capi::boundary::or_abort::{{closure}}
   4: std::panicking::catch_unwind
   5: PARMCI_Barrier
   6: exchange
   7: main
   8: __libc_start_call_main";
        let stack = Stack::of(trace);
        assert_eq!(stack.call, "ARMCI_Barrier");
        assert_eq!(stack.callers, "exchange, by main");
        let named = |name: &str| Stack::of(&trace.replace("PARMCI_Barrier", name)).call;
        assert_eq!(named("PLAPI_Term"), "LAPI_Term");
        assert_eq!(named("parmci_notify_wait"), "armci_notify_wait");
        assert_eq!(named("HG_Forward"), "HG_Forward");
    }

    #[test]
    fn a_call_of_rust_has_its_path() {
        let trace = "\
   1: portolan::wait::until
   2: <portolan::runtime::Engine as portolan::wait::Progress>::poll
   3: portolan::api::group::Group::barrier::{{closure}}
   4: heat::main
   5: core::ops::function::FnOnce::call_once
   6: main";
        let stack = Stack::of(trace);
        assert_eq!(stack.call, "portolan::api::group::Group::barrier");
        assert_eq!(stack.callers, "heat::main, by main");
    }

    #[test]
    fn inlined_calls_count() {
        let trace = "\
   3: core::ops::function::FnOnce::call_once
             at /rustc/1/function.rs:250:5
      <portolan::watchdog::Standing>::report
             at /src/watchdog.rs:1:2
   4: portolan::wait::until::<portolan::runtime::Engine>
      <portolan::runtime::Engine>::lock
             at /src/lock.rs:1:2
      ranks::watchdog::held
   5: main";
        let stack = Stack::of(trace);
        assert_eq!(stack.call, "<portolan::runtime::Engine>::lock");
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
