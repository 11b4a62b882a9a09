//! Servers and clients that are started by hand, without MPI, and find each other by a file with
//! the server's address.

use crate::Result;
use crate::calls::Calls;
use crate::client::{Client, Ended};
use crate::options::{self, Options, USAGE};
use crate::server::{Server, Serves};
use portolan::rpc::{Class, Listen};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// Time limit for the server to answer `io.end`.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Serve,
    Client,
    End,
}

impl Role {
    pub fn parse(word: &str) -> Option<Role> {
        match word {
            "serve" => Some(Role::Serve),
            "client" => Some(Role::Client),
            "end" => Some(Role::End),
            _ => None,
        }
    }
}

pub fn main(role: Role, words: impl Iterator<Item = String>) -> ExitCode {
    let parsed = Options::parse(words).and_then(|options| match options {
        Some(Options { address: None, .. }) => Err("--address FILE is needed".into()),
        Some(options) => Ok(options.address.clone().map(|file| (options, file))),
        None => Ok(None),
    });
    let (options, file) = match parsed {
        Ok(Some(parsed)) => parsed,
        Ok(None) => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(text) => {
            eprintln!("io_forwarding: {text}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let done = match role {
        Role::Serve => serve(&options, &file),
        Role::Client => client(&options, &file),
        Role::End => end(&file),
    };
    done.map_or_else(
        |error| {
            eprintln!("io_forwarding: {error}");
            ExitCode::FAILURE
        },
        ExitCode::from,
    )
}

fn serve(options: &Options, file: &Path) -> Result<u8> {
    let class = Class::init(&options.network, Listen::Yes)?;
    let context = class.context()?;
    let mut server = Server::new(&class, &context, 0, (Serves::Anybody, 1), options)?;
    // A client never reads half an address.
    let new = file.with_extension("new");
    std::fs::write(&new, class.address_text(&class.own_address()))?;
    std::fs::rename(&new, file)?;
    while !server.is_done() {
        server.step(Duration::from_secs(1))?;
    }
    std::fs::remove_file(file)?;
    server.close()?;
    drop(context);
    class.finalize()?;
    Ok(if options::terminated() { 3 } else { 0 })
}

/// Reads the server's address, and opens the network in it.
fn connect(file: &Path) -> Result<(Class, String)> {
    let address = std::fs::read_to_string(file)
        .map_err(|error| format!("{}: {error}; start the server first", file.display()))?;
    let network = address.split("://").next().unwrap_or_default();
    Ok((Class::init(network, Listen::No)?, address))
}

fn client(options: &Options, file: &Path) -> Result<u8> {
    let (class, address) = connect(file)?;
    let context = class.context()?;
    let calls = Calls::of_client(&class)?;
    let servers = vec![class.lookup(&address)?];
    let mut pump = |most: Duration| -> Result<()> {
        context.progress(most)?;
        context.trigger(64);
        Ok(())
    };
    // The number of the process makes the names of the files unique.
    let number = std::process::id() as usize;
    let client = Client::new(number, &context, &calls, servers, options);
    let report = client.run(&mut pump)?;
    report.failures.iter().for_each(|failure| eprintln!("{failure}"));
    println!("errno values that came back: {}", report.errors.join(", "));
    let (wrong, all) = (report.differ + report.failures.len(), options.files);
    let (code, end) = match report.ended {
        _ if wrong > 0 => (1, format!("{} digests differ, {wrong} failures", report.differ)),
        Ended::Stopped => (3, format!("ended early: {} of {all} files written", report.written)),
        Ended::Whole => (0, format!("all {} digests agree", report.compared)),
    };
    println!("io_forwarding: {end}");
    drop((calls, context));
    class.finalize()?;
    Ok(code)
}

fn end(file: &Path) -> Result<u8> {
    let (class, address) = connect(file)?;
    let context = class.context()?;
    let calls = Calls::of_client(&class)?;
    context.call(&class.lookup(&address)?, &calls.end, &(), PATIENCE)?;
    drop((calls, context));
    class.finalize()?;
    Ok(0)
}
