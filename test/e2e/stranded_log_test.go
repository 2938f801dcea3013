package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"scute.dev/api/v1alpha1"
	"scute.dev/internal/trust"
	"scute.dev/mover"
	"scute.dev/test/harness"
	"scute.dev/test/rotation"
)

// lostAt is a case of TestLogLost: the step at which the log is lost, what the Move's status contains then, and how the
// move ends.
type lostAt struct {
	hold string
	says string // a command, or words of the message
	ends v1alpha1.MovePhase
}

// TestLogLost loses the event log while moves are in every phase. Nothing is driven until an operator confirms that
// there is no better log. Then each Move's status names a safe command, and that command ends the move.
func TestLogLost(t *testing.T) {
	ctx := harness.Deadline(t, 12*time.Minute)
	green := strings.TrimPrefix(shared.green.Side.Config().Host, "https://")
	cases := rotation.Cases(t, 4, map[string]lostAt{
		"preflight":    {"after 1 preflight-passed", "", mover.PhaseSucceeded},
		"pausing":      {"after 1 PATCH .*/clusters/", "--action back", mover.PhaseRolledBack},
		"acks":         {"after 1 move.paused", "--action back", mover.PhaseRolledBack},
		"planned":      {"after 1 move.planned", "--action back", mover.PhaseRolledBack},
		"creating":     {"after 8 POST", "--action back", mover.PhaseRolledBack},
		"created":      {"before 1 move.verified", "--action back", mover.PhaseRolledBack},
		"verified":     {"after 1 move.verified", "--action back", mover.PhaseRolledBack},
		"deleting":     {"after 5 DELETE", "--action forward", mover.PhaseSucceeded},
		"emptied":      {"after 1 source-emptied", "--action forward", mover.PhaseSucceeded},
		"marks-off":    {"after 2 PATCH " + green + ".*/secrets/", "--action forward", mover.PhaseSucceeded},
		"resumed":      {"after 1 PATCH " + green + ".*/clusters/tiny$", "delete this Move", ""},
		"restored":     {"after 1 pauses-restored", "delete this Move", ""},
		"rolling-back": {"after 4 DELETE", "--action back", mover.PhaseRolledBack},
	})
	holds := make(map[string]string)
	for name, c := range cases {
		holds[name] = c.hold
	}
	s := strand(ctx, t, "lost", namesOf(cases))
	if _, taken := cases["rolling-back"]; taken {
		refuse(ctx, t, shared.green, s.ns("rolling-back"))
	}
	dir, err := shared.blue.NewLogDir()
	harness.Must(t, err)
	for name := range cases {
		s.move(ctx, t, name)
	}
	s.hold(ctx, t, dir, holds)

	s.daemon(t, emptyDir(t))
	s.distrusts(ctx, t, string(trust.Replaced))
	s.reconcile(ctx, t)
	for name, c := range cases { // all of them first, because a move checks again only after a while
		if strings.HasPrefix(c.says, "--action") {
			s.obeys(ctx, t, s.stranded(ctx, t, name, c.says), c.says)
		}
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if c.ends != "" {
				s.ends(ctx, t, name, c.ends)
				return
			}
			s.deletes(ctx, t, s.stranded(ctx, t, name, c.says))
			s.active(ctx, t, name, shared.green)
			s.undisturbed(t, name)
		})
	}
	s.guard.clean(t)
}

// TestLogRestored restores a copy of the log from before Verified after the moves have continued. The Lease reveals
// this the first time. The second time the Lease is deleted, and only the statuses of the Moves reveal it.
func TestLogRestored(t *testing.T) {
	ctx := harness.Deadline(t, 12*time.Minute)
	cases := map[string]string{"verified": "after 1 move.verified", "deleting": "after 5 DELETE", "emptied": "after 1 source-emptied", "put-back": "after 5 DELETE"}
	s := strand(ctx, t, "restored", namesOf(cases))
	newest, err := shared.blue.NewLogDir()
	harness.Must(t, err)
	early := make(map[string]string)
	for name := range cases {
		s.move(ctx, t, name)
		early[name] = "before 1 move.verified"
	}
	s.hold(ctx, t, newest, early)
	old := filepath.Join(t.TempDir(), "copy")
	harness.Must(t, os.CopyFS(old, os.DirFS(newest)))
	s.hold(ctx, t, newest, cases)

	t.Run("the newest log is put back, as it says", func(t *testing.T) {
		d := s.daemon(t, old)
		s.distrusts(ctx, t, string(trust.WentBack))
		harness.Must(t, d.Stop(ctx))
		still := map[string]string{"put-back": "after 1 succeeded"}
		for name := range cases {
			if name != "put-back" {
				still[name] = "before 1 ."
			}
		}
		d = s.held(ctx, t, newest, still)
		s.trusts(ctx, t)                                 // otherwise the next status could be an old one
		s.ends(ctx, t, "put-back", mover.PhaseSucceeded) // before the daemon stops, because its status follows the log
		harness.Must(t, d.Stop(ctx))
	})
	harness.Must(t, shared.blue.ForgetLog(ctx))
	s.daemon(t, old)
	s.distrusts(ctx, t, string(trust.WentBack))
	s.reconcile(ctx, t)
	t.Run("verified", func(t *testing.T) { s.ends(ctx, t, "verified", mover.PhaseSucceeded) })
	for name, says := range map[string]string{"deleting": "a move has started to delete at the source", "emptied": "these objects exist only on the target"} {
		t.Run(name, func(t *testing.T) {
			s.obeys(ctx, t, s.stranded(ctx, t, name, says), "--action forward")
			s.ends(ctx, t, name, mover.PhaseSucceeded)
		})
	}
	s.guard.clean(t)
}

func namesOf[T any](cases map[string]T) []string {
	var list []string
	for name := range cases {
		list = append(list, name)
	}
	return list
}
