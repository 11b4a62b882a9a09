//! Finds hosts of the job that do not answer any more: the link to them is cut, or they are off.
//!
//! A rank that computes, waits for a disk or is stopped in a debugger makes no progress either, but
//! the kernel of its host still acknowledges what arrives by TCP. So a host is lost only if every
//! TCP connection of this process to it is without an acknowledgement for some time, although the
//! kernel of this host sends. A wait that lasts long makes it send: [`look`] turns on keepalive for
//! the connections to other hosts of the job. The ranks exchange the addresses of their hosts when
//! the engine starts, so connections of the program to other hosts do not count.
//!
//! A process without TCP connections to other hosts, for example over InfiniBand, finds no lost
//! host.

use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::RawFd;
use std::time::Duration;

/// An IPv6 address, or a mapped IPv4 address. Zero if there is none.
pub type Address = [u8; 16];
/// Number of addresses of a host that the ranks exchange.
pub const ADDRESSES: usize = 4;

/// The lowest rank of the host that has an address, for hosts other than this one.
static OTHERS: Mutex<Option<HashMap<Address, usize>>> = Mutex::new(None);

/// A host that does not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostHost {
    pub address: IpAddr,
    /// Its lowest rank.
    pub rank: usize,
    /// Time since its last acknowledgement.
    pub silent: Duration,
}

/// Reads a socket address. Returns `None` if it has no IP address.
///
/// # Safety
/// `from` must be null or point to a socket address that is as long as its family requires.
unsafe fn address(from: *const libc::sockaddr) -> Option<Address> {
    if from.is_null() {
        return None;
    }
    // SAFETY: by the contract. Each structure is read as its family requires.
    unsafe {
        match i32::from((*from).sa_family) {
            libc::AF_INET => {
                let bits = (*from.cast::<libc::sockaddr_in>()).sin_addr.s_addr;
                Some(std::net::Ipv4Addr::from(bits.to_ne_bytes()).to_ipv6_mapped().octets())
            }
            libc::AF_INET6 => Some((*from.cast::<libc::sockaddr_in6>()).sin6_addr.s6_addr),
            _ => None,
        }
    }
}

/// Returns the addresses at which other hosts may reach this one.
pub fn own() -> [Address; ADDRESSES] {
    let mut found = [Address::default(); ADDRESSES];
    let mut list = std::ptr::null_mut();
    // SAFETY: the call stores a list, which stays valid until it is freed below.
    if unsafe { libc::getifaddrs(&mut list) } != 0 {
        return found;
    }
    let (mut next, mut free) = (list, found.iter_mut());
    while !next.is_null() {
        // SAFETY: `next` is an element of the list, and its address is null or valid.
        let (one, flags) = unsafe {
            let one = &*next;
            next = one.ifa_next;
            (address(one.ifa_addr), one.ifa_flags as i32)
        };
        let local = |a: &Address| Ipv6Addr::from(*a).is_unicast_link_local();
        if flags & (libc::IFF_LOOPBACK | libc::IFF_UP) == libc::IFF_UP
            && let Some(one) = one.filter(|one| !local(one))
            && let Some(place) = free.next()
        {
            *place = one;
        }
    }
    // SAFETY: the list is freed once.
    unsafe { libc::freeifaddrs(list) };
    found
}

/// Sets the addresses of all ranks. `node` returns the lowest rank of a rank's node.
pub fn configure(me: usize, all: &[[Address; ADDRESSES]], node: impl Fn(usize) -> usize) {
    let mut others = HashMap::new();
    for (rank, addresses) in all.iter().enumerate() {
        for address in addresses.iter().filter(|a| **a != Address::default()) {
            // Hosts may share an address that leads to none of the others, as of a bridge.
            if !all[me].contains(address) {
                others.entry(*address).or_insert_with(|| node(rank));
            }
        }
    }
    *OTHERS.lock() = Some(others);
}

/// Returns the address of the other end of a socket, or `None` if the descriptor has none.
fn peer(socket: RawFd) -> Option<Address> {
    // SAFETY: zeroes are a valid address structure.
    let mut storage: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
    let mut length = size_of_val(&storage) as libc::socklen_t;
    let place = (&raw mut storage).cast();
    // SAFETY: `place` has room for `length` bytes. Any descriptor may be passed.
    match unsafe { libc::getpeername(socket, place, &mut length) } {
        // SAFETY: the call has written an address, and the structure has room for any.
        0 => unsafe { address(place) },
        _ => None,
    }
}

/// Makes the kernel probe an idle connection, and returns the time since the last acknowledgement.
/// Returns `None` for sockets other than of TCP. The probes never end the connection within the
/// limit.
fn probe(socket: RawFd, every: Duration) -> Option<Duration> {
    let seconds = every.as_secs().clamp(1, 60) as libc::c_int;
    // SAFETY: zeroes are a valid structure of integers.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut length = size_of_val(&info) as libc::socklen_t;
    let place = (&raw mut info).cast();
    // SAFETY: `place` has room for `length` bytes. Any descriptor may be passed.
    if unsafe { libc::getsockopt(socket, libc::IPPROTO_TCP, libc::TCP_INFO, place, &mut length) }
        != 0
    {
        return None;
    }
    for (level, option, value) in [
        (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, seconds),
        (libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, seconds),
        (libc::IPPROTO_TCP, libc::TCP_KEEPCNT, 127),
        (libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1),
    ] {
        let length = size_of_val(&value) as libc::socklen_t;
        // SAFETY: the value is an integer of `length` bytes. Any descriptor may be passed.
        unsafe { libc::setsockopt(socket, level, option, (&raw const value).cast(), length) };
    }
    Some(Duration::from_millis(info.tcpi_last_ack_recv.into()))
}

/// When a wait looks at the hosts, and what it has seen.
#[derive(Debug, Default)]
pub struct Looks {
    /// Time without progress at which the next look is due.
    next: Duration,
    /// Number of looks in a row that have found a silent host.
    silent: u32,
}

impl Looks {
    /// Returns whether a host is lost, after `idle` without progress. Looks for the first time after
    /// half of the limit, and then eight times per limit. One look is not enough: if this process
    /// was stopped itself, its idle connections were not probed before the first look after it.
    pub fn find_lost(
        &mut self,
        limit: Duration,
        idle: Duration,
        look: impl FnOnce(Duration) -> Option<LostHost>,
    ) -> bool {
        if idle < self.next.max(limit / 2) {
            return false;
        }
        self.next = idle + limit / 8;
        self.silent = if look(limit).is_some() { self.silent + 1 } else { 0 };
        idle >= limit && self.silent > 1
    }
}

/// Makes the kernel probe the connections to other hosts of the job, and returns the host that has
/// been silent for longest, if that is a quarter of `limit` or longer. A wait calls this for the
/// first time after half of the limit, so that an idle connection has been probed for long enough
/// when the limit is over.
pub fn look(limit: Duration) -> Option<LostHost> {
    let others = OTHERS.lock();
    let others = others.as_ref().filter(|others| !others.is_empty())?;
    // The shortest silence of each host.
    let mut silences: BTreeMap<usize, (Duration, Address)> = BTreeMap::new();
    for entry in std::fs::read_dir("/proc/self/fd").ok()?.flatten() {
        let Some(socket) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let Some(address) = peer(socket) else { continue };
        let Some(rank) = others.get(&address) else { continue };
        let Some(silent) = probe(socket, limit / 32) else { continue };
        let least = silences.entry(*rank).or_insert((silent, address));
        *least = (*least).min((silent, address));
    }
    let (rank, (silent, address)) = silences.into_iter().max_by_key(|(_, (silent, _))| *silent)?;
    let lost = LostHost { address: Ipv6Addr::from(address).to_canonical(), rank, silent };
    (silent >= limit / 4).then_some(lost)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, TcpListener, TcpStream};

    #[test]
    fn a_host_whose_process_does_nothing_is_not_lost() {
        let mapped = |ip: Ipv4Addr| ip.to_ipv6_mapped().octets();
        let of = |ip| [mapped(ip), Address::default(), Address::default(), Address::default()];
        let (here, there) = (Ipv4Addr::new(127, 0, 0, 1), Ipv4Addr::new(127, 0, 0, 2));
        configure(0, &[of(here), of(here), of(there), of(there)], |rank| rank / 2 * 2);
        assert_eq!(look(Duration::ZERO), None);
        // The process does not accept, as if it were stopped. Its kernel answers the probes.
        let listener = TcpListener::bind((there, 0)).expect("a port");
        let to = listener.local_addr().expect("an address");
        let _connection = TcpStream::connect(to).expect("a connection");
        for _ in 0..8 {
            std::thread::sleep(Duration::from_millis(500));
            let lost = look(Duration::from_secs(8));
            assert!(lost.is_none(), "{lost:?}");
        }
        let lost = look(Duration::ZERO).expect("any silence is too long");
        assert_eq!((lost.rank, lost.address), (2, IpAddr::V4(there)));
    }

    #[test]
    fn own_addresses_are_not_of_the_loopback() {
        for address in own() {
            assert!(!Ipv6Addr::from(address).to_canonical().is_loopback());
        }
    }
}
