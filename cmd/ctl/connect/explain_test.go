package connect

import (
	"context"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"

	"k8s.io/client-go/rest"
)

// TestExplainTellsASlowClusterFromOneThatIsNotThere checks that a timeout and an unreachable API server are explained
// differently.
func TestExplainTellsASlowClusterFromOneThatIsNotThere(t *testing.T) {
	c := &Cluster{Config: &rest.Config{Host: "https://blue:6443"}}
	for want, err := range map[string]error{
		"did not answer in time": fmt.Errorf("listing: %w", context.DeadlineExceeded),
		"cannot be reached":      &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED},
	} {
		if got := c.Explain(err).Error(); !strings.Contains(got, want) || !strings.Contains(got, "https://blue:6443") || !strings.Contains(got, "--context") {
			t.Errorf("Explain(%v) = %q", err, got)
		}
	}
}
