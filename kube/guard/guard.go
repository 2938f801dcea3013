package guard

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"syscall"
	"time"

	"k8s.io/client-go/rest"

	"scute.dev/internal/fair"
)

// ErrDenied is wrapped by every error for an address that is not allowed.
var ErrDenied = errors.New("address not allowed")

// Guard decides which addresses may be reached. The zero value and nil allow only public addresses.
type Guard struct {
	allowed []netip.Prefix
	slots   *fair.Slots // for large responses
}

// New returns a Guard that also allows addresses and ranges, such as "192.0.2.7" or "10.0.0.0/8".
func New(allowed []string) (*Guard, error) {
	g := &Guard{slots: fair.NewSlots(1)}
	for _, text := range allowed {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			var ip netip.Addr
			if ip, err = netip.ParseAddr(text); err != nil || ip.Zone() != "" {
				return nil, fmt.Errorf("%q is neither an address nor a range: write it as 10.0.0.0/8 or 192.0.2.7", text)
			}
			prefix = netip.PrefixFrom(ip, ip.BitLen())
		}
		g.allowed = append(g.allowed, prefix.Masked())
	}
	return g, nil
}

// AllowPrivate returns a Guard that also allows private addresses, which machines of workload
// clusters have. Addresses that an operator must list one by one (see Check) stay denied.
func (g *Guard) AllowPrivate() *Guard {
	wider := &Guard{}
	if g != nil {
		wider.allowed, wider.slots = slices.Clone(g.allowed), g.slots
	}
	for _, s := range specialRanges() {
		if s.class == privateAddress {
			wider.allowed = append(wider.allowed, netip.MustParsePrefix(s.prefix))
		}
	}
	return wider
}

// Check returns an error if an address may not be reached. This machine's own addresses and
// metadata services must be listed one by one: a range that contains them does not allow them.
func (g *Guard) Check(ip netip.Addr) error {
	ip = effectiveAddr(ip)
	class := class(ip)
	own, err := isLocal(ip)
	if err != nil {
		return err
	}
	if own {
		class = "an address of the machine that scuted runs on"
	}
	if class == "" {
		return nil
	}
	alone := own || isMetadata(ip)
	if g != nil && slices.ContainsFunc(g.allowed, func(p netip.Prefix) bool { return p.Contains(ip) && (p.IsSingleIP() || !alone) }) {
		return nil
	}
	lists := "lists it"
	if alone {
		lists = "lists it individually (a range that contains it does not count)"
	}
	return fmt.Errorf("%w: %s is %s, which scuted reaches only if its operator %s in --allow-addresses (allowAddresses in the chart)", ErrDenied, ip, class, lists)
}

func (g *Guard) control(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("parsing the address %s: %w", address, err)
	}
	return g.Check(to.Addr())
}

// Dialer returns a dialer that checks each address before it connects.
func (g *Guard) Dialer(timeout time.Duration) *net.Dialer {
	return &net.Dialer{Timeout: timeout, KeepAlive: 30 * time.Second, Control: g.control}
}

// Protect makes the clients of an API server check all connections, bound the responses, and reject
// redirects. namespace is that of the kubeconfig; it reads one large response at a time. Proxies
// are disabled, because a proxy would dial the address that is checked here; so is HTTP/2, because
// it buffers MiBs of a response before they are read.
func (g *Guard) Protect(config *rest.Config, namespace string) {
	config.Dial = g.Dialer(30 * time.Second).DialContext
	config.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil } //nolint:nilnil // nil means no proxy
	config.ContentType = contentJSON
	config.NextProtos = []string{"http/1.1"}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return g.limit(next, namespace) })
}

// isLocal reports whether a connection to an address stays on this machine. A connection to any
// loopback address, 0.0.0.0 or :: does, and reaches servers that listen on all addresses.
func isLocal(ip netip.Addr) (bool, error) {
	if ip.IsUnspecified() || ip.IsLoopback() {
		return true, nil
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return false, fmt.Errorf("listing the machine's own addresses: %w", err)
	}
	return slices.ContainsFunc(own, func(a net.Addr) bool {
		prefix, err := netip.ParsePrefix(a.String())
		return err == nil && effectiveAddr(prefix.Addr()) == ip
	}), nil
}

const privateAddress, metadataService = "a private address", "a metadata service of a cloud"

// specialRanges returns the ranges that are not public, and metadata services with public
// addresses. Source: IANA's registry of special-purpose addresses, without those for documentation,
// which are not routed.
func specialRanges() []struct{ prefix, class string } {
	return []struct{ prefix, class string }{
		{"168.63.129.16/32", metadataService},
		{"100.100.100.200/32", metadataService},
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
		{"fd00:ec2::/32", metadataService}, // serves the credentials of pods at ::23
		{"fd00:c1::a9fe:a9fe/128", metadataService},
		{"fd00:42::42/128", metadataService},
		{"fd20:ce::254/128", metadataService},
		{"fc00::/7", privateAddress},
		{"fe80::/10", "a link-local address"},
		{"ff00::/8", "a multicast address"},
		{"2001::/23", "an address for protocols"},
	}
}

// class returns the kind of a special address, or "" for a public one.
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

// isMetadata reports whether an address is a cloud's metadata service, which serves the machine's
// credentials.
func isMetadata(ip netip.Addr) bool {
	return ip == netip.MustParseAddr("169.254.169.254") || class(ip) == metadataService
}

// effectiveAddr converts IPv6 forms of an IPv4 address to IPv4.
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
