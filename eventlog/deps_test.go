package eventlog_test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestConsumersLinkNoServer checks that a program that reads the log over the network, or an export of it, does not
// link the NATS server.
func TestConsumersLinkNoServer(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps",
		"scute.dev/eventlog", "scute.dev/export/consume", "scute.dev/eventlog/seal").Output()
	if err != nil {
		t.Fatal(err)
	}
	seen := false
	for pkg := range strings.Lines(string(out)) {
		seen = seen || strings.HasPrefix(pkg, "github.com/nats-io/nats.go")
		if strings.HasPrefix(pkg, "github.com/nats-io/nats-server") {
			t.Errorf("%s is linked; only package embedded may import it", strings.TrimSpace(pkg))
		}
	}
	if !seen {
		t.Errorf("the NATS client is missing from the packages:\n%s", out)
	}
}
