//! Files that authenticate this process, such as keys. They are refused if other users could have
//! read or changed them.

use crate::failure::{Failure, Result, Status, refuse};
use std::fmt::Display;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Who may access a file besides its owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Others {
    None,
    #[cfg_attr(not(feature = "tls"), allow(dead_code))]
    Read,
}

/// Reads a file of at most `most` bytes, or `most + 1` bytes of a longer one. Errors contain
/// `name`. Returns `PERMISSION` if the mode or owner gives other users more access than `others`,
/// `INVALID_ARG` if it is not a regular file, and `IO_ERROR` if it cannot be read.
pub(crate) fn read(
    name: &dyn Display,
    path: &Path,
    others: Others,
    most: usize,
) -> Result<Vec<u8>> {
    let failed = |e: std::io::Error| Failure::new(Status::IO_ERROR, format!("{name}: {e}"));
    // `O_NONBLOCK` avoids blocking if the path is a pipe. The checks apply to the opened file, so
    // the path cannot be exchanged in between.
    let open = || std::fs::OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
    let file = open().map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        refuse!(INVALID_ARG, "{name}: not a regular file");
    }
    let (forbidden, what, mode) = match others {
        Others::None => (0o077, "have access", 600),
        Others::Read => (0o022, "change it", 644),
    };
    if metadata.mode() & forbidden != 0 {
        refuse!(
            PERMISSION,
            "{name}: its permissions are {:o}, but only its owner may {what}; run chmod {mode}",
            metadata.mode() & 0o777
        );
    }
    let me = std::fs::metadata("/proc/self").map_err(failed)?.uid();
    if metadata.uid() != me && metadata.uid() != 0 {
        refuse!(
            PERMISSION,
            "{name}: it belongs to user {}, not to user {me} or root",
            metadata.uid()
        );
    }
    let mut bytes = Vec::new();
    file.take(most as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn files_that_others_can_access_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let with = |mode, others| {
            std::fs::write(&path, b"text").unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            read(&"NAME", &path, others, 3)
        };
        assert_eq!(with(0o600, Others::None).unwrap(), b"text", "one byte more than allowed");
        assert_eq!(with(0o644, Others::Read).unwrap(), b"text");
        let refused = [
            (0o640, Others::None),
            (0o604, Others::None),
            (0o620, Others::None),
            (0o602, Others::None),
            (0o610, Others::None),
            (0o664, Others::Read),
            (0o646, Others::Read),
        ];
        for (mode, others) in refused {
            let refused = with(mode, others).unwrap_err();
            assert_eq!(refused.status(), Status::PERMISSION, "{mode:o}");
            assert!(refused.text().contains("NAME") && refused.text().contains("run chmod 6"));
        }
        let refused = |path| read(&"NAME", path, Others::Read, 3).unwrap_err().status();
        assert_eq!(refused(dir.path()), Status::INVALID_ARG);
        assert_eq!(refused(&dir.path().join("absent")), Status::IO_ERROR);
    }
}
