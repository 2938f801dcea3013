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

// An API server that has just started denies everything until it has read its roles: a move that has begun waits for what
// its preflight was granted.
func TestARestartedAPIServerIsWaitedFor(t *testing.T) {
	const denied = `machines.cluster.x-k8s.io is forbidden: User "system:serviceaccount:scute:scuted" cannot list resource "machines" in API group "cluster.x-k8s.io" in the namespace "fleet"`
	f := moved(t, mover.AllAcknowledged{})
	for _, ref := range []object.Ref{f.cluster, f.machine} {
		f.src.merge(ref, obj{"status": obj{"conditions": []any{obj{"type": "Paused", "status": "True"}}}})
	}
	f.src.deny = func(*http.Request) string { return denied }
	message, next := f.step()
	if f.state.Phase != mover.PhasePlanned || !strings.Contains(message, "waiting until "+f.now.Add(2*time.Minute).UTC().Format(time.RFC3339)) ||
		!strings.Contains(message, denied) || !strings.Contains(next, "grant it") {
		t.Errorf("%s: %q, next %q", f.state.Phase, message, next)
	}
	f.src.deny = nil
	f.run(mover.CreateCopies)
	if f.state.TransientFailure != "" || f.state.RollbackCause != "" {
		t.Errorf("%q, %q", f.state.TransientFailure, f.state.RollbackCause)
	}
}

// Neither a denial that outlasts the wait nor one by a quota, a webhook or a policy is waited for.
func TestADenialThatDoesNotPassEndsTheMove(t *testing.T) {
	for name, c := range map[string]struct {
		denied string
		after  time.Duration
	}{
		"authorizer": {`clusters is forbidden: User "scute" cannot list resource "clusters" in API group "cluster.x-k8s.io" at the cluster scope`, 3 * time.Minute},
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
				t.Errorf("%s: %q", f.state.Phase, f.state.TransientFailure)
			}
		})
	}
}

// One question for all rules of a namespace replaces one for each verb on each kind, unless the API server does not know them all. What
// they do not grant is asked for: that they lack it is no denial.
func TestPermissionsAreAskedForAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		incomplete    bool
		mayNot        string
		rules, single int // questions to each side
	}{
		"granted":          {rules: 1},
		"a missing one":    {rules: 1, mayNot: "machines", single: 5},
		"incomplete rules": {rules: 1, incomplete: true, single: 5 * 3},
	} {
		t.Run(name, func(t *testing.T) {
			var rules, single atomic.Int32
			fields, _ := preflighted(t, func(f *fakes, _ object.Ref) {
				f.dst.incomplete, f.dst.mayNot = c.incomplete, c.mayNot
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
				t.Errorf("asked %d times for all, %d times for one, want %d and %d", rules.Load(), single.Load(), c.rules, c.single)
			}
			if denied := len(fields) > 0; denied != (c.mayNot != "") {
				t.Errorf("%v", fields)
			}
		})
	}
}

// Neither side waits for what the other one is asked: here each answers only when both were asked.
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
					t.Error("one side is asked for the permissions only after the other one has answered")
				}
			}
		}
	}, nil)
}

// What may not be listed on the target is a finding like every other, and the others are found too.
func TestAKindThatMayNotBeListed(t *testing.T) {
	fields, _ := preflighted(t, func(f *fakes, _ object.Ref) {
		crowded(f, 20)
		f.src.schema(99, "None")
		f.dst.schema(3, "None")
		f.dst.mayNot, f.dst.verbs = "\x04list", []string{"get", "create", "patch", "delete"} // a review is sent as protobuf
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
		t.Errorf("%v", fields)
	}
}
