//! Builds programs against the installed library, as users build theirs.
//!
//! A program is rebuilt if its source, a header or the library is newer, or if its build command
//! has changed. The first line of its log, `PROGRAM.log`, is that command.

use super::super::launch;
use super::super::system::{Tools, flavour, root};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

#[derive(Debug)]
pub struct Builder<'a> {
    tools: &'a Tools,
    pub dir: PathBuf,
    ga_flags: Vec<String>,
    ga_fortran: Vec<String>,
    ga_libs: Vec<String>,
}

pub fn other_flavour() -> &'static str {
    if flavour() == "openmpi" { "mpich" } else { "openmpi" }
}

pub fn other_prefix() -> PathBuf {
    root().join("target").join(other_flavour()).join("prefix")
}

/// How a program is built: the commands in order, and the directory of the shared library that it
/// must be linked with. `linked` is `None` if the program must not load a shared library of ours.
struct Recipe {
    commands: Vec<Vec<String>>,
    linked: Option<PathBuf>,
    sources: PathBuf,
    always: bool,
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(String::from).collect()
}

/// Returns the library of a program's interface, which the program's name determines.
pub fn library(name: &str) -> &'static str {
    let of = [
        ("x10_", "x10"),
        ("lapi_", "lapi_r"),
        ("cp_", "compose"),
        ("mercury_", "mercury"),
        ("mercury2_", "mercury2"),
    ];
    of.iter().find(|(prefix, _)| name.starts_with(prefix)).map_or("armci", |(_, library)| library)
}

/// Returns the flags of packages whose files are in the folder `files`.
fn pkg_config(files: &Path, packages: &[&str]) -> Vec<String> {
    let output = Command::new("pkg-config")
        .args(["--cflags", "--libs"])
        .args(packages)
        .env("PKG_CONFIG_PATH", files)
        .output();
    output.map_or_else(|_| Vec::new(), |o| words(&String::from_utf8_lossy(&o.stdout)))
}

impl<'a> Builder<'a> {
    pub fn new(tools: &'a Tools, dir: PathBuf) -> Builder<'a> {
        for folder in ["c", "ga", "fortran", "link", "cmake", "examples", "debian"] {
            std::fs::create_dir_all(dir.join(folder)).expect("a directory for programs");
        }
        Builder {
            tools,
            dir,
            ga_flags: tools.ga(&["--cppflags"]),
            ga_fortran: tools.ga(&["--fflags"]),
            ga_libs: tools.ga(&["--ldflags", "--libs", "--flibs"]),
        }
    }

    fn link(&self, prefix: &Path) -> Vec<String> {
        let lib = prefix.join("lib").display().to_string();
        vec![format!("-L{lib}"), format!("-Wl,-rpath,{lib}")]
    }

    fn recipe(&self, program: &str) -> Recipe {
        let (folder, name) = program.split_once('/').expect("a program is in a folder");
        let (stem, how) = name.split_once('.').unwrap_or((name, ""));
        let prefix = self.tools.prefix.as_path();
        let out = self.dir.join(program).display().to_string();
        let library = format!("-l{}", library(name));
        let mut include = vec![format!("-I{}", prefix.join("include").display())];
        if name.starts_with("mercury2_") {
            include.insert(0, format!("-I{}", prefix.join("include/mercury2").display()));
        }
        let own = self.dir.join(folder).display().to_string();
        let tests = root().join("tests");
        let source = |folder: &str, end: &str| {
            tests.join(folder).join(format!("{stem}.{end}")).display().to_string()
        };
        let c99 =
            [vec![self.tools.cc.clone()], words("-std=c99 -O1 -g -Wall -Wextra -Werror")].concat();
        let link = self.link(prefix);
        let to = |source: String| vec![source, "-o".into(), out.clone()];
        let mut recipe = Recipe {
            commands: Vec::new(),
            linked: Some(prefix.join("lib")),
            sources: tests.join(if folder == "link" { "c" } else { folder }),
            always: false,
        };
        let cxx = source("c", "cpp");
        let command = match (folder, how) {
            // The flags avoid warnings of -Wextra about the C++ interface in Open MPI's mpi.h.
            ("c", _) if Path::new(&cxx).exists() => [
                vec![self.tools.cxx.clone()],
                words("-std=c++11 -O1 -g -Wall -Wextra -Werror -DOMPI_SKIP_MPICXX -DMPICH_SKIP_MPICXX"),
                include,
                to(cxx),
                link,
                vec![library],
            ]
            .concat(),
            ("c", _) => {
                let file = source("c", "c");
                if launch::text_of(Path::new(&file)).contains("#ifdef LIBRARY") {
                    // The source contains both a program and the library that it loads.
                    let shared = format!("-DLIBRARY -shared -fPIC {file} -o {out}.so");
                    recipe.commands.push([c99.clone(), include.clone(), words(&shared)].concat());
                }
                // The kernels use mathematical functions.
                [c99, include, to(file), link, vec![library, "-lm".into()]].concat()
            }
            ("ga", _) if Path::new(&source("ga", "F90")).exists() => [
                vec![self.tools.fort.clone()],
                words("-O1 -g -Wall -J"),
                vec![own],
                self.ga_flags.clone(),
                self.ga_fortran.clone(),
                to(source("ga", "F90")),
                link,
                self.ga_libs.clone(),
            ]
            .concat(),
            ("ga", _) => [
                vec![self.tools.cc.clone()],
                words("-O1 -g -Wall -Wextra -Werror"),
                include,
                self.ga_flags.clone(),
                to(source("ga", "c")),
                link,
                self.ga_libs.clone(),
            ]
            .concat(),
            ("fortran", _) => {
                let flags = if stem.starts_with("lapi_") { "-O1 -g -Wall -Werror" } else { "-O1 -g -Wall" };
                let modules = vec!["-J".into(), own];
                [vec![self.tools.fort.clone()], words(flags), include, modules, to(source("fortran", "f90")), link, vec![library]]
                    .concat()
            }
            ("examples", "c") => {
                recipe.sources = root().join("examples/c");
                let parts = ["", "_client", "_server", "_service"]
                    .map(|part| root().join(format!("examples/c/{stem}{part}.c")));
                let parts: Vec<_> = parts.iter().filter(|part| part.exists()).collect();
                let mut files: Vec<String> = parts.iter().map(|p| p.display().to_string()).collect();
                files.extend(["-o".into(), out]);
                let of_mercury = parts.len() > 1;
                if of_mercury {
                    include.insert(0, format!("-I{}", prefix.join("include/mercury2").display()));
                }
                let libraries = words(if of_mercury { "-lmercury2" } else { "-larmci -lm" });
                [vec![self.tools.cc.clone()], words("-O2 -g -Wall -Wextra -Werror -pthread"), include, files, link, libraries]
                    .concat()
            }
            ("examples", _) => {
                (recipe.linked, recipe.always) = (None, true);
                recipe.commands.push(words(&format!("cargo build --release --example {stem}")));
                let built = self.tools.target.join("release/examples").join(stem);
                vec!["cp".into(), built.display().to_string(), out]
            }
            (_, "static") => {
                recipe.linked = None; // only the archive, no shared library
                let archive = format!("-l:lib{}.a", library.trim_start_matches("-l"));
                [c99, include, to(source("c", "c")), vec![link[0].clone(), archive]].concat()
            }
            (_, "debian-header") => {
                // Compiled with Debian's armci.h.
                let header = self.dir.join("debian/portolan.h");
                let _ = std::fs::remove_file(&header);
                let _ = std::os::unix::fs::symlink(prefix.join("include/portolan.h"), &header);
                let flags = format!("-DDEBIAN_HEADER -DARMCI_SUCCESS=0 -I{}", self.dir.join("debian").display());
                [c99, words(&flags), to(source("c", "c")), link, words("-larmci")].concat()
            }
            (_, "pkg-config") => {
                // Without the MPI's compiler wrapper.
                let flags = pkg_config(&prefix.join("lib/pkgconfig"), &[library.trim_start_matches("-l"), "armci"]);
                [words("gcc -std=c99 -O1 -g"), to(source("c", "c")), flags].concat()
            }
            (_, "mercury") => {
                // With what Mercury 2.4 installs, in a prefix of its own.
                let own = prefix.join("lib/mercury-2.4/lib/pkgconfig");
                let flags = pkg_config(&own, &["mercury", "mercury_util", "na"]);
                let source = source("c", "c");
                [words("gcc -std=gnu99 -O1 -g -Wall -Werror"), to(source), flags, include.split_off(1), vec![link[1].clone()]].concat()
            }
            (_, "cmake") => {
                recipe.always = true;
                let dir = self.dir.join("cmake");
                self.write_cmake(&dir, &source("c", "c"), library.trim_start_matches("-l"));
                let (from, built) = (dir.display(), dir.join("build"));
                let _ = std::fs::remove_dir_all(&built);
                let set = format!("cmake -S {from} -B {0} -DCMAKE_PREFIX_PATH={1}", built.display(), prefix.display());
                recipe.commands.push(words(&set));
                recipe.commands.push(words(&format!("cmake --build {}", built.display())));
                vec!["cp".into(), built.join("program").display().to_string(), out]
            }
            (_, "other-library") => {
                // Compiled with our compiler wrapper and linked with the library for the other MPI.
                recipe.linked = Some(other_prefix().join("lib"));
                recipe.always = true;
                [c99, include, to(source("c", "c")), self.link(&other_prefix()), words("-larmci")].concat()
            }
            _ => panic!("nobody knows how to build {program}"),
        };
        recipe.commands.push(command);
        recipe
    }

    fn write_cmake(&self, dir: &Path, source: &str, library: &str) {
        let text = format!(
            "cmake_minimum_required(VERSION 3.13)\nproject(program C)\n\
             find_package(Portolan 0.1 REQUIRED)\nadd_executable(program \"{source}\")\n\
             target_link_libraries(program PRIVATE Portolan::{library} Portolan::armci)\n"
        );
        std::fs::write(dir.join("CMakeLists.txt"), text).expect("a file for cmake");
    }

    /// Returns the modification time of the newest file that every program depends on: the
    /// installed headers and libraries, and the headers in the source directory.
    fn newest(&self, sources: &Path) -> SystemTime {
        let mut newest = SystemTime::UNIX_EPOCH;
        let mut dirs =
            vec![self.tools.prefix.join("include"), self.tools.prefix.join("lib"), sources.into()];
        while let Some(dir) = dirs.pop() {
            for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
                let path = entry.path();
                let Ok(metadata) = path.metadata() else { continue };
                let header = path.extension().is_some_and(|end| end == "h");
                if metadata.is_dir() {
                    dirs.push(path);
                } else if header || !dir.starts_with(sources) {
                    newest = newest.max(metadata.modified().unwrap_or(SystemTime::now()));
                }
            }
        }
        newest
    }

    fn is_fresh(&self, program: &str, recipe: &Recipe) -> bool {
        let time = |path: &Path| path.metadata().and_then(|metadata| metadata.modified()).ok();
        let path = self.dir.join(program);
        let Some(built) = time(&path).filter(|_| !recipe.always) else { return false };
        let command = recipe.commands.last().expect("a command");
        let sources = command
            .iter()
            .filter(|w| w.starts_with('/') && !w.starts_with(path.to_str().unwrap_or("?")));
        let older = sources.filter_map(|word| time(Path::new(word))).all(|t| t < built);
        let log = launch::text_of(&self.dir.join(format!("{program}.log")));
        older
            && self.newest(&recipe.sources) < built
            && log.lines().next() == Some(&command.join(" "))
    }

    fn build(&self, program: &str) {
        let recipe = self.recipe(program);
        if self.is_fresh(program, &recipe) {
            return;
        }
        let path = self.dir.join(program);
        let _ = std::fs::remove_file(&path);
        let mut log = recipe.commands.last().expect("a command").join(" ") + "\n";
        let file = self.dir.join(format!("{program}.said"));
        let well = recipe.commands.iter().all(|command| run(command, &file, &mut log));
        if well && self.is_linked(&path, recipe.linked.as_deref(), &mut log) {
            let _ = std::fs::write(self.dir.join(format!("{program}.log")), log);
            return;
        }
        let _ = std::fs::remove_file(&path);
        let _ = std::fs::write(self.dir.join(format!("{program}.log")), log);
    }

    fn is_linked(&self, program: &Path, with: Option<&Path>, log: &mut String) -> bool {
        let mut said = String::new();
        let file = PathBuf::from(format!("{}.said", program.display()));
        run(&["ldd".into(), program.display().to_string()], &file, &mut said);
        let well = match with {
            Some(dir) => said.contains(&format!("libportolan.so.0 => {}/", dir.display())),
            None => !said.contains("libportolan"),
        };
        if !well {
            *log += &said;
            *log += "is not linked with our library as it should be\n";
        }
        well
    }

    /// Builds programs with one thread per core. Returns those that could not be built.
    pub fn build_all(&self, programs: &[String]) -> Vec<String> {
        let next = AtomicUsize::new(0);
        let threads = std::thread::available_parallelism().map_or(2, usize::from).max(2);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    while let Some(program) = programs.get(next.fetch_add(1, Ordering::Relaxed)) {
                        launch::heed_signals();
                        self.build(program);
                    }
                });
            }
        });
        programs.iter().filter(|program| !self.dir.join(program).exists()).cloned().collect()
    }
}

/// Runs a command with its output in a file, and appends the output to the log. A signal ends the
/// command and the runner. Returns whether the command succeeded.
fn run(command: &[String], file: &Path, log: &mut String) -> bool {
    let mut builder = Command::new(&command[0]);
    builder.args(&command[1..]).current_dir(root());
    launch::into_files(&mut builder, file, None);
    let well = match builder.spawn() {
        Ok(child) => launch::wait_for(child),
        Err(e) => {
            *log += &format!("cannot run {}: {e}\n", command[0]);
            false
        }
    };
    *log += &launch::text_of(file);
    let _ = std::fs::remove_file(file);
    well
}
