//! Every script answers `--help` at once: it prints its usage, and starts neither cargo nor an MPI
//! nor a package manager. `scripts/dev` lists the scripts for developers, and pages name only
//! these.

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
    assert!(scripts.len() > 20, "only {scripts:?} found");
    for script in scripts {
        let name = script.file_stem().expect("a name").to_string_lossy().into_owned();
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

fn scripts() -> BTreeSet<String> {
    let names = fs::read_dir(root().join("scripts/dev.d"))
        .expect("the scripts")
        .map(|entry| entry.expect("a script").file_name().into_string().expect("a name in UTF-8"));
    names.filter_map(|name| Some(name.strip_suffix(".sh")?.to_string())).collect()
}

#[test]
fn every_script_is_listed_and_no_other() {
    let help = fs::read_to_string(root().join("scripts/dev")).expect("scripts/dev");
    let lines = help.lines().filter_map(|line| line.strip_prefix("#   "));
    let listed = lines.filter_map(|line| line.split(' ').next()).filter(|name| !name.is_empty());
    let listed: BTreeSet<String> = listed.map(String::from).collect();
    assert_eq!(listed, scripts(), "the list in the head of scripts/dev, and scripts/dev.d");
    let scripts = scripts();
    for (path, page) in pages() {
        for (at, command) in page.text.match_indices("scripts/dev ") {
            let name: String = page.text[at + command.len()..]
                .chars()
                .take_while(|c| c.is_ascii_alphanumeric() || *c == '-')
                .collect();
            let general = name.starts_with('-') || name.ends_with('-') || name == "NAME";
            assert!(general || scripts.contains(&name), "{}: scripts/dev {name}", path.display());
        }
    }
}
