package transfer

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/mover/archive"
	"scute.dev/pause"
	"scute.dev/pause/hold"
)

func definitionOf(plural string) object.Ref {
	return object.Ref{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: plural}
}

// withHost creates a host of Metal3 that Cluster a uses, without owners as Metal3 leaves it, and the Secret of its
// controller.
func withHost(f *fakeAPI, labels obj) (host, secret object.Ref) {
	f.identities = true
	f.put(definitionOf("baremetalhosts.metal3.io"), obj{"metadata": obj{"labels": labels}})
	host = object.Ref{Group: "metal3.io", Kind: "BareMetalHost", Namespace: "fleet", Name: "host-0"}
	secret = object.Ref{Kind: "Secret", Namespace: "fleet", Name: "host-0-bmc"}
	uid := f.put(host, obj{
		"metadata": obj{"labels": obj{object.ClusterNameLabel: "a"}},
		"spec":     obj{"consumerRef": obj{"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "Metal3Machine", "name": "a-0", "namespace": "fleet"}},
	})
	f.put(secret, obj{"metadata": obj{"labels": obj{object.ClusterNameLabel: "a"}, "ownerReferences": []any{
		obj{"apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost", "name": "host-0", "uid": string(uid)},
	}}})
	return host, secret
}

// TestHostsGoWithTheirCluster checks that moves and backups of a Cluster or of a namespace include its hosts, whether
// or not their kind has the label to move with its hierarchy. The move waits until Metal3's provider has paused them.
func TestHostsGoWithTheirCluster(t *testing.T) {
	for name, c := range map[string]struct {
		labels obj
		spec   mover.Spec
	}{
		"by name":                 {obj{"clusterctl.cluster.x-k8s.io": ""}, mover.Spec{Namespace: "fleet", Clusters: []string{"a"}}},
		"by name, of a hierarchy": {obj{"clusterctl.cluster.x-k8s.io": "", object.MoveHierarchyLabel: ""}, mover.Spec{Namespace: "fleet", Clusters: []string{"a"}}},
		"all":                     {obj{"clusterctl.cluster.x-k8s.io": ""}, mover.Spec{Namespace: "fleet", All: true}},
	} {
		t.Run(name, func(t *testing.T) {
			f := moved(t, mover.Paused{})
			host, secret := withHost(f.src, c.labels)
			f.state.Spec = c.spec
			if err := f.transfer.connect(t.Context(), c.spec, "", false); err != nil {
				t.Fatal(err)
			}
			members, w, err := f.transfer.members(t.Context(), c.spec, everyKind)
			if err != nil {
				t.Fatal(err)
			}
			p := &scope{Transfer: f.transfer, spec: c.spec, members: members, snapshot: w}
			found, err := p.checkObjects(t.Context())
			graph, errGraph := p.checkGraph(t.Context())
			left, errLeft := p.checkDependents(t.Context())
			if err := errors.Join(err, errGraph, errLeft); err != nil {
				t.Fatal(err)
			}
			for _, one := range slices.Concat(found, graph, left) {
				if strings.Contains(one.Field, "host-0") {
					t.Errorf("unexpected finding about the host: %+v", one)
				}
			}
			var moves []object.Ref
			for _, m := range members.Objects {
				if moves = append(moves, m.Ref); m.KeepReason != "" {
					t.Errorf("%s is kept at the source: %s", m.Ref, m.KeepReason)
				}
			}
			if !slices.Contains(moves, host) || !slices.Contains(moves, secret) {
				t.Errorf("the host or its Secret does not move: %v", moves)
			}
			acks := f.acks()
			if !slices.ContainsFunc(acks.Pending, func(w mover.ObjectReason) bool {
				return w.Ref == host && strings.Contains(w.Reason, object.HostPausedAnnotation)
			}) {
				t.Errorf("the host is not waited for: %+v", acks)
			}
			f.src.merge(host, obj{"metadata": obj{"annotations": obj{object.HostPausedAnnotation: "metal3.io/capm3"}}})
			if acks := f.acks(); acks.New[host] == "" {
				t.Errorf("the host is still waited for: %+v", acks)
			}

			f.src.merge(f.cluster, obj{"metadata": obj{"annotations": nil}, "spec": obj{"paused": nil}})
			writer, err := archive.Create(filepath.Join(t.TempDir(), "backup"), nil)
			if err != nil {
				t.Fatal(err)
			}
			b := &Backup{Source: f.src.cluster(t, "source"), Selection: selection(c.spec), Writer: writer}
			index, _, err := b.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var kept []object.Ref
			for _, e := range index.Objects {
				kept = append(kept, e.Ref)
			}
			if diff := cmp.Diff(moves, kept); diff != "" {
				t.Errorf("objects of the backup differ from those of the move: %s", diff)
			}
		})
	}
}

// acks reads the acknowledgements once.
func (f *fakes) acks() mover.AcksRead {
	f.t.Helper()
	outcome, err := f.transfer.awaitAcks(f.t.Context(), f.state)
	if err != nil {
		f.t.Fatal(err)
	}
	seen, ok := outcome.(mover.AcksRead)
	if !ok {
		f.t.Fatalf("%T", outcome)
	}
	return seen
}

// TestWhatBelongsAndIsLeftIsRefused checks that a move and a backup are refused if they would leave an object of a
// Cluster.
func TestWhatBelongsAndIsLeftIsRefused(t *testing.T) {
	f := moved(t, mover.Claimed{})
	f.src.merge(f.cluster, obj{"metadata": obj{"annotations": nil}, "spec": obj{"paused": nil}})
	host, _ := withHost(f.src, obj{"clusterctl.cluster.x-k8s.io": ""})
	f.src.merge(host, obj{"metadata": obj{"ownerReferences": []any{obj{"apiVersion": "v1", "kind": "Rack", "name": "r", "uid": "gone"}}}})
	refused := func(list []mover.Finding) bool {
		return slices.ContainsFunc(list, func(one mover.Finding) bool {
			return one.Severity == mover.Error && one.Field == host.String() && strings.Contains(one.Remedy, object.MoveLabel)
		})
	}
	outcome, err := f.transfer.preflight(t.Context(), f.state)
	if err != nil {
		t.Fatal(err)
	}
	if done, _ := outcome.(mover.PreflightDone); !refused(done.Findings) {
		t.Errorf("the preflight of a move does not refuse it: %+v", outcome)
	}
	writer, err := archive.Create(filepath.Join(t.TempDir(), "backup"), nil)
	if err != nil {
		t.Fatal(err)
	}
	b := &Backup{Source: f.src.cluster(t, "source"), Selection: selection(f.state.Spec), Writer: writer}
	_, _, err = b.Run(t.Context())
	if r, ok := err.(*RefusedError); !ok || !refused(r.Findings) { //nolint:errorlint // it is not wrapped
		t.Errorf("Backup.Run = %v, want a refusal", err)
	}
}

// TestADefinitionBlocksItsKind checks that annotation block-move on a CustomResourceDefinition blocks all objects of
// the kind until it is removed.
func TestADefinitionBlocksItsKind(t *testing.T) {
	f := moved(t, mover.Paused{})
	for _, ref := range []object.Ref{f.cluster, f.machine} {
		f.src.merge(ref, obj{"status": obj{"conditions": []any{obj{"type": "Paused", "status": "True"}}}})
	}
	if err := f.transfer.connect(t.Context(), f.state.Spec, "", false); err != nil {
		t.Fatal(err)
	}
	blocked := func(value any) {
		f.src.merge(definitionOf("machines.cluster.x-k8s.io"), obj{"metadata": obj{"annotations": obj{object.BlockMoveAnnotation: value}}})
	}
	blocked("")
	seen := f.acks()
	if len(seen.Pending) != 1 || seen.Pending[0].Ref != f.machine || !strings.Contains(seen.Pending[0].Reason, "CustomResourceDefinition") || seen.New[f.cluster] == "" {
		t.Errorf("with the annotation: %+v, want the Machine pending", seen)
	}
	blocked(nil)
	if seen := f.acks(); len(seen.Pending) > 0 {
		t.Errorf("without the annotation: %+v, want none pending", seen)
	}
}

// TestADefinitionGivesItsKindTime checks that a move and a pause use the timeout for acknowledgements in a kind's
// definition, and reject an invalid one.
func TestADefinitionGivesItsKindTime(t *testing.T) {
	f := moved(t, mover.Claimed{})
	f.src.merge(f.cluster, obj{"metadata": obj{"annotations": nil}, "spec": obj{"paused": nil}})
	annotate := func(value string) {
		f.src.merge(definitionOf("machines.cluster.x-k8s.io"), obj{"metadata": obj{"annotations": obj{object.AcknowledgeTimeoutAnnotation: value}}})
	}
	kind := f.machine.GroupKind()
	annotate("15m")
	if err := f.transfer.connect(t.Context(), f.state.Spec, "", false); err != nil {
		t.Fatal(err)
	}
	outcome, err := f.transfer.baseline(t.Context(), f.state)
	if err != nil {
		t.Fatal(err)
	}
	if seen, _ := outcome.(mover.BaselineRead); len(seen.AckKinds) != 1 || time.Duration(seen.AckKinds[kind]) != 15*time.Minute {
		t.Errorf("baseline = %+v, want a timeout of 15m", outcome)
	}
	graph, err := NewGraph(t.Context(), f.transfer.Source, selection(f.state.Spec))
	if err != nil {
		t.Fatal(err)
	}
	p := hold.NewPause(f.transfer.Source, graph, hold.RunHolder("r"))
	if found, err := p.Inspect(t.Context(), nil); err != nil || found.AckKinds[kind] != pause.Duration(15*time.Minute) {
		t.Errorf("Look found %v, error %v, want a timeout of 15m", found.AckKinds, err)
	}

	for _, wrong := range []string{"soon", "0s", "-5m"} {
		annotate(wrong)
		if _, err := p.Inspect(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "machines.cluster.x-k8s.io") {
			t.Errorf("timeout %s: Look = %v, want an error", wrong, err)
		}
		f.transfer.sourceTypes = nil
		outcome, err := f.transfer.preflight(t.Context(), f.state)
		if err != nil {
			t.Fatal(err)
		}
		done, _ := outcome.(mover.PreflightDone)
		if !slices.ContainsFunc(done.Findings, func(one mover.Finding) bool {
			return one.Severity == mover.Error && strings.Contains(one.Message, "machines.cluster.x-k8s.io") && strings.Contains(one.Message, wrong)
		}) {
			t.Errorf("timeout %s: no finding of the move: %+v", wrong, done.Findings)
		}
	}
}
