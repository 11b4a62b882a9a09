//! Tests the library's messages on standard error.

use crate::child::step;
use portolan::Runtime;
use std::io::Read;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// Standard error as packets: each write of the process is one packet.
struct Packets {
    reader: std::fs::File,
    stderr: OwnedFd,
}

impl Packets {
    fn begin() -> Packets {
        let mut pair = [0; 2];
        // SAFETY: plain system calls on fresh descriptors, which are owned from here on.
        unsafe {
            let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
            assert_eq!(libc::socketpair(libc::AF_UNIX, kind, 0, pair.as_mut_ptr()), 0);
            let stderr = OwnedFd::from_raw_fd(libc::dup(2));
            assert_eq!(libc::dup2(pair[1], 2), 2);
            libc::close(pair[1]);
            Packets { reader: std::fs::File::from_raw_fd(pair[0]), stderr }
        }
    }

    /// Restores standard error and returns the packets in order.
    fn end(mut self) -> Vec<String> {
        // SAFETY: both are open. Replacing descriptor 2 closes the last writer of the socket.
        assert_eq!(unsafe { libc::dup2(self.stderr.as_raw_fd(), 2) }, 2);
        let (mut packets, mut buffer) = (Vec::new(), vec![0; 64 << 10]);
        loop {
            match self.reader.read(&mut buffer).expect("the socket is read") {
                0 => return packets,
                n => packets.push(String::from_utf8_lossy(&buffer[..n]).into_owned()),
            }
        }
    }
}

/// Each message is one write, begins with the library's name and the rank, and appears once.
pub fn whole() {
    let rt = Runtime::init().expect("start");
    let world = rt.world();
    world.barrier().expect("barrier");
    let segment = world.allocate::<u64>(8).expect("a segment");
    let array = portolan::array::DistArray::<f64, _>::zeros(&world, [8]).expect("an array");
    let packets = Packets::begin();
    drop(segment);
    drop(array);
    // SAFETY: the watchdog has installed a handler for the signal.
    unsafe { libc::kill(libc::getpid(), libc::SIGUSR1) };
    std::thread::sleep(Duration::from_secs(1));
    let at_once = packets.end();
    assert!(!at_once.iter().any(|said| said.contains("not freed")), "{at_once:?}");
    // The program makes another call, so it did not drop the segment because of an error.
    let packets = Packets::begin();
    world.barrier().expect("barrier");
    let said = [at_once, packets.end()].concat();
    step(format!("{said:?}"));
    let rank = rt.rank();
    for text in &said {
        assert!(text.starts_with(&format!("portolan: rank {rank}: ")), "{said:?}");
        assert!(text.ends_with('\n') && !text.contains("portolan::"), "{said:?}");
    }
    let of = |text: &str| said.iter().filter(|s| s.contains(text)).count();
    assert_eq!(of("requested by SIGUSR1"), 1, "{said:?}");
    assert_eq!(of("warning: a segment with 8 elements here was dropped"), 1, "{said:?}");
    assert_eq!(of("warning: an array with"), 1, "{said:?}");
    // The text of an error begins with the rank as well.
    let error = rt.fence(rt.size()).expect_err("a rank outside the job").to_string();
    assert!(error.starts_with(&format!("rank {rank}: Runtime::fence: ")), "{error}");
    rt.finalize().expect("stop");
}
