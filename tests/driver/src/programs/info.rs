//! `portolan-info PROGRAM` finds the ARMCI of programs that are linked in different ways, and
//! `portolan-info --markdown` prints docs/environment.md.
//!
//! Libraries that are not installed here are replaced by stand-ins, which define the functions that
//! identify an implementation.

use super::super::launch;
use super::super::system::{flavour, root};
use super::special::Special;
use super::{Suite, exit_code};
use std::path::Path;
use std::process::Command;
use std::slice::from_ref;

pub(super) const LABEL: &str = "info/armci of programs";
pub(super) const PAGE: &str = "info/docs/environment.md";

/// The sources of the stand-ins and of the programs.
const ARMCI_MPI: &str = "int ARMCI_Init(void) { return 1; }\nvoid ARMCII_Warning(void) {}\n";
const COMEX: &str = "int comex_init(void) { return 1; }\n";
const COMEX_ARMCI: &str = "int comex_init(void);\nint ARMCI_Init(void) { return comex_init(); }\n";
const PROGRAM: &str = "int ARMCI_Init(void);\nint main(void) { return ARMCI_Init(); }\n";
const WRAPPER: &str = "int PARMCI_Init(void);\nint ARMCI_Init(void) { return PARMCI_Init(); }\n\
                       int main(void) { return ARMCI_Init(); }\n";
const NO_ARMCI: &str = "int main(void) { return 0; }\n";

struct Case {
    program: String,
    variables: Vec<(String, String)>,
    code: i32,
    says: String,
}

/// Runs shell commands in a new directory, with `$CC` and the directory of the library.
fn build(dir: &Path, commands: &str, cc: &str, lib: &Path) -> Result<(), String> {
    let _ = std::fs::remove_dir_all(dir);
    std::fs::create_dir_all(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    for (name, text) in [
        ("mpi.c", ARMCI_MPI),
        ("comex.c", COMEX),
        ("comex-armci.c", COMEX_ARMCI),
        ("program.c", PROGRAM),
        ("wrapper.c", WRAPPER),
        ("none.c", NO_ARMCI),
        ("script", "#!/bin/sh\n"),
    ] {
        std::fs::write(dir.join(name), text).map_err(|e| format!("{name}: {e}"))?;
    }
    let mut shell = Command::new("sh");
    shell.args(["-euc", commands]).current_dir(dir).env("CC", cc).env("LIB", lib);
    shell.env("HELLO", root().join("examples/c/hello.c"));
    shell.env("DEBIAN", format!("libarmci-{}.a", flavour()));
    let log = dir.join("log");
    launch::into_files(&mut shell, &log, None);
    match shell.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(format!("does not build: {}", launch::text_of(&log))),
        Err(e) => Err(format!("sh: {e}")),
    }
}

const COMMANDS: &str = r#"
mkdir a b lib
cc -shared -fPIC mpi.c -Wl,-soname,libarmci.so.1 -o a/libarmci.so.1
cc -shared -fPIC comex.c -Wl,-soname,libcomex.so.3 -o b/libcomex.so.3
cc -shared -fPIC comex-armci.c -Wl,-soname,libarmci.so.3 b/libcomex.so.3 -Wl,-rpath,'$ORIGIN' -o b/libarmci.so.3
cc program.c a/libarmci.so.1 -Wl,--enable-new-dtags,-rpath,"$PWD/a" -o runpath
cc program.c a/libarmci.so.1 -Wl,--disable-new-dtags,-rpath,"$PWD/a" -o rpath
cc program.c a/libarmci.so.1 -Wl,-rpath,'$ORIGIN/a' -o origin
cc program.c -L a -l:libarmci.so.1 -o nowhere
cc program.c b/libarmci.so.3 -Wl,-rpath,"$PWD/b" -Wl,-rpath-link,b -o comex
$CC wrapper.c -L"$LIB" -larmci -Wl,-rpath,"$LIB" -o wrapper
cc none.c -o none
cp "$1" static && strip static
debian=$($CC -print-file-name="$DEBIAN")
if [ -f "$debian" ]; then
  $CC "$HELLO" -I"$LIB/../include" "$debian" -o debian
  cp debian debian-stripped && strip debian-stripped
fi
"#;

fn cases(suite: &Suite<'_>, dir: &Path) -> Vec<Case> {
    let lib = suite.tools.prefix.join("lib");
    let here = |name: &str| dir.join(name).display().to_string();
    let case = |program: String, variables: &[(&str, String)], code, says: String| Case {
        program,
        variables: [("LD_LIBRARY_PATH", String::new()), ("LD_PRELOAD", String::new())]
            .iter()
            .chain(variables)
            .map(|(name, value)| (name.to_string(), value.clone()))
            .collect(),
        code,
        says,
    };
    let own = |name: &str| suite.path(name);
    let installed = std::fs::canonicalize(lib.join("libportolan.so.0")).unwrap_or_default();
    let version = env!("CARGO_PKG_VERSION");
    let portolan = format!("Portolan {version}, in {}\n", installed.display());
    let inside = format!("Portolan {version}, in the program\n");
    let mpi = format!("ARMCI-MPI, in {}\n", here("a/libarmci.so.1"));
    let found = |lib: &Path| [("LD_LIBRARY_PATH", lib.display().to_string())];
    let info = suite.tools.prefix.join("bin/portolan-info").display().to_string();
    let mut cases = vec![
        case(own("c/values"), &[], 0, portolan.clone()),
        case(own("link/values.static"), &[], 0, inside.clone()),
        case(here("static"), &[], 0, inside),
        case(here("runpath"), &[], 0, mpi.clone()),
        // The library path precedes DT_RUNPATH, but not DT_RPATH.
        case(here("runpath"), &found(&lib), 0, portolan.clone()),
        case(here("rpath"), &found(&lib), 0, mpi.clone()),
        case(here("origin"), &[], 0, mpi.clone()),
        case(here("nowhere"), &[], 1, "not found           libarmci.so.1\n".into()),
        case(here("nowhere"), &found(&dir.join("a")), 0, mpi),
        case(here("wrapper"), &[], 0, portolan.clone()),
        case(here("runpath"), &[("LD_PRELOAD", installed.display().to_string())], 0, portolan),
        case(here("comex"), &[], 0, format!("ComEx, in {}\n", here("b/libarmci.so.3"))),
        case(here("none"), &[], 0, "ARMCI               none\n".into()),
        case(info, &[], 0, "ARMCI               none\n".into()),
        case(here("script"), &[], 2, "is a script".into()),
        case(here("mpi.c"), &[], 2, "is not an ELF file".into()),
        case("--version".into(), &[], 0, format!("portolan-info {version}\n")),
    ];
    for name in ["debian", "debian-stripped"] {
        if dir.join(name).exists() {
            cases.push(case(here(name), &[], 0, "ARMCI-MPI, in the program\n".into()));
        }
    }
    cases
}

pub(super) fn armci(special: &Special, suite: &mut Suite<'_>) {
    let info = suite.tools.prefix.join("bin/portolan-info").display().to_string();
    let dir = suite.builder.dir.join("info");
    let commands = format!("set -- '{}'\n{COMMANDS}", suite.path("link/values.static"));
    let built = build(&dir, &commands, &suite.tools.cc, &suite.tools.prefix.join("lib"));
    let mut outcome = suite.launch(from_ref(&info), &[], &["--help".into()], || {});
    let mut verdict = built;
    if verdict.is_ok() {
        for Case { program, variables, code, says } in cases(suite, &dir) {
            outcome = suite.launch(from_ref(&info), &variables, from_ref(&program), || {});
            let said = format!("{}{}", outcome.out, outcome.err);
            if outcome.ended.code != Some(code) || !said.contains(&says) {
                let ended = exit_code(outcome.ended.code);
                verdict = Err(format!("{program} {variables:?}: {ended}, expected '{says}'"));
                break;
            }
            if code == 0 && said.contains("not found") {
                verdict = Err(format!("{program} {variables:?}: a library is not found"));
                break;
            }
        }
    }
    suite.record(special.label, &outcome, verdict);
}

pub(super) fn page(special: &Special, suite: &mut Suite<'_>) {
    let info = suite.tools.prefix.join("bin/portolan-info").display().to_string();
    let outcome = suite.launch(from_ref(&info), &[], &["--markdown".into()], || {});
    let page = launch::text_of(&root().join("docs/environment.md"));
    let verdict = if outcome.ended.code != Some(0) {
        Err(exit_code(outcome.ended.code))
    } else if outcome.out != page {
        Err("the page is out of date: portolan-info --markdown > docs/environment.md".into())
    } else {
        Ok(())
    };
    suite.record(special.label, &outcome, verdict);
}
