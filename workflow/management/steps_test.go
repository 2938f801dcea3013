package management

import (
	"context"
	"strings"
	"testing"
	"time"

	"scute.dev/workflow/provider"
	"scute.dev/workflow/sequence"
	"scute.dev/workflow/task"
)

// temporary is a bootstrap cluster that does not answer.
type temporary struct{ exists, created, deleted bool }

func (*temporary) Temporary() bool                          { return true }
func (t *temporary) Exists(*sequence.Context) (bool, error) { return t.exists, nil }

func (t *temporary) Create(*sequence.Context) (task.ClusterRef, error) {
	t.created = true
	return task.ClusterRef{}, nil
}

func (t *temporary) Delete(*sequence.Context) error {
	t.deleted = true
	return nil
}

// A bootstrap cluster that exists and does not answer may hold all objects of the cluster: it is neither deleted nor made
// again.
func TestBootstrapThatDoesNotAnswerIsKept(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	clusters := &task.Clusters{Local: true}
	c := sequence.NewContext(ctx, &task.Call{Run: "run", Task: "task"}, clusters)
	on, spec := task.ClusterRef{Kubeconfig: t.TempDir() + "/none"}, provider.Cluster{Namespace: "fleet", Name: "prod"}

	boot := &temporary{exists: true}
	d := &Deps{Clusters: clusters, Bootstrap: boot}
	if err := d.deleteBootstrap(&c, on, spec); err == nil || !strings.Contains(err.Error(), "fleet/prod") || boot.deleted {
		t.Errorf("it is deleted (%t): %v", boot.deleted, err)
	}
	if err := d.recreateBootstrap(&c, on, spec, nil); err == nil || !strings.Contains(err.Error(), "does not answer") || boot.created {
		t.Errorf("it is made again (%t): %v", boot.created, err)
	}
	boot.exists = false // an earlier attempt has deleted it
	if err := d.deleteBootstrap(&c, on, spec); err != nil || !boot.deleted {
		t.Error(err)
	}
}
