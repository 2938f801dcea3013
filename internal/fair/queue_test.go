package fair

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func request(key string) reconcile.Request {
	ns, name, _ := strings.Cut(key, "/")
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: ns, Name: name}}
}

// TestTurns checks that namespaces take turns, however many requests one of them has, and that each request is returned
// once.
func TestTurns(t *testing.T) {
	q := NewRequestQueue("", workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Hour, time.Hour))
	defer q.ShutDown()
	for i := range 1000 {
		q.Add(request(fmt.Sprintf("noisy/%d", i)))
	}
	q.Add(request("quiet/a"))
	q.Add(request("noisy/0"))
	q.Add(request("quiet/b"))
	q.Add(request("other/a"))

	var first []string
	for range 6 {
		item, _ := q.Get()
		first = append(first, item.String())
		q.Done(item)
	}
	if got, want := strings.Join(first, " "), "noisy/0 quiet/a other/a noisy/1 quiet/b noisy/2"; got != want {
		t.Errorf("order = %s; want %s", got, want)
	}
	for i := 3; i < 1000; i++ {
		item, _ := q.Get()
		if want := fmt.Sprintf("noisy/%d", i); item.String() != want {
			t.Fatalf("next = %s; want %s", item, want)
		}
		q.Done(item)
	}
	if q.Len() != 0 {
		t.Errorf("%d requests remain", q.Len())
	}
}
