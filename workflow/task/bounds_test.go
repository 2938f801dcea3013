package task

import (
	"encoding/json"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
)

// TestOutside: what is the machine itself, by whatever address, is not outside.
func TestOutside(t *testing.T) {
	own, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	inside := []string{"127.0.0.1", "::1", "::ffff:127.0.0.1", "169.254.169.254", "fe80::1%eth0", "0.0.0.0", "::", "fd00:ec2::254"}
	for _, a := range own {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			inside = append(inside, p.Addr().String())
		}
	}
	for _, ip := range inside {
		if err := outside(net.JoinHostPort(ip, "443")); !IsFinal(err) {
			t.Errorf("%s: %v", ip, err)
		}
	}
	for _, ip := range []string{"192.0.2.1", "2001:db8::1"} {
		if err := outside(net.JoinHostPort(ip, "443")); err != nil {
			t.Errorf("%s: %v", ip, err)
		}
	}
}

// TestConnectIsBounded: asking a server for its kinds has no context that could end it.
func TestConnectIsBounded(t *testing.T) {
	cluster, err := connect(&rest.Config{Host: "https://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	if cluster.Config.Timeout <= 0 {
		t.Error("a request may take for ever")
	}
}

// TestCELIsBounded: a short expression cannot make a text that is larger than the memory.
func TestCELIsBounded(t *testing.T) {
	with := `{"object": {"apiVersion": "v1", "kind": "Node", "name": "n"}, "for": {"cel": "object.a.replace('x', 'xxxxxxxxxx').replace('x', 'xxxxxxxxxx') == ''"}}`
	problems := (&Wait{}).Validate(json.RawMessage(with))
	if len(problems) == 0 || !strings.Contains(problems[0].String(), "replace") {
		t.Errorf("%v", problems)
	}
}

func TestLastLinesHidePasswords(t *testing.T) {
	said := lastLines("starting\nDB_PASSWORD=hunter2 api-token: 'hunter2'\nfailed")
	if strings.Contains(said, "hunter2") || !strings.Contains(said, "DB_PASSWORD=(removed)") || !strings.HasSuffix(said, "failed") {
		t.Errorf("%q", said)
	}
}

func TestEvidenceIsBounded(t *testing.T) {
	e := &evidence{bundle: bundle{limit: diagnoseFolderBytes}}
	for range 60 {
		e.object(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": strings.Repeat("x", 1<<20)}})
	}
	if n := len(e.observed); n == 0 || n >= 60 || e.omitted != 60-n {
		t.Errorf("%d objects are kept, %d left out", n, e.omitted)
	}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 5 * diagnoseEvents {
		e.event(&unstructured.Unstructured{Object: map[string]any{"lastTimestamp": start.Add(time.Duration(i) * time.Second).Format(time.RFC3339)}})
	}
	if len(e.lines) >= 2*diagnoseEvents {
		t.Errorf("%d events are kept", len(e.lines))
	}
	e.newestEvents()
	if last := e.lines[len(e.lines)-1].at; len(e.lines) != diagnoseEvents || !last.Equal(start.Add((5*diagnoseEvents-1)*time.Second)) {
		t.Errorf("%d events are kept, the last of %s", len(e.lines), last)
	}
}
