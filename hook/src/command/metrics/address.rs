//! Where `metrics --listen` listens: `HOST:PORT`, as in Prometheus, or `:PORT` for each address of the machine.
//!
//! The form is checked when the command line is read. A name is looked up when the socket is bound; the first of its
//! addresses that can be bound is used.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::str::FromStr;

/// An address as it was typed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Address {
    host: String,
    port: u16,
}

impl Address {
    /// Binds a socket. Without a host it accepts IPv6 and IPv4, or IPv4 alone where the kernel has no IPv6.
    pub(super) fn bind(&self) -> io::Result<TcpListener> {
        let Self { host, port } = self;
        if host.is_empty() {
            let every = [
                SocketAddr::from((Ipv6Addr::UNSPECIFIED, *port)),
                SocketAddr::from((Ipv4Addr::UNSPECIFIED, *port)),
            ];
            return TcpListener::bind(&every[..]);
        }
        TcpListener::bind((host.trim_start_matches('[').trim_end_matches(']'), *port))
    }
}

impl FromStr for Address {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORM: &str = "give HOST:PORT, or :PORT for each address of this machine";
        let (host, port) = text.rsplit_once(':').ok_or(FORM)?;
        let has_brackets = host.starts_with('[') && host.ends_with(']');
        if host.contains(':') && !has_brackets {
            return Err("give an IPv6 address in brackets: [::1]:PORT");
        }
        Ok(Self { host: host.to_owned(), port: port.parse().map_err(|_| FORM)? })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_a_port_or_both_are_an_address() {
        for text in ["localhost:9744", ":9744", "127.0.0.1:0", "[::1]:9744", "node-7.example:1"] {
            assert_eq!(text.parse::<Address>().map(|it| it.to_string()), Ok(text.to_owned()));
        }
        for text in ["", "9744", "localhost", "localhost:", "a:65536", "::1:9744", ":-1"] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_numeric_address_is_bound_without_a_lookup() {
        let bound = "127.0.0.1:0".parse::<Address>().expect("an address").bind();
        let bound = bound.and_then(|socket| socket.local_addr()).expect("bound");
        assert_eq!(bound.ip(), Ipv4Addr::LOCALHOST);
    }
}
