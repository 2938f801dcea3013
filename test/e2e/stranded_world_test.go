package e2e

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/mover"
	"scute.dev/test/harness"
	"scute.dev/test/rotation"
	"scute.dev/test/scuted"
)

// changed is a case of TestWorldChanges: where the move is held, the change of the cluster, what the Move's status
// contains then, the solution, and how the move ends.
type changed struct {
	hold   string
	change func(ctx context.Context, t *testing.T, s *stranding, name string)
	says   string
	solve  func(ctx context.Context, t *testing.T, s *stranding, m *v1alpha1.Move)
	ends   func(ctx context.Context, t *testing.T, s *stranding, name string)
}

// TestWorldChanges changes the clusters of moves that are past Verified: a GitOps tool recreates a Cluster, the target
// is wiped, or the pause is removed. Each Move stops and names the next command. The test runs that command word for
// word, and the move ends.
func TestWorldChanges(t *testing.T) {
	ctx := harness.Deadline(t, 12*time.Minute)
	cases := rotation.Cases(t, 4, map[string]changed{
		// The class still exists, and the webhook of Cluster API refuses its deletion.
		"again-deleting": {"before 1 DELETE .*/clusterclasses/", makesAgain(asItWas), "uses ClusterClass", kubectl, succeeds},
		"again-paused":   {"before 1 DELETE .*/clusterclasses/", makesAgain(asPaused), "uses ClusterClass", kubectl, succeeds},
		// The class was deleted, and the webhook refuses every change of the Cluster.
		"again-empty":      {"after 1 source-emptied", makesAgain(asItWas), "the source again has objects of the move", kubectl, succeeds},
		"again-finalizers": {"after 1 source-emptied", makesAgain(withFinalizers), "the source again has objects of the move", classThenKubectl, succeeds},
		"late-secret":      {"after 1 move.verified", makesSecret, "were created after the plan was recorded", removesSecret, succeeds},
		"lifted":           {"after 1 DELETE .*/machines/", liftsPause, "were created after the plan was recorded", removesMachines, succeedsBesideAMachine},
		"wiped":            {"after 1 move.verified", wipes, "the target no longer has", resolvesBack, rollsBack},
		"wiped-deleting":   {"after 5 DELETE", wipes, "the target no longer has", abandons, keepsTheSource},
	})
	holds := make(map[string]string)
	for name, c := range cases {
		holds[name] = c.hold
	}
	s := strand(ctx, t, "world", namesOf(cases))
	s.guard.spare(s.ns("wiped-deleting")) // the test deletes these objects on both sides itself
	dir, err := shared.blue.NewLogDir()
	harness.Must(t, err)
	for name := range cases {
		s.move(ctx, t, name)
	}
	s.hold(ctx, t, dir, holds)
	for name, c := range cases {
		c.change(ctx, t, s, name)
	}
	s.daemon(t, dir)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			m := s.stranded(ctx, t, name, c.says)
			t.Logf("%s\nnext: %s", m.Status.Message, m.Status.Next)
			c.solve(ctx, t, s, m)
			c.ends(ctx, t, s, name)
		})
	}
	s.guard.clean(t)
}

func succeeds(ctx context.Context, t *testing.T, s *stranding, name string) {
	t.Helper()
	s.ends(ctx, t, name, mover.PhaseSucceeded)
}

func rollsBack(ctx context.Context, t *testing.T, s *stranding, name string) {
	t.Helper()
	s.ends(ctx, t, name, mover.PhaseRolledBack)
}

// succeedsBesideAMachine checks that the target has all objects. It does not check the cloud, because the source's
// controllers have created a machine there, which stays.
func succeedsBesideAMachine(ctx context.Context, t *testing.T, s *stranding, name string) {
	t.Helper()
	s.over(ctx, t, name, mover.PhaseSucceeded)
	s.active(ctx, t, name, shared.green)
}

// keepsTheSource checks that the remaining objects at the source still exist and are paused. Then it deletes them.
func keepsTheSource(ctx context.Context, t *testing.T, s *stranding, name string) {
	t.Helper()
	s.over(ctx, t, name, mover.PhaseFailed)
	after := objects(ctx, t, shared.blue, s.ns(name))
	if cluster := after["Cluster tiny"]; cluster == nil || active(cluster) || after["ClusterClass in-memory"] == nil {
		t.Errorf("%s: objects at the source = %v, want a paused Cluster with its class", name, names(after))
	}
	s.undisturbed(t, name)
	for _, u := range after {
		takeAway(ctx, t, shared.blue, u)
	}
}

// asItWas, withFinalizers and asPaused prepare a Cluster that another client recreates.
func asItWas(*unstructured.Unstructured) {}

func withFinalizers(u *unstructured.Unstructured) {
	u.SetFinalizers([]string{"cluster.cluster.x-k8s.io"})
}

func asPaused(u *unstructured.Unstructured) {
	_ = unstructured.SetNestedField(u.Object, true, "spec", "paused")
}

// makesAgain recreates the Cluster, as a GitOps tool does that has it in its repository.
func makesAgain(as func(*unstructured.Unstructured)) func(context.Context, *testing.T, *stranding, string) {
	return func(ctx context.Context, t *testing.T, s *stranding, name string) {
		t.Helper()
		was := s.before[name]["Cluster tiny"]
		topology, _, _ := unstructured.NestedMap(was.Object, "spec", "topology")
		u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"topology": topology}}}
		u.SetGroupVersionKind(was.GroupVersionKind())
		u.SetNamespace(was.GetNamespace())
		u.SetName(was.GetName())
		as(u)
		harness.Must(t, shared.blue.Side.Client().Create(ctx, u))
	}
}

// kubectl runs the commands in the Move's status.
func kubectl(ctx context.Context, t *testing.T, s *stranding, m *v1alpha1.Move) {
	t.Helper()
	said := kubectls.FindAllStringSubmatch(m.Status.Next, -1)
	if len(said) == 0 {
		t.Fatalf("%s: the status names no kubectl command: %s", m.Namespace, m.Status.Next)
	}
	for _, command := range said {
		does(ctx, t, command[1])
	}
}

// classThenKubectl recreates the ClusterClass, as the Move's status requests, and then runs the commands in the status.
func classThenKubectl(ctx context.Context, t *testing.T, s *stranding, m *v1alpha1.Move) {
	t.Helper()
	if !strings.Contains(m.Status.Next, "make ClusterClass.cluster.x-k8s.io "+m.Namespace+"/in-memory again") {
		t.Errorf("%s: the status does not request that the class is recreated: %s", m.Namespace, m.Status.Next)
	}
	class := &unstructured.Unstructured{}
	class.SetGroupVersionKind(clusters().GroupVersion().WithKind("ClusterClass"))
	harness.Must(t, shared.green.Side.Client().Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: "in-memory"}, class))
	again := &unstructured.Unstructured{Object: map[string]any{"spec": class.Object["spec"]}}
	again.SetGroupVersionKind(class.GroupVersionKind())
	again.SetNamespace(class.GetNamespace())
	again.SetName(class.GetName())
	harness.Must(t, shared.blue.Side.Client().Create(ctx, again))
	kubectl(ctx, t, s, m)
	for { // the webhook notices a little later that no Cluster uses the class
		err := client.IgnoreNotFound(shared.blue.Side.Client().Delete(ctx, again))
		if err == nil {
			return
		}
		if !apierrors.IsForbidden(err) || ctx.Err() != nil {
			t.Fatal(err)
		}
		pause(ctx, t, 100*time.Millisecond)
	}
}

// makesSecret creates a Secret that would be deleted together with the source's Cluster.
func makesSecret(ctx context.Context, t *testing.T, s *stranding, name string) {
	t.Helper()
	owner := metav1.OwnerReference{APIVersion: "cluster.x-k8s.io/v1beta2", Kind: "Cluster", Name: "tiny", UID: s.before[name]["Cluster tiny"].GetUID()}
	harness.Must(t, shared.blue.Side.Client().Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.ns(name), Name: "late", OwnerReferences: []metav1.OwnerReference{owner}},
	}))
}

func removesSecret(ctx context.Context, t *testing.T, _ *stranding, m *v1alpha1.Move) {
	t.Helper()
	harness.Must(t, shared.blue.Side.Client().Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: "late"}}))
}

// liftsPause removes the pause, and waits until the source's controllers have created a Machine to replace a deleted
// one.
func liftsPause(ctx context.Context, t *testing.T, s *stranding, name string) {
	t.Helper()
	pausedCluster(ctx, t, shared.blue, s.ns(name), "tiny", false)
	for len(late(ctx, t, s, name, "Machine ")) == 0 {
		pause(ctx, t, 100*time.Millisecond)
	}
}

// late returns the objects of a kind at the source that did not exist at the beginning.
func late(ctx context.Context, t *testing.T, s *stranding, name, kind string) []*unstructured.Unstructured {
	t.Helper()
	var found []*unstructured.Unstructured
	for key, u := range objects(ctx, t, shared.blue, s.ns(name)) {
		if s.before[name][key] == nil && strings.HasPrefix(key, kind) {
			found = append(found, u)
		}
	}
	return found
}

// removesMachines deletes the Machines that the Move names, and what they own, until the move ends. A MachineSet that
// has not noticed the pause yet creates one more.
func removesMachines(ctx context.Context, t *testing.T, s *stranding, m *v1alpha1.Move) {
	t.Helper()
	name := strings.TrimPrefix(m.Namespace, s.prefix+"-")
	s.wait(ctx, t, name, func(m *v1alpha1.Move) bool {
		for _, u := range late(ctx, t, s, name, "") {
			takeAway(ctx, t, shared.blue, u)
		}
		return scuted.Over(m)
	})
}

// wipes deletes every object of a case from the target, as an operator who mistakes it for a test cluster.
func wipes(ctx context.Context, t *testing.T, s *stranding, name string) {
	t.Helper()
	for {
		left := objects(ctx, t, shared.green, s.ns(name))
		if len(left) == 0 {
			return
		}
		for _, u := range left {
			takeAway(ctx, t, shared.green, u)
		}
	}
}

// takeAway deletes an object that is paused, and removes its finalizers. Controllers add none to an object that is
// being deleted.
func takeAway(ctx context.Context, t *testing.T, in *scuted.Installation, u *unstructured.Unstructured) {
	t.Helper()
	admin := in.Side.Client()
	err := admin.Delete(ctx, u)
	if apierrors.IsForbidden(err) {
		return // a ClusterClass: its Clusters are deleted first
	}
	harness.Must(t, client.IgnoreNotFound(err))
	none := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	harness.Must(t, client.IgnoreNotFound(admin.Patch(ctx, u.DeepCopy(), none)))
}

func resolvesBack(ctx context.Context, t *testing.T, s *stranding, m *v1alpha1.Move) {
	t.Helper()
	s.obeys(ctx, t, m, "--action back")
}

// abandons tries to roll back, which cannot keep every object, and then runs the command that the Move's status names.
func abandons(ctx context.Context, t *testing.T, s *stranding, m *v1alpha1.Move) {
	t.Helper()
	s.obeys(ctx, t, m, "--action back")
	s.obeys(ctx, t, s.stranded(ctx, t, strings.TrimPrefix(m.Namespace, s.prefix+"-"), "the move cannot go back"), "abandon")
}

var kubectls = regexp.MustCompile("`kubectl ([^`]*)`") //nolint:gochecknoglobals // compiled once

// does makes the change of a kubectl command at the source. Objects that do not exist are ignored.
func does(ctx context.Context, t *testing.T, args string) {
	t.Helper()
	words := regexp.MustCompile(`^(patch|delete) ([a-z]+)\.([a-z0-9.-]+) (\S+) -n (\S+) (.*)$`).FindStringSubmatch(args)
	if words == nil {
		t.Fatalf("kubectl %s: this test does not implement the command", args)
	}
	verb, flags := words[1], words[6]
	var resource schema.GroupVersionResource
	for known := range kinds(ctx, t, shared.blue) {
		if known.Resource == words[2] && known.Group == words[3] {
			resource = known
		}
	}
	admin, err := dynamic.NewForConfig(shared.blue.Side.Config())
	harness.Must(t, err)
	in := admin.Resource(resource).Namespace(words[5])
	patch, merges := strings.CutPrefix(flags, "--type merge -p '")
	switch {
	case verb == "delete" && flags == "--wait=false":
		background := metav1.DeletePropagationBackground
		err = in.Delete(ctx, words[4], metav1.DeleteOptions{PropagationPolicy: &background})
	case verb == "patch" && merges:
		_, err = in.Patch(ctx, words[4], types.MergePatchType, []byte(strings.TrimSuffix(patch, "'")), metav1.PatchOptions{})
	default:
		t.Fatalf("kubectl %s: this test does not implement the command", args)
	}
	if client.IgnoreNotFound(err) != nil {
		t.Fatalf("kubectl %s: %v", args, err)
	}
}
