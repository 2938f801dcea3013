package kinds

import (
	"context"
	"fmt"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/test/harness"
	"scute.dev/workflow/tasks/deletion"
	"scute.dev/workflow/tasks/wait"
)

// TestLargeObjects checks that a task does not keep all selected objects in memory at once. Otherwise a user who
// creates many large ones could exhaust the daemon's memory. It runs before the tests of serverside_test.go, because
// kubectl uses much memory, and the garbage collector then allows as much garbage.
func TestLargeObjects(t *testing.T) {
	const (
		many  = 60
		bytes = 1_000_000
		most  = 96 << 20
	)
	ctx := harness.Deadline(t, 3*time.Minute)
	home := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "large-objects-"}} // so that the test can be repeated
	harness.Must(t, admin().Create(ctx, home))
	ns := home.Name
	large := strings.Repeat("x", bytes)
	making, made := errgroup.WithContext(ctx)
	making.SetLimit(4)
	for i := range many {
		making.Go(func() error {
			c := configMap(ns, fmt.Sprintf("c%d", i), map[string]string{"a": large})
			c.Labels = map[string]string{"size": "large"}
			return admin().Create(made, c)
		})
	}
	harness.Must(t, making.Wait())
	for _, s := range []*step{
		{t: t, kind: &wait.Kind{Clusters: clusters(true)}, namespace: ns, name: "wait", with: `{"selector": {"apiVersion": "v1", "kind": "ConfigMap", "labelSelector": "size=large"}, "for": "ready"}`},
		{t: t, kind: &deletion.Kind{Clusters: clusters(true)}, namespace: ns, name: "delete", with: `{"selector": {"apiVersion": "v1", "kind": "ConfigMap", "labelSelector": "size=large"}}`},
	} {
		s.dir = t.TempDir()
		peak := peak(ctx, func() { harness.Must(t, s.run(ctx)) })
		t.Logf("%s: %d MiB for %d objects of %d MiB in all", s.name, peak>>20, many, many*bytes>>20)
		if peak > most {
			t.Errorf("%s used %d MiB of memory", s.name, peak>>20)
		}
	}
}

// peak returns by how much the heap, including garbage, grows at most during do.
func peak(ctx context.Context, do func()) (most uint64) {
	heap := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	read := func() uint64 {
		metrics.Read(heap)
		return heap[0].Value.Uint64()
	}
	runtime.GC()
	before := read()
	done, over := context.WithCancel(ctx)
	sampled := make(chan struct{})
	go func() {
		defer close(sampled)
		each := time.NewTicker(time.Millisecond)
		defer each.Stop()
		for done.Err() == nil {
			if now := read(); now > before {
				most = max(most, now-before)
			}
			<-each.C
		}
	}()
	do()
	over()
	<-sampled
	return most
}
