//! C programs under valgrind, with the library as it is installed.

use super::Sanitize;
use crate::launch::{self, Ended};
use crate::mpi::output;
use crate::programs::{build, exit_code};
use crate::system;
use std::path::PathBuf;

/// The programs of tests/c for valgrind. `--quick` runs only the first ones.
const QUICK_PROGRAMS: &str = "values handles lapi_status cp_store mercury_rpc";
const MORE_PROGRAMS: &str = "stride_info lapi_environment x10_async mercury_na \
    mercury_bulk";

const VALGRIND: &str = "valgrind -q --error-exitcode=99 --leak-check=full \
    --errors-for-leak-kinds=definite --show-leak-kinds=definite --num-callers=30 \
    --suppressions=tests/data/valgrind.supp";

/// A program that valgrind must report.
const FAULT_IN_C: &str = "\
#include <armci.h>
#include <mpi.h>
#include <stdlib.h>
int main(int argc, char **argv) {
  void *pieces[2];
  char *gone = malloc(100);
  MPI_Init(&argc, &argv);
  ARMCI_Init();
  ARMCI_Malloc(pieces, 100);
  free(gone);
  ARMCI_Put(gone, pieces[1], 100, 1);
  ARMCI_Barrier();
  ARMCI_Finalize();
  return MPI_Finalize();
}
";

impl Sanitize {
    pub fn valgrind(&mut self) -> Result<(), String> {
        let (prefix, name) = (self.mpi.prefix.display().to_string(), self.mpi.name.clone());
        if !system::on_path("valgrind") {
            self.report.skip("valgrind", "it is not installed (apt-get install valgrind)");
            return Ok(());
        } else if !self.mpi.prefix.join("lib/libarmci.so").exists() {
            let how = format!("scripts/install.sh --mpi {name} --prefix {prefix}");
            self.report.skip("valgrind", &format!("nothing is installed in {prefix}: {how}"));
            return Ok(());
        }
        let (source, program) = self.program("fault.c", FAULT_IN_C)?;
        self.compile(&source, &program, "armci")?;
        let ended = self.memcheck(&program, None)?;
        let case = format!("valgrind finds a fault [{name}]");
        if ended.code == Some(0) || !launch::text_of(&self.log).contains("Invalid read") {
            let why = format!("{}, but the source of a put was freed", exit_code(ended.code));
            self.fail(&case, &why);
        } else {
            self.ok(&case, "");
        }
        let more = if self.quick { "" } else { MORE_PROGRAMS };
        let message_path = (!self.quick).then_some(Some(("PORTOLAN_PATH", "message")));
        for test in QUICK_PROGRAMS.split_whitespace().chain(more.split_whitespace()) {
            let program = self.dir.join(test).display().to_string();
            self.compile(&format!("tests/c/{test}.c"), &program, build::library(test))?;
            for setting in [None].into_iter().chain(message_path) {
                let shown =
                    setting.map_or(String::new(), |(name, value)| format!(" {name}={value}"));
                let case = format!("valgrind {test} [{name} n=2{shown}]");
                let ended = self.memcheck(&program, setting)?;
                if ended.timed_out {
                    self.fail(&case, "not at its end after 290 seconds");
                } else if ended.code != Some(0) {
                    self.fail(&case, &exit_code(ended.code));
                } else if !launch::text_of(&self.log).lines().any(|line| line.starts_with("PASS")) {
                    self.fail(&case, "does not say PASS");
                } else {
                    self.ok(&case, "");
                }
            }
        }
        Ok(())
    }

    fn compile(&self, source: &str, program: &str, library: &str) -> Result<(), String> {
        let (prefix, cc) = (self.mpi.prefix.display(), &self.mpi.environment["MPICC"]);
        let words = format!("{cc} -std=c99 -O1 -g {source} -o {program} -I{prefix}/include");
        let link = format!("-L{prefix}/lib -Wl,-rpath,{prefix}/lib -l{library} -lpthread");
        let words: Vec<&str> = words.split(' ').chain(link.split(' ')).collect();
        output(&mut self.mpi.command(&words)).map(|_| ())
    }

    /// Runs a program on two ranks under valgrind. Appends valgrind's output to the log.
    fn memcheck(&mut self, program: &str, setting: Option<(&str, &str)>) -> Result<Ended, String> {
        let entries = std::fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let is_output = |path: &PathBuf| path.file_stem().is_some_and(|stem| stem == "valgrind");
        entries.map(|entry| entry.path()).filter(is_output).for_each(|path| {
            let _ = std::fs::remove_file(path);
        });
        let file = format!("--log-file={}/valgrind.%p", self.dir.display());
        let launcher = self.mpi.launcher.iter().map(String::as_str);
        let valgrind = ["-n", "2"].into_iter().chain(VALGRIND.split_whitespace());
        let words = launcher.chain(valgrind).chain([&*file, program]);
        let mut command = self.mpi.command(&words.collect::<Vec<_>>());
        // valgrind does not see writes of another process, and would report the bytes as
        // uninitialised.
        command.env("PORTOLAN_CROSS_HELP", "off");
        command.env("PORTOLAN_TEST_SECONDS", "280").env("PORTOLAN_TEST_RANKS", "2").envs(setting);
        let ended = self.run_within(command, 290)?;
        let mut log = launch::text_of(&self.log);
        let entries = std::fs::read_dir(&self.dir).into_iter().flatten().flatten();
        for path in entries.map(|entry| entry.path()).filter(is_output) {
            log += &launch::text_of(&path);
        }
        std::fs::write(&self.log, log).map_err(|e| format!("{}: {e}", self.log.display()))?;
        Ok(ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_exist() {
        for name in QUICK_PROGRAMS.split_whitespace().chain(MORE_PROGRAMS.split_whitespace()) {
            assert!(system::root().join(format!("tests/c/{name}.c")).exists(), "{name}");
        }
    }
}
