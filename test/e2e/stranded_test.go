package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/internal/trust"
	"scute.dev/mover"
	"scute.dev/test/cloud"
	"scute.dev/test/harness"
	"scute.dev/test/ports"
	"scute.dev/test/scuted"
	"scute.dev/test/testbed"
)

// stranding holds several moves from blue to green at chosen writes, all in one daemon. Each moves one cluster in its
// own namespace. A test then changes the log or a management cluster.
type stranding struct {
	prefix string
	before map[string]map[string]*unstructured.Unstructured // by case
	guard  *guard
	mark   cloud.Mark
	listen string
	human  *operator
}

// strand creates the clusters of some cases.
func strand(ctx context.Context, t *testing.T, prefix string, cases []string) *stranding {
	t.Helper()
	s := &stranding{prefix: prefix, before: make(map[string]map[string]*unstructured.Unstructured), listen: ports.AddressForTest(t)}
	s.human = &operator{nats: "nats://" + s.listen}
	var group errgroup.Group
	var all []string
	for _, name := range cases {
		c := testbed.Tiny(s.ns(name), "tiny")
		all = append(all, c.Namespace)
		group.Go(func() error {
			if _, err := shared.blue.Side.CreateCluster(ctx, c); err != nil {
				return err
			}
			if err := shared.blue.PutTarget(ctx, c.Namespace, shared.green); err != nil {
				return err
			}
			return shared.blue.Side.WaitAvailable(ctx, c.Namespace, c.Name)
		})
	}
	harness.Must(t, group.Wait())
	for _, name := range cases {
		s.before[name] = objects(ctx, t, shared.blue, s.ns(name))
	}
	s.guard, s.mark = shared.guard(ctx, t, all...), shared.bed.Cloud().Mark()
	return s
}

func (s *stranding) ns(name string) string { return s.prefix + "-" + name }

// daemon starts the real daemon on a log.
func (s *stranding) daemon(t *testing.T, dir string) *scuted.Daemon {
	t.Helper()
	return harness.Daemon(t, shared.blue, scuted.DaemonOptions{LogDir: dir, Listen: s.listen})
}

// hold drives the moves on a log until each reaches the write where its case holds it, and then stops the daemon.
func (s *stranding) hold(ctx context.Context, t *testing.T, dir string, holds map[string]string) {
	t.Helper()
	harness.Must(t, s.held(ctx, t, dir, holds).Stop(ctx))
}

// held returns the daemon while it holds the moves. A hold has the syntax of test/cmd/faultd, without the namespace.
func (s *stranding) held(ctx context.Context, t *testing.T, dir string, holds map[string]string) *scuted.Daemon {
	t.Helper()
	var lines string
	for name, at := range holds {
		lines += s.ns(name) + " " + at + "\n"
	}
	journal := scuted.NewJournal(t.TempDir())
	t.Setenv("SCUTE_FAULT_HOLD", lines)
	t.Setenv("SCUTE_FAULT_JOURNAL", journal.Path())
	d := harness.Daemon(t, shared.blue, scuted.DaemonOptions{
		LogDir: dir, Listen: s.listen, Program: shared.programs.Faulty, Args: []string{"--move-concurrency", fmt.Sprint(len(holds))},
	})
	for {
		over := make(map[string]*v1alpha1.Move)
		for name := range holds {
			if m := s.wait(ctx, t, name, func(*v1alpha1.Move) bool { return true }); scuted.Over(m) {
				over[name] = m
			}
		}
		text, err := os.ReadFile(journal.Path())
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		var missing []string
		for name := range holds {
			if !strings.Contains(string(text), "held "+s.ns(name)+" ") {
				missing = append(missing, name)
				if m := over[name]; m != nil {
					t.Fatalf("%s ended before it was held: %s: %s", name, m.Status.Phase, m.Status.Message)
				}
			}
		}
		if len(missing) == 0 {
			break
		}
		harness.Must(t, d.Exited())
		if ctx.Err() != nil {
			t.Fatalf("moves did not reach their holds: %v", missing)
		}
		pause(ctx, t, 50*time.Millisecond)
	}
	return d
}

func (s *stranding) move(ctx context.Context, t *testing.T, name string) {
	t.Helper()
	harness.Must(t, shared.blue.Create(ctx, scuted.NewMove(s.ns(name), "go", shared.green, "tiny")))
}

func (s *stranding) wait(ctx context.Context, t *testing.T, name string, done func(*v1alpha1.Move) bool) *v1alpha1.Move {
	t.Helper()
	m, err := shared.blue.Wait(ctx, s.ns(name), "go", done)
	harness.Must(t, err)
	return m
}

// distrusts waits until the Move of every case reports for this reason that its log must not be used.
func (s *stranding) distrusts(ctx context.Context, t *testing.T, reason string) {
	t.Helper()
	for name := range s.before {
		s.wait(ctx, t, name, func(m *v1alpha1.Move) bool {
			c := stalledBy(m, reason)
			return m.Status.FinishedAt != nil || c != nil && strings.Contains(c.Message, "scutectl log reconcile")
		})
	}
}

// trusts waits until no Move reports any more that its log must not be used.
func (s *stranding) trusts(ctx context.Context, t *testing.T) {
	t.Helper()
	for name := range s.before {
		s.wait(ctx, t, name, func(m *v1alpha1.Move) bool { return stalledBy(m, string(trust.WentBack)) == nil })
	}
}

// reconcile confirms as the operator that there is no better log.
func (s *stranding) reconcile(ctx context.Context, t *testing.T) {
	t.Helper()
	s.human.run(ctx, t, 0, []string{"Recorded"}, "log", "reconcile", "--yes", "--nats", s.human.nats)
}

// stranded waits until a Move is stranded and its message and next step contain all words.
func (s *stranding) stranded(ctx context.Context, t *testing.T, name string, words ...string) *v1alpha1.Move {
	t.Helper()
	return s.wait(ctx, t, name, func(m *v1alpha1.Move) bool {
		return m.Status.Stranded && stalledBy(m, "Stranded") != nil && m.Status.Next != "" &&
			!slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(m.Status.Message+"\n"+m.Status.Next, w) })
	})
}

func stalledBy(m *v1alpha1.Move, reason string) *metav1.Condition {
	c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionStalled)
	if c == nil || c.Status != metav1.ConditionTrue || c.Reason != reason {
		return nil
	}
	return c
}

var commands = regexp.MustCompile("`scutectl ([^`]*)`") //nolint:gochecknoglobals // compiled once

// obeys runs the command in a Move's status, word for word.
func (s *stranding) obeys(ctx context.Context, t *testing.T, m *v1alpha1.Move, verb string) {
	t.Helper()
	for _, found := range commands.FindAllStringSubmatch(m.Status.Next, -1) {
		if strings.Contains(found[1], verb) {
			s.human.run(ctx, t, 0, []string{"recorded by"}, append(strings.Fields(found[1]), "--nats", s.human.nats)...)
			return
		}
	}
	t.Fatalf("%s/%s does not name the command %q: %s", m.Namespace, m.Name, verb, m.Status.Next)
}

// deletes deletes a Move and waits until it no longer exists.
func (s *stranding) deletes(ctx context.Context, t *testing.T, m *v1alpha1.Move) {
	t.Helper()
	admin, err := shared.blue.Client()
	harness.Must(t, err)
	harness.Must(t, admin.Delete(ctx, m))
	for {
		err := admin.Get(ctx, client.ObjectKeyFromObject(m), m)
		if apierrors.IsNotFound(err) {
			return
		}
		harness.Must(t, err)
		if ctx.Err() != nil {
			t.Fatalf("%s/%s still exists after its deletion: %s: %s", m.Namespace, m.Name, m.Status.Phase, m.Status.Message)
		}
		pause(ctx, t, 100*time.Millisecond)
	}
}

// over waits until a Move ends, and checks its phase.
func (s *stranding) over(ctx context.Context, t *testing.T, name string, phase v1alpha1.MovePhase) *v1alpha1.Move {
	t.Helper()
	over := s.wait(ctx, t, name, scuted.Over)
	if over.Status.Phase != phase {
		t.Fatalf("%s: phase %s: %s; %s", name, over.Status.Phase, over.Status.Message, over.Status.Next)
	}
	return over
}

// ends waits until a Move ends in a phase, and checks that one side has all objects, active, and that the other has
// none.
func (s *stranding) ends(ctx context.Context, t *testing.T, name string, phase v1alpha1.MovePhase) {
	t.Helper()
	s.over(ctx, t, name, phase)
	holds, empty := shared.green, shared.blue
	if phase == mover.PhaseRolledBack {
		holds, empty = empty, holds
	}
	if left := objects(ctx, t, empty, s.ns(name)); len(left) > 0 {
		t.Errorf("%s: objects remain on %s: %v", name, empty.Side.Name(), names(left))
	}
	s.active(ctx, t, name, holds)
	s.undisturbed(t, name)
}

// active checks that one side has all objects of a case, without annotations of scute, and that its controllers work on
// them.
func (s *stranding) active(ctx context.Context, t *testing.T, name string, on *scuted.Installation) {
	t.Helper()
	harness.Must(t, on.Side.WaitAvailable(ctx, s.ns(name), "tiny"))
	after := objects(ctx, t, on, s.ns(name))
	if !slices.Equal(names(s.before[name]), names(after)) {
		t.Errorf("%s: objects changed: before %v\nafter %v", name, names(s.before[name]), names(after))
	}
	untouched(t, after)
}

// undisturbed checks in the cloud's journal that no machine was created or deleted.
func (s *stranding) undisturbed(t *testing.T, name string) {
	t.Helper()
	if bad := s.journal(t, name).Replacements(); len(bad) > 0 {
		t.Errorf("%s: machines were created or deleted in the cloud:\n%s", name, bad)
	}
}

// journal returns the writes to the cloud for the cluster of a case. It checks that blue wrote nothing after green had
// started to write, because then both sides would be active.
func (s *stranding) journal(t *testing.T, name string) cloud.Journal {
	t.Helper()
	all, err := shared.bed.Cloud().Since(s.mark)
	harness.Must(t, err)
	journal := all.Where(func(w cloud.Write) bool { return w.Cluster == s.ns(name)+"/tiny" })
	handed := false
	for _, w := range journal {
		handed = handed || w.By == "green" && w.Changed
		if handed && w.By == "blue" && w.Changed {
			t.Errorf("%s: both sides write to the cloud:\n%s", name, journal)
			break
		}
	}
	return journal
}

func emptyDir(t *testing.T) string { return filepath.Join(t.TempDir(), "log") }
