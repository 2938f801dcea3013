package app

import (
	"context"
	"log/slog"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/aggregate"
	"scute.dev/api/v1alpha1"
	"scute.dev/controllers/pause"
	"scute.dev/internal/fair"
	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/mover/transfer"
	"scute.dev/pause/hold"
	pauses "scute.dev/pause/runner"
)

const pauseSlots = 4

func newPauses(source *kube.Cluster, log aggregate.Log, incarnation string, logger *slog.Logger) *pauses.Runner {
	return &pauses.Runner{
		Log: log, Incarnation: incarnation, Cluster: source, Finder: finder{source}, Slots: fair.NewSlots(pauseSlots), Logger: logger,
	}
}

func (d *daemon) registerPauses() error {
	if served, err := d.serves("Pause", "nothing is paused"); err != nil || !served {
		return err
	}
	r := &pause.Reconciler{
		Base: d.base(&d.drivenPauses),
		Pauses: struct {
			*pauses.Runner
			*pauses.Pauses
		}{d.pauses, d.view.Pauses},
	}
	k := &d.drivenPauses
	return d.registerKind("Pause", &v1alpha1.PauseList{}, k, r.SetupWithManager, k.supervisor.Run, d.view.Pauses.Open)
}

type finder struct{ source *kube.Cluster }

// Graph implements runner.Finder.
func (f finder) Graph(ctx context.Context, namespace string, clusters []string) (hold.Graph, error) {
	return transfer.NewGraph(ctx, f.source, mover.Selection{Namespace: namespace, Clusters: clusters})
}

// Clusters implements runner.Finder.
func (f finder) Clusters(ctx context.Context, namespace, selector string) (names []string, err error) {
	graph, err := f.Graph(ctx, namespace, nil)
	if err != nil {
		return nil, err
	}
	typ, err := graph.Kind(object.Ref{Group: object.CoreGroup, Kind: "Cluster"})
	if err != nil {
		return nil, err
	}
	err = f.source.ListLabelled(ctx, typ, namespace, selector, func(u *unstructured.Unstructured) error {
		names = append(names, u.GetName())
		return nil
	})
	return names, err
}
