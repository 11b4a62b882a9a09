//! Every script answers `--help` at once: it prints its usage, and starts neither cargo nor an MPI
//! nor a package manager. `scripts/dev` lists the commands of the test driver and the scripts for
//! developers, and pages name only these. The driver ends quietly if its output is a closed pipe,
//! and `mpirun.sh` names a host that lacks a library. `scripts/install.sh --uninstall` removes only
//! files below its prefix. No script searches the current directory for libraries, and none uses a
//! name in `/tmp` that others can predict.

use super::{pages, root};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Programs that a script must not start to answer. They are replaced by one that leaves a mark.
const SLOW: [&str; 12] = [
    "apt-get",
    "cargo",
    "cmake",
    "gcc",
    "make",
    "mpicc",
    "mpicc.mpich",
    "mpicc.openmpi",
    "mpiexec",
    "pip",
    "rustc",
    "sudo",
];

fn replacements(dir: &Path) {
    let _ = fs::remove_dir_all(dir);
    fs::create_dir_all(dir).expect("a directory");
    for name in SLOW {
        let file = dir.join(name);
        let text = format!("#!/bin/sh\necho {name} >>{}/started\nexit 1\n", dir.display());
        fs::write(&file, text).expect("a script");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("a script");
    }
}

fn executables() -> Vec<PathBuf> {
    let executable = |path: &PathBuf| {
        path.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
    };
    let mut all = vec![root().join("mpirun.sh")];
    for folder in ["scripts", "scripts/dev.d", "scripts/dev.d/lib"] {
        let folder = fs::read_dir(root().join(folder)).expect("the folder exists");
        all.extend(folder.flatten().map(|entry| entry.path()).filter(executable));
    }
    all
}

#[test]
fn every_script_answers_help() {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("help");
    replacements(&dir);
    let path = format!("{}:{}", dir.display(), std::env::var("PATH").expect("PATH is set"));
    let scripts = executables();
    assert!(scripts.len() > 8, "only {scripts:?} found");
    for script in scripts {
        let name = script.file_stem().expect("a name").to_string_lossy().into_owned();
        if name == "test" {
            continue; // the test driver answers, which has to be built first
        }
        let output = Command::new(&script).arg("--help").env("PATH", &path).output();
        let output = output.unwrap_or_else(|e| panic!("{name}: {e}"));
        let (out, err) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let first = out.lines().next().unwrap_or_default().to_lowercase();
        assert!(output.status.success(), "{name} --help: {}\n{out}{err}", output.status);
        assert!(first.starts_with("usage: ") && first.contains(&name), "{name} prints: {out}");
        assert!(out.lines().count() > 2 && err.is_empty(), "{name} prints: {out}{err}");
        let started = fs::read_to_string(dir.join("started")).unwrap_or_default();
        assert!(started.is_empty(), "{name} --help starts {started}");
    }
}

/// Returns the names of the commands of `scripts/dev`.
fn commands() -> BTreeSet<String> {
    let names = fs::read_dir(root().join("scripts/dev.d"))
        .expect("the scripts")
        .map(|entry| entry.expect("a script").file_name().into_string().expect("a name in UTF-8"));
    let scripts = names.filter_map(|name| Some(name.strip_suffix(".sh")?.to_string()));
    scripts.chain(portolan_driver::cli::names()).collect()
}

#[test]
fn every_command_is_listed_and_no_other() {
    let help = fs::read_to_string(root().join("scripts/dev")).expect("scripts/dev");
    let lines = help.lines().filter_map(|line| line.strip_prefix("#   "));
    let listed = lines.filter_map(|line| line.split(' ').next()).filter(|name| !name.is_empty());
    let listed: BTreeSet<String> = listed.map(String::from).collect();
    let commands = commands();
    assert_eq!(listed, commands, "the head of scripts/dev, scripts/dev.d and the test driver");
    names_only("scripts/dev ", &commands);
}

#[test]
fn a_closed_pipe_ends_the_driver_quietly() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let list = Command::new(root().join("scripts/test.sh")).arg("--list").stdout(writer).output();
    let list = list.expect("scripts/test.sh");
    let errors = String::from_utf8_lossy(&list.stderr);
    assert!(errors.is_empty() && !list.status.success(), "{}: {errors}", list.status);
}

/// The MPI and `ldd` are replaced by scripts.
#[test]
fn mpirun_names_a_host_that_lacks_a_library() {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("lacking");
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).expect("a directory");
    let fakes = [
        ("mpicc", "echo '#define MPICH_VERSION \"4\"'"),
        ("mpiexec", "while [ \"$1\" != -n ]; do shift; done; shift 2; exec \"$@\""),
        ("ldd", "echo '  libgone.so.1 => not found'"),
        ("uname", "echo node7"),
    ];
    // Another process writes the scripts: a child of another thread would inherit an open file, and
    // a script that is open for writing cannot be run.
    let write = "printf '#!/bin/sh\\n%s\\n' \"$2\" >\"$1\" && chmod +x \"$1\"";
    for (name, text) in fakes {
        let status =
            Command::new("sh").args(["-c", write, "sh"]).arg(dir.join(name)).arg(text).status();
        assert!(status.expect("sh").success(), "{name}");
    }
    let path = format!("{}:{}", dir.display(), std::env::var("PATH").expect("PATH is set"));
    let run = |flags: &str| {
        let mut command = Command::new(root().join("mpirun.sh"));
        command.args(["--mpi", "system", "-n", "2", "true"]).env("PATH", &path);
        command.env("PORTOLAN_MPIRUN_FLAGS", flags).output().expect("mpirun.sh")
    };
    let refused = run("-hosts node7,node8");
    let text = String::from_utf8_lossy(&refused.stderr);
    assert!(text.contains("host node7 has no libgone.so.1:"), "{}: {text}", refused.status);
    assert_eq!(refused.status.code(), Some(2), "{text}");
    assert!(run("").status.success(), "on one host the loader itself reports it");
}

#[test]
fn pages_name_only_experiments_that_exist() {
    let output = Command::new(root().join("scripts/bench.py")).arg("--help").output();
    let help = String::from_utf8(output.expect("the help").stdout).expect("UTF-8");
    let lines = help.lines().filter_map(|line| line.strip_prefix("  "));
    let listed = lines.filter_map(|line| line.split(' ').next()).map(String::from).collect();
    names_only("scripts/bench.py ", &listed);
}

/// Asserts that each name after `command` on a page is one of `names`.
fn names_only(command: &str, names: &BTreeSet<String>) {
    for (path, page) in pages() {
        for (at, _) in page.text.match_indices(command) {
            let name: String = page.text[at + command.len()..]
                .chars()
                .take_while(|c| c.is_ascii_alphanumeric() || *c == '-')
                .collect();
            let general = name.starts_with('-') || name.ends_with('-') || name == "NAME";
            assert!(general || names.contains(&name), "{}: {command}{name}", path.display());
        }
    }
}

fn uninstall(prefix: &Path) -> (bool, String) {
    let script = root().join("scripts/install.sh");
    let output = Command::new(script).arg("--uninstall").arg("--prefix").arg(prefix).output();
    let output = output.expect("scripts/install.sh");
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn an_uninstall_stays_below_its_prefix() {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("uninstall");
    let _ = fs::remove_dir_all(&dir);
    let (prefix, victim) = (dir.join("prefix"), dir.join("outside/victim"));
    for folder in ["outside", "prefix/lib/deep", "prefix/share/portolan"] {
        fs::create_dir_all(dir.join(folder)).expect("a directory");
    }
    std::os::unix::fs::symlink("../outside", prefix.join("link")).expect("a link");
    let own = ["lib/deep/a file", "top", "lib/link.so"];
    for path in [victim.clone(), prefix.join(own[0]), prefix.join(own[1])] {
        fs::write(path, "").expect("a file");
    }
    std::os::unix::fs::symlink(&victim, prefix.join(own[2])).expect("a link");
    let list = prefix.join("share/portolan/files");
    let absolute = victim.display().to_string();
    for outside in [&*absolute, "../outside/victim", "lib/../../outside/victim", "link/victim", ""]
    {
        fs::write(&list, format!("{}\n{outside}\n", own.join("\n"))).expect("a list");
        let (done, error) = uninstall(&prefix);
        assert!(!done && error.contains("nothing was removed"), "{outside}: {error}");
        assert!(victim.exists() && own.iter().all(|name| prefix.join(name).exists()), "{outside}");
    }
    fs::write(&list, own.join("\n") + "\n").expect("a list");
    fs::remove_file(prefix.join("link")).expect("a link");
    assert_eq!(uninstall(&prefix), (true, String::new()));
    assert!(victim.exists() && !prefix.exists());
}

#[test]
fn no_script_searches_the_current_directory_or_predicts_a_temporary_name() {
    let mut faults = Vec::new();
    for script in executables() {
        let text = fs::read_to_string(&script).expect("a script");
        for (number, line) in text.lines().enumerate() {
            // An empty entry of the path is the current directory.
            let searches =
                line.contains(":${LD_LIBRARY_PATH:-}") || line.contains(":$LD_LIBRARY_PATH\"");
            let name = line.contains("/tmp/") && line.contains("$$");
            if (searches && !line.contains(":+")) || name {
                faults.push(format!("{}:{}: {line}", script.display(), number + 1));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
