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

// A cluster that is slow is not one that cannot be reached: only of the latter it is likely that another one was meant.
func TestExplainTellsASlowClusterFromOneThatIsNotThere(t *testing.T) {
	c := &Cluster{Config: &rest.Config{Host: "https://blue:6443"}}
	for want, err := range map[string]error{
		"did not answer in time": fmt.Errorf("listing: %w", context.DeadlineExceeded),
		"cannot be reached":      &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED},
	} {
		if got := c.Explain(err).Error(); !strings.Contains(got, want) || !strings.Contains(got, "https://blue:6443") || !strings.Contains(got, "--context") {
			t.Errorf("%v is explained by %q", err, got)
		}
	}
}
