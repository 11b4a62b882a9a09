//! Files in shared memory that the ranks of a node map (the engine's `Team::share`).
//!
//! The files are unnamed. One rank creates a file with `O_TMPFILE`, and the others open it through
//! `/proc/PID/fd/FD`, so nothing remains however a job ends. If this does not work (an old file
//! system, or ranks in different process namespaces), the file has a name, which is unlinked as
//! soon as all ranks have opened it. A descriptor contains device and inode, so a rank never maps
//! the wrong file.
//!
//! Memory that any process of the user may map is anonymous, with a sealed length
//! ([`SharedFile::sealed`], [`Mapping::sealed`]): a process that shortened it would crash the others.
//!
//! Memory is reserved (`fallocate`) before it is accessed, so a full file system, or a limit of the
//! file size (`ulimit -f`), gives an error and not a SIGBUS or SIGXFSZ. It consists of huge pages
//! if the kernel can make them, because page tables of small pages double the time of a sum.

use crate::error::{Error, ErrorKind, Result, fail};
use crate::process;
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

pub fn page() -> usize {
    // SAFETY: sysconf takes no pointers and accepts any name.
    let n = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(n).unwrap_or(4096)
}

/// Mapped shared memory, aligned to a page.
#[derive(Debug)]
pub struct Mapping {
    base: *mut u8,
    len: usize,
}

// SAFETY: the mapping belongs to the process. Its users order their accesses.
unsafe impl Send for Mapping {}
// SAFETY: methods that take `&self` only return the address.
unsafe impl Sync for Mapping {}

/// The name of a file, which is removed with this value.
#[derive(Debug)]
struct Name(Option<PathBuf>);

#[derive(Debug)]
pub struct SharedFile {
    file: File,
    mapping: Mapping,
    name: Name,
}

const PATH_BYTES: usize = 112;
const SEALS: libc::c_int = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW;

/// Sent to other ranks as bytes.
#[derive(Debug, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct Descriptor {
    device: u64,
    inode: u64,
    path: [u8; PATH_BYTES],
}

impl Descriptor {
    pub fn none() -> Descriptor {
        bytemuck::Zeroable::zeroed()
    }

    pub fn unnamed(device: u64, inode: u64, pid: u32, fd: u32) -> Descriptor {
        let path = format!("/proc/{pid}/fd/{fd}");
        let mut bytes = [0u8; PATH_BYTES];
        bytes[..path.len()].copy_from_slice(path.as_bytes());
        Descriptor { device, inode, path: bytes }
    }

    pub fn path(&self) -> Option<PathBuf> {
        let len = self.path.iter().position(|&b| b == 0)?;
        let text = std::str::from_utf8(&self.path[..len]).ok()?;
        (!text.is_empty()).then(|| PathBuf::from(text))
    }

    pub fn open(&self) -> Result<File> {
        let Some(path) = self.path() else {
            fail!(Internal, "the descriptor of a shared arena contains no file");
        };
        let file = File::options()
            .read(true)
            .write(true)
            .open(&path)
            .map_err(|e| os_error(&format!("cannot open {}", path.display()), e))?;
        let meta = file.metadata().map_err(|e| os_error("cannot stat a shared file", e))?;
        if (meta.dev(), meta.ino()) != (self.device, self.inode) {
            fail!(Memory, "{} is not the file that was offered", path.display());
        }
        Ok(file)
    }
}

/// Device, inode, process and file descriptor.
type FilePlace = (u64, u64, u32, u32);

fn place_of(file: &File) -> Result<FilePlace> {
    let meta = file.metadata().map_err(|e| os_error("cannot stat a shared file", e))?;
    Ok((meta.dev(), meta.ino(), std::process::id(), file.as_raw_fd() as u32))
}

#[derive(Debug)]
pub struct FreshFile(File);

impl FreshFile {
    pub fn create(dir: &str) -> io::Result<FreshFile> {
        open_unnamed(dir).map(FreshFile)
    }

    pub fn place(&self) -> Result<FilePlace> {
        place_of(&self.0)
    }

    pub fn map(self, len: usize) -> Result<SharedFile> {
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
    /// Creates and maps a file of `len` bytes of address space in `dir`, without memory yet. If
    /// `named`, the file has a name until [`SharedFile::unlink`].
    pub fn create(dir: &str, len: usize, named: bool) -> Result<SharedFile> {
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

    /// Creates and maps `len` bytes of anonymous memory, zeroed, whose length is sealed. The first
    /// access to a page allocates it, unless it is reserved before.
    pub fn sealed(len: usize) -> Result<SharedFile> {
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        // SAFETY: the name is a C string.
        let fd = unsafe { libc::memfd_create(c"portolan".as_ptr(), flags) };
        if fd < 0 {
            return Err(os_error("cannot make shared memory", io::Error::last_os_error()));
        }
        // SAFETY: `fd` is a new descriptor that nothing else owns.
        let shared = SharedFile::of_length(unsafe { File::from_raw_fd(fd) }, len, None)?;
        // SAFETY: the call takes no pointers, and the file is open.
        if unsafe { libc::fcntl(fd, libc::F_ADD_SEALS, SEALS | libc::F_SEAL_SEAL) } != 0 {
            return Err(os_error("cannot seal shared memory", io::Error::last_os_error()));
        }
        Ok(shared)
    }

    /// Returns the memory, and the descriptor, which the memory does not need.
    pub fn into_parts(self) -> (Mapping, File) {
        (self.mapping, self.file)
    }

    fn of_length(file: File, len: usize, named: Option<PathBuf>) -> Result<SharedFile> {
        let name = Name(named);
        let sized = process::without_size_signal(|| file.set_len(len as u64));
        sized.map_err(|e| {
            os_error(&format!("cannot size a shared-memory file to {len} bytes"), e)
        })?;
        Ok(SharedFile { mapping: Mapping::new(&file, len)?, file, name })
    }

    pub fn open(descriptor: &Descriptor, len: usize) -> Result<SharedFile> {
        let file = descriptor.open()?;
        Ok(SharedFile { mapping: Mapping::new(&file, len)?, file, name: Name(None) })
    }

    pub fn place(&self) -> Result<FilePlace> {
        place_of(&self.file)
    }

    pub fn descriptor(&self) -> Result<Descriptor> {
        let (device, inode, pid, fd) = self.place()?;
        let Name(Some(path)) = &self.name else {
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

    pub fn unlink(&mut self) {
        self.name = Name(None);
    }

    pub fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    pub fn base(&self) -> *mut u8 {
        self.mapping.base
    }

    /// Reserves memory for a part of the file, which has none yet, in huge pages as far as
    /// possible. On failure the rest is unchanged.
    pub fn reserve(&self, offset: usize, len: usize) -> Result<()> {
        if len == 0 {
            return Ok(());
        }
        let huge = offset.next_multiple_of(HUGE_PAGE)..(offset + len) / HUGE_PAGE * HUGE_PAGE;
        let begun = huge.clone().step_by(HUGE_PAGE).all(|page| self.allocate(page, 1).is_ok());
        if begun && !huge.is_empty() {
            // Since Linux 6.1, this makes a huge page of each range whose first page exists. It
            // needs neither privileges nor an option of the mount. An older kernel fails, and so
            // does one without free memory in pieces of this length. Small pages remain then.
            // SAFETY: the range is part of the mapping, whose contents stay the same.
            unsafe {
                let start = self.base().add(huge.start).cast();
                libc::madvise(start, huge.len(), libc::MADV_COLLAPSE)
            };
        }
        self.allocate(offset, len)
            .map_err(|e| os_error(&format!("cannot reserve {len} bytes of shared memory"), e))
    }

    fn allocate(&self, offset: usize, len: usize) -> io::Result<()> {
        loop {
            let (fd, from, bytes) = (self.file.as_raw_fd(), offset as i64, len as i64);
            let reserved = process::without_size_signal(|| {
                // SAFETY: the call takes no pointers, and the file is open.
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

    /// The bytes are then zero. On failure returns false and changes nothing.
    pub fn release(&self, offset: usize, len: usize) -> bool {
        // SAFETY: the call takes no pointers, and the file is open.
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
}

impl Drop for Name {
    fn drop(&mut self) {
        if let Some(path) = self.0.take() {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Fails with `Argument` for a zero byte, and with `Memory` if the query fails.
pub fn room_in(dir: &str) -> Result<usize> {
    let Ok(path) = CString::new(dir) else {
        fail!(Argument, "PORTOLAN_SHM_DIR contains a zero byte");
    };
    // SAFETY: the path is a C string. Zeros are a valid `statvfs`, which the call overwrites.
    unsafe {
        let mut s: libc::statvfs = std::mem::zeroed();
        if libc::statvfs(path.as_ptr(), &mut s) != 0 {
            return Err(os_error(
                &format!("cannot stat {dir} (PORTOLAN_SHM_DIR)"),
                io::Error::last_os_error(),
            ));
        }
        Ok(usize::try_from(s.f_bavail.saturating_mul(s.f_frsize)).unwrap_or(usize::MAX))
    }
}

/// Returns whether files in `dir` have huge pages here. Reserves two of them for the trial. Fails
/// with `Memory` if there is no room.
pub fn has_huge_pages(dir: &str) -> Result<bool> {
    let len = 2 * HUGE_PAGE;
    let file = SharedFile::create(dir, len, false)?;
    file.reserve(0, len)?;
    // SAFETY: the byte is in the mapping, which is reserved.
    unsafe { file.base().write_volatile(0) };
    let maps = std::fs::read_to_string("/proc/self/smaps").unwrap_or_default();
    let ours = format!("{:x}-", file.base().addr());
    let mut lines = maps.lines().skip_while(|line| !line.starts_with(&ours));
    let mapped = lines.find_map(|line| line.strip_prefix("ShmemPmdMapped:"));
    Ok(mapped.is_some_and(|size| size.trim() != "0 kB"))
}

fn open_unnamed(dir: &str) -> io::Result<File> {
    let path = CString::new(dir)?;
    // SAFETY: the path is a C string.
    let fd = unsafe {
        libc::open(path.as_ptr(), libc::O_TMPFILE | libc::O_RDWR | libc::O_CLOEXEC, 0o600)
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `fd` is a new descriptor that nothing else owns.
    Ok(unsafe { File::from_raw_fd(fd) })
}

/// Length in bytes of a huge page.
pub const HUGE_PAGE: usize = 2 << 20;

impl Mapping {
    /// A file that has room for huge pages is mapped at a multiple of their length, which they need.
    fn new(file: &File, len: usize) -> Result<Mapping> {
        let failed = || {
            let error = io::Error::last_os_error();
            os_error(&format!("cannot map {len} bytes of shared memory"), error)
        };
        let align = if len < HUGE_PAGE { page() } else { HUGE_PAGE };
        let whole = len.next_multiple_of(page()) + align - page();
        // SAFETY: the kernel chooses the address of `whole` bytes, so the mapping replaces no memory in
        // use. The other calls refer to parts of these bytes.
        unsafe {
            let anonymous = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            let start = libc::mmap(std::ptr::null_mut(), whole, libc::PROT_NONE, anonymous, -1, 0);
            if start == libc::MAP_FAILED {
                return Err(failed());
            }
            let before = start.cast::<u8>().align_offset(align);
            let base = start.add(before);
            let (rights, shared) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
            let flags = shared | libc::MAP_NORESERVE | libc::MAP_FIXED;
            if libc::mmap(base, len, rights, flags, file.as_raw_fd(), 0) == libc::MAP_FAILED {
                let error = failed();
                libc::munmap(start, whole);
                return Err(error);
            }
            if before > 0 {
                libc::munmap(start, before);
            }
            let after = align - page() - before;
            if after > 0 {
                libc::munmap(base.add(len.next_multiple_of(page())), after);
            }
            if align == HUGE_PAGE {
                // For a file system that is mounted with `huge=advise`. Others ignore the advice.
                libc::madvise(base, len, libc::MADV_HUGEPAGE);
            }
            Ok(Mapping { base: base.cast(), len })
        }
    }

    /// Maps memory of another process ([`SharedFile::sealed`]). Fails if its length is not `len` or
    /// can change: an access behind the end would raise SIGBUS.
    pub fn sealed(file: &File, len: usize) -> Result<Mapping> {
        let meta = file.metadata().map_err(|e| os_error("cannot stat a shared file", e))?;
        // SAFETY: the call takes no pointers, and the file is open.
        let seals = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) };
        if meta.len() != len as u64 || seals < 0 || seals & SEALS != SEALS {
            fail!(Memory, "the file has {} bytes, not {len}, or they can change", meta.len());
        }
        Mapping::new(file, len)
    }

    pub fn base(&self) -> *mut u8 {
        self.base
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if !process::is_kept_mapped() {
            // SAFETY: `base` and `len` are a mapping of our own, and nothing uses it any more.
            unsafe { libc::munmap(self.base.cast(), self.len) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_reserved_as_a_whole_and_zero() {
        let len = 4 * HUGE_PAGE;
        let file = SharedFile::create("/dev/shm", len, false).expect("a file");
        assert_eq!(file.base().addr() % HUGE_PAGE, 0);
        let blocks = || file.file.metadata().expect("a file").blocks() as usize * 512;
        // The first and the last part are shorter than a huge page.
        let (from, bytes) = (3 * page(), 3 * HUGE_PAGE);
        file.reserve(from, bytes).expect("room");
        assert_eq!(blocks(), bytes);
        // SAFETY: the bytes are mapped and reserved, and nothing else uses them.
        let memory = unsafe { std::slice::from_raw_parts_mut(file.base().add(from), bytes) };
        assert!(memory.iter().all(|byte| *byte == 0));
        memory.fill(7);
        assert!(file.release(from, bytes));
        assert_eq!(blocks(), 0);
        file.reserve(from, bytes).expect("room");
        assert!(memory.iter().all(|byte| *byte == 0));
    }

    fn both_kinds(named: bool) {
        let dir = std::env::temp_dir();
        let dir = dir.to_str().unwrap();
        let Ok(mut a) = SharedFile::create(dir, 1 << 20, named) else {
            assert!(!named, "a named file can be made anywhere");
            return; // the file system has no O_TMPFILE
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

    #[test]
    fn only_sealed_memory_of_the_right_length_is_mapped() {
        let (ours, file) = SharedFile::sealed(8192).unwrap().into_parts();
        let theirs = Mapping::sealed(&file, 8192).unwrap();
        assert_ne!(ours.base(), theirs.base());
        assert!(Mapping::sealed(&file, 4096).is_err());
        assert!(file.set_len(0).is_err());
        let dir = std::env::temp_dir();
        let open = SharedFile::create(dir.to_str().unwrap(), 8192, true).unwrap();
        assert!(Mapping::sealed(&open.file, 8192).is_err());
    }
}
