package mover_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"scute.dev/kube/object"
	"scute.dev/mover"
)

func parse(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

const machineManifest = `
apiVersion: cluster.x-k8s.io/v1beta2
kind: Machine
metadata:
  name: a-1
  namespace: fleet
  uid: 0d1
  resourceVersion: "77"
  generation: 3
  generateName: a-
  creationTimestamp: "2026-05-01T12:00:00Z"
  selfLink: /apis/x
  managedFields: [{manager: capi-topology, operation: Apply}]
  labels: {cluster.x-k8s.io/cluster-name: a}
  annotations:
    mine: "yes"
    scute.dev/move: fleet/go/1
    scute.dev/touched: fleet/go/1
    clusterctl.cluster.x-k8s.io/delete-for-move: ""
  finalizers: [machine.cluster.x-k8s.io]
  ownerReferences:
  - {apiVersion: cluster.x-k8s.io/v1beta2, kind: MachineSet, name: a, uid: 0d0, controller: true, blockOwnerDeletion: true}
  - {apiVersion: v1, kind: ConfigMap, name: gone, uid: 0d9}
spec: {clusterName: a, version: v1.36.0}
status: {phase: Running}
`

func TestRewrite(t *testing.T) {
	source := parse(t, machineManifest)
	untouched := source.DeepCopy()
	owner := object.Observe(source).Owners[0]
	item := mover.Item{Ref: object.Observe(source).Ref, Owners: []object.Owner{owner}}
	uids := map[object.Ref]types.UID{owner.Ref: "there"}

	got, err := mover.Rewrite(source, item, map[string]string{object.MoveAnnotation: "fleet/go/2"}, uids)
	if err != nil {
		t.Fatal(err)
	}
	want := parse(t, `
apiVersion: cluster.x-k8s.io/v1beta2
kind: Machine
metadata:
  name: a-1
  namespace: fleet
  labels: {cluster.x-k8s.io/cluster-name: a}
  annotations: {mine: "yes", scute.dev/move: fleet/go/2}
  finalizers: [machine.cluster.x-k8s.io]
  ownerReferences:
  - {apiVersion: cluster.x-k8s.io/v1beta2, kind: MachineSet, name: a, uid: there, controller: true, blockOwnerDeletion: true}
spec: {clusterName: a, version: v1.36.0}
`)
	if diff := cmp.Diff(want.Object, got.Object); diff != "" {
		t.Errorf("Rewrite (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(untouched.Object, source.Object); diff != "" {
		t.Errorf("Rewrite changed the source object: %s", diff)
	}
	for _, missing := range []map[object.Ref]types.UID{nil, {owner.Ref: ""}} {
		if _, err := mover.Rewrite(source, item, map[string]string{object.MoveAnnotation: "fleet/go/2"}, missing); err == nil || !strings.Contains(err.Error(), "MachineSet") {
			t.Errorf("Rewrite with owners %v = %v, want an error with the owner", missing, err)
		}
	}
	if field, ok := mover.Contains(want, got); !ok {
		t.Errorf("Contains = false for field %s, want true", field)
	}
}

func TestRewriteOwnerOfTheCoreGroup(t *testing.T) {
	source := parse(t, machineManifest)
	owner := object.Observe(source).Owners[1]
	got, err := mover.Rewrite(source, mover.Item{Owners: []object.Owner{owner}}, map[string]string{object.MoveAnnotation: "m"}, map[object.Ref]types.UID{owner.Ref: "there"})
	if err != nil {
		t.Fatal(err)
	}
	if refs := got.GetOwnerReferences(); len(refs) != 1 || refs[0].APIVersion != "v1" || refs[0].Kind != "ConfigMap" {
		t.Errorf("owners = %+v, want the ConfigMap", refs)
	}
}

// TestContentHash checks that the hash covers what is copied: not what each server adds, nor scute's own annotations.
func TestContentHash(t *testing.T) {
	source := parse(t, machineManifest)
	hash := func(u *unstructured.Unstructured) string {
		t.Helper()
		h, err := mover.ContentHash(u)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	copied, err := mover.Rewrite(source, mover.Item{}, map[string]string{object.MoveAnnotation: "another"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if hash(source) != hash(copied) {
		t.Error("hash of the copy differs from that of its source")
	}
	for _, change := range []func(*unstructured.Unstructured){
		func(u *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(u.Object, "v1.37.0", "spec", "version")
		},
		func(u *unstructured.Unstructured) { _ = unstructured.SetNestedField(u.Object, true, "spec", "paused") },
		func(u *unstructured.Unstructured) { u.SetLabels(nil) },
		func(u *unstructured.Unstructured) { u.SetAnnotations(map[string]string{"mine": "no"}) },
		func(u *unstructured.Unstructured) { u.SetFinalizers(nil) },
	} {
		changed := source.DeepCopy()
		change(changed)
		if hash(changed) == hash(source) {
			t.Errorf("hash did not change for %v", changed.Object)
		}
	}
	for kind, want := range map[string]bool{
		"apiVersion: v1\nkind: Secret\ndata: {k: djE=}":                      false,
		"apiVersion: v1\nkind: ConfigMap\ndata: {k: v}":                      true,
		"apiVersion: other.io/v1\nkind: Secret\nspec: {not: the core group}": true,
	} {
		if got := hash(parse(t, kind)) != ""; got != want {
			t.Errorf("hashed: %t, want %t, for %s", got, want, kind)
		}
	}
}

func TestContains(t *testing.T) {
	for _, c := range []struct{ name, want, have, field string }{
		{"the same", "spec: {a: 1, b: [x, {c: true}]}", "spec: {a: 1, b: [x, {c: true}]}", ""},
		{"the target defaulted more", "spec: {a: 1}", "spec: {a: 1, b: 2}\nstatus: {x: y}", ""},
		{"a field is missing", "spec: {a: 1}", "spec: {}", ".spec.a"},
		{"everything is missing", "spec: {a: {b: 1}}", "{}", ".spec.a.b"},
		{"another value", "spec: {a: {b: 1}}", "spec: {a: {b: 2}}", ".spec.a.b"},
		{"another type", `spec: {a: "1"}`, "spec: {a: 1}", ".spec.a"},
		{"a map for a string", `spec: {a: "map[b:c]"}`, "spec: {a: {b: c}}", ".spec.a"},
		{"a string for a map", "spec: {a: {b: c}}", "spec: {a: x}", ".spec.a.b"},
		{"false is not absent", "spec: {a: false}", "spec: {}", ".spec.a"},
		{"the first difference by name", "spec: {z: 1, a: 1, m: 1}", "spec: {}", ".spec.a"},
		{"null and empty are absent", `spec: {a: null, b: {}, c: [], d: ""}`, "{}", ""},
		{"null is not a value to hold", "spec: {a: null}", "spec: {a: 1}", ""},
		{"an empty map holds anything", "spec: {a: {}}", "spec: {a: {b: 1}}", ""},
		{"an empty list does not", "spec: {a: []}", "spec: {a: [1]}", ".spec.a"},
		{"a longer list", "spec: {a: [1]}", "spec: {a: [1, 2]}", ".spec.a"},
		{"another element", "spec: {a: [1, {b: 2}]}", "spec: {a: [1, {b: 3}]}", ".spec.a[1].b"},
		{"another order", "spec: {a: [1, 2]}", "spec: {a: [2, 1]}", ".spec.a[0]"},
		{"a quantity in another notation", `spec: {a: 1000m, b: 1Gi, c: "1"}`, `spec: {a: "1", b: 1024Mi, c: 1000m}`, ""},
		{"another quantity", "spec: {a: 1000m}", `spec: {a: "2"}`, ".spec.a"},
		{"a version is no quantity", `spec: {a: "1.30"}`, `spec: {a: "1.3"}`, ".spec.a"},
		{"a duration in another notation", "spec: {a: 10m, b: 1h}", "spec: {a: 10m0s, b: 60m0s}", ""},
		{"another duration", "spec: {a: 10m}", "spec: {a: 11m0s}", ".spec.a"},
		{"data is what it is", "data: {a: 1000m}", `data: {a: "1"}`, ".data.a"},
		{"finalizers are the target's", "metadata: {finalizers: [a]}", "metadata: {finalizers: [b]}", ""},
		{"labels are added", "metadata: {labels: {a: b}}", "metadata: {labels: {a: b, c: d}}", ""},
		{"labels are lost", "metadata: {labels: {a: b}}", "metadata: {labels: {c: d}}", ".metadata.labels.a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			want, have := parse(t, c.want), parse(t, c.have)
			before := want.DeepCopy()
			field, ok := mover.Contains(want, have)
			if ok != (c.field == "") || field != c.field {
				t.Errorf("got %q, %t, want %q", field, ok, c.field)
			}
			if diff := cmp.Diff(before.Object, want.Object); diff != "" {
				t.Errorf("Contains changed its argument: %s", diff)
			}
		})
	}
	// The number is decoded as an integer on one side and as a float on the other.
	want := &unstructured.Unstructured{Object: map[string]any{"n": int64(3)}}
	have := &unstructured.Unstructured{Object: map[string]any{"n": float64(3)}}
	if field, ok := mover.Contains(want, have); !ok {
		t.Errorf("Contains = false for field %s, want true for equal numbers", field)
	}
}

// TestRewriteProperty checks, for any object, that a copy contains itself and has the same hash as its source.
func TestRewriteProperty(t *testing.T) {
	text := rapid.StringMatching(`[a-z]{0,4}`)
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		leaves := []*rapid.Generator[any]{
			rapid.Just[any](nil), rapid.Bool().AsAny(), rapid.Int64Range(-3, 3).AsAny(), text.AsAny(),
		}
		if depth > 0 {
			leaves = append(leaves,
				rapid.MapOfN(text, value(depth-1), 0, 3).AsAny(),
				rapid.SliceOfN(value(depth-1), 0, 3).AsAny())
		}
		return rapid.OneOf(leaves...)
	}
	rapid.Check(t, func(t *rapid.T) {
		u := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "x.io/v1", "kind": "Thing",
			"metadata": map[string]any{"name": "n", "uid": "u"},
			"spec":     value(3).Draw(t, "spec"), "status": value(2).Draw(t, "status"),
		}}
		copied, err := mover.Rewrite(u, mover.Item{}, map[string]string{object.MoveAnnotation: "m"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if field, ok := mover.Contains(copied, copied); !ok {
			t.Fatalf("the copy does not contain itself: %s", field)
		}
		a, errA := mover.ContentHash(u)
		b, errB := mover.ContentHash(copied)
		if errA != nil || errB != nil || a != b {
			t.Fatalf("hashes %s and %s (errors %v and %v)", a, b, errA, errB)
		}
	})
}
