//! Choice of the address that a TCP class listens on, and its published form.

use crate::failure::{Failure, Result, Status, refuse};
use std::net::{IpAddr, Ipv4Addr, TcpListener, ToSocketAddrs};

/// Opens a listening socket at `place`: a host name, an interface, an address or `all`, each with
/// an optional `:PORT`, or nothing for loopback. Returns it with the address to publish
/// (`HOST:PORT`). Returns `INVALID_ARG` if the port is not a number, `ADDRNOTAVAIL` if this host
/// lacks the address, the interface or the free port.
pub(super) fn listen_at(place: &str) -> Result<(TcpListener, String)> {
    let failed = |e: std::io::Error| {
        let text = format!("cannot listen at '{place}' over TCP: {e}");
        Failure::new(Status::ADDRNOTAVAIL, text)
    };
    let (host, port) = match place.rsplit_once(':') {
        Some((host, port)) if host.ends_with(']') || !host.contains(':') => {
            let Ok(port) = port.parse::<u16>() else {
                refuse!(INVALID_ARG, "'{port}' of '{place}' is not a port");
            };
            (host, port)
        }
        _ => (place, 0),
    };
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let resolve = || Some((bare, port).to_socket_addrs().ok()?.next()?.ip());
    let at = match bare.parse::<IpAddr>() {
        _ if bare.is_empty() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        _ if bare == "all" => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
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

/// Returns the host name. Characters that no address may contain are replaced.
pub(super) fn host_name() -> String {
    let name = portolan_engine::topology::host_name::<256>();
    let name = name.split(|&b| b == 0).next().unwrap_or_default();
    let of_name = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    name.iter().map(|&b| if of_name(b) { char::from(b) } else { '-' }).collect()
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
    fn a_place_may_be_an_address_an_interface_or_a_name() {
        for place in ["", "127.0.0.1", "127.0.0.1:0", "lo", "lo:0", "localhost", ":0"] {
            let (socket, at) = listen_at(place).unwrap();
            assert!(socket.local_addr().unwrap().ip().is_loopback(), "{place}");
            assert!(std::net::TcpStream::connect(at).is_ok(), "{place}");
        }
        let (socket, at) = listen_at("all").unwrap();
        assert!(socket.local_addr().unwrap().ip().is_unspecified() && !at.starts_with("0.0"));
        let (socket, _) = listen_at("0.0.0.0").unwrap();
        let taken = socket.local_addr().unwrap().port();
        let refused = listen_at(&format!("0.0.0.0:{taken}")).unwrap_err();
        assert_eq!(refused.status(), Status::ADDRNOTAVAIL);
        assert_eq!(listen_at("127.0.0.1:x").unwrap_err().status(), Status::INVALID_ARG);
        assert!(listen_at("no-such-interface0").unwrap_err().text().contains("lo"));
        if listen_at("[::1]:0").is_ok() {
            for place in ["[::1]", "::1", "[::1]:0"] {
                let (_socket, at) = listen_at(place).unwrap();
                assert!(std::net::TcpStream::connect(at).is_ok(), "{place}");
            }
        }
    }
}
