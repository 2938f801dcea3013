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

// TestSource checks that changes from before the start of the controller are queued when it starts, once per key,
// together with those that are added while changes are gathered.
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
		time.Sleep(time.Second - 1)
		c.Add("c")
		synctest.Wait()
		if looks != 0 {
			t.Errorf("%d changes were handled before they were gathered", looks)
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		var got []string
		for q.Len() > 0 {
			key, _ := q.Get()
			got = append(got, key)
			q.Done(key)
		}
		if slices.Sort(got); !slices.Equal(got, []string{"a", "b", "c"}) || looks != 2 {
			t.Errorf("queued %v with %d calls", got, looks)
		}
		c.Add("d")
		time.Sleep(time.Second)
		synctest.Wait()
		if q.Len() != 1 {
			t.Errorf("got %d queued requests, want 1", q.Len())
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
