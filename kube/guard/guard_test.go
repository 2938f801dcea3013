package guard_test

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"scute.dev/kube/guard"
)

func TestCheck(t *testing.T) {
	var none *guard.Guard
	denied := map[string]string{
		"0.0.0.0": "machine", "::": "machine", "::ffff:0.0.0.0": "machine", "0.1.2.3": "unspecified",
		"127.0.0.1": "machine", "127.8.8.8": "machine", "::1": "machine", "::ffff:127.8.8.8": "machine",
		"169.254.169.254": "link-local", "169.254.0.1": "link-local", "fe80::1%eth0": "link-local", "::ffff:169.254.169.254": "link-local",
		"64:ff9b::a9fe:a9fe": "link-local", "::169.254.169.254": "link-local", "2002:a9fe:a9fe::1": "link-local",
		"100.100.100.200": "metadata", "168.63.129.16": "metadata", "fd00:ec2::254": "metadata", "fd20:ce::254": "metadata",
		"fd00:ec2::23": "metadata", "fd00:c1::a9fe:a9fe": "metadata", "fd00:42::42": "metadata",
		"10.1.2.3": "private", "172.31.0.1": "private", "192.168.1.1": "private", "100.64.0.1": "private", "fd12::1": "private", "64:ff9b::10.0.0.1": "private",
		"224.0.0.1": "multicast", "ff02::1": "multicast", "240.0.0.1": "reserved", "255.255.255.255": "reserved",
		"192.0.0.8": "protocols", "2001::1": "protocols", "64:ff9b:1::1": "reserved", "fec0::1": "reserved", "::2": "reserved",
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range own {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			denied[p.Addr().String()] = "machine"
		}
	}
	for ip, class := range denied {
		if err := none.Check(netip.MustParseAddr(ip)); !errors.Is(err, guard.ErrDenied) || !strings.Contains(err.Error(), class) || !strings.Contains(err.Error(), "--allow-addresses") {
			t.Errorf("Check(%s) = %v, want a denial with %q", ip, err, class)
		}
	}
	for _, ip := range []string{"8.8.8.8", "2606:4700::1", "64:ff9b::8.8.8.8", "::ffff:8.8.8.8", "172.32.0.1", "100.128.0.1"} {
		if err := none.Check(netip.MustParseAddr(ip)); err != nil {
			t.Errorf("Check(%s) = %v, want nil", ip, err)
		}
	}
}

func TestAllowed(t *testing.T) {
	g, err := guard.New([]string{"10.0.0.0/8", "fc00::/7", "100.64.0.0/10", "169.254.0.0/16", "127.0.0.0/8", "192.168.1.1"})
	if err != nil {
		t.Fatal(err)
	}
	for ip, want := range map[string]bool{
		"10.9.9.9": true, "64:ff9b::10.0.0.1": true, "fd12::1": true, "100.64.0.1": true, "192.168.1.1": true,
		"192.168.1.2": false, "172.16.0.1": false,
		// A range does not include addresses that a user would not expect in it.
		"127.0.0.1": false, "127.8.8.8": false, "100.100.100.200": false, "fd00:ec2::254": false, "169.254.169.254": false,
	} {
		if err := g.Check(netip.MustParseAddr(ip)); (err == nil) != want {
			t.Errorf("Check(%s) = %v", ip, err)
		}
	}
	if err := g.Check(netip.MustParseAddr("127.0.0.1")); err == nil || !strings.Contains(err.Error(), "lists it individually (a range that contains it does not count)") {
		t.Errorf("Check of an address in a range = %v, want advice to list it", err)
	}
	if err := g.Check(netip.MustParseAddr("172.16.0.1")); err == nil || strings.Contains(err.Error(), "by itself") {
		t.Errorf("Check of an unlisted address = %v, want no advice about ranges", err)
	}
	one, err := guard.New([]string{"127.0.0.1"})
	if err != nil || one.Check(netip.MustParseAddr("127.0.0.1")) != nil {
		t.Error("a listed address is denied")
	}
	for _, wrong := range []string{"", "10.0.0.0/33", "example.com", "fe80::1%eth0"} {
		if _, err := guard.New([]string{wrong}); err == nil || !strings.Contains(err.Error(), "neither an address nor a range") {
			t.Errorf("New(%q) = %v, want an error", wrong, err)
		}
	}
}

// TestEverythingAllowed checks that even the range of all addresses does not allow connections to the machine itself.
func TestEverythingAllowed(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the server was reached") }))
	defer server.Close()
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	g, err := guard.New([]string{"0.0.0.0/0", "::/0"})
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"127.0.0.1", "127.8.8.8", "0.0.0.0", "::", "::ffff:0.0.0.0", "::ffff:127.0.0.1", "localhost"} {
		conn, err := g.Dialer(time.Second).DialContext(t.Context(), "tcp", net.JoinHostPort(host, port))
		if !errors.Is(err, guard.ErrDenied) {
			t.Errorf("dial to %s = %v, error %v, want ErrDenied", host, conn, err)
		}
	}
}

// TestDialer checks that the resolved address of a host name is checked, at the time of the connection.
func TestDialer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the server was reached") }))
	defer server.Close()
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	var none *guard.Guard
	conn, err := none.Dialer(time.Second).DialContext(t.Context(), "tcp", net.JoinHostPort("localhost", port))
	if !errors.Is(err, guard.ErrDenied) {
		t.Errorf("dial = %v, error %v, want ErrDenied", conn, err)
	}
	config := &rest.Config{Host: server.URL}
	none.Protect(config, "n")
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, http.NoBody)
	response, err := client.Do(request)
	if err == nil {
		response.Body.Close()
	}
	if !errors.Is(err, guard.ErrDenied) {
		t.Errorf("request = %v, error %v, want ErrDenied", response, err)
	}
}
