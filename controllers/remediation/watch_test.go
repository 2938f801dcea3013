package remediation

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"scute.dev/controllers/resource"
	"scute.dev/remediator"
	"scute.dev/remediator/runner"
)

// TestOnlyWhatACommitConcernsIsQueued checks that a commit queues the requests and policies that it
// names, and its owner only if another process appended it. Commits before the start queue nothing.
func TestOnlyWhatACommitConcernsIsQueued(t *testing.T) {
	owner := remediator.Owner{Kind: string(remediator.ControlPlane), Namespace: "fleet", Name: "cp", UID: "0123", Cluster: "prod"}
	change := runner.Change{Owner: owner, Actor: "daemon/one", Machines: []string{"m2", "m2"}, Policies: []string{"repair"}}
	same := func(_ context.Context, o remediator.Owner) []remediator.Owner { return []remediator.Owner{o} }
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		feed := NewEventSource("daemon/one")
		feed.Changed(runner.Change{Owner: owner, Machines: []string{"m1"}, Policies: []string{"other"}})
		feed.start(func() []remediator.Owner { return nil })
		requests := queueOf(ctx, t, resource.ResourceSource(&feed.requests))
		policies := queueOf(ctx, t, resource.ResourceSource(&feed.policies))
		owners := queueOf(ctx, t, resource.Source(&feed.Owners, same))
		selected := queueOf(ctx, t, resource.Source(&feed.owners, same))
		next := func(q workqueue.TypedRateLimitingInterface[reconcile.Request]) string {
			if q.Len() != 1 {
				t.Fatalf("got %d queued requests, want 1", q.Len())
			}
			request, _ := q.Get()
			q.Done(request)
			return request.String()
		}
		for _, actor := range []string{"daemon/one", "daemon/two"} {
			change.Actor = actor
			feed.Changed(change)
			time.Sleep(time.Second)
			synctest.Wait()
			if m, p := next(requests), next(policies); m != "fleet/m2" || p != "fleet/repair" || selected.Len() != 1 {
				t.Errorf("%s: queued %s, %s and the policies of %d owners", actor, m, p, selected.Len())
			}
			if turn := owners.Len() == 1; turn != (actor == "daemon/two") {
				t.Errorf("%s: owner queued: %t", actor, turn)
			}
		}
	})
}

func queueOf[R comparable](ctx context.Context, t *testing.T, s source.TypedSource[R]) workqueue.TypedRateLimitingInterface[R] {
	t.Helper()
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[R]())
	t.Cleanup(q.ShutDown)
	if err := s.Start(ctx, q); err != nil {
		t.Fatal(err)
	}
	return q
}
