package mover_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/pause"
)

// TestScenarios plays moves as scripts. Each command is an outcome, or an event of another client. Its output has the
// events that were decided, the resulting phase, and the next step. Rewrite with -rewrite.
//
// "after=1m" advances the clock first; "stored=2" stores only the first two events, as if the process crashed after the
// first of several commits.
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/move", func(t *testing.T, path string) {
		story := &scenario{now: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)}
		datadriven.RunTest(t, path, story.send)
	})
}

type scenario struct {
	start, now time.Time
	state      mover.State
	log        []recorded
	links      chain
}

type recorded struct {
	event mover.Event
	at    time.Time
}

func (s *scenario) send(t *testing.T, d *datadriven.TestData) string {
	var b strings.Builder
	if d.HasArg("after") {
		var text string
		d.ScanArgs(t, "after", &text)
		after, err := time.ParseDuration(text)
		if err != nil {
			d.Fatalf(t, "after: %v", err)
		}
		s.now = s.now.Add(after)
	}
	switch d.Cmd {
	case "ask":
		s.start = s.now
		s.store(&b, mover.Requested{Spec: spec(t, d)})
		s.store(&b, mover.Claimed{Holder: "one"})
	case "claim":
		s.store(&b, mover.Claimed{Holder: "another"})
	case "abort":
		s.store(&b, mover.AbortRequested{Reason: strings.TrimSpace(d.Input)})
	case "status":
		return s.status()
	case "reach":
		s.reach(t, d)
	default:
		s.decide(t, d, &b)
	}
	bullet(&b, "%s %s, next: %s", s.now.Sub(s.start), s.state.Phase, s.next())
	return b.String()
}

func (s *scenario) next() string {
	if step := mover.Next(&s.state); step != mover.None {
		return string(step)
	}
	if s.state.Finished() {
		return "over"
	}
	return "nothing"
}

func (s *scenario) decide(t *testing.T, d *datadriven.TestData, b *strings.Builder) {
	t.Helper()
	outcome := outcomeOf(t, d)
	before := s.state
	events, err := mover.Decide(&s.state, outcome, s.now)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	if diff := cmp.Diff(before, s.state); diff != "" {
		d.Fatalf(t, "Decide changed the state: %s", diff)
	}
	if d.HasArg("stored") {
		var n int
		d.ScanArgs(t, "stored", &n)
		events = events[:n]
	}
	s.store(b, events...)
	if len(events) == 0 {
		bullet(b, "nothing to say")
	}
}

// store applies events, and checks that the state is nothing but the fold of the log.
func (s *scenario) store(b *strings.Builder, events ...mover.Event) {
	for _, e := range events {
		bullet(b, "%s", eventText(e))
		if wrong := s.links.check(&s.state, e); wrong != "" {
			bullet(b, "%s", wrong) // this makes the script's output differ
		}
		s.log = append(s.log, recorded{e, s.now})
		s.state.Apply(e, s.now)
	}
	var again mover.State
	for _, r := range s.log {
		again.Apply(r.event, r.at)
	}
	if diff := cmp.Diff(s.state, again); diff != "" {
		bullet(b, "A REPLAY GIVES ANOTHER STATE: %s", diff)
	}
}

// reach plays a new move of one cluster, without output or failures, until its next step is the given one.
func (s *scenario) reach(t *testing.T, d *datadriven.TestData) {
	t.Helper()
	*s = scenario{start: s.now, now: s.now}
	var b strings.Builder
	s.store(&b, mover.Requested{Spec: spec(t, d)}, mover.Claimed{Holder: "one"})
	var objects []mover.Item
	for _, w := range []string{"Cluster/a", "Machine/a-1 level=1", "KubeadmConfig/a-1 level=2", "Secret/a-ca level=1"} {
		objects = append(objects, item(t, strings.Fields(w)))
	}
	cluster, machine, config, secret := objects[0].Ref, objects[1].Ref, objects[2].Ref, objects[3].Ref
	there := make(map[object.Ref]types.UID)
	for _, o := range objects {
		there[o.Ref] = "there-" + o.UID
	}
	for _, o := range []mover.Outcome{
		mover.PreflightDone{Clusters: []string{"a"}},
		mover.BaselineRead{
			Objects: map[object.Ref]pause.Baseline{
				cluster: {UID: uid(cluster), Paused: object.False}, machine: {UID: uid(machine), Paused: object.False},
				config: {UID: uid(config)}, secret: {UID: uid(secret)},
			},
			Roots: []pause.Root{{Ref: cluster, UID: uid(cluster)}},
		},
		mover.Paused{},
		mover.AcksRead{New: map[object.Ref]pause.Signal{
			cluster: pause.ByCondition, machine: pause.ByCondition, config: pause.ThroughOwner, secret: pause.Assumed,
		}, Stable: true},
		mover.Drafted{Items: objects},
		mover.Created{Objects: there},
		mover.AllCreated{},
		mover.VerifyDone{},
		mover.Deleted{Objects: []object.Ref{cluster, machine, config, secret}},
		mover.SourceEmptied{},
		mover.PausesRestored{},
	} {
		if stepName(&s.state) == d.CmdArgs[0].Key {
			return
		}
		events, err := mover.Decide(&s.state, o, s.now)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		s.store(&b, events...)
	}
	if stepName(&s.state) != d.CmdArgs[0].Key {
		d.Fatalf(t, "no move reaches %q", d.CmdArgs[0].Key)
	}
}

// stepName returns the next step of a state as one word: "take-the-baseline".
func stepName(s *mover.State) string { return strings.ReplaceAll(string(mover.Next(s)), " ", "-") }

func (s *scenario) status() string {
	var b strings.Builder
	status := mover.Status(&s.state)
	bullet(&b, "message: %s", status.Message)
	bullet(&b, "next: %s", status.Next)
	c := status.Counts
	bullet(&b, "objects %d, acknowledged %d, created %d, deleted %d of %d, resumed %d of %d",
		c.Objects, c.Acknowledged, c.Created, c.Deleted, c.ToDelete, c.Resumed, c.ToResume)
	for _, w := range status.WaitingFor {
		bullet(&b, "waiting for %s: %s", w.Object, w.Message)
	}
	for _, f := range status.Findings {
		bullet(&b, "%s %s: %s (%s)", f.Severity, f.Field, f.Message, f.Remedy)
	}
	for _, w := range status.NotMoved {
		bullet(&b, "stays: %s: %s", w.Object, w.Message)
	}
	return b.String()
}

func spec(t *testing.T, d *datadriven.TestData) mover.Spec {
	t.Helper()
	s := mover.Spec{
		Namespace: "fleet", Name: "go", Clusters: []string{"a"},
		Target:      mover.Target{SecretName: "there", SecretKey: "value"},
		Acknowledge: mover.Duration(5 * time.Minute), Create: mover.Duration(30 * time.Minute), Resume: mover.Duration(10 * time.Minute),
		DryRun: d.HasArg("dry-run"), KeepFailed: d.HasArg("keep-failed"),
	}
	for _, f := range lines(d) {
		limit, err := time.ParseDuration(f[1])
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		if s.AckKinds == nil {
			s.AckKinds = make(map[string]mover.Duration)
		}
		s.AckKinds[object.Ref{Group: groupOf(f[0]), Kind: f[0]}.GroupKind()] = mover.Duration(limit)
	}
	return s
}

func outcomeOf(t *testing.T, d *datadriven.TestData) mover.Outcome {
	t.Helper()
	in := lines(d)
	all := func() []object.Ref {
		var refs []object.Ref
		for _, f := range in {
			for _, w := range f {
				refs = append(refs, ref(t, w))
			}
		}
		return refs
	}
	waits := func(skip int, fields [][]string) []mover.ObjectReason {
		var list []mover.ObjectReason
		for _, f := range fields {
			list = append(list, mover.ObjectReason{Ref: ref(t, f[skip]), Reason: strings.Join(f[skip+1:], " ")})
		}
		return list
	}
	switch d.Cmd {
	case "tick":
		return mover.Tick{}
	case "preflight":
		out := mover.PreflightDone{Clusters: []string{"a"}}
		for _, f := range in {
			out.Findings = append(out.Findings, mover.Finding{Severity: mover.Severity(f[0]), Field: f[1], Message: strings.Join(f[2:], " "), Remedy: "fix it"})
		}
		return out
	case "baseline": // Kind/name [False|True] [held] [found]
		out := mover.BaselineRead{Objects: make(map[object.Ref]pause.Baseline)}
		for _, f := range in {
			r := ref(t, f[0])
			said := pause.Baseline{UID: uid(r)}
			for _, truth := range []object.ConditionStatus{object.True, object.False} {
				if slices.Contains(f, string(truth)) {
					said.Paused = truth
				}
			}
			_, said.AlreadyPaused = option(f, "held")
			out.Objects[r] = said
			if pause.IsRoot(r) {
				_, found := option(f, "found")
				out.Roots = append(out.Roots, pause.Root{Ref: r, UID: uid(r), Found: found})
			}
		}
		return out
	case "paused":
		return mover.Paused{}
	case "acks": // new Kind/name signal | pending Kind/name why
		out := mover.AcksRead{New: make(map[object.Ref]pause.Signal), Stable: d.HasArg("stable")}
		for _, f := range in {
			if f[0] == "new" {
				out.New[ref(t, f[1])] = pause.Signal(f[2])
				continue
			}
			out.Pending = append(out.Pending, waits(1, [][]string{f})...)
		}
		return out
	case "drafted": // Kind/name [level=1] [cluster=a] [held] [kept] | left Kind/name why
		var out mover.Drafted
		for _, f := range in {
			if f[0] == "left" {
				out.Excluded = append(out.Excluded, waits(1, [][]string{f})...)
				continue
			}
			out.Items = append(out.Items, item(t, f))
		}
		return out
	case "created": // Kind/name [adopted]
		out := mover.Created{Objects: make(map[object.Ref]types.UID)}
		for _, f := range in {
			r := ref(t, f[0])
			out.Objects[r] = "there-" + uid(r)
			if _, adopted := option(f, "adopted"); adopted {
				out.Adopted = append(out.Adopted, r)
			}
		}
		return out
	case "create-starts":
		return mover.CreateStarted{}
	case "all-created":
		return mover.AllCreated{}
	case "unseen":
		return mover.CopiesUnacknowledged{Pending: waits(0, in)}
	case "verified":
		return mover.VerifyDone{Differences: waits(0, in)}
	case "deleted":
		return mover.Deleted{Objects: all()}
	case "all-deleted":
		return mover.SourceEmptied{}
	case "pauses-restored":
		return mover.PausesRestored{}
	case "resume": // Kind/name | pending Kind/name why
		var out mover.ResumeRead
		for _, f := range in {
			if f[0] == "pending" {
				out.Pending = append(out.Pending, waits(1, [][]string{f})...)
				continue
			}
			out.New = append(out.New, ref(t, f[0]))
		}
		return out
	case "removed":
		return mover.Removed{Objects: all()}
	case "target-cleared":
		return mover.TargetCleared{}
	case "source-restored":
		return mover.RolledBack{}
	case "fails":
		return mover.StepFailed{Message: strings.TrimSpace(d.Input), Next: "fix it", Final: d.HasArg("final"), Stranded: d.HasArg("stranded")}
	default:
		d.Fatalf(t, "no such command: %s", d.Cmd)
		return nil
	}
}

func uid(r object.Ref) types.UID { return types.UID("uid-" + r.Name) }

func item(t testing.TB, f []string) mover.Item {
	t.Helper()
	r := ref(t, f[0])
	out := mover.Item{Ref: r, Version: "v1beta2", UID: uid(r), ResourceVersion: "1", Cluster: "a"}
	if level, ok := option(f, "level"); ok {
		out.Level, _ = strconv.Atoi(level)
	}
	if v, ok := option(f, "uid"); ok {
		out.UID = types.UID(v)
	}
	_, out.PausedByUser = option(f, "held")
	if _, kept := option(f, "kept"); kept {
		out.KeepReason = "another cluster uses it"
	}
	return out
}

// eventText describes an event in one line.
func eventText(e mover.Event) string {
	name := strings.TrimPrefix(fmt.Sprintf("%T", e), "mover.")
	switch e := e.(type) {
	case mover.Claimed:
		return name + " by " + e.Holder
	case mover.PreflightPassed:
		return fmt.Sprintf("%s clusters %v, %d warnings", name, e.Clusters, len(e.Warnings))
	case mover.Refused:
		return fmt.Sprintf("%s %d findings, first: %s: %s", name, len(e.Findings), e.Findings[0].Field, e.Findings[0].Message)
	case mover.BaselineTaken:
		return name + " " + refTexts(slices.Collect(maps.Keys(e.Objects)))
	case mover.PauseIntended:
		var said []string
		for _, r := range e.Roots {
			said = append(said, fmt.Sprintf("%s found=%t", refText(r.Ref), r.Found))
		}
		return name + " " + strings.Join(said, ", ")
	case mover.Acknowledged:
		var said []string
		for _, r := range slices.SortedFunc(maps.Keys(e.Objects), object.Compare) {
			said = append(said, refText(r)+" "+string(e.Objects[r]))
		}
		return name + " " + strings.Join(said, ", ")
	case mover.Waiting:
		return fmt.Sprintf("%s for %d, first: %s: %s", name, e.Total, refText(e.For[0].Ref), e.For[0].Reason)
	case mover.PlanDrafted:
		return fmt.Sprintf("%s first=%t, %d objects", name, e.First, len(e.Items))
	case mover.Planned:
		return fmt.Sprintf("%s, %d left", name, len(e.Excluded))
	case mover.Created:
		said := name + " " + refTexts(slices.Collect(maps.Keys(e.Objects)))
		if len(e.Adopted) > 0 {
			said += ", adopted " + refTexts(e.Adopted)
		}
		return said
	case mover.Deleted:
		return name + " " + refTexts(e.Objects)
	case mover.Resumed:
		return name + " " + refTexts(e.Objects)
	case mover.Removed:
		return name + " " + refTexts(e.Objects)
	case mover.AbortRequested:
		return strings.TrimSpace(name + " " + e.Reason)
	case mover.AbortRefused:
		return name + ": " + e.Reason
	case mover.TransientFailure:
		return name + ": " + e.Message
	case mover.Failed:
		return name + ": " + e.Message
	case mover.RollbackStarted:
		return name + ": " + e.Reason
	default:
		return name
	}
}
