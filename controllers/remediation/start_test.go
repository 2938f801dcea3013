package remediation

import (
	"errors"
	"log/slog"
	"net/http"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"scute.dev/api/v1alpha1"
	"scute.dev/remediator/observe"
	"scute.dev/remediator/ownerkind"
	"scute.dev/remediator/runner"
)

// TestControllersAreSetUp checks that each controller can be registered.
func TestControllersAreSetUp(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), clusterv1.AddToScheme(scheme), ownerkind.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	mgr, err := ctrl.NewManager(&rest.Config{Host: "127.0.0.1:1"}, ctrl.Options{
		Scheme: scheme, Metrics: metrics.Options{BindAddress: "0"},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return meta.NewDefaultRESTMapper(nil), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	feed, kept := NewEventSource("daemon/one"), 0
	starter := &Starter{
		Manager: mgr, Events: feed, Runner: &runner.Runner{View: runner.NewRemediations(), Logger: slog.New(slog.DiscardHandler)},
		Cached: func(_ client.Reader, lists ...client.ObjectList) { kept += len(lists) },
	}
	starter.Register()
	watched := &informertest.FakeInformers{Scheme: scheme}
	err = errors.Join(
		starter.SetupWithManager(),
		(&policyReconciler{cache: watched}).setup(mgr, watched, feed, ownerkind.All()),
		(&requestReconciler{cache: watched}).setup(mgr, watched, feed),
		(&ownerReconciler{observer: new(observe.Observer)}).setup(mgr, feed, ownerkind.All(), 4),
	)
	if err != nil || kept != 2 {
		t.Errorf("setup: %v; the kinds of %d lists are counted", err, kept)
	}
}
