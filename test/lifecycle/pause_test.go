package lifecycle

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/kube/object"
	"scute.dev/test/harness"
	"scute.dev/test/testbed"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
	"scute.dev/workflow/tasks/pause"
)

func ownConfig(side *testbed.Side) func() (*rest.Config, error) {
	return func() (*rest.Config, error) { return side.Config(), nil }
}

// pausedCluster returns whether a Cluster is paused, and the annotation with the holder.
func pausedCluster(ctx context.Context, t *testing.T, namespace, name string) (paused bool, mark string) {
	t.Helper()
	c := &clusterv1.Cluster{}
	harness.Must(t, blue().Client().Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, c))
	return ptr.Deref(c.Spec.Paused, false), c.Annotations[object.PauseAnnotation]
}

func wantPaused(ctx context.Context, t *testing.T, namespace string, want map[string]bool, marked bool) {
	t.Helper()
	for name, paused := range want {
		got, mark := pausedCluster(ctx, t, namespace, name)
		if got != paused || (mark != "") != marked {
			t.Errorf("Cluster %s: paused %t with annotation %q, want paused %t, annotated %t", name, got, mark, paused, marked)
		}
	}
}

// twoClusters creates two clusters. A user pauses the second one.
func twoClusters(ctx context.Context, t *testing.T, namespace string) {
	t.Helper()
	for _, name := range []string{"a", "b"} {
		_, err := blue().CreateCluster(ctx, testbed.Tiny(namespace, name))
		harness.Must(t, err)
	}
	for _, name := range []string{"a", "b"} {
		harness.Must(t, blue().WaitAvailable(ctx, namespace, name))
	}
	c := &clusterv1.Cluster{}
	c.Namespace, c.Name = namespace, "b"
	harness.Must(t, blue().Client().Patch(ctx, c, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"paused":true}}`)), client.FieldOwner("a-user")))
}

type pauseOutput struct {
	Holder string `json:"holder"`
	Roots  []struct {
		Ref   object.Ref `json:"ref"`
		Found bool       `json:"found"`
		By    string     `json:"pausedBy"`
	} `json:"roots"`
	Acknowledged map[string]int `json:"acknowledged"`
	Settled      []string       `json:"settled"`
}

func TestPauseOfClusters(t *testing.T) {
	ctx := harness.Deadline(t, 5*time.Minute)
	const namespace = "paused"
	twoClusters(ctx, t, namespace)
	s := &step{t: t, kind: &pause.Kind{Clusters: clusters()}, namespace: namespace, name: "hold", with: map[string]any{"all": true}}

	t.Run("a death between the record and the pause", func(t *testing.T) {
		s.recorded = func() error { return errDeath }
		if err := s.run(ctx); err == nil {
			t.Fatal("the attempt continued after its record failed")
		}
		wantPaused(ctx, t, namespace, map[string]bool{"a": false, "b": true}, false)
		harness.Must(t, s.undoes(ctx)) // nothing to undo
		wantPaused(ctx, t, namespace, map[string]bool{"a": false, "b": true}, false)
		s.recorded = nil
	})
	t.Run("a death between the pause and its acknowledgement", func(t *testing.T) {
		dying, die := context.WithCancel(ctx)
		s.progress = func(string) { die() }
		if err := s.run(dying); err == nil {
			t.Log("everything was acknowledged before the attempt was interrupted")
		}
		die()
		s.progress = nil
		wantPaused(ctx, t, namespace, map[string]bool{"a": true, "b": true}, true)
	})
	t.Run("the next attempt", func(t *testing.T) {
		harness.Must(t, s.run(ctx))
		wantPaused(ctx, t, namespace, map[string]bool{"a": true, "b": true}, true)
		var out pauseOutput
		harness.Must(t, json.Unmarshal(s.output, &out))
		t.Logf("%s", s.output)
		if len(out.Roots) != 2 || len(out.Acknowledged) == 0 || out.Acknowledged["condition"] < 5 {
			t.Errorf("output = %+v, want 2 roots and acknowledgements", out)
		}
		for _, root := range out.Roots {
			if root.Found != (root.Ref.Name == "b") || root.Found && root.By != "a-user" {
				t.Errorf("root = %+v", root)
			}
		}
		for _, m := range machines(ctx, t, namespace, "a") {
			if !conditionTrue(m, clusterv1.PausedCondition) {
				t.Errorf("Machine %s is not paused", m.Name)
			}
		}
	})
	t.Run("another run keeps off", func(t *testing.T) {
		other := &step{t: t, kind: &pause.Kind{Clusters: clusters()}, namespace: namespace, name: "other", with: map[string]any{"clusters": []string{"a"}}}
		if err := other.run(ctx); err == nil {
			t.Error("a second task paused the same cluster")
		} else {
			t.Log(err)
		}
		harness.Must(t, other.undoes(ctx))
		wantPaused(ctx, t, namespace, map[string]bool{"a": true, "b": true}, true)
	})
	r := &step{t: t, kind: &pause.ResumeKind{Clusters: clusters()}, namespace: namespace, name: "resume", with: map[string]any{"task": "hold"}, inputs: map[string]json.RawMessage{"hold": s.output}}
	t.Run("resume, and its undo", func(t *testing.T) {
		harness.Must(t, r.run(ctx))
		wantPaused(ctx, t, namespace, map[string]bool{"a": false, "b": true}, false)
		harness.Must(t, blue().WaitAvailable(ctx, namespace, "a"))
		harness.Must(t, r.undoes(ctx))
		wantPaused(ctx, t, namespace, map[string]bool{"a": true, "b": true}, true)
	})
	t.Run("undo restores what was found, twice", func(t *testing.T) {
		harness.Must(t, s.undoes(ctx))
		wantPaused(ctx, t, namespace, map[string]bool{"a": false, "b": true}, false)
		harness.Must(t, blue().WaitAvailable(ctx, namespace, "a")) // unpaused, and the Machines too
		harness.Must(t, s.undoes(ctx))
		wantPaused(ctx, t, namespace, map[string]bool{"a": false, "b": true}, false)
	})
	t.Run("as the run's ServiceAccount, with what the documentation names", func(t *testing.T) {
		admin := blue().Client()
		harness.Must(t, admin.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "runner"}}))
		subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "runner", Namespace: namespace}}
		harness.Must(t, admin.Create(ctx, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "runner"}, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"cluster.x-k8s.io", "infrastructure.cluster.x-k8s.io", "controlplane.cluster.x-k8s.io", "bootstrap.cluster.x-k8s.io", "addons.cluster.x-k8s.io", "ipam.cluster.x-k8s.io", "runtime.cluster.x-k8s.io"},
			Resources: []string{"*"}, Verbs: []string{"get", "list", "patch"},
		}}}))
		harness.Must(t, admin.Create(ctx, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "runner"}, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "runner"}}))
		as := &step{t: t, kind: &pause.Kind{Clusters: &access.Clusters{Own: ownConfig(blue())}}, namespace: namespace, name: "as", account: "runner", with: map[string]any{"all": true}}
		if err := as.run(ctx); !task.IsFinal(err) {
			t.Errorf("run without a permission = %v, want a final error", err)
		} else {
			t.Log(err)
		}
		harness.Must(t, admin.Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "see-definitions"}, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, Verbs: []string{"list"},
		}}}))
		harness.Must(t, admin.Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "see-definitions"}, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "see-definitions"}}))
		harness.Allowed(ctx, t, admin, "system:serviceaccount:"+namespace+":runner",
			authorizationv1.ResourceAttributes{Verb: "list", Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"})
		harness.Allowed(ctx, t, admin, "system:serviceaccount:"+namespace+":runner",
			authorizationv1.ResourceAttributes{Namespace: namespace, Verb: "patch", Group: "cluster.x-k8s.io", Resource: "clusters"})
		harness.Must(t, as.run(ctx))
		wantPaused(ctx, t, namespace, map[string]bool{"a": true, "b": true}, true)
		harness.Must(t, as.undoes(ctx))
		wantPaused(ctx, t, namespace, map[string]bool{"a": false, "b": true}, false)
	})
	t.Run("a cluster that is not there", func(t *testing.T) {
		none := &step{t: t, kind: &pause.Kind{Clusters: clusters()}, namespace: namespace, name: "none", with: map[string]any{"clusters": []string{"nobody"}}}
		if err := none.run(ctx); err == nil {
			t.Error("pausing an unknown cluster succeeded, want an error")
		} else {
			t.Log(err)
		}
	})
}

func machines(ctx context.Context, t *testing.T, namespace, cluster string) []clusterv1.Machine {
	t.Helper()
	list := &clusterv1.MachineList{}
	harness.Must(t, blue().Client().List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: cluster}))
	if len(list.Items) == 0 {
		t.Fatal("no Machines")
	}
	return list.Items
}

func conditionTrue(m clusterv1.Machine, name string) bool {
	for _, c := range m.Status.Conditions {
		if c.Type == name {
			return c.Status == "True"
		}
	}
	return false
}
