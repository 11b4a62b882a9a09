//! The command line program: `scripts/dev NAME` and `scripts/test.sh` start it.

fn main() -> std::process::ExitCode {
    portolan_driver::cli::main()
}
