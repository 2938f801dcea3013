package testbed_test

import (
	"context"
	"testing"
	"time"

	"scute.dev/test/testbed"
)

func TestClusterBecomesAvailable(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	bed, err := testbed.Start(ctx, testbed.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if t.Failed() {
			bed.Keep()
		}
		start := time.Now()
		if err := bed.Stop(); err != nil {
			t.Error(err)
		}
		t.Log("stopped in", time.Since(start))
	}()
	blue := bed.Side("blue")
	for _, c := range []testbed.Cluster{
		testbed.Tiny("fleet", "tiny"),
		{Namespace: "fleet", Name: "prod", ControlPlanes: 3, Workers: 2, Topology: true, MachineHealthCheck: true},
		{Namespace: "solo", Name: "solo", Workers: 1},
	} {
		start := time.Now()
		if _, err := blue.CreateCluster(ctx, c); err != nil {
			t.Fatal(err)
		}
		wait, cancel := context.WithTimeout(ctx, 3*time.Minute)
		if err := blue.WaitAvailable(wait, c.Namespace, c.Name); err != nil {
			t.Fatal(err)
		}
		cancel()
		t.Log(c.Name, "available in", time.Since(start))
	}
}
