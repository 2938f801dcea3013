package task

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"syscall"
	"time"
)

// newHTTPClient makes a client for one request. One that is not local must not be a way around the network's walls: the
// daemon stands where the author of a Workflow does not, beside its own log and the machine's metadata service.
func newHTTPClient(local bool) *http.Client {
	dialer := &net.Dialer{Timeout: 30 * time.Second}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, DialContext: dialer.DialContext,
		TLSHandshakeTimeout: 15 * time.Second, DisableKeepAlives: true,
	}
	if !local {
		transport.Proxy = nil // a proxy would dial what is checked here
		dialer.Control = func(_, address string, _ syscall.RawConn) error { return outside(address) }
	}
	return &http.Client{Transport: transport, CheckRedirect: sameHost}
}

// outside refuses the machine itself and what only it can reach.
func outside(address string) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("parsing the address %s: %w", address, err)
	}
	ip := to.Addr().Unmap().WithZone("")
	own, err := net.InterfaceAddrs()
	if err != nil {
		return fmt.Errorf("listing the machine's own addresses: %w", err)
	}
	mine := slices.ContainsFunc(own, func(a net.Addr) bool {
		prefix, err := netip.ParsePrefix(a.String())
		return err == nil && prefix.Addr().Unmap() == ip
	})
	// The last one is the metadata service of a cloud, under an address that is not link-local.
	if mine || ip.IsLoopback() || ip.IsLinkLocalUnicast() || ip.IsLinkLocalMulticast() || ip.IsUnspecified() || ip == netip.MustParseAddr("fd00:ec2::254") {
		return Final(fmt.Errorf("it leads to %s, which a task of the daemon may not reach: use a Job", ip))
	}
	return nil
}

// byHTTPS follows redirects that stay encrypted.
func byHTTPS(r *http.Request, via []*http.Request) error {
	if r.URL.Scheme != "https" {
		return Final(fmt.Errorf("it redirects to %s://%s, which is not encrypted", r.URL.Scheme, r.URL.Host))
	}
	if len(via) >= httpRedirects {
		return errors.New("it redirects in a circle")
	}
	return nil
}

// sameHost follows redirects that stay where the request was sent to: the headers may hold a secret.
func sameHost(r *http.Request, via []*http.Request) error {
	first := via[0].URL
	if r.URL.Host != first.Host || first.Scheme == "https" && r.URL.Scheme != "https" {
		return Final(fmt.Errorf("it redirects to %s://%s: name that in with.url if it is meant", r.URL.Scheme, r.URL.Host))
	}
	if len(via) >= httpRedirects {
		return errors.New("it redirects in a circle")
	}
	return nil
}
