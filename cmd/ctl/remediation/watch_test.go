package remediation

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	fold "scute.dev/aggregate"
	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
	"scute.dev/remediator"
)

// goneSource is a source whose SurgeRemediation was deleted with its machine.
type goneSource struct {
	kit.Source[*v1alpha1.SurgeRemediation]
}

func (goneSource) Watch(context.Context, types.NamespacedName, func(*v1alpha1.SurgeRemediation) bool) error {
	return errors.Join(kit.ErrNotFound, kit.ErrGone)
}

// TestWatchFollowsTheLog checks that a watch continues with the log if the resource was deleted with its machine,
// before the replacement is ready. It shows each state and ends with the remediation.
func TestWatchFollowsTheLog(t *testing.T) {
	log, err := embedded.Open(t.Context(), embedded.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	now := func() time.Time { return time.Date(2026, 7, 30, 12, 0, 42, 0, time.UTC) }
	root := fold.Root[remediator.Event, *remediator.State]{
		Log: log, Catalog: remediator.NewCatalog(), Name: eventlog.Aggregate{Kind: eventlog.KindRemediation, ID: "fleet/cp/0a1b2c3d"},
		Actor: "daemon/test-1", Now: now, Links: remediator.Links, State: &remediator.State{},
	}
	say := func(events ...remediator.Event) {
		for _, e := range events {
			if err := root.Append(t.Context(), e); err != nil {
				t.Error(err)
			}
		}
	}
	owner := remediator.Owner{Kind: string(remediator.ControlPlane), Namespace: "fleet", Name: "cp", UID: "0a1b2c3d-0000", Cluster: "prod"}
	victim, replacement := remediator.Subject{Name: "cp-1", UID: "1"}, remediator.Subject{Name: "cp-4", UID: "4"}
	say(remediator.Registered{Owner: owner}, remediator.MachineMarked{Machine: victim, State: remediator.Unhealthy, Reason: "Node Ready Unknown", Since: now()},
		remediator.HandedOver{Machine: victim, Baseline: []remediator.Subject{victim}, Attempt: 1}, remediator.VictimGone{})

	out := &lineWriter{written: make(chan string, 16)}
	p := &session{
		Source: goneSource{}, Noun: newNoun(), Cluster: &connect.Cluster{}, Log: &connect.Log{Log: log, Where: "the test"},
		Kit: &kit.Kit{Flags: connect.New(), Env: &cli.Env{
			Out: out, Err: out, Name: "scutectl", Color: cli.ColorNever, Getenv: func(string) string { return "" }, Now: now,
			Size: func(any) (int, int, bool) { return 0, 0, false },
		}},
	}
	ended := make(chan error, 1)
	go func() {
		ended <- p.Follow(t.Context(), types.NamespacedName{Namespace: "fleet", Name: "cp-1"}, &cli.Format{})
	}()
	for _, step := range []struct {
		shown string
		then  []remediator.Event
	}{
		{"Replacing", []remediator.Event{remediator.ReplacementObserved{Replacement: replacement}, remediator.ReplacementReady{Replacement: replacement}, remediator.Succeeded{}}},
		{"Succeeded", nil},
	} {
		out.waitFor(t, step.shown)
		say(step.then...)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// lineWriter sends what is written to a channel.
type lineWriter struct{ written chan string }

func (l *lineWriter) Write(text []byte) (int, error) {
	l.written <- string(bytes.Clone(text))
	return len(text), nil
}

func (l *lineWriter) waitFor(t *testing.T, word string) {
	t.Helper()
	var seen []string
	for !slices.ContainsFunc(seen, func(line string) bool { return strings.Contains(line, word) }) {
		select {
		case line := <-l.written:
			seen = append(seen, line)
		case <-time.After(20 * time.Second):
			t.Fatalf("%s was not printed: %q", word, seen)
		}
	}
}
