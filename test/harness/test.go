package harness

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/test/scuted"
)

// logged is how many bytes of a daemon's log a failed test prints.
const logged = 8 << 10

// look is the polling interval of Await.
const look = 200 * time.Millisecond

// Deadline returns a context that bounds one test.
func Deadline(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// Must ends the test if err is not nil.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Await polls until is returns "". Otherwise is returns what is missing.
func Await(ctx context.Context, t testing.TB, what string, is func() string) {
	t.Helper()
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		missing := is()
		if missing == "" {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("timed out waiting until %s: %v: %s", what, ctx.Err(), missing)
		case <-tick.C:
		}
	}
}

// Daemon starts a daemon that is stopped at the end of the test, because it would otherwise act on the objects of the
// next test. If it has no folder for its log, it gets a new one. A failed test prints the end of the daemon's log.
func Daemon(t testing.TB, on *scuted.Installation, o scuted.DaemonOptions) *scuted.Daemon {
	t.Helper()
	if o.LogDir == "" {
		dir, err := on.NewLogDir()
		Must(t, err)
		o.LogDir = dir
	}
	d, err := on.Start(o)
	Must(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		ended := d.Exited() != nil
		if err := d.Stop(ctx); err != nil {
			t.Error(err)
		}
		if text, err := os.ReadFile(d.Log()); t.Failed() && !ended && err == nil {
			t.Logf("%s ends with\n%s", d.Log(), text[max(0, len(text)-logged):])
		}
	})
	return d
}

// Allowed waits until the authorizer knows that a user may do something, because a new binding takes effect after a
// delay.
func Allowed(ctx context.Context, t testing.TB, admin client.Client, user string, may authorizationv1.ResourceAttributes) {
	t.Helper()
	Await(ctx, t, fmt.Sprintf("%s may %s %s", user, may.Verb, may.Resource), func() string {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &may}}
		if err := admin.Create(ctx, review); err != nil || !review.Status.Allowed {
			return fmt.Sprintf("denied: %s, error: %v", review.Status.Reason, err)
		}
		return ""
	})
}
