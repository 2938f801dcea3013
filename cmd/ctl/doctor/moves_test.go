package doctor

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/kube"
	"scute.dev/mover"
)

// TestMadeAgainAfterItsMove checks that a Cluster is reported if it was recreated at the source after its move, as by a
// GitOps tool that still applies it there.
func TestMadeAgainAfterItsMove(t *testing.T) {
	for name, c := range map[string]struct {
		after   time.Duration
		phase   v1alpha1.MovePhase
		cluster string
		manager string
		all     bool
		want    bool
	}{
		"made again":                      {time.Second, mover.PhaseSucceeded, "prod", "flux", false, true},
		"the one that was there":          {-time.Hour, mover.PhaseSucceeded, "prod", "flux", false, false},
		"rolled back":                     {time.Second, mover.PhaseRolledBack, "prod", "flux", false, false},
		"another":                         {time.Second, mover.PhaseSucceeded, "test", "flux", false, false},
		"tried only":                      {time.Second, mover.PhaseSucceeded, "prod", "flux", false, false},
		"moved back":                      {time.Second, mover.PhaseSucceeded, "prod", kube.FieldManager, false, false},
		"made again, after a move of all": {time.Second, mover.PhaseSucceeded, "prod", "flux", true, true},
		"new since a move of all":         {time.Second, mover.PhaseSucceeded, "test", "flux", true, false},
	} {
		m := &v1alpha1.Move{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "away"}}
		if m.Spec.Selection.Clusters = []string{"prod"}; c.all {
			m.Spec.Selection = v1alpha1.MoveSelection{All: true}
			m.Status.Clusters = []string{"prod"}
		}
		m.Status.Phase, m.Status.StartedAt = c.phase, &metav1.Time{Time: at()}
		m.Spec.DryRun = name == "tried only"
		v := newDiagnosis(nil)
		v.moves.Items = []v1alpha1.Move{*m}
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetNamespace("fleet")
		u.SetName(c.cluster)
		u.SetCreationTimestamp(metav1.NewTime(at().Add(c.after)))
		u.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: c.manager}})
		if got := movedAway(v, u) != nil; got != c.want {
			t.Errorf("%s: reported = %t", name, got)
		}
	}
}

// TestAMoveThatNoDaemonDrives checks that doctor warns about a move in progress while no daemon runs.
func TestAMoveThatNoDaemonDrives(t *testing.T) {
	m := &v1alpha1.Move{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "prod"}, Status: v1alpha1.MoveStatus{
		Phase: mover.PhaseCreating, Message: "creating objects on the target: 0 of 27",
	}}
	v := newDiagnosis(nil)
	if r := v.checkObject(kindOf(v, "Move"), m, statusOf(m)); r != nil {
		t.Errorf("got %+v with a daemon", r)
	}
	v.noDaemon = true
	r := v.checkObject(kindOf(v, "Move"), m, statusOf(m))
	if r == nil || r.Level != levelWarning || r.Message != "fleet/prod is in Creating and no process drives it" {
		t.Errorf("got %+v, want a warning", r)
	}
}

// TestMovesThatMayNotBeListed checks that doctor fails if it cannot list moves, and only warns for
// other kinds.
func TestMovesThatMayNotBeListed(t *testing.T) {
	levels := make(map[string]level)
	v := newDiagnosis(func(r result) { levels[r.Subject] = max(levels[r.Subject], r.Level) })
	forbidden := func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, "", errors.New("no"))
	}
	v.cluster = &connect.Cluster{
		Namespace: "fleet", Config: &rest.Config{Host: "here"},
		Client: fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{List: forbidden}).Build(),
	}
	checkObjects(t.Context(), v)
	if levels["moves"] != levelProblem || levels["pauses"] != levelWarning {
		t.Errorf("levels = %v, want a problem for moves and a warning for pauses", levels)
	}
}
