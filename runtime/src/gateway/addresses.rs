//! Which addresses are for the public Internet. Every block of IANA's special-purpose registries is left out, those that can
//! be reached as well: no provider lives there, and some lead on to other addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const fn v4(a: u8, b: u8, c: u8, length: u32) -> (Ipv4Addr, u32) {
    (Ipv4Addr::new(a, b, c, 0), length)
}

const fn v6(a: u16, b: u16, c: u16, length: u32) -> (Ipv6Addr, u32) {
    (Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0), length)
}

const SPECIAL_V4: [(Ipv4Addr, u32); 18] = [
    v4(0, 0, 0, 8),       // this network
    v4(10, 0, 0, 8),      // private
    v4(100, 64, 0, 10),   // shared by a carrier's customers
    v4(127, 0, 0, 8),     // loopback
    v4(169, 254, 0, 16),  // link-local, with the metadata services of clouds
    v4(172, 16, 0, 12),   // private
    v4(192, 0, 0, 24),    // protocol assignments
    v4(192, 0, 2, 24),    // documentation
    v4(192, 31, 196, 24), // AS112
    v4(192, 52, 193, 24), // multicast tunnels
    v4(192, 88, 99, 24),  // relays to 6to4
    v4(192, 168, 0, 16),  // private
    v4(192, 175, 48, 24), // AS112
    v4(198, 18, 0, 15),   // benchmarks
    v4(198, 51, 100, 24), // documentation
    v4(203, 0, 113, 24),  // documentation
    v4(224, 0, 0, 4),     // multicast
    v4(240, 0, 0, 4),     // reserved, and broadcast
];

/// The one block that unicast addresses are given out of. Outside of it are `::`, loopback, mapped (`::ffff:0:0/96`),
/// compatible (`::/96`) and translated (`64:ff9b::/96`, `64:ff9b:1::/48`) addresses, discard (`100::/64`), segment routing
/// (`5f00::/16`), unique local, link-local, site-local and multicast ones.
const UNICAST_V6: (Ipv6Addr, u32) = v6(0x2000, 0, 0, 3);

/// Inside of it.
const SPECIAL_V6: [(Ipv6Addr, u32); 6] = [
    v6(0x2001, 0, 0, 23),         // protocol assignments: Teredo, benchmarks, ORCHID and others
    v6(0x2001, 0xdb8, 0, 32),     // documentation
    v6(0x2002, 0, 0, 16),         // 6to4: an IPv4 address in disguise
    v6(0x2620, 0x4f, 0x8000, 48), // AS112
    v6(0x3ffe, 0, 0, 16),         // given back
    v6(0x3fff, 0, 0, 20),         // documentation
];

/// False for every address of a special block, and for IPv6 addresses that are not given out.
pub fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => !SPECIAL_V4.iter().any(|block| holds_v4(*block, ip)),
        IpAddr::V6(ip) => holds_v6(UNICAST_V6, ip) && !SPECIAL_V6.iter().any(|block| holds_v6(*block, ip)),
    }
}

fn holds_v4((block, length): (Ipv4Addr, u32), ip: Ipv4Addr) -> bool {
    (block.to_bits() ^ ip.to_bits()).leading_zeros() >= length
}

fn holds_v6((block, length): (Ipv6Addr, u32), ip: Ipv6Addr) -> bool {
    (block.to_bits() ^ ip.to_bits()).leading_zeros() >= length
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPECIAL_V4: &str = "0.0.0.0 0.255.255.255 10.0.0.0 10.255.255.255 100.64.0.0 100.127.255.255 127.0.0.0 127.0.0.1 \
        127.255.255.255 169.254.0.0 169.254.169.254 169.254.255.255 172.16.0.0 172.31.255.255 192.0.0.0 \
        192.0.0.9 192.0.0.170 192.0.0.255 192.0.2.0 192.0.2.255 192.31.196.0 192.31.196.255 192.52.193.0 \
        192.52.193.255 192.88.99.0 192.88.99.255 192.168.0.0 192.168.255.255 192.175.48.0 192.175.48.255 \
        198.18.0.0 198.19.255.255 198.51.100.0 198.51.100.255 203.0.113.0 203.0.113.255 224.0.0.0 \
        239.255.255.255 240.0.0.0 255.255.255.254 255.255.255.255";

    const OUTSIDE_OF_UNICAST: &str = ":: ::1 ::127.0.0.1 ::8.8.8.8 ::ffff:127.0.0.1 ::ffff:7f00:1 ::ffff:a9fe:a9fe ::ffff:8.8.8.8 \
        ::ffff:0:127.0.0.1 64:ff9b:: 64:ff9b::7f00:1 64:ff9b::a9fe:a9fe 64:ff9b::808:808 64:ff9b:1:: \
        64:ff9b:1::7f00:1 64:ff9b:1:ffff:ffff:ffff:ffff:ffff 100:: 100::ffff 100:0:0:1:: 5f00:: 5f00:ffff:: \
        fc00:: fd00::1 fdff:ffff:: fe80:: fe80::1 febf:ffff:: fec0:: feff:ffff:: ff00:: ff02::1 ffff:: \
        1fff:ffff:: 4000::";

    const INSIDE_OF_UNICAST: &str = "2001:: 2001::7f00:1 2001:0:ffff:: 2001:1::1 2001:1::2 2001:1::3 2001:2:: 2001:3:: 2001:4:112:: \
        2001:10:: 2001:20:: 2001:30:: 2001:1ff:ffff:: 2001:db8:: 2001:db8:ffff:: 2002:: 2002:7f00:1:: \
        2002:a00:1:: 2002:808:808:: 2002:ffff:: 2620:4f:8000:: 2620:4f:8000:ffff:: 3ffe:: 3fff:: \
        3fff:fff:ffff::";

    const PUBLIC: &str = "1.0.0.0 1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 \
        169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 191.255.255.255 192.0.1.0 192.0.3.0 \
        192.31.195.255 192.31.197.0 192.52.192.255 192.52.194.0 192.88.98.255 192.88.100.0 192.167.255.255 \
        192.169.0.0 192.175.47.255 192.175.49.0 198.17.255.255 198.20.0.0 198.51.99.255 198.51.101.0 \
        203.0.112.255 203.0.114.0 223.255.255.255 2000::1 2001:200:: 2001:4860:4860::8888 2001:db7:ffff:: \
        2001:db9:: 2003:: 2606:4700::1111 2620:4f:7fff:: 2620:4f:8001:: 2a00::1 3ffd:: 3fff:1000::";

    /// F-E04: both ends of every block of the registries, and what lies beside them.
    #[test]
    fn special_blocks_are_not_public_and_their_neighbours_are() {
        for (texts, public) in
            [(SPECIAL_V4, false), (OUTSIDE_OF_UNICAST, false), (INSIDE_OF_UNICAST, false), (PUBLIC, true)]
        {
            for text in texts.split_whitespace() {
                assert_eq!(is_public(text.parse().unwrap()), public, "{text}");
            }
        }
    }
}
