package doctor

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/api/v1alpha1"
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
