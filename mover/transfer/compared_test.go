package transfer

import (
	"context"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/mover"
)

// outcome is the effect of a move on an object.
type outcome string

// These are the fates of an object.
const (
	moves  outcome = "moves"
	copied outcome = "is copied and stays"
	stays  outcome = "stays"
)

func outcomeOf(there, here bool) outcome {
	switch {
	case there && here:
		return copied
	case there:
		return moves
	default:
		return stays
	}
}

// clusterPair has two management clusters that serve the kinds of random worlds.
type clusterPair struct {
	src, dst       *fakeAPI
	source, target *kube.Cluster
	empty          map[string]obj // objects of both clusters in addition to the world
}

func newClusterPair(t *testing.T) *clusterPair {
	t.Helper()
	a := &clusterPair{src: newFakeAPI(t), dst: newFakeAPI(t)}
	for _, side := range []*fakeAPI{a.src, a.dst} {
		for _, k := range realKinds() {
			side.extraKinds = append(side.extraKinds, k.fakeKind)
			labels := obj{}
			for _, l := range k.labels {
				labels[l] = ""
			}
			side.put(object.Ref{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: k.plural + "." + k.group}, obj{"metadata": obj{"labels": labels}})
		}
		for _, p := range providers() {
			side.put(object.Ref{Group: provider().group, Kind: "Provider", Namespace: p.namespace, Name: p.prefix},
				obj{"type": string(clusterctlv1.InfrastructureProviderType), "providerName": p.prefix, "version": "v1.0.0"})
		}
	}
	a.empty = maps.Clone(a.src.objects)
	a.source, a.target = a.src.cluster(t, "source"), a.dst.cluster(t, "target")
	return a
}

// preflightResult is scute's view of a move before it starts.
type preflightResult struct {
	members  map[object.Ref]mover.Member
	findings []mover.Finding
}

// preflight runs the preflight of a move of a selection in a world.
func (a *clusterPair) preflight(ctx context.Context, t testing.TB, w *randomCluster, spec mover.Spec) preflightResult {
	t.Helper()
	a.src.objects = maps.Clone(a.empty)
	for _, o := range w.objects {
		a.src.objects[w.kinds[o.ref.Kind].collection(o.ref.Namespace)+"/"+o.ref.Name] = o.object().Object
	}
	spec.Namespace, spec.Name = "fleet", "go"
	state := &mover.State{}
	for _, e := range []mover.Event{mover.Requested{Spec: spec, Home: mover.Home{Log: logID}}, mover.Claimed{Holder: "one"}} {
		state.Apply(e, time.Now())
	}
	tr := &Transfer{ID: moveID, Source: a.source, Dial: func(context.Context, mover.Spec) (*kube.Cluster, error) { return a.target, nil }}
	outcome, err := tr.preflight(ctx, state)
	if err != nil {
		t.Fatal(err)
	}
	done, ok := outcome.(mover.PreflightDone)
	if !ok {
		t.Fatalf("preflight = %+v, want PreflightDone", outcome)
	}
	members, _, err := tr.members(ctx, spec, everyKind)
	if err != nil {
		t.Fatal(err)
	}
	found := preflightResult{members: make(map[object.Ref]mover.Member), findings: done.Findings}
	for _, m := range members.Objects {
		found.members[m.Ref] = m
	}
	return found
}

func (a preflightResult) outcome(ref object.Ref) outcome {
	m, there := a.members[ref]
	return outcomeOf(there, !there || m.KeepReason != "")
}

// errorFindings returns the findings that are errors.
func (a preflightResult) errorFindings() (errors []mover.Finding) {
	for _, f := range a.findings {
		if f.Severity == mover.Error {
			errors = append(errors, f)
		}
	}
	return errors
}

// messages returns the messages of the findings that name an object.
func (a preflightResult) messages(ref object.Ref, severities ...mover.Severity) (messages []string) {
	for _, f := range a.findings {
		for _, text := range []string{f.Field, f.Message} {
			if at := strings.Index(text+" ", ref.String()); at >= 0 && slices.Contains(severities, f.Severity) && !isNamePrefix(text, at+len(ref.String())) {
				messages = append(messages, f.Message)
				break
			}
		}
	}
	return messages
}

// isNamePrefix reports whether a name continues at an index, so that the match is a prefix of another object's name.
func isNamePrefix(text string, at int) bool {
	return at < len(text) && (text[at] == '-' || text[at] >= 'a' && text[at] <= 'z' || text[at] >= '0' && text[at] <= '9')
}

// difference is a reason why scute treats an object differently from clusterctl. Each is a row of docs/move.md.
type difference struct {
	name string
	// applies reports whether the reason applies to an object with these fates.
	applies func(a preflightResult, o *randomObject, clusterctl, scute outcome) bool
}

func differences() []difference {
	ownedNotMoving := func(a preflightResult, o *randomObject) bool {
		return slices.ContainsFunc(o.owners, func(p *randomObject) bool { return a.outcome(p.ref) == stays })
	}
	labelled := func(o *randomObject) bool { // it, or an owner of it
		line := []*randomObject{o}
		for i := 0; i < len(line); i++ {
			if line[i].has("cluster.x-k8s.io/cluster-name") {
				return true
			}
			for _, p := range line[i].owners {
				if !slices.Contains(line, p) { // there are cycles of owners
					line = append(line, p)
				}
			}
		}
		return false
	}
	return []difference{
		{"refused", func(a preflightResult, o *randomObject, _, _ outcome) bool {
			return len(a.messages(o.ref, mover.Error)) > 0
		}},
		{"cluster label", func(_ preflightResult, o *randomObject, clusterctl, scute outcome) bool {
			return clusterctl == stays && scute != stays && labelled(o)
		}},
		{"named", func(a preflightResult, o *randomObject, clusterctl, scute outcome) bool {
			return clusterctl == stays && scute == copied && strings.HasPrefix(a.members[o.ref].KeepReason, "it is referenced by ")
		}},
		{"shared", func(a preflightResult, o *randomObject, clusterctl, scute outcome) bool {
			return clusterctl == moves && scute == copied
		}},
		{"owner that stays", func(a preflightResult, o *randomObject, clusterctl, scute outcome) bool {
			return clusterctl == stays && scute != stays && ownedNotMoving(a, o)
		}},
	}
}

// TestComparedWithClusterctl compares what scute and the library of clusterctl do with each object of random worlds in
// a move of the whole namespace. Each difference must have a reason in docs/move.md.
func TestComparedWithClusterctl(t *testing.T) {
	page, err := os.ReadFile("../../docs/move.md")
	if err != nil {
		t.Fatal(err)
	}
	seen, compared, stuck := make(map[string]int), 0, 0
	a := newClusterPair(t)
	rapid.Check(t, func(rt *rapid.T) {
		w := newRandomCluster(rt)
		limited, cancel := context.WithTimeout(t.Context(), 10*time.Second) // it retries permanent failures for minutes
		defer cancel()
		there, here, err := clusterctlMoves(limited, t, w)
		if err != nil && strings.Contains(err.Error(), "ClusterClass") {
			stuck++ // it cannot find a class to pause or to resume
			return
		}
		if err != nil {
			rt.Fatal(err)
		}
		compared++
		found := a.preflight(t.Context(), t, w, mover.Spec{All: true})
		for _, o := range w.objects {
			clusterctl, scute := outcomeOf(there[o.ref], here[o.ref]), found.outcome(o.ref)
			if clusterctl == scute {
				continue
			}
			i := slices.IndexFunc(differences(), func(d difference) bool { return d.applies(found, o, clusterctl, scute) })
			if i < 0 {
				rt.Fatalf("%s: with clusterctl it %s, with scute it %s, without a reason\n%s\n%s", o.ref, clusterctl, scute, w.describe(o), strings.Join(texts(found.findings), "\n"))
			}
			seen[differences()[i].name]++
		}
	})
	t.Logf("clusterctl fails in %d of %d worlds", stuck, stuck+compared)
	if stuck > compared/20 {
		t.Error("too few worlds were compared")
	}
	for _, d := range differences() {
		t.Logf("%s: %d objects", d.name, seen[d.name])
		if seen[d.name] == 0 && compared > 500 { // some are rare
			t.Errorf("no object differs for the reason %q", d.name)
		}
		if !strings.Contains(string(page), "\n| "+d.name+" |") {
			t.Errorf("docs/move.md has no row %q", d.name)
		}
	}
}

// TestNothingIsLostDoubledOrTaken moves some Clusters of random worlds. Unless the move is refused, the target must
// have everything that these Clusters need, or a finding must name it; the objects of other Clusters must stay; and no
// object with an active controller may be on both sides.
func TestNothingIsLostDoubledOrTaken(t *testing.T) {
	a := newClusterPair(t)
	moved, all := 0, 0
	why := make(map[string]int)
	rapid.Check(t, func(rt *rapid.T) {
		w := newRandomCluster(rt)
		spec, selected := mover.Spec{All: rapid.IntRange(0, 3).Draw(rt, "all") == 0}, make(map[string]bool)
		for _, c := range w.clusters {
			if c.ref.Namespace == "fleet" && (spec.All || c.ref.Name == "a" || rapid.Bool().Draw(rt, "too")) {
				selected["fleet/"+c.ref.Name] = true
				if !spec.All {
					spec.Clusters = append(spec.Clusters, c.ref.Name)
				}
			}
		}
		found := a.preflight(t.Context(), t, w, spec)
		all++
		if errors := found.errorFindings(); len(errors) > 0 {
			for _, f := range errors {
				why[f.Message]++
			}
			return // nothing is changed
		}
		moved++
		source := w.after(found)
		for _, o := range w.objects {
			there, here := found.outcome(o.ref) != stays, source[o]
			needed, neededHere := false, false
			for c := range o.users {
				needed, neededHere = needed || selected[c], neededHere || !selected[c]
			}
			wrong := ""
			switch {
			case !there && !here:
				wrong = "is lost: the garbage collector removes it at the source"
			case needed && !there && len(found.messages(o.ref, mover.Error, mover.Warning)) == 0:
				wrong = "is lost to a Cluster that moves, and no finding names it"
			case neededHere && !here:
				wrong = "is taken from a Cluster that stays"
			case there && here && o.active:
				wrong = "is on both sides"
			}
			if wrong != "" {
				rt.Fatalf("%s %s\nof %v, selected %v\n%s\n%s", o.ref, wrong, o.users, selected, w.describe(o), strings.Join(texts(found.findings), "\n"))
			}
		}
	})
	t.Logf("%d of %d moves are not refused; reasons: %v", moved, all, why)
	if moved < all/4 {
		t.Errorf("only %d of %d moves are not refused: the worlds are not varied enough", moved, all)
	}
}

// after returns the objects of the source after a move, once the garbage collector has removed objects that lost all
// owners. The move removes references to owners that leave from copied objects.
func (w *randomCluster) after(a preflightResult) map[*randomObject]bool {
	source := make(map[*randomObject]bool)
	for _, o := range w.objects {
		source[o] = a.outcome(o.ref) != moves
	}
	for again := true; again; {
		again = false
		for _, o := range w.objects {
			if source[o] && a.outcome(o.ref) != copied && len(o.owners) > 0 && !slices.ContainsFunc(o.owners, func(p *randomObject) bool { return source[p] }) {
				source[o], again = false, true
			}
		}
	}
	return source
}

func (w *randomCluster) describe(o *randomObject) string {
	u := o.object()
	unstructured.RemoveNestedField(u.Object, "status")
	raw, _ := u.MarshalJSON()
	return string(raw)
}

func texts(findings []mover.Finding) (list []string) {
	for _, f := range findings {
		list = append(list, string(f.Severity)+" "+f.Field+": "+f.Message)
	}
	return list
}
