package guard

import "net/netip"

const privateAddress = "a private address"

// specialRanges returns the ranges of addresses that are not public, and public addresses of metadata services. Source: IANA's registry of special-purpose
// addresses, without the ranges for documentation, which are not routed.
func specialRanges() []struct{ prefix, class string } {
	return []struct{ prefix, class string }{
		{"168.63.129.16/32", "a metadata service of a cloud"},
		{"100.100.100.200/32", "a metadata service of a cloud"},
		{"0.0.0.0/8", "an unspecified address"},
		{"10.0.0.0/8", privateAddress},
		{"100.64.0.0/10", privateAddress},
		{"169.254.0.0/16", "a link-local address"},
		{"172.16.0.0/12", privateAddress},
		{"192.0.0.0/24", "an address for protocols"},
		{"192.88.99.0/24", "an address for protocols"},
		{"192.168.0.0/16", privateAddress},
		{"198.18.0.0/15", privateAddress},
		{"224.0.0.0/4", "a multicast address"},
		{"240.0.0.0/4", "a reserved address"},
		{"fd00:ec2::/32", "a metadata service of a cloud"}, // serves the credentials of pods at ::23
		{"fd00:c1::a9fe:a9fe/128", "a metadata service of a cloud"},
		{"fd00:42::42/128", "a metadata service of a cloud"},
		{"fd20:ce::254/128", "a metadata service of a cloud"},
		{"fc00::/7", privateAddress},
		{"fe80::/10", "a link-local address"},
		{"ff00::/8", "a multicast address"},
		{"2001::/23", "an address for protocols"},
	}
}

// class returns the kind of an address, or "" for a public one.
func class(ip netip.Addr) string {
	for _, s := range specialRanges() {
		if netip.MustParsePrefix(s.prefix).Contains(ip) {
			return s.class
		}
	}
	if ip.Is6() && !netip.MustParsePrefix("2000::/3").Contains(ip) {
		return "a reserved address" // all public addresses are in that range
	}
	return ""
}

// isMetadata reports whether an address is that of a cloud's metadata service, which serves data and credentials of the machine.
func isMetadata(ip netip.Addr) bool {
	return ip == netip.MustParseAddr("169.254.169.254") || class(ip) == "a metadata service of a cloud"
}

// effectiveAddr returns the address that a connection reaches. It converts IPv6 forms of an IPv4 address to IPv4.
func effectiveAddr(ip netip.Addr) netip.Addr {
	ip = ip.Unmap().WithZone("")
	if ip.Is4() {
		return ip
	}
	b := ip.As16()
	switch {
	case netip.MustParsePrefix("64:ff9b::/96").Contains(ip): // NAT64
		return netip.AddrFrom4([4]byte(b[12:16]))
	case netip.MustParsePrefix("2002::/16").Contains(ip): // 6to4
		return netip.AddrFrom4([4]byte(b[2:6]))
	case netip.MustParsePrefix("::/96").Contains(ip) && b[12] != 0: // IPv4-compatible
		return netip.AddrFrom4([4]byte(b[12:16]))
	}
	return ip
}
