//! Choice of the address that a class listens on, and its published form.
//!
//! By default (`auto`) this is the address that the host name resolves to, because the hosts of a
//! site, and the launcher of an MPI job, find each other by it. On many systems the host name
//! resolves to loopback. A job on one host then listens only on loopback, and a job on several
//! hosts on the address from which packets to other hosts leave. A class listens on all interfaces
//! only if `all` requests it.

use crate::failure::{Failure, Result, Status, refuse};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, ToSocketAddrs, UdpSocket};

/// Opens a listening socket as `PORTOLAN_RPC_LISTEN` requests. Returns it with the address to
/// publish (`HOST:PORT`).
///
/// # Errors
/// Returns `ADDRNOTAVAIL` if this host does not have the requested address or interface.
pub(super) fn listen(asked: &str, several_hosts: bool) -> Result<(TcpListener, String)> {
    let failed = |e: std::io::Error| {
        Failure::new(
            Status::ADDRNOTAVAIL,
            format!("cannot listen for other jobs (PORTOLAN_RPC_LISTEN={asked}): {e}"),
        )
    };
    let at = match asked {
        "auto" => default_address(several_hosts),
        "all" => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        _ => match asked.parse::<IpAddr>() {
            Ok(address) => address,
            Err(_) => of_interface(asked).map_err(|failure| {
                let text = format!("PORTOLAN_RPC_LISTEN={}", failure.text());
                Failure::new(failure.status(), text)
            })?,
        },
    };
    let socket = TcpListener::bind((at, 0)).map_err(failed)?;
    let port = socket.local_addr().map_err(failed)?.port();
    let place = match at {
        any if any.is_unspecified() => format!("{}:{port}", name_of_host()),
        _ => SocketAddr::new(at, port).to_string(),
    };
    Ok((socket, place))
}

/// Opens a listening socket at `place`: `HOST`, `INTERFACE` or an address, each with an optional
/// `:PORT`, or nothing for loopback. Returns it with the address to publish (`HOST:PORT`).
///
/// # Errors
/// Returns `ADDRNOTAVAIL` if this host does not have the address, the interface or the free port.
pub(super) fn listen_at(place: &str) -> Result<(TcpListener, String)> {
    let failed = |e: std::io::Error| {
        let text = format!("cannot listen at tcp://{place}: {e}");
        Failure::new(Status::ADDRNOTAVAIL, text)
    };
    let (host, port) = match place.rsplit_once(':') {
        Some((host, port)) if !host.ends_with(':') || host.starts_with('[') => {
            let Ok(port) = port.parse::<u16>() else {
                refuse!(INVALID_ARG, "'{port}' of tcp://{place} is not a port");
            };
            (host, port)
        }
        _ => (place, 0),
    };
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let resolve = || Some((bare, port).to_socket_addrs().ok()?.next()?.ip());
    let at = match bare.parse::<IpAddr>() {
        _ if bare.is_empty() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        Ok(address) => address,
        Err(_) => match of_interface(bare) {
            Ok(address) => address,
            Err(failure) => resolve().ok_or(failure)?,
        },
    };
    let socket = TcpListener::bind((at, port)).map_err(failed)?;
    let bound = socket.local_addr().map_err(failed)?;
    let place = match at {
        any if any.is_unspecified() => format!("{}:{}", name_of_host(), bound.port()),
        _ => bound.to_string(),
    };
    Ok((socket, place))
}

fn default_address(several_hosts: bool) -> IpAddr {
    let named = addresses_of_host().into_iter().find(|at| !at.is_loopback() && is_own(*at));
    named
        .or_else(|| if several_hosts { leaves_by() } else { None })
        .unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST))
}

/// Returns the addresses that the host name resolves to, IPv4 first.
fn addresses_of_host() -> Vec<IpAddr> {
    let found = (&*host_name(), 0).to_socket_addrs();
    let mut all: Vec<IpAddr> = found.into_iter().flatten().map(|at| at.ip()).collect();
    all.sort_by_key(IpAddr::is_ipv6);
    all
}

fn is_own(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}

/// Returns the source address of packets to other hosts. Sends nothing.
fn leaves_by() -> Option<IpAddr> {
    let outside: [(IpAddr, IpAddr); 2] = [
        // These addresses are reserved for documentation, so no host has them.
        (Ipv4Addr::UNSPECIFIED.into(), Ipv4Addr::new(198, 51, 100, 1).into()),
        (Ipv6Addr::UNSPECIFIED.into(), Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into()),
    ];
    outside.into_iter().find_map(|(any, there)| {
        let socket = UdpSocket::bind((any, 0)).ok()?;
        socket.connect((there, 9)).ok()?;
        let here = socket.local_addr().ok()?.ip();
        (!here.is_unspecified() && !here.is_loopback()).then_some(here)
    })
}

/// Returns the address of an interface, preferring IPv4.
fn of_interface(name: &str) -> Result<IpAddr> {
    let all = if_addrs::get_if_addrs().map_err(|e| {
        Failure::new(Status::ADDRNOTAVAIL, format!("the interfaces cannot be listed: {e}"))
    })?;
    let link_local = |at: &IpAddr| matches!(at, IpAddr::V6(at) if at.is_unicast_link_local());
    let mut own: Vec<IpAddr> = all.iter().filter(|i| i.name == name).map(|i| i.ip()).collect();
    own.retain(|at| !link_local(at));
    own.sort_by_key(IpAddr::is_ipv6);
    let Some(address) = own.first() else {
        let mut known: Vec<&str> = all.iter().map(|i| &*i.name).collect();
        known.sort_unstable();
        known.dedup();
        refuse!(
            ADDRNOTAVAIL,
            "{name} is neither an address nor an interface with one; interfaces here are {}",
            known.join(", ")
        );
    };
    Ok(*address)
}

fn host_name() -> String {
    let name = portolan_engine::topology::host_name::<256>();
    let name = name.split(|&b| b == 0).next().unwrap_or_default();
    String::from_utf8_lossy(name).into_owned()
}

/// Returns the host name if it resolves, and otherwise the IPv4 loopback address.
fn name_of_host() -> String {
    let name = host_name();
    match (&*name, 1u16).to_socket_addrs() {
        Ok(_) if !name.is_empty() => name,
        _ => "127.0.0.1".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_listens_where_asked_and_nowhere_else() {
        let (socket, place) = listen("127.0.0.1", false).unwrap();
        assert_eq!(socket.local_addr().unwrap().to_string(), place);
        let (socket, place) = listen("lo", false).unwrap();
        assert!(socket.local_addr().unwrap().ip().is_loopback() && place.starts_with("127."));
        let (socket, _) = listen("all", false).unwrap();
        assert!(socket.local_addr().unwrap().ip().is_unspecified());
        for several in [false, true] {
            let (socket, place) = listen("auto", several).unwrap();
            assert!(!socket.local_addr().unwrap().ip().is_unspecified());
            assert!(std::net::TcpStream::connect(place).is_ok());
        }
    }

    #[test]
    fn a_place_may_be_an_address_an_interface_or_a_name() {
        for place in ["", "127.0.0.1", "127.0.0.1:0", "lo", "lo:0", "localhost", ":0"] {
            let (socket, at) = listen_at(place).unwrap();
            assert!(socket.local_addr().unwrap().ip().is_loopback(), "{place}");
            assert!(std::net::TcpStream::connect(at).is_ok(), "{place}");
        }
        let (socket, _) = listen_at("0.0.0.0").unwrap();
        let taken = socket.local_addr().unwrap().port();
        let refused = listen_at(&format!("0.0.0.0:{taken}")).unwrap_err();
        assert_eq!(refused.status(), Status::ADDRNOTAVAIL);
        assert_eq!(listen_at("127.0.0.1:x").unwrap_err().status(), Status::INVALID_ARG);
        assert!(listen_at("no-such-interface0").unwrap_err().text().contains("lo"));
        if let Ok((_, at)) = listen_at("[::1]:0") {
            assert!(std::net::TcpStream::connect(at).is_ok());
        }
    }

    #[test]
    fn what_is_not_there_is_named() {
        let refused = listen("no-such-interface0", false).unwrap_err();
        assert_eq!(refused.status(), Status::ADDRNOTAVAIL);
        assert!(refused.text().contains("no-such-interface0") && refused.text().contains("lo"));
        let refused = listen("203.0.113.9", false).unwrap_err();
        assert!(refused.text().contains("PORTOLAN_RPC_LISTEN=203.0.113.9"), "{}", refused.text());
    }
}
