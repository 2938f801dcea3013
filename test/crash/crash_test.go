package crash

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"scute.dev/test/assets"
	"scute.dev/test/comparison"
	"scute.dev/test/harness"
	"scute.dev/test/rotation"
	"scute.dev/test/testbed"
)

// writeTo is the page into which `make comparison-move` writes the table.
var writeTo = flag.String("comparison", "", "write the table of TestClusterctlCrashes into this page; all cases must run") //nolint:gochecknoglobals // a flag

// patience returns how long a user waits for a clusterctl command. For the table it is longer than any of clusterctl's
// retries.
func patience() time.Duration {
	if *writeTo != "" {
		return 10 * time.Minute
	}
	return 15 * time.Second
}

// settles returns how long clusters may take to settle after a command has exited.
func settles() time.Duration { return min(patience(), time.Minute) }

// moment is a moment at which a move is killed: in clusterctl, and in scute at a fault point of test/cmd/faultd.
type moment struct {
	words      string
	clusterctl func(namespace string) death
	scute      func(source, target string) string
}

func moments() map[string]moment {
	return map[string]moment{
		"creating": {"1 while creating on the target", creating, func(_, target string) string { return "after 5 POST " + target + "/" }},
		"deleting": {"2 while deleting at the source", deleting, func(source, _ string) string { return "after 7 DELETE " + source + "/" }},
		// clusterctl deletes and then removes the finalizers. scute does so in the opposite order.
		"releasing": {"3 between the two writes that remove one object at the source", releasing, func(source, _ string) string {
			return "before 1 DELETE " + source + "/.*/devmachines/"
		}},
		"resuming": {"4 before the Cluster is unpaused on the target", resuming, func(_, target string) string {
			return "before 1 PATCH " + target + "/.*/clusters/" + clusterName + "$"
		}},
	}
}

// TestClusterctlCrashes kills moves of clusterctl and of scute with SIGKILL at four moments. With scute, each move
// completes without any intervention.
func TestClusterctlCrashes(t *testing.T) {
	ctx := harness.Deadline(t, 2*patience()+10*time.Minute)
	all := moments()
	cases := rotation.Cases(t, 4, all)
	plain, ours := make(map[string]*crashed), make(map[string]*crashed)
	var group errgroup.Group
	for name := range cases {
		plain[name], ours[name] = newCrashed("clusterctl-"+name), newCrashed("scute-"+name)
		group.Go(func() error { return plain[name].prepare(ctx) })
		group.Go(func() error { return ours[name].prepare(ctx) })
	}
	harness.Must(t, group.Wait())
	crashes := make(map[string]*comparison.Crash)
	for name, m := range cases {
		c := &comparison.Crash{Name: m.words}
		crashes[name] = c
		k := newKiller(t, m.clusterctl(plain[name].namespace))
		group.Go(func() (err error) {
			if c.Clusterctl, err = plain[name].playClusterctl(ctx, k); err != nil {
				err = fmt.Errorf("%s: %w", name, err)
			}
			return err
		})
	}
	for name, ending := range playScute(ctx, t, cases, ours) {
		crashes[name].Scute = ending
	}
	harness.Must(t, group.Wait())
	var table []comparison.Crash
	for name, c := range crashes {
		t.Run(name, func(t *testing.T) {
			t.Logf("clusterctl: %+v", c.Clusterctl)
			t.Logf("scute: %+v", c.Scute)
			for _, worse := range c.Worse() {
				t.Errorf("worse with scute: %s", worse)
			}
		})
		table = append(table, *c)
	}
	if *writeTo == "" || t.Failed() {
		return
	}
	if len(table) != len(all) {
		t.Fatalf("%d of %d crashes ran; the table needs all", len(table), len(all))
	}
	modules, err := assets.FindModules(ctx)
	harness.Must(t, err)
	page, err := os.ReadFile(*writeTo)
	harness.Must(t, err)
	text, err := comparison.WriteCrashes(string(page), assets.VersionOf(modules.ClusterAPI), table)
	harness.Must(t, err)
	harness.Must(t, os.WriteFile(*writeTo, []byte(text), 0o600))
}

// prepare creates the cluster at the source.
func (c *crashed) prepare(ctx context.Context) error {
	if _, err := shared.blue.Side.CreateCluster(ctx, testbed.Tiny(c.namespace, clusterName)); err != nil {
		return err
	}
	if err := shared.blue.Side.WaitAvailable(ctx, c.namespace, clusterName); err != nil {
		return err
	}
	if err := shared.blue.PutTarget(ctx, c.namespace, shared.green); err != nil {
		return err
	}
	return c.remember(ctx)
}
