package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/mover"
	"scute.dev/test/harness"
	"scute.dev/test/rotation"
	"scute.dev/test/scuted"
)

// between is a case of TestBetweenSteps: a change between two steps of a move while the daemon is stopped, and the
// expected end of the move.
type between struct {
	// prepare runs before the Move is created. It may be nil.
	prepare func(ctx context.Context, t *testing.T, s *stranding, name string)
	hold    string
	change  func(ctx context.Context, t *testing.T, s *stranding, name string)
	ends    func(ctx context.Context, t *testing.T, s *stranding, name string)
}

const (
	hookAnnotation  = "pre-drain.delete.hook.machine.cluster.x-k8s.io/test"
	blockAnnotation = "clusterctl.cluster.x-k8s.io/block-move"
	lateFinalizer   = "example.org/late"
)

// TestBetweenSteps changes the source or the target between two steps of a move, before objects are deleted at the
// source. New objects are moved, or the move is rolled back. No deletion is lost, and existing objects on the target
// are not changed.
func TestBetweenSteps(t *testing.T) {
	ctx := harness.Deadline(t, 12*time.Minute)
	cases := rotation.Cases(t, 4, map[string]between{
		// The source's controllers create a Machine after the preflight has checked all of them.
		"machine-made":    {nil, "after 1 move.preflight-passed", scalesUp, succeeds},
		"machine-deleted": {hooked, "after 1 move.preflight-passed", deletesMachine, isStillDeleting},
		// The copies exist already, so the deletion could be lost together with the original.
		"machine-deleted-late": {hooked, "after 1 move.all-created", deletesMachine, isStillDeleting},
		"blocked":              {nil, "after 1 move.all-acknowledged", blocksForAMoment, succeeds},
		"finalizers":           {nil, "after 1 move.verified", addsFinalizers, succeeds},
		"stranger":             {nil, "after 1 move.planned", makesStranger, leavesStranger},
		"record":               {hasResourceSets, "after 1 POST .*/clusters", awaitsRecord, hasOneRecord},
		"cargo":                {loads, "after 5 DELETE", nil, hasCargo},
		"webhook":              {loadsMuch, "after 1 move.preflight-passed", refusesOne, rollsBack},
	})
	holds := make(map[string]string)
	for name, c := range cases {
		holds[name] = c.hold
	}
	s := strand(ctx, t, "between", namesOf(cases))
	for name, c := range cases {
		if c.prepare != nil {
			c.prepare(ctx, t, s, name)
			s.before[name] = objects(ctx, t, shared.blue, s.ns(name))
		}
	}
	for _, name := range []string{"machine-deleted", "machine-deleted-late"} {
		s.guard.spare(s.ns(name)) // the source's controllers replace the machine that the test deletes
	}
	dir, err := shared.blue.NewLogDir()
	harness.Must(t, err)
	for name := range cases {
		s.move(ctx, t, name)
	}
	s.hold(ctx, t, dir, holds)
	for name, c := range cases {
		if c.change != nil {
			c.change(ctx, t, s, name)
		}
	}
	s.daemon(t, dir)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { c.ends(ctx, t, s, name) })
	}
	s.guard.clean(t)
}

// scalesUp waits until the new machine has a Node, because a half-made machine is refused: see
// TestTheSourceIsJudgedAgainWhenThePlanIsMade.
func scalesUp(ctx context.Context, t *testing.T, s *stranding, name string) {
	t.Helper()
	scaleWorkers(ctx, t, shared.blue, s.ns(name), "tiny", 2)
	s.before[name] = objects(ctx, t, shared.blue, s.ns(name))
	s.mark = shared.bed.Cloud().Mark()
}

// worker returns a worker Machine of a case.
func worker(ctx context.Context, t *testing.T, on *scuted.Installation, ns string) *unstructured.Unstructured {
	t.Helper()
	for name, u := range objects(ctx, t, on, ns) {
		if strings.HasPrefix(name, "Machine ") && u.GetLabels()[clusterv1.MachineDeploymentNameLabel] != "" {
			return u
		}
	}
	t.Fatalf("no worker Machine in namespace %s", ns)
	return nil
}

// hooked sets a pre-drain hook on a worker, so that it still exists after it was deleted.
func hooked(ctx context.Context, t *testing.T, s *stranding, name string) {
	t.Helper()
	annotate(ctx, t, shared.blue, worker(ctx, t, shared.blue, s.ns(name)), hookAnnotation, "owner")
}

func deletesMachine(ctx context.Context, t *testing.T, s *stranding, name string) {
	t.Helper()
	harness.Must(t, shared.blue.Side.Client().Delete(ctx, worker(ctx, t, shared.blue, s.ns(name))))
}

// isStillDeleting checks that the move was rolled back, that the Machine is still being deleted with its hook, and that
// it disappears when the hook is removed.
func isStillDeleting(ctx context.Context, t *testing.T, s *stranding, name string) {
	t.Helper()
	over := s.over(ctx, t, name, mover.PhaseRolledBack)
	if !strings.Contains(over.Status.Message, "it is being deleted") {
		t.Errorf("%s: message = %s, want one about the deletion", name, over.Status.Message)
	}
	if left := objects(ctx, t, shared.green, s.ns(name)); len(left) > 0 {
		t.Errorf("%s: objects remain on the target: %v", name, names(left))
	}
	for key, u := range s.before[name] {
		if u.GetAnnotations()[hookAnnotation] == "" {
			continue
		}
		now := objects(ctx, t, shared.blue, s.ns(name))[key]
		if now == nil || now.GetUID() != u.GetUID() || now.GetDeletionTimestamp() == nil || now.GetAnnotations()[hookAnnotation] == "" {
			t.Fatalf("%s: %s is not being deleted, or lost its hook: %v", name, key, now)
		}
		annotate(ctx, t, shared.blue, now, hookAnnotation, nil)
		waitGone(ctx, t, shared.blue, now)
	}
	harness.Must(t, shared.blue.Side.WaitAvailable(ctx, s.ns(name), "tiny"))
	untouched(t, objects(ctx, t, shared.blue, s.ns(name)))
}

// blocksForAMoment sets the block-move annotation late, as a provider may. The daemon waits until it is removed.
func blocksForAMoment(ctx context.Context, t *testing.T, s *stranding, name string) {
	t.Helper()
	release := annotation(ctx, t, shared.blue, s.ns(name), "DevCluster", blockAnnotation)
	released := make(chan struct{})
	t.Cleanup(func() { <-released })
	go func() {
		defer close(released)
		_, err := shared.blue.Wait(ctx, s.ns(name), "go", func(m *v1alpha1.Move) bool {
			return scuted.Over(m) || strings.Contains(m.Status.Message, blockAnnotation)
		})
		if err != nil {
			t.Error(err)
			return
		}
		release()
	}()
}

// addsFinalizers adds finalizers during the pause, as a controller that ignores the pause does (cluster-api #11812).
func addsFinalizers(ctx context.Context, t *testing.T, s *stranding, name string) {
	t.Helper()
	for _, key := range []string{"Secret tiny-ca", "Cluster tiny", "DevCluster "} {
		for found, u := range objects(ctx, t, shared.blue, s.ns(name)) {
			if strings.HasPrefix(found, key) {
				raw := fmt.Appendf(nil, `{"metadata":{"finalizers":["%s"]}}`, strings.Join(append(u.GetFinalizers(), lateFinalizer), `","`))
				harness.Must(t, shared.blue.Side.Client().Patch(ctx, u, client.RawPatch("application/merge-patch+json", raw)))
			}
		}
	}
}

// stranger returns a different Cluster with the same name.
func stranger(ns string) *unstructured.Unstructured {
	u := clusterObject("tiny")
	u.SetNamespace(ns)
	u.Object["spec"] = map[string]any{
		"paused":            true,
		"infrastructureRef": map[string]any{"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevCluster", "name": "another"},
	}
	return u
}

// makesStranger creates the stranger on the target after the preflight.
func makesStranger(ctx context.Context, t *testing.T, s *stranding, name string) {
	t.Helper()
	admin, u := shared.green.Side.Client(), stranger(s.ns(name))
	harness.Must(t, client.IgnoreAlreadyExists(admin.Create(ctx, namespace(u.GetNamespace()))))
	harness.Must(t, admin.Create(ctx, u))
}

func leavesStranger(ctx context.Context, t *testing.T, s *stranding, name string) {
	t.Helper()
	over := s.over(ctx, t, name, mover.PhaseRolledBack)
	if !strings.Contains(over.Status.Message, "already exists on the target and is different") {
		t.Errorf("%s: message = %s, want one about the other Cluster on the target", name, over.Status.Message)
	}
	there := objects(ctx, t, shared.green, s.ns(name))
	u := there["Cluster tiny"]
	if len(there) != 1 || u == nil || u.GetDeletionTimestamp() != nil || active(u) {
		t.Fatalf("%s: the stranger was changed; objects on the target: %v", name, names(there))
	}
	untouched(t, there)
	takeAway(ctx, t, shared.green, u)
	s.active(ctx, t, name, shared.blue)
	s.undisturbed(t, name)
}

// hasResourceSets creates the same ClusterResourceSet on both sides, as a GitOps tool does. Its controller writes a
// record for each Cluster that it selects, even if the Cluster is paused.
func hasResourceSets(ctx context.Context, t *testing.T, s *stranding, name string) {
	t.Helper()
	ns := s.ns(name)
	harness.Must(t, client.IgnoreAlreadyExists(shared.green.Side.Client().Create(ctx, namespace(ns))))
	for _, side := range []*scuted.Installation{shared.blue, shared.green} {
		admin := side.Side.Client()
		harness.Must(t, admin.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "cni"},
			Data:       map[string]string{"cm.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: cni, namespace: default}}"},
		}))
		set := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
			"clusterSelector": map[string]any{"matchLabels": map[string]any{"cni": "yes"}},
			"resources":       []any{map[string]any{"kind": "ConfigMap", "name": "cni"}},
		}}}
		set.SetGroupVersionKind(addonsv1.GroupVersion.WithKind("ClusterResourceSet"))
		set.SetNamespace(ns)
		set.SetName("cni")
		harness.Must(t, admin.Create(ctx, set))
		cleanup(t, func(ctx context.Context) error { return client.IgnoreNotFound(admin.Delete(ctx, set)) })
	}
	label := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"cni":"yes"}}}`))
	harness.Must(t, shared.blue.Side.Client().Patch(ctx, s.before[name]["Cluster tiny"].DeepCopy(), label))
	harness.Await(ctx, t, "the set is recorded at the source", func() string { return recorded(ctx, t, shared.blue, ns) })
}

// recorded returns "" if the record of the case's Cluster names exactly one set, and otherwise the difference.
func recorded(ctx context.Context, t *testing.T, on *scuted.Installation, ns string) string {
	t.Helper()
	record := objects(ctx, t, on, ns)["ClusterResourceSetBinding tiny"]
	if record == nil {
		return "there is no record"
	}
	bindings, _, _ := unstructured.NestedSlice(record.Object, "spec", "bindings")
	if len(bindings) != 1 {
		return fmt.Sprintf("the record has %d sets", len(bindings))
	}
	return ""
}

// awaitsRecord waits until the target's controller has written its record, before the move creates one.
func awaitsRecord(ctx context.Context, t *testing.T, s *stranding, name string) {
	t.Helper()
	harness.Await(ctx, t, "the set is recorded on the target", func() string { return recorded(ctx, t, shared.green, s.ns(name)) })
}

func hasOneRecord(ctx context.Context, t *testing.T, s *stranding, name string) {
	t.Helper()
	s.over(ctx, t, name, mover.PhaseSucceeded)
	s.active(ctx, t, name, shared.green)
	if wrong := recorded(ctx, t, shared.green, s.ns(name)); wrong != "" {
		t.Error(wrong)
	}
	harness.Await(ctx, t, "only the set is left at the source", func() string {
		left := names(objects(ctx, t, shared.blue, s.ns(name)))
		if slices.Equal(left, []string{"ClusterResourceSet cni"}) {
			return ""
		}
		return fmt.Sprint(left)
	})
	s.undisturbed(t, name)
}

// loads creates objects of the cluster that a move could easily lose or change.
func loads(ctx context.Context, t *testing.T, s *stranding, name string) {
	t.Helper()
	hooked(ctx, t, s, name)
	admin, ns := shared.blue.Side.Client(), s.ns(name)
	of := map[string]string{clusterv1.ClusterNameLabel: "tiny"}
	stale := clusterOwners(ctx, t, shared.blue, ns, "tiny")
	stale[0].APIVersion = "cluster.x-k8s.io/v1alpha4" // no longer served
	for _, secret := range []*corev1.Secret{
		{ObjectMeta: metav1.ObjectMeta{Name: "tiny-apiserver-etcd-client", Labels: of}},
		{ObjectMeta: metav1.ObjectMeta{Name: "immutable", Labels: of}, Immutable: ptr.To(true)},
		{ObjectMeta: metav1.ObjectMeta{GenerateName: "generated-", Labels: of}},
		{ObjectMeta: metav1.ObjectMeta{Name: "stale", Labels: of, OwnerReferences: stale}},
	} {
		secret.Namespace, secret.StringData = ns, map[string]string{"k": "v"}
		harness.Must(t, admin.Create(ctx, secret))
	}
}

// hasCargo checks that every object is on the target with its content, labels and annotations.
func hasCargo(ctx context.Context, t *testing.T, s *stranding, name string) {
	t.Helper()
	succeeds(ctx, t, s, name)
	after := objects(ctx, t, shared.green, s.ns(name))
	for key, was := range s.before[name] {
		now := after[key]
		if now == nil {
			continue // succeeds reports it
		}
		for _, field := range []string{"data", "immutable"} {
			if !mapsEqual(was, now, field) {
				t.Errorf("%s: %s changed", key, field)
			}
		}
		if was.GetKind() == "Secret" && !maps.Equal(was.GetLabels(), now.GetLabels()) || now.GetAnnotations()[hookAnnotation] != was.GetAnnotations()[hookAnnotation] {
			t.Errorf("%s: labels %v, annotations %v, want those of the source", key, now.GetLabels(), now.GetAnnotations())
		}
	}
	owners := after["Secret stale"].GetOwnerReferences()
	if cluster := after["Cluster tiny"]; len(owners) != 1 || owners[0].UID != cluster.GetUID() || owners[0].APIVersion != cluster.GetAPIVersion() {
		t.Errorf("owners of a Secret whose reference had an unserved version = %+v, want the Cluster in its served version", owners)
	}
}

func mapsEqual(a, b *unstructured.Unstructured, field string) bool {
	return fmt.Sprint(a.Object[field]) == fmt.Sprint(b.Object[field])
}

// loadsMuch adds 1,000 Secrets to the cluster.
func loadsMuch(ctx context.Context, t *testing.T, s *stranding, name string) {
	t.Helper()
	owners := clusterOwners(ctx, t, shared.blue, s.ns(name), "tiny")
	for i := range 1000 {
		harness.Must(t, shared.blue.Side.Client().Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: s.ns(name), Name: fmt.Sprintf("s-%04d", i+1), OwnerReferences: owners, Labels: map[string]string{clusterv1.ClusterNameLabel: "tiny"},
		}}))
	}
}

// refusesOne makes the target refuse Secret 700, which it accepted in the dry run.
func refusesOne(ctx context.Context, t *testing.T, s *stranding, name string) {
	t.Helper()
	refuseNamed(ctx, t, shared.green, s.ns(name), "secrets", "s-0700", &corev1.Secret{})
}
