package move

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/mover"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script is a source whose Move goes through the given states and stays in the last one.
type script struct {
	kit.Source[*v1alpha1.Move]
	states []v1alpha1.Move
}

func (s script) Watch(ctx context.Context, _ types.NamespacedName, fn func(*v1alpha1.Move) bool) error {
	for i := range s.states {
		if fn(&s.states[i]) {
			return nil
		}
	}
	<-ctx.Done()
	return ctx.Err()
}

func (s script) WatchAll(ctx context.Context, _ string, fn func([]*v1alpha1.Move) bool) error {
	return s.Watch(ctx, types.NamespacedName{}, func(m *v1alpha1.Move) bool { return fn([]*v1alpha1.Move{m}) })
}

func state(phase mover.Phase, message string, done bool) v1alpha1.Move {
	at := metav1.NewTime(time.Date(2026, 7, 30, 12, 0, 0, 0, time.UTC))
	m := v1alpha1.Move{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "prod"}}
	m.Status = v1alpha1.MoveStatus{Phase: phase, Message: message, PhaseSince: &at, StartedAt: &at, Counts: v1alpha1.MoveCounts{Objects: 4, Acknowledged: 2}}
	if done {
		m.Status.FinishedAt = &at
	}
	return m
}

func sessionOf(from kit.Source[*v1alpha1.Move], width, height int) (*session, *bytes.Buffer) {
	var out bytes.Buffer
	return &session{Source: from, Noun: newNoun(), Kit: &kit.Kit{Flags: connect.New(), Env: &cli.Env{
		Out: &out, Err: &out, Name: "scutectl", Color: cli.ColorNever, Getenv: func(string) string { return "" },
		Now:  func() time.Time { return time.Date(2026, 7, 30, 12, 0, 42, 0, time.UTC) },
		Size: func(any) (int, int, bool) { return width, height, width > 0 },
	}}}, &out
}

func TestWatchInAPipeIsALineForEachFact(t *testing.T) {
	p, out := sessionOf(script{states: []v1alpha1.Move{
		state(mover.PhasePausing, "pausing the source", false),
		state(mover.PhasePausing, "pausing the source", false), // nothing new
		state(mover.PhaseSucceeded, "moved", true),
	}}, 0, 0)
	err := p.Follow(t.Context(), types.NamespacedName{Namespace: "fleet", Name: "prod"}, &cli.Format{})
	if err != nil {
		t.Fatal(err)
	}
	want := "2026-07-30T12:00:42.000Z fleet/prod Pausing: pausing the source\n" +
		"2026-07-30T12:00:42.000Z fleet/prod Succeeded: moved\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

// TestWatchSaysThatTheDaemonDoesNotAct checks that a stalled move is reported once in a pipe, and above the table on a
// terminal.
func TestWatchSaysThatTheDaemonDoesNotAct(t *testing.T) {
	stalled := state(mover.PhasePausing, "pausing the source", false)
	stalled.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: "LogWentBack", Message: "the log ends at 3, but 5 was acknowledged"}}
	states := []v1alpha1.Move{state(mover.PhasePausing, "pausing the source", false), stalled, stalled, state(mover.PhaseSucceeded, "moved", true)}
	p, out := sessionOf(script{states: states}, 0, 0)
	if err := p.Follow(t.Context(), types.NamespacedName{Namespace: "fleet", Name: "prod"}, &cli.Format{}); err != nil {
		t.Fatal(err)
	}
	const at = "2026-07-30T12:00:42.000Z fleet/prod "
	want := at + "Pausing: pausing the source\n" + at + "Stalled: the log ends at 3, but 5 was acknowledged\n" + at + "Succeeded: moved\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}

	p, out = sessionOf(script{states: states}, 80, 24)
	if err := p.FollowAll(t.Context(), "fleet", &cli.Format{}); err != nil {
		t.Fatal(err)
	}
	frames := strings.Split(strings.ReplaceAll(out.String(), "\x1b[2K", ""), "\x1b[J")
	if got, want := frames[1], "\x1b[2A\rStalled:      the log ends at 3, but 5 was acknowledged\nNAME "; !strings.HasPrefix(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWatchOnATerminalRedrawsInPlace(t *testing.T) {
	p, out := sessionOf(script{states: []v1alpha1.Move{
		state(mover.PhaseAwaitingAcks, "2 of 4", false),
		state(mover.PhaseRolledBack, "rolled back", true),
	}}, 60, 24)
	err := p.Follow(t.Context(), types.NamespacedName{Namespace: "fleet", Name: "prod"}, &cli.Format{})
	if code, tell := cli.Code(err); code != cli.ExitFailed || tell {
		t.Errorf("got exit code %d, error %v, want ExitFailed without a message", code, err)
	}
	frames := strings.Split(out.String(), "\x1b[J")
	if len(frames) != 3 || !strings.HasPrefix(frames[1], "\x1b[6A\r") {
		t.Fatalf("got %d frames: %q", len(frames), out.String())
	}
	want := []string{
		"\rfleet/prod", "Phase:        AwaitingAcks for 42s (since 2026-07-30 12:00:…", "              ✓✓▶····· 3 of 8",
		"Started:      42s ago (2026-07-30 12:00:00Z)", "Acknowledged: ████████████░░░░░░░░░░░░ 2/4", "Now:          2 of 4", "",
	}
	if diff := cmp.Diff(want, strings.Split(strings.ReplaceAll(frames[0], "\x1b[2K", ""), "\n")); diff != "" {
		t.Error(diff)
	}
}

func TestWatchInterruptedSaysThatTheMoveContinues(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p, _ := sessionOf(script{states: []v1alpha1.Move{state(mover.PhasePausing, "pausing", false)}}, 0, 0)
	err := p.Follow(ctx, types.NamespacedName{Namespace: "fleet", Name: "prod"}, &cli.Format{})
	if code, _ := cli.Code(err); code != cli.ExitInterrupted || !strings.Contains(err.Error(), "the move continues") {
		t.Errorf("got exit code %d, error %v", code, err)
	}
}

func TestWatchThatBreaksOffFails(t *testing.T) {
	broken := errors.New("the API server is gone")
	p, _ := sessionOf(failing{err: broken}, 0, 0)
	err := p.Follow(t.Context(), types.NamespacedName{}, &cli.Format{})
	if !errors.Is(err, broken) {
		t.Error(err)
	}
}

type failing struct {
	kit.Source[*v1alpha1.Move]
	err error
}

func (f failing) Watch(context.Context, types.NamespacedName, func(*v1alpha1.Move) bool) error {
	return f.err
}
