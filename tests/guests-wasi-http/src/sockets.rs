//! Every way to a socket or an address that WASI has. None may work.

use deedbox_guest::prelude::*;
use wasip2::sockets::instance_network::instance_network;
use wasip2::sockets::ip_name_lookup::resolve_addresses;
use wasip2::sockets::network::{ErrorCode, IpAddressFamily, IpSocketAddress, Ipv4SocketAddress};
use wasip2::sockets::tcp_create_socket::create_tcp_socket;
use wasip2::sockets::udp_create_socket::create_udp_socket;

#[data]
struct Use {
    operations: Vec<Operation>,
    port: u16,
}

#[data]
#[serde(rename_all = "kebab-case")]
enum Operation {
    CreateTcp,
    CreateTcp6,
    CreateUdp,
    CreateUdp6,
    BindTcp,
    ListenTcp,
    ConnectTcp,
    BindUdp,
    StreamUdp,
    LookUp,
}

/// Tries each operation, with what must come before it, and returns the error or `worked`.
#[activity]
fn use_sockets(_ctx: &Context, input: Use) -> Result<Vec<String>, Failure> {
    let told = |result: Result<(), ErrorCode>| match result {
        Ok(()) => "worked".to_owned(),
        Err(code) => code.name().to_owned(),
    };
    Ok(input.operations.iter().map(|operation| told(tried(operation, input.port))).collect())
}

fn tried(operation: &Operation, port: u16) -> Result<(), ErrorCode> {
    let network = instance_network();
    let loopback = IpSocketAddress::Ipv4(Ipv4SocketAddress { port, address: (127, 0, 0, 1) });
    match operation {
        Operation::CreateTcp => create_tcp_socket(IpAddressFamily::Ipv4).map(drop),
        Operation::CreateTcp6 => create_tcp_socket(IpAddressFamily::Ipv6).map(drop),
        Operation::CreateUdp => create_udp_socket(IpAddressFamily::Ipv4).map(drop),
        Operation::CreateUdp6 => create_udp_socket(IpAddressFamily::Ipv6).map(drop),
        Operation::BindTcp => create_tcp_socket(IpAddressFamily::Ipv4)?.start_bind(&network, loopback),
        Operation::ListenTcp => create_tcp_socket(IpAddressFamily::Ipv4)?.start_listen(),
        Operation::ConnectTcp => create_tcp_socket(IpAddressFamily::Ipv4)?.start_connect(&network, loopback),
        Operation::BindUdp => create_udp_socket(IpAddressFamily::Ipv4)?.start_bind(&network, loopback),
        Operation::StreamUdp => create_udp_socket(IpAddressFamily::Ipv4)?.stream(Some(loopback)).map(drop),
        Operation::LookUp => resolve_addresses(&network, "canary.test").map(drop),
    }
}
