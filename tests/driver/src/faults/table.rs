//! The fault cases and how each has to end.

use super::super::system::{self, Tools};
use std::process::Stdio;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// Fewer cases, and small floods.
    Quick,
    /// Most cases.
    Default,
    /// All cases, with floods of ten million operations of each kind.
    Release,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// With status 0 and one PASS line.
    Pass,
    /// With another status, after EXPECT-END.
    End,
}

#[derive(Debug, Clone)]
pub struct Case {
    pub kind: Kind,
    pub seconds: u64,
    pub program: String,
    pub ranks: usize,
    /// Words such as `path=rma`. `shm=64m` sets the size of the launch's `/dev/shm`.
    pub settings: String,
    pub arguments: String,
    pub texts: Vec<String>,
}

impl Case {
    pub fn label(&self) -> String {
        let blank = |text: &str| if text.is_empty() { String::new() } else { format!(" {text}") };
        let (arguments, settings) = (blank(&self.arguments), blank(&self.settings));
        let mpi = system::flavour();
        format!("{}{arguments} [{mpi} n={}{settings}]", self.program, self.ranks)
    }

    pub fn setting(&self, name: &str) -> Option<&str> {
        let value = |word: &'_ str| word.strip_prefix(name)?.strip_prefix('=').map(str::len);
        self.settings.split_whitespace().find_map(|w| value(w).map(|len| &w[w.len() - len..]))
    }
}

/// A program that makes bad input to the calls of an interface.
pub struct BadInput {
    pub program: &'static str,
    pub library: &'static str,
    /// The page of `docs` that has the program's tables.
    pub page: &'static str,
    /// How the names of the calls begin.
    pub calls: &'static [&'static str],
    /// How the paths of the headers begin.
    pub headers: &'static [&'static str],
}

const fn bad_input(
    program: &'static str,
    library: &'static str,
    page: &'static str,
    calls: &'static [&'static str],
    headers: &'static [&'static str],
) -> BadInput {
    BadInput { program, library, page, calls, headers }
}

pub const BAD_INPUT: &[BadInput] = &[
    bad_input(
        "invalid",
        "armci",
        "errors",
        &["ARMCI", "PARMCI", "armci_", "parmci_", "portolan_"],
        &["armci", "message.h", "portolan.h"],
    ),
    bad_input("x10_invalid", "x10", "errors-x10", &["x10_"], &["x10/"]),
    bad_input("lapi_invalid", "lapi_r", "errors-lapi", &["LAPI_", "PLAPI_"], &["lapi.h"]),
    bad_input("cp_invalid", "compose", "errors-compose", &["cp_"], &["cp.h"]),
    bad_input(
        "mercury_invalid",
        "mercury",
        "errors-mercury-2013",
        &["HG_", "NA_", "hg_"],
        &["mercury.h", "mercury_", "na.h"],
    ),
    bad_input("mercury2_invalid", "mercury2", "errors-mercury", &["mercury2_"], &["mercury2/"]),
];

struct Table {
    cases: Vec<Case>,
    size: Size,
}

/// Returns all cases. Adds the cases that cannot run here to `skips`, with the reason.
pub fn cases(tools: &Tools, size: Size, skips: &mut Vec<(String, String)>) -> Vec<Case> {
    let mut table = Table { cases: Vec::new(), size };
    table.killed_and_gone();
    table.slow_targets();
    table.too_little();
    table.hangs(tools, skips);
    table.bad_input();
    table.floods();
    table.cases
}

impl Table {
    fn add(
        &mut self,
        (kind, seconds): (Kind, u64),
        program: &str,
        ranks: usize,
        settings: &str,
        arguments: &str,
        texts: &[&str],
    ) {
        self.cases.push(Case {
            kind,
            seconds,
            program: program.into(),
            ranks,
            settings: settings.into(),
            arguments: arguments.into(),
            texts: texts.iter().map(|text| text.to_string()).collect(),
        });
    }

    fn end(&mut self, ranks: usize, settings: &str, arguments: &str, texts: &[&str]) {
        self.add((Kind::End, 40), "faults", ranks, settings, arguments, texts);
    }

    fn pass(&mut self, seconds: u64, ranks: usize, settings: &str, arguments: &str) {
        self.add((Kind::Pass, seconds), "faults", ranks, settings, arguments, &[]);
    }

    fn killed_and_gone(&mut self) {
        let places: &[&str] = match self.size {
            Size::Quick => &["", "node-size=1"],
            _ => &["", "node-size=1", "path=rma", "path=message"],
        };
        for place in places {
            for name in ["kill-holder", "kill-fence", "kill-collective", "exit-status"] {
                self.end(3, place, name, &[]);
            }
            self.end(
                3,
                place,
                "exit-early",
                &[r"^portolan: rank 2: this rank exits with status 0"],
            );
            self.end(2, place, "kill-allocate 20", &[]);
            if self.size != Size::Quick {
                for after in [0, 7, 53, 131, 211] {
                    self.end(3, place, &format!("kill-allocate {after}"), &[]);
                }
            }
        }
        self.end(2, "", "exit-all", &["exits with status 0"]);
    }

    fn slow_targets(&mut self) {
        let stops = if self.size == Size::Quick { 2 } else { 5 };
        for place in ["", "path=message"] {
            self.pass(60, 3, place, "slow-target");
            self.pass(60, 3, place, &format!("stopped-target {stops}"));
        }
        self.pass(60, 3, "node-size=1", &format!("stopped-target {stops}"));
    }

    fn too_little(&mut self) {
        for place in ["", "path=message "] {
            self.pass(60, 2, &format!("{place}shm=64m"), "small-shm 64");
            self.pass(60, 3, place.trim(), "no-memory");
            let texts = ["segments of 64 KiB"];
            self.add((Kind::Pass, 60), "faults", 2, place.trim(), "few-descriptors 1000", &texts);
        }
    }

    fn floods(&mut self) {
        let (count, seconds) = match self.size {
            Size::Quick => (50_000, 180),
            Size::Default => (1_000_000, 180),
            Size::Release => (10_000_000, 1500),
        };
        let flood = format!("flood {count}");
        self.pass(seconds, 3, "", &flood);
        self.pass(seconds, 3, "node-size=1 path=message", &flood);
        if self.size != Size::Quick {
            self.pass(seconds, 3, "am=mpi", &flood);
        }
    }

    /// The watchdog names the call and the peer within its time limit, and then ends the job.
    fn hangs(&mut self, tools: &Tools, skips: &mut Vec<(String, String)>) {
        const W: &str = "watchdog=1 abort=2";
        const ENDS: &str = "the job is aborted, as set by PORTOLAN_WATCHDOG_ABORT";
        let ends = |what: &str| format!("{what}{ENDS}");
        self.end(
            2,
            W,
            "hang-barrier",
            &[
                r"ARMCI_Barrier has waited 1\.[0-9] s for a barrier .* without rank 1",
                "last progress",
                "pending: ",
                r"called by .*faults\.c:[0-9]+:[0-9]+, in hang_barrier",
                &ends("ARMCI_Barrier: no progress for .*"),
            ],
        );
        self.end(
            2,
            W,
            "hang-lock",
            &[
                r"ARMCI_Lock has waited 1\.[0-9] s for mutex 0 of rank 0, which rank 1 holds",
                r"called by .*faults\.c:[0-9]+:[0-9]+, in hang_lock",
                "ARMCI_Lock: no progress",
            ],
        );
        self.end(
            2,
            W,
            "hang-receive",
            &[
                r"armci_msg_rcv has waited 1\.[0-9] s for a message of rank 1 with tag 77",
                &ends("armci_msg_rcv: no progress for .*"),
            ],
        );
        for place in ["", " node-size=1"] {
            self.end(
                2,
                &format!("{W}{place}"),
                "hang-term",
                &[
                    r"LAPI_Term has waited 1\.[0-9] s for all messages to be handled",
                    &ends("LAPI_Term: no progress for .*"),
                ],
            );
        }
        let message = format!("{W} path=message");
        self.end(
            2,
            &message,
            "hang-fence",
            &[
                r"ARMCI_Fence has waited 1\.[0-9] s for rank 1 to confirm",
                "towards rank 1: [0-9]+ requests",
                &ends("ARMCI_Fence: no progress for .* rank 1 .*"),
            ],
        );
        self.end(
            2,
            &message,
            "hang-barrier",
            &[r"ARMCI_Barrier has waited 1\.[0-9] s for a barrier of 2 ranks", ENDS],
        );
        // Since MPICH 4.2, windows on one machine complete without their target.
        if system::flavour() == "mpich" {
            if windows_wait(tools) {
                self.end(
                    2,
                    &format!("{W} path=rma"),
                    "hang-fence",
                    &[
                        r"a call has been 1\.[0-9] s in MPI_Win_flush(_local)? towards rank 1",
                        &ends("no progress for .* MPI_Win_flush(_local)? towards rank 1.*"),
                    ],
                );
            } else {
                let name = format!("faults hang-fence [{} n=2 path=rma]", system::flavour());
                skips.push((name, "windows complete without their target".into()));
            }
        }
        let asked = "ARMCI_Barrier has waited .*";
        let mut answered = |ranks: usize, place: &str, texts: [&str; 2]| {
            self.add((Kind::Pass, 15), "faults", ranks, place, "asked", &texts);
        };
        let one = format!(r"^portolan: rank 0: {asked} without rank 1.* \(requested by SIGUSR1\)");
        let other = format!(r"^portolan: rank 0: {asked}requested by SIGUSR1");
        let none =
            r"^portolan: rank 1: is not waiting in a call of the library \(requested by SIGUSR1\)";
        answered(2, "", [none, &one]);
        answered(
            3,
            "node-size=1",
            [r"^portolan: rank 2: is not waiting in a call of the library", &other],
        );
        self.pass(15, 2, "", "own-handler");
    }

    fn bad_input(&mut self) {
        let mut pass = |program: &str, ranks: usize, settings: &str| {
            self.cases.push(Case {
                kind: Kind::Pass,
                seconds: 60,
                program: program.into(),
                ranks,
                settings: settings.into(),
                arguments: String::new(),
                texts: Vec::new(),
            });
        };
        for program in BAD_INPUT.iter().map(|bad| bad.program) {
            pass(program, 2, "");
            if self.size != Size::Quick {
                pass(program, 3, "node-size=1");
            }
            if self.size == Size::Release {
                pass(program, 1, "");
                pass(program, 3, "node-size=2");
                pass(program, 2, "am=mpi");
            }
        }
        if self.size != Size::Quick {
            pass("invalid", 1, "");
            pass("invalid", 2, "path=message");
            pass("invalid", 3, "path=rma");
        }
    }
}

/// Returns whether the MPI is an MPICH before 4.2, according to `portolan-info`: its windows wait for
/// their target.
fn windows_wait(tools: &Tools) -> bool {
    let mut words = tools.launcher.clone();
    words.extend(["-n".into(), "2".into()]);
    words.push(tools.prefix.join("bin/portolan-info").display().to_string());
    let mut command = system::command(&words);
    super::launch::without_variables(&mut command);
    let output = command.stdin(Stdio::null()).output().map(|output| output.stdout);
    let output = String::from_utf8_lossy(&output.unwrap_or_default()).into_owned();
    ["3.", "4.0", "4.1"].iter().any(|old| output.contains(&format!("MPICH Version: {old}")))
}
