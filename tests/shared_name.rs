//! A program linked with another `libarmci` runs on this library if `LD_LIBRARY_PATH` selects it.
//!
//! Debian packages that library only as an archive. Built as a shared library from Debian's
//! sources, it is `libarmci.so.1`. The stand-in in this test has that soname and defines the
//! functions that the program calls. Each of them aborts.
//!
//! The test needs the installed library in `PORTOLAN_PREFIX`, its MPI's compiler in `MPICC` and its
//! launcher with flags in `PORTOLAN_MPIEXEC`, as `scripts/test.sh` sets them.

use std::path::{Path, PathBuf};
use std::process::Command;

const SONAME: &str = "libarmci.so.1";

fn output(command: &mut Command) -> String {
    let done = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{command:?}: {}\n{out}\n{err}", done.status);
    out.into_owned()
}

/// Returns the ARMCI functions that an object file leaves undefined.
fn open_calls(object: &Path) -> Vec<String> {
    let symbols = output(Command::new("nm").args(["--undefined-only", "-P"]).arg(object));
    let names = symbols.lines().filter_map(|line| line.split_whitespace().next());
    let ours = names.filter(|name| name.to_ascii_uppercase().starts_with("ARMCI_"));
    ours.map(String::from).collect()
}

#[test]
fn program_linked_with_another_shared_libarmci() {
    let setting = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let (Some(prefix), Some(launcher)) = (setting("PORTOLAN_PREFIX"), setting("PORTOLAN_MPIEXEC"))
    else {
        println!("skipped: PORTOLAN_PREFIX and PORTOLAN_MPIEXEC name no installed library");
        return;
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ is in a folder");
    let (prefix, compiler) = (PathBuf::from(prefix), setting("MPICC").unwrap_or("mpicc".into()));
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("shared_name");
    std::fs::create_dir_all(&dir).expect("a directory for the test");
    let mpicc = || Command::new(&compiler);

    let object = dir.join("hello.o");
    let source = root.join("examples/c/hello.c");
    output(
        mpicc().arg("-c").arg("-I").arg(prefix.join("include")).arg(source).arg("-o").arg(&object),
    );
    let calls = open_calls(&object);
    assert!(calls.len() > 3, "the program calls only {calls:?}");
    let stand_in: String =
        calls.iter().map(|name| format!("void {name}(void) {{ abort(); }}\n")).collect();
    let stand_in_source = dir.join("stand_in.c");
    std::fs::write(&stand_in_source, format!("void abort(void);\n{stand_in}"))
        .expect("a source file");
    let library = dir.join(SONAME);
    let soname = format!("-Wl,-soname,{SONAME}");
    output(
        mpicc().args(["-shared", "-fPIC", &soname]).arg(stand_in_source).arg("-o").arg(&library),
    );
    let program = dir.join("hello");
    output(mpicc().arg(&object).arg(&library).arg("-o").arg(&program));

    // The launcher of this MPI may need a library path of its own, so this library's comes first.
    let mut path = prefix.join("lib").into_os_string();
    if let Some(rest) = std::env::var_os("LD_LIBRARY_PATH") {
        path.push(":");
        path.push(rest);
    }
    let found = output(Command::new("ldd").arg(&program).env("LD_LIBRARY_PATH", &path));
    let ours = format!("{SONAME} => {}", prefix.join("lib").join(SONAME).display());
    assert!(found.contains(&ours), "the program would run on another library:\n{found}");

    let words: Vec<_> = launcher.split_whitespace().collect();
    let printed = output(
        Command::new(words[0])
            .args(&words[1..])
            .args(["-n", "2"])
            .arg(&program)
            .env("LD_LIBRARY_PATH", &path),
    );
    for line in ["rank 0 of 2: 101 from rank 1", "rank 1 of 2: 100 from rank 0"] {
        assert!(printed.contains(line), "not '{line}':\n{printed}");
    }
}
