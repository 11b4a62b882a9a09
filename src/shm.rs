//! Files in shared memory, mapped by the ranks of a node ([`crate::collective::share`]).
//!
//! A file has no name: it is made with `O_TMPFILE`, and the other ranks open it
//! through `/proc/PID/fd/FD`, so that nothing is left behind however a job
//! ends. Where that does not work (an old file system, ranks in different
//! process namespaces), a named file is used and unlinked as soon as all ranks
//! have it. A descriptor carries device and inode, so that a rank can never
//! map the wrong file.
//!
//! Memory is reserved (`fallocate`) before it is touched: a full file system
//! gives an error and never a SIGBUS, and so does a limit of file sizes (`ulimit -f`), which would
//! end the process by SIGXFSZ.

use crate::error::{Error, ErrorKind, Result, fail};
use crate::process;
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The size of a page.
pub(crate) fn page() -> usize {
    // SAFETY: sysconf has no preconditions.
    let n = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(n).unwrap_or(4096)
}

/// A mapped shared file.
#[derive(Debug)]
pub(crate) struct SharedFile {
    file: File,
    base: *mut u8,
    len: usize,
    named: Option<PathBuf>,
}

// SAFETY: the mapping is plain memory; which rank may touch which part of it when is
// the engine's business.
unsafe impl Send for SharedFile {}
// SAFETY: as above.
unsafe impl Sync for SharedFile {}

const PATH_BYTES: usize = 112;

/// Where another rank finds a [`SharedFile`]; sent through MPI as bytes.
#[derive(Debug, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub(crate) struct Descriptor {
    device: u64,
    inode: u64,
    path: [u8; PATH_BYTES],
}

impl Descriptor {
    /// The descriptor of a rank that offers no file.
    pub(crate) fn none() -> Descriptor {
        bytemuck::Zeroable::zeroed()
    }

    /// That of a file without a name that a process has open.
    pub(crate) fn unnamed(device: u64, inode: u64, pid: u32, fd: u32) -> Descriptor {
        let path = format!("/proc/{pid}/fd/{fd}");
        let mut bytes = [0u8; PATH_BYTES];
        bytes[..path.len()].copy_from_slice(path.as_bytes());
        Descriptor { device, inode, path: bytes }
    }

    /// Where the file is found; nothing for [`Descriptor::none`].
    pub(crate) fn path(&self) -> Option<PathBuf> {
        let len = self.path.iter().position(|&b| b == 0)?;
        let text = std::str::from_utf8(&self.path[..len]).ok()?;
        (!text.is_empty()).then(|| PathBuf::from(text))
    }
}

/// Device and inode of a file, and the process and descriptor by which it is open.
type FilePlace = (u64, u64, u32, u32);

fn place_of(file: &File) -> Result<FilePlace> {
    let meta = file.metadata().map_err(|e| os_error("cannot stat a shared file", e))?;
    Ok((meta.dev(), meta.ino(), std::process::id(), file.as_raw_fd() as u32))
}

/// A file without a name that has no length yet.
#[derive(Debug)]
pub(crate) struct FreshFile(File);

impl FreshFile {
    /// Makes one in `dir`.
    pub(crate) fn create(dir: &str) -> io::Result<FreshFile> {
        open_unnamed(dir).map(FreshFile)
    }

    /// Where other ranks find it, as [`SharedFile::place`].
    pub(crate) fn place(&self) -> Result<FilePlace> {
        place_of(&self.0)
    }

    /// Gives it `len` bytes of address space and maps it.
    pub(crate) fn map(self, len: usize) -> Result<SharedFile> {
        SharedFile::of_length(self.0, len, None)
    }
}

fn os_error(what: &str, error: io::Error) -> Error {
    let limit = match process::longest_file().filter(|_| is_too_long(&error)) {
        Some(bytes) => format!(", the limit of a file's size (ulimit -f) is {bytes} bytes"),
        None => String::new(),
    };
    Error::new(ErrorKind::Memory, format!("{what}: {error}{limit}"))
}

fn is_too_long(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EFBIG)
}

impl SharedFile {
    /// Makes and maps a file of `len` bytes of address space in `dir`; no memory
    /// is taken yet. With `named`, the file has a name until [`SharedFile::unlink`].
    pub(crate) fn create(dir: &str, len: usize, named: bool) -> Result<SharedFile> {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let (file, name) = if named {
            let n = COUNTER.fetch_add(1, Ordering::Relaxed);
            let path = Path::new(dir).join(format!("portolan.{}.{n}", std::process::id()));
            let file = File::options().read(true).write(true).create_new(true).open(&path);
            (file, Some(path))
        } else {
            (open_unnamed(dir), None)
        };
        let file = file.map_err(|e| {
            os_error(
                &format!("cannot make a shared-memory file in {dir} (PORTOLAN_SHM_DIR names the directory)"),
                e,
            )
        })?;
        SharedFile::of_length(file, len, name)
    }

    /// Gives a file its length and maps it.
    fn of_length(file: File, len: usize, named: Option<PathBuf>) -> Result<SharedFile> {
        // Takes the name away where it fails.
        let mut shared = SharedFile { file, base: std::ptr::null_mut(), len, named };
        let sized = process::without_size_signal(|| shared.file.set_len(len as u64));
        sized.map_err(|e| {
            os_error(&format!("cannot size a shared-memory file to {len} bytes"), e)
        })?;
        shared.base = map(&shared.file, len)?;
        Ok(shared)
    }

    /// Maps the file that a descriptor names.
    pub(crate) fn open(descriptor: &Descriptor, len: usize) -> Result<SharedFile> {
        let Some(path) = descriptor.path() else {
            fail!(Internal, "no file in the descriptor of a shared slab");
        };
        let file = File::options()
            .read(true)
            .write(true)
            .open(&path)
            .map_err(|e| os_error(&format!("cannot open {}", path.display()), e))?;
        let meta = file.metadata().map_err(|e| os_error("cannot stat a shared file", e))?;
        if (meta.dev(), meta.ino()) != (descriptor.device, descriptor.inode) {
            fail!(Memory, "{} is another file than the one offered", path.display());
        }
        let base = map(&file, len)?;
        Ok(SharedFile { file, base, len, named: None })
    }

    /// [`SharedFile::open`] for a file that must have this length at least.
    pub(crate) fn open_whole(descriptor: &Descriptor, len: usize) -> Result<SharedFile> {
        let shared = SharedFile::open(descriptor, len)?;
        let meta = shared.file.metadata().map_err(|e| os_error("cannot stat a shared file", e))?;
        if meta.len() < len as u64 {
            fail!(Memory, "the file has {} bytes, not {len}", meta.len());
        }
        Ok(shared)
    }

    /// Device and inode, and the process and descriptor by which it is open.
    pub(crate) fn place(&self) -> Result<FilePlace> {
        place_of(&self.file)
    }

    /// What other ranks need to open it.
    pub(crate) fn descriptor(&self) -> Result<Descriptor> {
        let (device, inode, pid, fd) = self.place()?;
        let Some(path) = &self.named else {
            return Ok(Descriptor::unnamed(device, inode, pid, fd));
        };
        let path = path.display().to_string();
        let mut bytes = [0u8; PATH_BYTES];
        if path.len() >= PATH_BYTES {
            fail!(Argument, "the path {path} is longer than {} bytes", PATH_BYTES - 1);
        }
        bytes[..path.len()].copy_from_slice(path.as_bytes());
        Ok(Descriptor { device, inode, path: bytes })
    }

    /// Takes the name away, where the file has one.
    pub(crate) fn unlink(&mut self) {
        if let Some(path) = self.named.take() {
            let _ = std::fs::remove_file(path);
        }
    }

    /// The mapping.
    pub(crate) fn base(&self) -> *mut u8 {
        self.base
    }

    /// Reserves memory for a part of the file. Where there is none, says so and
    /// leaves the rest as it was.
    pub(crate) fn reserve(&self, offset: usize, len: usize) -> io::Result<()> {
        if len == 0 {
            return Ok(());
        }
        loop {
            let (fd, from, bytes) = (self.file.as_raw_fd(), offset as i64, len as i64);
            let reserved = process::without_size_signal(|| {
                // SAFETY: a plain system call on our own descriptor.
                match unsafe { libc::fallocate(fd, libc::FALLOC_FL_KEEP_SIZE, from, bytes) } {
                    0 => Ok(()),
                    _ => Err(io::Error::last_os_error()),
                }
            });
            let Err(error) = reserved else { return Ok(()) };
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }

    /// Gives the memory of a part of the file back: its bytes are zero afterwards. Where that fails,
    /// and so returns false, memory and contents stay.
    pub(crate) fn release(&self, offset: usize, len: usize) -> bool {
        // SAFETY: as in `reserve`.
        len == 0
            || 0 == unsafe {
                libc::fallocate(
                    self.file.as_raw_fd(),
                    libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE,
                    offset as libc::off_t,
                    len as libc::off_t,
                )
            }
    }

    /// Bytes that are free on the file system.
    pub(crate) fn room(&self) -> usize {
        // SAFETY: statvfs fills the structure that is zeroed here.
        unsafe {
            let mut s: libc::statvfs = std::mem::zeroed();
            if libc::fstatvfs(self.file.as_raw_fd(), &mut s) != 0 {
                return usize::MAX;
            }
            usize::try_from(s.f_bavail.saturating_mul(s.f_frsize)).unwrap_or(usize::MAX)
        }
    }
}

impl Drop for SharedFile {
    fn drop(&mut self) {
        self.unlink();
        if !self.base.is_null() {
            // SAFETY: the mapping is ours and not used any more.
            unsafe { libc::munmap(self.base.cast(), self.len) };
        }
    }
}

/// Bytes that are free on the file system of `dir`.
pub fn room_in(dir: &str) -> Result<usize> {
    let Ok(path) = CString::new(dir) else {
        fail!(Argument, "PORTOLAN_SHM_DIR holds a zero byte");
    };
    // SAFETY: statvfs fills the structure that is zeroed here.
    unsafe {
        let mut s: libc::statvfs = std::mem::zeroed();
        if libc::statvfs(path.as_ptr(), &mut s) != 0 {
            return Err(os_error(
                &format!("cannot look at {dir} (PORTOLAN_SHM_DIR)"),
                io::Error::last_os_error(),
            ));
        }
        Ok(usize::try_from(s.f_bavail.saturating_mul(s.f_frsize)).unwrap_or(usize::MAX))
    }
}

fn open_unnamed(dir: &str) -> io::Result<File> {
    let path = CString::new(dir)?;
    // SAFETY: a plain system call; the descriptor is ours.
    let fd = unsafe {
        libc::open(path.as_ptr(), libc::O_TMPFILE | libc::O_RDWR | libc::O_CLOEXEC, 0o600)
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `fd` is a fresh descriptor that nothing else owns.
    Ok(unsafe { File::from_raw_fd(fd) })
}

fn map(file: &File, len: usize) -> Result<*mut u8> {
    // SAFETY: a new mapping of our own file; the kernel chooses the address.
    let base = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            len,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_NORESERVE,
            file.as_raw_fd(),
            0,
        )
    };
    if base == libc::MAP_FAILED {
        return Err(os_error(
            &format!("cannot map {len} bytes of shared memory"),
            io::Error::last_os_error(),
        ));
    }
    Ok(base.cast())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both_kinds(named: bool) {
        let dir = std::env::temp_dir();
        let dir = dir.to_str().unwrap();
        let Ok(mut a) = SharedFile::create(dir, 1 << 20, named) else {
            assert!(!named, "a named file can be made anywhere");
            return; // a file system without O_TMPFILE
        };
        a.reserve(4096, 8192).unwrap();
        let b = SharedFile::open(&a.descriptor().unwrap(), 1 << 20).unwrap();
        a.unlink();
        // SAFETY: both mappings are live and the bytes are reserved.
        unsafe {
            a.base().add(5000).write(7);
            assert_eq!(b.base().add(5000).read(), 7);
        }
    }

    #[test]
    fn two_mappings_are_one_memory() {
        both_kinds(false);
        both_kinds(true);
    }

    #[test]
    fn a_descriptor_of_another_file_is_refused() {
        let dir = std::env::temp_dir();
        let a = SharedFile::create(dir.to_str().unwrap(), 4096, true).unwrap();
        let mut d = a.descriptor().unwrap();
        d.inode += 1;
        assert!(SharedFile::open(&d, 4096).is_err());
        assert!(SharedFile::open(&Descriptor::none(), 4096).is_err());
    }
}
