package e2e

import (
	"testing"
	"time"

	"scute.dev/api/v1alpha1"
	"scute.dev/test/scuted"
)

// TestWorkflow runs Workflows with the daemon, on real objects, as a ServiceAccount of their namespace.
func TestWorkflow(t *testing.T) {
	ctx := deadline(t, 6*time.Minute)
	s := workflowStage(ctx, t, "workflows")
	listen := freeAddress(t)
	s.nats = "nats://" + listen
	daemon(t, shared.blue, scuted.DaemonOptions{Listen: listen})

	t.Run("one after the other", func(t *testing.T) {
		w := s.run(ctx, t, "chain", v1alpha1.RunSucceeded, `
tasks:
- {name: a, kind: Apply, with: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: chain-a}, data: {v: "1"}}]}}
- {name: b, kind: Wait, needs: [a], with: {object: {apiVersion: v1, kind: ConfigMap, name: chain-a}, for: {cel: "object.data.v == '1'"}}}
`)
		stand(t, w, "a=Succeeded b=Succeeded")
		s.maps(ctx, t, "chain-a")
	})
}
