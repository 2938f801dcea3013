package app

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"scute.dev/aggregate"
	"scute.dev/api/v1alpha1"
	"scute.dev/controllers/remediation"
	"scute.dev/kube/guard"
	moves "scute.dev/mover/runner"
	"scute.dev/remediator/ownerkind"
	"scute.dev/remediator/runner"
)

// newRemediator returns the remediator. It starts when the first RepairPolicy needs it.
func newRemediator(d *daemon, o Options, config *rest.Config, held *tenure, g *guard.Guard, log aggregate.Log, incarnation string, feed *remediation.EventSource, logger *slog.Logger) *remediation.Starter {
	config = rest.CopyConfig(config)
	config.UserAgent = "scute/remediator"
	v := d.view
	reporter := remediation.NewEventReporter(v.Remediations.LogID, incarnation, logger)
	v.Remediations.Report, v.Remediations.ReportSince = reporter.Report, reporter.Since()
	return &remediation.Starter{
		Manager: d.manager, Config: config, Guard: g, CheckLease: held.check, Events: feed, Reporter: reporter,
		Concurrency: o.RemediationConcurrency, Cached: d.resources.add,
		Runner: &runner.Runner{
			Log: log, Incarnation: incarnation, Logger: logger, View: v.Remediations,
			MoveOf: func(ctx context.Context, seq uint64, namespace, cluster string) (string, error) {
				if err := d.projector.WaitFor(ctx, seq); err != nil {
					return "", err
				}
				return moveOf(v.Moves, namespace, cluster), nil
			},
		},
	}
}

// moveOf returns the ID of the move in progress that moves a cluster, or "". It ignores dry runs.
func moveOf(v *moves.Moves, namespace, cluster string) (first string) {
	for id, e := range v.All() {
		s := &e.State.Spec
		of := s.Namespace == namespace && (s.All || slices.Contains(s.Clusters, cluster))
		if of && !s.DryRun && !e.State.Finished() && (first == "" || id < first) {
			first = id
		}
	}
	return first
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	return scheme, errors.Join(clientgoscheme.AddToScheme(scheme), clusterv1.AddToScheme(scheme), ownerkind.AddToScheme(scheme), v1alpha1.AddToScheme(scheme))
}
