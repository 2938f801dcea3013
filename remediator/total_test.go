package remediator_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"scute.dev/eventlog"
	"scute.dev/remediator"
)

// allEvents returns an event of each type.
func allEvents() []remediator.Event {
	return []remediator.Event{
		remediator.Registered{},
		remediator.Claimed{},
		remediator.MachineMarked{},
		remediator.MachineMarkCleared{},
		remediator.Decided{},
		remediator.HoldSet{},
		remediator.HoldReleased{},
		remediator.AbortRequested{},
		remediator.EscalationStarted{},
		remediator.EscalationEnded{},
		remediator.SurgeRequested{},
		remediator.HandedOver{},
		remediator.Continued{},
		remediator.Merged{},
		remediator.ScaleRaised{},
		remediator.VictimSpared{},
		remediator.ReplacementObserved{},
		remediator.ScaleRestored{},
		remediator.ReplacementReady{},
		remediator.VictimDeleting{},
		remediator.SurgeRelaxed{},
		remediator.DrainSkipped{},
		remediator.VolumeDetachSkipped{},
		remediator.VictimGone{},
		remediator.SurgeConsumed{},
		remediator.CancelStarted{},
		remediator.Frozen{},
		remediator.Thawed{},
		remediator.Succeeded{},
		remediator.Cancelled{},
		remediator.TransientFailure{},
		remediator.ClockSetBack{},
		remediator.PolicyMassFailurePassed{},
		remediator.MassFailurePassed{},
		remediator.Admitted{},
		remediator.EtcdReported{},
		remediator.DefragmentationWaits{},
		remediator.DefragmentationStarted{},
		remediator.DefragmentationEnded{},
		remediator.NoSpaceDisarmed{},
	}
}

// TestKinds checks that kinds has each declared type.
func TestKinds(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "events.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var declared, known []string
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == "event" && f.Recv != nil {
			declared = append(declared, fmt.Sprint(f.Recv.List[0].Type))
		}
	}
	for _, e := range allEvents() {
		known = append(known, reflect.TypeOf(e).Name())
	}
	slices.Sort(declared)
	slices.Sort(known)
	if diff := cmp.Diff(declared, known); diff != "" {
		t.Error(diff)
	}
}

// TestAnyFacts checks that events of any kind can be applied in any order: a log that another version wrote, or that
// was damaged, may give a strange state but never a panic. The same log always gives the same state, and changes to a
// copy do not affect it.
func TestAnyFacts(t *testing.T) {
	catalog := remediator.NewCatalog()
	rapid.Check(t, func(t *rapid.T) {
		now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
		w := anyWorld(t, now)
		var s, twin remediator.State
		if rapid.Bool().Draw(t, "registered") {
			s.Apply(remediator.Registered{Owner: w.owner.Owner}, now)
			twin.Apply(remediator.Registered{Owner: w.owner.Owner}, now)
		}
		for range rapid.IntRange(1, 60).Draw(t, "facts") {
			e := anyFact(t, w)
			again := stored(t, catalog, e)
			now = now.Add(time.Duration(rapid.IntRange(0, 400).Draw(t, "seconds")) * time.Second)
			w.now = now
			s.Apply(e, now)
			twin.Apply(again, now)
			if diff := cmp.Diff(s.Clone(), twin.Clone()); diff != "" {
				t.Fatalf("encoded events give another state: %s", diff)
			}
			copied := s.Clone()
			for range 3 {
				copied.Apply(anyFact(t, w), now)
			}
			if diff := cmp.Diff(s.Clone(), twin.Clone()); diff != "" {
				t.Fatalf("events applied to a copy changed the state: %s", diff)
			}
			f := w.observe(rapid.Bool().Draw(t, "asked"))
			_, _, _, _ = remediator.NeedsEtcdProbe(&s, f, now), remediator.Decide(&s, f, now), remediator.Actions(&s, f, now), remediator.RequeueAfter(&s, f, now)
			if diff := cmp.Diff(s.Clone(), twin.Clone()); diff != "" {
				t.Fatalf("a decision changed the state: %s", diff)
			}
		}
	})
}

func stored(t interface{ Fatal(...any) }, catalog *eventlog.Catalog[remediator.Event], e remediator.Event) remediator.Event {
	encoded, err := catalog.Encode(e)
	if err != nil {
		t.Fatal(err)
	}
	again, err := catalog.Decode(encoded)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(e, again); diff != "" {
		t.Fatal(fmt.Sprintf("%T: the log gives back something else: %s", e, diff))
	}
	return again
}

// anyFact returns an event of a random type with random fields, some of which name machines of the world.
func anyFact(t *rapid.T, w *world) remediator.Event {
	prototype := rapid.SampledFrom(allEvents()).Draw(t, "fact")
	v := reflect.New(reflect.TypeOf(prototype)).Elem()
	anyValue(t, w, v)
	return v.Interface().(remediator.Event)
}

func anyValue(t *rapid.T, w *world, v reflect.Value) {
	for i := range v.NumField() {
		field, name := v.Field(i), v.Type().Field(i).Name
		switch p := field.Addr().Interface().(type) {
		case *time.Time:
			*p = w.now.Add(time.Duration(rapid.IntRange(-1000, 1000).Draw(t, name)) * time.Second)
		case *remediator.Subject:
			*p = anySubject(t, w)
		case *[]remediator.Subject:
			*p = []remediator.Subject{anySubject(t, w), anySubject(t, w)}
		case *[]string:
			*p = []string{"x"}
		case *remediator.MarkState:
			*p = rapid.SampledFrom([]remediator.MarkState{remediator.Failing, remediator.Unhealthy, remediator.Scheduled, "?"}).Draw(t, name)
		case *remediator.Verdict:
			*p = rapid.SampledFrom([]remediator.Verdict{remediator.RolloutSurge, remediator.Surge, remediator.OwnerRemediation, remediator.Wait, remediator.Freeze, "?"}).Draw(t, name)
		case *remediator.Cause:
			*p = rapid.SampledFrom([]remediator.Cause{remediator.Recovered, remediator.TimedOut, remediator.Aborted, remediator.OwnerGone, remediator.Deselected, ""}).Draw(t, name)
		case *remediator.RolloutTrigger:
			*p = rapid.SampledFrom([]remediator.RolloutTrigger{remediator.TriggerCertificates, remediator.TriggerClonedFrom, "", "?"}).Draw(t, name)
		case *remediator.Where:
			*p = rapid.SampledFrom([]remediator.Where{remediator.AtOwner, remediator.AtTopology, ""}).Draw(t, name)
		case *remediator.Owner:
			*p = w.owner.Owner
		default:
			switch field.Kind() {
			case reflect.Struct:
				anyValue(t, w, field)
			case reflect.Bool:
				field.SetBool(rapid.Bool().Draw(t, name))
			case reflect.Int, reflect.Int32:
				field.SetInt(int64(rapid.IntRange(-1, 9).Draw(t, name)))
			case reflect.String:
				field.SetString(rapid.SampledFrom([]string{"", "x", remediator.RulePolicyMassFailure, "reboot", strings.Repeat("y", 300)}).Draw(t, name))
			}
		}
	}
}

// anySubject returns a machine of the world, a machine that is gone, or none.
func anySubject(t *rapid.T, w *world) remediator.Subject {
	n := rapid.IntRange(0, len(w.machines)+60).Draw(t, "machine")
	switch {
	case n == 0:
		return remediator.Subject{}
	case n <= len(w.machines):
		m := w.machines[n-1]
		return remediator.Subject{Name: m.Name, UID: m.UID}
	}
	return remediator.Subject{Name: fmt.Sprintf("old-%d", n), UID: types.UID(fmt.Sprintf("old-%d-uid", n))}
}

// anyWorld returns an owner of a random kind with one to nine machines.
func anyWorld(t *rapid.T, now time.Time) *world {
	return anyWorldOf(t, now, remediator.ControlPlane, remediator.ControlPlane, remediator.ControlPlane, remediator.ControlPlane, remediator.Deployment, remediator.Set, "OtherControlPlane")
}

func anyWorldOf(t *rapid.T, now time.Time, kinds ...remediator.OwnerKind) *world {
	w := newWorld(now)
	w.owner.Kind = string(rapid.SampledFrom(kinds).Draw(t, "kind"))
	n := rapid.IntRange(1, 9).Draw(t, "machines")
	w.owner.ExternalEtcd = rapid.IntRange(0, 5).Draw(t, "external etcd") == 0
	if w.stacked() {
		n += (n + 1) % 2
	}
	w.cluster.Topology = rapid.Bool().Draw(t, "topology")
	w.owner.CertificateTrigger = w.owner.Kind == string(remediator.ControlPlane) && rapid.Bool().Draw(t, "certificate trigger")
	w.owner.Tested = rapid.IntRange(0, 3).Draw(t, "untested") > 0
	w.owner.MaxSurge = int32(min(1, rapid.IntRange(0, 5).Draw(t, "max surge"))) //nolint:gosec // 0 or 1
	w.policy.AllowsDeleteFirst = rapid.Bool().Draw(t, "accepts delete-first")
	w.policy.GuardsMachines = rapid.Bool().Draw(t, "guards")
	w.onDelete = checkDeletions && w.owner.Kind == string(remediator.Deployment) && rapid.IntRange(0, 2).Draw(t, "on delete") == 0
	w.onlyKubelets = rapid.IntRange(0, 2).Draw(t, "sealed") == 0
	w.healthCheck = rapid.Bool().Draw(t, "health check")
	w.owner.Replicas, w.cluster.TopologyReplicas = int32(n), int32(n) //nolint:gosec // a handful
	if w.owner.Kind == string(remediator.ControlPlane) && rapid.IntRange(0, 7).Draw(t, "new") == 0 {
		w.uninitialize()
		n = 0
	}
	for i := range n {
		domain := ""
		if w.owner.Kind == string(remediator.ControlPlane) {
			domain = string(rune('a' + i%3))
		}
		w.add(domain)
	}
	if w.stacked() && rapid.IntRange(0, 2).Draw(t, "defragmentation") == 0 {
		w.policy.Survey = 5 * time.Minute
		w.policy.Defragmentation = remediator.Defragmentation{Enabled: true, FreePercent: 45, MinSize: 100 << 20, Pause: time.Minute, Deadline: time.Minute, Disarm: rapid.Bool().Draw(t, "disarm")}
	}
	if rapid.IntRange(0, 5).Draw(t, "escalation") == 0 {
		w.policy.Escalation = []remediator.EscalationStep{{Name: "reboot", Timeout: 5 * time.Minute}}
	}
	return w
}

// TestForgets checks that a replay forgets the same machines if many recovered at the same moment.
func TestForgets(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	fold := func() *remediator.State {
		var s remediator.State
		for i := range 100 {
			m := remediator.Subject{Name: fmt.Sprintf("m%d", i), UID: types.UID(fmt.Sprintf("m%d-uid", i))}
			s.Apply(remediator.MachineMarked{Machine: m, State: remediator.Failing}, now)
			s.Apply(remediator.MachineMarkCleared{Machine: m}, now)
		}
		return &s
	}
	first := fold()
	if n := len(first.Unhealthy); n > 50 {
		t.Errorf("%d machines are remembered, want at most 50", n)
	}
	for range 10 {
		if diff := cmp.Diff(first.Clone(), fold().Clone()); diff != "" {
			t.Fatal(diff)
		}
	}
}
