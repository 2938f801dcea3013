package resource_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"scute.dev/controllers/resource"
)

// TestSource checks that changes from before the start of the controller are queued, once per request, and not before
// they were gathered.
func TestSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		c := &resource.Changes[string]{Delay: time.Second}
		looks := 0
		s := resource.Source(c, func(_ context.Context, key string) []string {
			looks++
			return strings.Split(key, " ")
		})
		for range 100 {
			c.Add("a b")
		}
		q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
		defer q.ShutDown()
		if err := s.Start(ctx, q); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		time.Sleep(time.Second / 2)
		c.Add("b c")
		time.Sleep(time.Second/2 - 1)
		synctest.Wait()
		if q.Len() != 0 {
			t.Errorf("%d requests were queued before they were gathered", q.Len())
		}
		next := func(after time.Duration) (got []string) {
			time.Sleep(after)
			synctest.Wait()
			for q.Len() > 0 {
				key, _ := q.Get()
				got = append(got, key)
				q.Done(key)
			}
			slices.Sort(got)
			return got
		}
		if got := next(time.Nanosecond); !slices.Equal(got, []string{"a", "b"}) || looks != 2 {
			t.Errorf("queued %v with %d calls", got, looks)
		}
		if got := next(time.Second / 2); !slices.Equal(got, []string{"c"}) {
			t.Errorf("queued %v, want the later change only", got)
		}
		c.Add("d")
		if got := next(time.Second); !slices.Equal(got, []string{"d"}) {
			t.Errorf("queued %v, want the change after the start", got)
		}
	})
}

func TestOfResources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		c := &resource.Changes[string]{}
		q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		defer q.ShutDown()
		if err := resource.ResourceSource(c).Start(ctx, q); err != nil {
			t.Fatal(err)
		}
		c.Add("local")
		c.Add("fleet/upgrade/1234-5")
		if request, _ := q.Get(); request.String() != "fleet/upgrade" {
			t.Errorf("queued %s", request)
		}
	})
}
