package transfer

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"scute.dev/kube/object"
	"scute.dev/mover"
)

// TestARestartedAPIServerIsWaitedFor checks that a started move waits if its requests are denied: an API server that
// has just started denies everything until it has read its roles.
func TestARestartedAPIServerIsWaitedFor(t *testing.T) {
	const denied = `machines.cluster.x-k8s.io is forbidden: User "system:serviceaccount:scute:scuted" cannot list resource "machines" in API group "cluster.x-k8s.io" in the namespace "fleet"`
	f := moved(t, mover.AllAcknowledged{})
	for _, ref := range []object.Ref{f.cluster, f.machine} {
		f.src.merge(ref, obj{"status": obj{"conditions": []any{obj{"type": "Paused", "status": "True"}}}})
	}
	f.src.deny = func(*http.Request) string { return denied }
	message, next := f.step()
	if f.state.Phase != mover.PhasePlanned || !strings.Contains(message, "retrying until "+f.now.Add(5*time.Minute).UTC().Format(time.RFC3339)) ||
		!strings.Contains(message, denied) || !strings.Contains(next, "grant this permission") {
		t.Errorf("phase = %s, message %q, next %q", f.state.Phase, message, next)
	}
	f.src.deny = nil
	f.run(mover.CreateCopies)
	if f.state.TransientFailure.Message != "" || f.state.RollbackCause != "" {
		t.Errorf("failure = %q, rollback cause %q, want none", f.state.TransientFailure.Message, f.state.RollbackCause)
	}
}

// TestADenialThatDoesNotPassEndsTheMove checks that the move rolls back after a denial that outlasts the wait, and at
// once after one by a quota, a webhook or a policy.
func TestADenialThatDoesNotPassEndsTheMove(t *testing.T) {
	for name, c := range map[string]struct {
		denied string
		after  time.Duration
	}{
		"authorizer": {`clusters is forbidden: User "scute" cannot list resource "clusters" in API group "cluster.x-k8s.io" at the cluster scope`, 6 * time.Minute},
		"webhook":    {`admission webhook "guard.example.com" denied the request: User scute cannot do that`, 0},
		"quota":      {`secrets "a" is forbidden: exceeded quota: count, requested: count/secrets=1, used: count/secrets=9, limited: count/secrets=9`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := moved(t, mover.AllAcknowledged{})
			f.src.deny = func(*http.Request) string { return c.denied }
			if c.after > 0 {
				f.step()
				f.now = f.now.Add(c.after)
			}
			f.step()
			if f.state.Phase != mover.PhaseRollingBack || !strings.Contains(f.state.RollbackCause, "forbidden") && !strings.Contains(f.state.RollbackCause, "denied") {
				t.Errorf("phase = %s, failure %q", f.state.Phase, f.state.TransientFailure.Message)
			}
		})
	}
}

// TestPermissionsAreAskedForAtOnce checks that one rules review for a namespace replaces a review for each verb and
// kind. Permissions that are missing in the rules, or incomplete rules, still need single reviews.
func TestPermissionsAreAskedForAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		incomplete    bool
		mayNot        string
		rules, single int // requests to each side
	}{
		"granted":          {rules: 1},
		"a missing one":    {rules: 1, mayNot: "machines", single: 5},
		"incomplete rules": {rules: 1, incomplete: true, single: 5 * 3},
	} {
		t.Run(name, func(t *testing.T) {
			var rules, single atomic.Int32
			fields, _ := preflighted(t, func(f *fakes, _ object.Ref) {
				f.dst.incomplete, f.dst.deniedPlural = c.incomplete, c.mayNot
				f.dst.hook = func(r *http.Request) {
					switch {
					case strings.HasSuffix(r.URL.Path, "selfsubjectrulesreviews"):
						rules.Add(1)
					case strings.HasSuffix(r.URL.Path, "selfsubjectaccessreviews"):
						single.Add(1)
					}
				}
			}, nil)
			if int(rules.Load()) != c.rules || int(single.Load()) != c.single {
				t.Errorf("%d rules reviews and %d single reviews, want %d and %d", rules.Load(), single.Load(), c.rules, c.single)
			}
			if denied := len(fields) > 0; denied != (c.mayNot != "") {
				t.Errorf("findings = %v", fields)
			}
		})
	}
}

// TestBothSidesAreAskedAtOnce checks that both sides are asked for permissions concurrently: each responds only after
// both were asked.
func TestBothSidesAreAskedAtOnce(t *testing.T) {
	var asked [2]chan struct{}
	preflighted(t, func(f *fakes, _ object.Ref) {
		for i, api := range []*fakeAPI{f.src, f.dst} {
			asked[i] = make(chan struct{})
			ask := sync.OnceFunc(func() { close(asked[i]) })
			api.hook = func(r *http.Request) {
				if !strings.HasSuffix(r.URL.Path, "selfsubjectrulesreviews") {
					return
				}
				ask()
				select {
				case <-asked[1-i]:
				case <-time.After(time.Minute):
					t.Error("one side is asked only after the other has responded")
				}
			}
		}
	}, nil)
}

// TestAKindThatMayNotBeListed checks that a kind that may not be listed on the target is one finding beside the others.
func TestAKindThatMayNotBeListed(t *testing.T) {
	fields, _ := preflighted(t, func(f *fakes, _ object.Ref) {
		addMany(f, 20)
		f.dst.deniedPlural, f.dst.verbs = "\x04list", []string{"get", "create", "patch", "delete"} // a review is sent as protobuf
		f.dst.deny = func(r *http.Request) string {
			if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/machines") {
				return `machines.cluster.x-k8s.io is forbidden: User "mover" cannot list resource "machines" in API group "cluster.x-k8s.io" in the namespace "fleet"`
			}
			if r.URL.Query().Get("dryRun") != "" && strings.HasSuffix(r.URL.Path, "/secrets") {
				return `secrets "s" is forbidden: exceeded quota`
			}
			return ""
		}
	}, nil)
	if !strings.Contains(fields[targetField], "on the target scute may not") || !strings.Contains(fields["target: Secret fleet/s-00"], "exceeded quota") {
		t.Errorf("findings = %v", fields)
	}
}
