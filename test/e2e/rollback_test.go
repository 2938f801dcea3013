package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/mover"
	"scute.dev/test/harness"
	"scute.dev/test/scuted"
	"scute.dev/test/testbed"
)

// TestRollback moves to a target that refuses one of the last objects. The target's namespace does not exist, so the
// preflight cannot find the problem. The move is rolled back completely, also if the daemon is killed at any write.
func TestRollback(t *testing.T) {
	ctx := harness.Deadline(t, 10*time.Minute)
	stage := func(t *testing.T, ns string) {
		shared.cluster(ctx, t, shared.blue, testbed.Tiny(ns, "tiny"))
		harness.Must(t, shared.blue.PutTarget(ctx, ns, shared.green))
		refuse(ctx, t, shared.green, ns)
	}
	t.Run("undisturbed", func(t *testing.T) {
		const ns = "refused"
		stage(t, ns)
		before := objects(ctx, t, shared.blue, ns)
		w := shared.witness(ctx, t)
		harness.Daemon(t, shared.blue, scuted.DaemonOptions{})
		over := move(ctx, t, shared.blue, scuted.NewMove(ns, "refused", shared.green, "tiny"))
		if over.Status.Phase != mover.PhaseRolledBack || !strings.Contains(over.Status.Message, "DevMachine") {
			t.Fatalf("phase = %s, want RolledBack: %s", over.Status.Phase, over.Status.Message)
		}
		asBefore(ctx, t, ns, before, w)
	})
	t.Run("killed", func(t *testing.T) {
		const ns = "refused-and-killed"
		stage(t, ns)
		m := scuted.NewMove(ns, "refused-and-killed", shared.green, "tiny")
		sweep(ctx, t, sweepOptions{from: shared.blue, to: shared.green, move: m, faults: share(t, scuted.EveryWrite("move")), workers: "1", phase: mover.PhaseRolledBack})
	})
}

// TestAbort checks that an operator can roll a move back while an object does not acknowledge the pause.
func TestAbort(t *testing.T) {
	ctx := harness.Deadline(t, 6*time.Minute)
	const ns = "aborted"
	shared.cluster(ctx, t, shared.blue, testbed.Tiny(ns, "tiny"))
	harness.Must(t, shared.blue.PutTarget(ctx, ns, shared.green))
	before := objects(ctx, t, shared.blue, ns)
	w := shared.witness(ctx, t)
	harness.Daemon(t, shared.blue, scuted.DaemonOptions{})

	// A provider that still has work to finish sets this annotation (cluster-api issue 8473).
	hold := annotation(ctx, t, shared.blue, ns, "DevCluster", "clusterctl.cluster.x-k8s.io/block-move")
	m := scuted.NewMove(ns, "aborted", shared.green, "tiny")
	harness.Must(t, shared.blue.Create(ctx, m))
	waiting, err := shared.blue.Wait(ctx, ns, m.Name, func(m *v1alpha1.Move) bool {
		return m.Status.Phase == mover.PhaseAwaitingAcks && len(m.Status.WaitingFor) == 1
	})
	harness.Must(t, err)
	if w := waiting.Status.WaitingFor[0]; !strings.Contains(w.Object, "DevCluster") || !strings.Contains(w.Message, "block-move") {
		t.Errorf("the move waits for %v, want the blocked DevCluster", w)
	}
	admin, err := shared.blue.Client()
	harness.Must(t, err)
	patch := client.MergeFrom(waiting.DeepCopy())
	waiting.Spec.Abort = true
	harness.Must(t, admin.Patch(ctx, waiting, patch))
	over, err := shared.blue.Wait(ctx, ns, m.Name, scuted.Over)
	harness.Must(t, err)
	if over.Status.Phase != mover.PhaseRolledBack {
		t.Errorf("phase = %s, want RolledBack: %s", over.Status.Phase, over.Status.Message)
	}
	hold()
	asBefore(ctx, t, ns, before, w)

	t.Run("a timeout does the same", func(t *testing.T) {
		hold := annotation(ctx, t, shared.blue, ns, "DevCluster", "clusterctl.cluster.x-k8s.io/block-move")
		m := scuted.NewMove(ns, "timed-out", shared.green, "tiny")
		m.Spec.Timeouts.AcknowledgeKinds = map[string]v1alpha1.Duration{"DevCluster.infrastructure.cluster.x-k8s.io": {Duration: 2 * time.Second}}
		over := move(ctx, t, shared.blue, m)
		if over.Status.Phase != mover.PhaseRolledBack || !strings.Contains(over.Status.Message, "DevCluster") {
			t.Errorf("phase = %s, want RolledBack: %s", over.Status.Phase, over.Status.Message)
		}
		hold()
		asBefore(ctx, t, ns, before, w)
	})
	t.Run("a user's pause survives", func(t *testing.T) { userPause(ctx, t, ns) })
}

// userPause checks that a Cluster that the user paused is moved and stays paused.
func userPause(ctx context.Context, t *testing.T, ns string) {
	pausedCluster(ctx, t, shared.blue, ns, "tiny", true)
	over := move(ctx, t, shared.blue, scuted.NewMove(ns, "paused-by-user", shared.green, "tiny"))
	if over.Status.Phase != mover.PhaseSucceeded {
		t.Fatalf("phase = %s, want Succeeded: %s", over.Status.Phase, over.Status.Message)
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(clusters().GroupVersion().WithKind("Cluster"))
	harness.Must(t, shared.green.Side.Client().Get(ctx, client.ObjectKey{Namespace: ns, Name: "tiny"}, u))
	if paused, _, _ := unstructured.NestedBool(u.Object, "spec", "paused"); !paused {
		t.Error("the move removed the user's pause")
	}
	pausedCluster(ctx, t, shared.green, ns, "tiny", false)
	harness.Must(t, shared.green.Side.WaitAvailable(ctx, ns, "tiny"))
}

// asBefore checks that a move that was rolled back left the source unchanged and the target empty.
func asBefore(ctx context.Context, t *testing.T, ns string, before map[string]*unstructured.Unstructured, w *witness) {
	t.Helper()
	harness.Must(t, shared.blue.Side.WaitAvailable(ctx, ns, "tiny"))
	after := objects(ctx, t, shared.blue, ns)
	untouched(t, after)
	for name, u := range before {
		if have := after[name]; have == nil || have.GetUID() != u.GetUID() {
			t.Errorf("%s was deleted or recreated at the source", name)
		}
	}
	if left := objects(ctx, t, shared.green, ns); len(left) > 0 {
		t.Errorf("objects remain on the target: %v", names(left))
	}
	w.clean(ctx, t)
}

// refuse makes a side refuse new DevMachines in a namespace.
func refuse(ctx context.Context, t *testing.T, on *scuted.Installation, ns string) {
	t.Helper()
	refuseNamed(ctx, t, on, ns, "devmachines", "", devMachine())
}

// refuseNamed makes a side refuse new objects of a resource in a namespace until the test ends: all of them, or the one
// with the name. A policy takes effect, and ends, shortly after the write. refuseNamed waits for this with a similar
// object in another namespace, because the test's namespace may not exist yet.
func refuseNamed(ctx context.Context, t *testing.T, on *scuted.Installation, ns, resource, object string, like client.Object) {
	t.Helper()
	admin, name := on.Side.Client(), "refuse-"+resource+"-in-"+ns
	expression := "object.metadata.namespace != '" + ns + "'"
	if object != "" {
		expression += " || object.metadata.name != '" + object + "'"
	}
	like.SetNamespace(metav1.NamespaceDefault)
	like.SetName(name)
	acts := func(ctx context.Context, want bool) {
		harness.Await(ctx, t, fmt.Sprintf("policy %s acts: %t", name, want), func() string {
			err := admin.Create(ctx, like.DeepCopyObject().(client.Object), client.DryRunAll) //nolint:forcetypeassert // it was one
			if want && apierrors.IsInvalid(err) || !want && err == nil {
				return ""
			}
			return fmt.Sprint("the answer is ", err)
		})
	}
	match := admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{admissionv1.Create},
		Rule:       admissionv1.Rule{APIGroups: []string{like.GetObjectKind().GroupVersionKind().Group}, APIVersions: []string{"*"}, Resources: []string{resource}},
	}}}}
	lift := harness.Policy(ctx, t, admin, name, match,
		admissionv1.Validation{Expression: expression, Message: "no more " + resource + " here"},
		admissionv1.Validation{Expression: "object.metadata.name != '" + name + "'", Message: "the policy acts"})
	cleanup(t, func(ctx context.Context) error {
		err := lift(ctx)
		acts(ctx, false)
		return err
	})
	acts(ctx, true)
}
