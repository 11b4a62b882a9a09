//! The files of an I/O rank, and the threads that read and write them.
//!
//! Paths in calls are relative to the rank's directory and cannot leave it. The threads take chunks
//! from one queue, so a slow chunk delays neither the other chunks nor the rank's transfers. The
//! threads do not communicate: they pass their results to the thread that serves
//! ([`Context::defer`]).

use crate::moves::Event;
use crate::options::Options;
use portolan::rpc::Context;
use portolan::rpc::bulk::Buffer;
use std::collections::HashMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, symlink};
use std::path::{Component, Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

const THREADS: usize = 2;
/// Name of a file in each directory that is on a full device. Clients use it to test errors.
pub const FULL: &str = "full";

pub fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}

#[derive(Debug)]
pub struct Files {
    root: PathBuf,
    temporary: bool,
    open: HashMap<u64, Arc<File>>,
    next: u64,
}

impl Files {
    /// Creates the directory if it does not exist.
    pub fn below(options: &Options, rank: usize) -> io::Result<Files> {
        let temporary = options.dir.is_none();
        let (root, made) = match &options.dir {
            Some(dir) => {
                let root = dir.join(format!("io-{rank}"));
                let made = fs::create_dir_all(&root);
                (root, made)
            }
            None => {
                let name = format!("portolan-io-forwarding-{}-{rank}", std::process::id());
                let root = std::env::temp_dir().join(name);
                // Other users can write to the parent, so the directory must be new and private.
                let made = DirBuilder::new().mode(0o700).create(&root);
                (root, made)
            }
        };
        made.map_err(|error| {
            io::Error::new(error.kind(), format!("cannot make {}: {error}", root.display()))
        })?;
        let files = Files { root, temporary, open: HashMap::new(), next: 1 };
        let _ = fs::remove_file(files.root.join(FULL));
        symlink("/dev/full", files.root.join(FULL))?;
        Ok(files)
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    fn path(&self, path: &str) -> Result<PathBuf, i32> {
        let inside = |part: Component<'_>| matches!(part, Component::Normal(_));
        match Path::new(path).components().all(inside) {
            true if !path.is_empty() => Ok(self.root.join(path)),
            _ => Err(libc::EACCES),
        }
    }

    pub fn open(&mut self, path: &str, create: bool) -> Result<u64, i32> {
        let path = self.path(path)?;
        let mut how = OpenOptions::new();
        how.read(!create).write(create).create(create).truncate(create);
        let file = how.open(path).map_err(|error| errno(&error))?;
        let number = self.next;
        self.next += 1;
        self.open.insert(number, Arc::new(file));
        Ok(number)
    }

    pub fn get(&self, number: u64) -> Result<Arc<File>, i32> {
        self.open.get(&number).cloned().ok_or(libc::EBADF)
    }

    /// Returns the size and mode of a file.
    pub fn stat(&self, path: &str) -> Result<(u64, u32), i32> {
        let found = fs::metadata(self.path(path)?).map_err(|error| errno(&error))?;
        Ok((found.size(), found.mode()))
    }

    /// Closes a file. Calls in progress keep the file open for themselves.
    pub fn close(&mut self, number: u64) -> Result<(), i32> {
        self.open.remove(&number).map(drop).ok_or(libc::EBADF)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let gone = match self.temporary {
            true => fs::remove_dir_all(&self.root),
            false => fs::remove_file(self.root.join(FULL)),
        };
        if let Err(error) = gone {
            eprintln!("cannot clean up in {}: {error}", self.root.display());
        }
    }
}

/// A part of the buffer, and the chunk in it.
#[derive(Debug)]
pub struct Slot {
    pub buffer: Buffer,
    /// Offset in the call's data, in bytes.
    pub at: usize,
    pub len: usize,
}

pub struct Chunk {
    pub job: u64,
    pub slot: Slot,
    pub file: Arc<File>,
    pub offset: u64,
    pub write: bool,
}

pub struct Workers {
    queue: Option<Sender<Chunk>>,
    threads: Vec<JoinHandle<()>>,
}

impl Workers {
    /// Starts the threads. The thread that triggers the context passes their results to `done`.
    pub fn start(context: &Context, done: &Sender<Event>) -> io::Result<Workers> {
        let (queue, chunks) = channel();
        let chunks = Arc::new(Mutex::new(chunks));
        let thread = |n: usize| {
            let (chunks, context, done) = (chunks.clone(), context.clone(), done.clone());
            let body = move || work(&chunks, &context, &done);
            std::thread::Builder::new().name(format!("file-{n}")).spawn(body)
        };
        let threads = (0..THREADS).map(thread).collect::<io::Result<_>>()?;
        Ok(Workers { queue: Some(queue), threads })
    }

    pub fn give(&self, chunk: Chunk) {
        if let Some(queue) = &self.queue {
            queue.send(chunk).expect("the threads stay as long as there is a queue");
        }
    }

    pub fn stop(mut self) {
        self.queue = None;
        for thread in self.threads {
            if thread.join().is_err() {
                eprintln!("a file thread has panicked");
            }
        }
    }
}

fn work(chunks: &Mutex<Receiver<Chunk>>, context: &Context, done: &Sender<Event>) {
    loop {
        // The lock is released before the thread processes the chunk.
        let next = chunks.lock().map(|queue| queue.recv());
        let Ok(Ok(Chunk { job, mut slot, file, offset, write })) = next else { return };
        let bytes = &mut slot.buffer[..slot.len];
        let result = match write {
            true => file.write_all_at(bytes, offset).map(|()| bytes.len()),
            false => load(&file, offset, bytes),
        };
        let result = result.map_err(|error| errno(&error));
        let done = done.clone();
        context.defer(move || {
            let _ = done.send(Event::Filed { job, slot, result });
        });
    }
}

/// Reads until the chunk is full or the file ends.
fn load(file: &File, offset: u64, bytes: &mut [u8]) -> io::Result<usize> {
    let mut have = 0;
    while have < bytes.len() {
        match file.read_at(&mut bytes[have..], offset + have as u64) {
            Ok(0) => break,
            Ok(n) => have += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(have)
}
