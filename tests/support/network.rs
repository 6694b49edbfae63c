//! Hosts on a network of their own: a network namespace for each, connected by a bridge on the host `hub`.
//! It needs root and the program `ip`; without them, tests are skipped and say so.

use std::fs::File;
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Name of the interface of a host.
const INTERFACE: &str = "eth0";

/// Several hosts and a hub.
pub(crate) struct Network {
    hosts: usize,
}

impl Network {
    /// Creates the network. `None`: the test is skipped, and says so.
    pub(crate) fn new(test: &str, hosts: usize) -> Option<Self> {
        let network = Self { hosts };
        if !ip(&["netns", "add", &network.name(0)]) {
            eprintln!("SKIPPED {test}: needs root, and `ip` from iproute2");
            return None;
        }
        let hub = network.name(0);
        network.require(&hub, "link add br0 type bridge");
        network.require(&hub, &format!("address add {}/24 dev br0", Self::address(0)));
        network.require(&hub, "link set br0 up");
        network.require(&hub, "link set lo up");
        for number in 1..=hosts {
            let host = network.name(number);
            assert!(ip(&["netns", "add", &host]));
            let pair = format!(
                "link add port{number} type veth peer name {INTERFACE} netns {host} address {}",
                format_args!("02:00:00:00:00:{number:02x}")
            );
            network.require(&hub, &pair);
            network.require(&hub, &format!("link set port{number} master br0 up"));
            network.require(&host, "link set lo up");
            let address = format!("address add {}/24 dev {INTERFACE}", Self::address(number));
            network.require(&host, &address);
            network.require(&host, &format!("link set {INTERFACE} up"));
        }
        Some(network)
    }

    /// The address of a host; the hub has number 0.
    pub(crate) fn address(number: usize) -> String {
        format!("10.78.0.{}", number + 1)
    }

    /// Does work on a host: connections of this code and of the processes that it starts begin there.
    pub(crate) fn on<T: Send>(&self, number: usize, work: impl FnOnce() -> T + Send) -> T {
        let namespace = File::open(format!("/run/netns/{}", self.name(number))).unwrap();
        let joined = thread::scope(|scope| {
            let thread = scope.spawn(move || {
                let kind = Some(LinkNameSpaceType::Network);
                move_into_link_name_space(namespace.as_fd(), kind).unwrap();
                work()
            });
            thread.join()
        });
        joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// Cuts the hub off from all hosts: packets are lost without an answer.
    pub(crate) fn cut(&self) {
        self.require(&self.name(0), "link set br0 down");
    }

    /// Ends the cut.
    pub(crate) fn heal(&self) {
        self.require(&self.name(0), "link set br0 up");
    }

    fn name(&self, number: usize) -> String {
        format!("policyd-{}-{number}", std::process::id())
    }

    fn require(&self, namespace: &str, words: &str) {
        let mut arguments = vec!["-n", namespace];
        arguments.extend(words.split(' '));
        assert!(ip(&arguments), "ip -n {namespace} {words}");
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for number in 0..=self.hosts {
            ip(&["netns", "delete", &self.name(number)]);
        }
    }
}

/// Calls `ip`. Returns whether it succeeded.
fn ip(arguments: &[&str]) -> bool {
    let mut command = Command::new("ip");
    let called = command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
    called.is_ok_and(|it| it.success())
}
