package guard

import "net/netip"

const private = "a private address"

// special are the ranges of IPv4 that are not public, and the public address of a metadata service. (IANA's registry of
// special-purpose addresses; those for documentation lead nowhere.)
func special() []struct{ prefix, class string } {
	return []struct{ prefix, class string }{
		{"168.63.129.16/32", "a metadata service of a cloud"},
		{"100.100.100.200/32", "a metadata service of a cloud"},
		{"0.0.0.0/8", "an unspecified address"},
		{"10.0.0.0/8", private},
		{"100.64.0.0/10", private},
		{"169.254.0.0/16", "a link-local address"},
		{"172.16.0.0/12", private},
		{"192.0.0.0/24", "an address for protocols"},
		{"192.88.99.0/24", "an address for protocols"},
		{"192.168.0.0/16", private},
		{"198.18.0.0/15", private},
		{"224.0.0.0/4", "a multicast address"},
		{"240.0.0.0/4", "a reserved address"},
		{"fd00:ec2::/32", "a metadata service of a cloud"}, // with the credentials of pods at ::23
		{"fd00:c1::a9fe:a9fe/128", "a metadata service of a cloud"},
		{"fd00:42::42/128", "a metadata service of a cloud"},
		{"fd20:ce::254/128", "a metadata service of a cloud"},
		{"fc00::/7", private},
		{"fe80::/10", "a link-local address"},
		{"ff00::/8", "a multicast address"},
		{"2001::/23", "an address for protocols"},
	}
}

// class says what kind of address it is; empty for a public one.
func class(ip netip.Addr) string {
	for _, s := range special() {
		if netip.MustParsePrefix(s.prefix).Contains(ip) {
			return s.class
		}
	}
	if ip.Is6() && !netip.MustParsePrefix("2000::/3").Contains(ip) {
		return "a reserved address" // all public ones are in that range
	}
	return ""
}

// isMetadata says whether a cloud answers there with what belongs to the machine.
func isMetadata(ip netip.Addr) bool {
	return ip == netip.MustParseAddr("169.254.169.254") || class(ip) == "a metadata service of a cloud"
}

// plain is the address that a connection reaches in the end: IPv4 in the forms that IPv6 has for it is IPv4.
func plain(ip netip.Addr) netip.Addr {
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
