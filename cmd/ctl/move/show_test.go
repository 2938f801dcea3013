package move

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/mover"
)

func now() time.Time { return time.Date(2026, 7, 30, 12, 5, 0, 0, time.UTC) }

func newMove(phase mover.Phase, c v1alpha1.MoveCounts) *v1alpha1.Move {
	since := metav1.NewTime(now().Add(-time.Minute))
	return &v1alpha1.Move{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "prod"},
		Spec:       v1alpha1.MoveSpec{Selection: v1alpha1.MoveSelection{All: true}},
		Status:     v1alpha1.MoveStatus{Phase: phase, Counts: c, PhaseSince: &since, StartedAt: &since},
	}
}

func TestPhaseBar(t *testing.T) {
	dry := newMove(mover.PhasePlanned, v1alpha1.MoveCounts{})
	dry.Spec.DryRun = true
	failed := newMove(mover.PhaseFailed, v1alpha1.MoveCounts{Clusters: 1})
	failed.Spec.DryRun = true
	for _, c := range []struct {
		name string
		move *v1alpha1.Move
		want string
	}{
		{"not taken up", newMove("", v1alpha1.MoveCounts{}), "· 0 of 8"},
		{"under way", newMove(mover.PhaseCreating, v1alpha1.MoveCounts{}), "✓✓✓✓▶··· 5 of 8"},
		{"succeeded", newMove(mover.PhaseSucceeded, v1alpha1.MoveCounts{}), "✓✓✓✓✓✓✓✓ 8 of 8"},
		{"refused", newMove(mover.PhaseFailed, v1alpha1.MoveCounts{}), "✗······· 1 of 8"},
		{"rolled back from the acknowledgements", newMove(mover.PhaseRolledBack, v1alpha1.MoveCounts{Objects: 3, Acknowledged: 2}), "✓✓✗····· 3 of 8"},
		{"aborted before anything was paused", newMove(mover.PhaseRolledBack, v1alpha1.MoveCounts{Clusters: 1}), "✓✗······ 2 of 8"},
		{"rolled back from creating", newMove(mover.PhaseRollingBack, v1alpha1.MoveCounts{Objects: 3, Acknowledged: 3, ToDelete: 3}), "✓✓✓✓✗··· 5 of 8"},
		{"dry run", dry, "✓▶ 2 of 2"},
		{"dry run without a plan", failed, "✓✗ 2 of 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := kit.View{Width: 20, Now: now()}.Path(stages(c.move))
			if c.name == "not taken up" {
				got = strings.TrimLeft(got, "·")
				c.want = " 0 of 8"
			}
			if got != c.want {
				t.Errorf("bar = %q, want %q", got, c.want)
			}
		})
	}
	wide := kit.View{Now: now()}.Path(stages(newMove(mover.PhaseCreating, v1alpha1.MoveCounts{})))
	if want := "✓ Preflight ✓ Pausing ✓ AwaitingAcks ✓ Planned ▶ Creating · Verified · Deleting · Resuming"; wide != want {
		t.Errorf("wide bar = %q", wide)
	}
}

func TestStandingFitsANarrowTerminal(t *testing.T) {
	m := newMove(mover.PhaseDeleting, v1alpha1.MoveCounts{Clusters: 1, Objects: 40, Acknowledged: 40, Created: 40, ToDelete: 38, Deleted: 7, ToResume: 12})
	m.Status.Message = "the target is verified; deleting objects at the source: 7 of 38; retrying after: the source cannot be reached"
	m.Status.Next = "if the error persists, fix the cause"
	want := []string{
		"Phase:        Deleting for 60s (since 2026-07-30 12:04:00Z)",
		"              ✓✓✓✓✓✓▶· 7 of 8",
		"Started:      60s ago (2026-07-30 12:04:00Z)",
		"Acknowledged: ████████████████████████ 40/40",
		"Created:      ████████████████████████ 40/40",
		"Deleted:      ████░░░░░░░░░░░░░░░░░░░░  7/38",
		"Resumed:      ░░░░░░░░░░░░░░░░░░░░░░░░  0/12",
		"Now:          the target is verified; deleting objects at the",
		"              source: 7 of 38; retrying after: the source cannot",
		"              be reached",
		"Next:         if the error persists, fix the cause",
	}
	v := kit.View{Width: 64, Now: now()}
	if diff := cmp.Diff(want, v.Status(status(m))); diff != "" {
		t.Error(diff)
	}
}

func TestFactOfALineTellsWhatIsNew(t *testing.T) {
	m := newMove(mover.PhaseAwaitingAcks, v1alpha1.MoveCounts{})
	m.Status.Message = "waiting"
	for _, name := range []string{"a", "b", "c", "d"} {
		m.Status.WaitingFor = append(m.Status.WaitingFor, v1alpha1.MoveWaiting{Object: "Machine fleet/" + name, Message: "Paused is False"})
	}
	want := "AwaitingAcks: waiting; waits for Machine fleet/a (Paused is False), Machine fleet/b (Paused is False), Machine fleet/c (Paused is False) and 1 more"
	if got := fact(m); got != want {
		t.Errorf("fact = %q", got)
	}
}

func TestTableOfMoves(t *testing.T) {
	m := newMove(mover.PhaseSucceeded, v1alpha1.MoveCounts{Clusters: 1, Objects: 3, Created: 3, ToDelete: 3, Deleted: 3})
	m.CreationTimestamp = metav1.NewTime(now().Add(-time.Hour))
	want := []string{
		"NAME  PHASE      SINCE  CLUSTERS  CREATED  DELETED  RESUMED  AGE",
		"prod  Succeeded  60s    1         3/3      3/3      -        60m",
	}
	if diff := cmp.Diff(want, newNoun().Table(kit.View{Now: now()}, []*v1alpha1.Move{m}, false, false)); diff != "" {
		t.Error(diff)
	}
	colored := newNoun().Table(kit.View{Now: now(), Paint: cli.Paint{On: true}}, []*v1alpha1.Move{m}, true, true)
	if !strings.Contains(colored[1], "\x1b[32mSucceeded\x1b[0m") {
		t.Errorf("colored row = %q", colored[1])
	}
}
