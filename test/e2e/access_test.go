package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/mover"
	"scute.dev/test/harness"
	"scute.dev/test/scuted"
	"scute.dev/test/testbed"
)

// TestAccess compares the permissions that the chart's roles grant with the requests in the API servers' audit logs. A
// move that is rolled back and one that succeeds are never denied a request, and use every permission that they have.
func TestAccess(t *testing.T) {
	ctx := harness.Deadline(t, 6*time.Minute)
	const ns = "access"
	shared.cluster(ctx, t, shared.blue, testbed.Tiny(ns, "tiny"))
	harness.Must(t, shared.blue.PutTarget(ctx, ns, shared.green))
	// With finalizers, because the move patches an object at the source only if it has finalizers.
	beside := metav1.ObjectMeta{
		Namespace: ns, Name: "beside", Finalizers: []string{"example.org/kept"},
		Labels: map[string]string{"clusterctl.cluster.x-k8s.io/move": "", "cluster.x-k8s.io/cluster-name": "tiny"},
	}
	harness.Must(t, shared.blue.Side.Client().Create(ctx, &corev1.ConfigMap{ObjectMeta: beside}))
	harness.Must(t, shared.blue.Side.Client().Create(ctx, &corev1.Secret{ObjectMeta: beside}))
	source, target := auditTrail(t, shared.blue), auditTrail(t, shared.green)
	dir, err := shared.blue.NewLogDir()
	harness.Must(t, err)
	start := func() *scuted.Daemon { return harness.Daemon(t, shared.blue, scuted.DaemonOptions{LogDir: dir}) }
	d := start()

	t.Run("a permission that is missing is named", func(t *testing.T) {
		lack(ctx, t, "delete", "machines") // no other role of the chart grants it
		over := move(ctx, t, shared.blue, scuted.NewMove(ns, "lacks", shared.green, "tiny"))
		isRefused(t, over, []v1alpha1.MoveFinding{finding("source", "may not delete Machine.cluster.x-k8s.io", "grant delete on machines.cluster.x-k8s.io")})
	})
	t.Run("rolled back", func(t *testing.T) {
		refuse(ctx, t, shared.green, ns)
		if over := move(ctx, t, shared.blue, scuted.NewMove(ns, "refused", shared.green, "tiny")); over.Status.Phase != mover.PhaseRolledBack {
			t.Fatalf("phase = %s, want RolledBack: %s", over.Status.Phase, over.Status.Message)
		}
	})
	t.Run("gone without a finalizer", func(t *testing.T) {
		admin := shared.blue.Side.Client()
		own, err := shared.blue.Client()
		harness.Must(t, err)
		m, p := scuted.NewMove(ns, "gone", shared.green, "tiny"), &v1alpha1.Pause{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "gone"}, Spec: v1alpha1.PauseSpec{Clusters: []string{"none"}}}
		harness.Must(t, own.Create(ctx, p))
		harness.Must(t, own.Create(ctx, m))
		paused := func() bool {
			var c clusterv1.Cluster
			harness.Must(t, admin.Get(ctx, client.ObjectKey{Namespace: ns, Name: "tiny"}, &c))
			return c.Spec.Paused != nil && *c.Spec.Paused
		}
		harness.Await(ctx, t, "both have begun", func() string {
			err := errors.Join(own.Get(ctx, client.ObjectKeyFromObject(p), p), own.Get(ctx, client.ObjectKeyFromObject(m), m))
			if err != nil || len(p.Status.WaitingFor) == 0 || m.Status.Phase == "" {
				return fmt.Sprint("they have not: ", err)
			}
			return ""
		})
		harness.Must(t, d.Stop(ctx))
		for _, o := range []client.Object{m, p} {
			harness.Must(t, own.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
			harness.Must(t, own.Delete(ctx, o))
		}
		d = start()
		harness.Await(ctx, t, "the daemon asks whether they are gone, and ends what they asked for", func() string {
			asked := source.requests(t, func(r request) bool { return ofDaemon(r) && r.Verb == "get" && r.ObjectRef.Name == "gone" })
			if len(asked) < 2 || paused() {
				return fmt.Sprint("it does not: ", asked)
			}
			return ""
		})
	})
	// The target has the namespace now, so the preflight tries every object.
	if over := move(ctx, t, shared.blue, scuted.NewMove(ns, "moved", shared.green, "tiny")); over.Status.Phase != mover.PhaseSucceeded {
		t.Fatalf("phase = %s, want Succeeded: %s", over.Status.Phase, over.Status.Message)
	}
	pausesAndResumes(ctx, t, ns)
	schedules(ctx, t, ns)
	s := workflowStage(ctx, t, "access-run")
	s.run(ctx, t, "made", v1alpha1.RunSucceeded, "tasks:\n"+apply("a", configMap("made", "1"), ""))
	harness.Must(t, d.Stop(ctx))

	account := "system:serviceaccount:access-run:" + s.account
	asAccount := source.requests(t, ofTasks)
	if len(asAccount) == 0 {
		t.Error("no task used its ServiceAccount")
	}
	for _, r := range asAccount {
		if r.ImpersonatedUser.Username != account {
			t.Errorf("task acted as %s: %s", r.ImpersonatedUser.Username, r)
		}
	}
	asDaemon, asTarget := source.requests(t, ofDaemon), target.requests(t, onTarget)
	t.Logf("%d requests at the source, %d at the target", len(asDaemon), len(asTarget))
	for _, r := range slices.Concat(asDaemon, asTarget) {
		if r.ResponseStatus.Code == 401 || r.ResponseStatus.Code == 403 {
			t.Errorf("request was denied: %s", r)
		}
	}
	admin := shared.blue.Side.Client()
	daemonRole, targetRole, lease := &rbacv1.ClusterRole{}, &rbacv1.ClusterRole{}, &rbacv1.Role{}
	harness.Must(t, admin.Get(ctx, client.ObjectKey{Name: "scute-daemon"}, daemonRole))
	harness.Must(t, admin.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: "scute-lease"}, lease))
	harness.Must(t, shared.green.Side.Client().Get(ctx, client.ObjectKey{Name: "scute-move-target"}, targetRole))
	allUsed(t, "ClusterRole scute-daemon", daemonRole.Rules, asDaemon,
		"patch events.events.k8s.io", // for an event that repeats: a move has none
		"list backupschedules.scute.dev",
		"list moves.scute.dev", // for API servers that do not support streaming lists
		"list pauses.scute.dev",
		"list workflowruns.scute.dev",
		"impersonate serviceaccounts") // not a separate request: asAccount proves it
	allUsed(t, "Role scute-lease", lease.Rules, asDaemon)
	allUsed(t, "ClusterRole scute-move-target", targetRole.Rules, asTarget,
		"update a provider's resource", "update configmaps/finalizers", "update secrets/finalizers", // checked by admission, not requested
		"get secrets", // if a name is taken, and if there are few: this cluster has so many that they are listed
		"list extensionconfigs.runtime.cluster.x-k8s.io") // if the event log was lost: see TestLogLost
}

// schedules creates a suspended BackupSchedule, waits until it has a status, and deletes it.
func schedules(ctx context.Context, t *testing.T, namespace string) {
	t.Helper()
	c, err := shared.blue.Client()
	harness.Must(t, err)
	b := &v1alpha1.BackupSchedule{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "suspended"}, Spec: v1alpha1.BackupScheduleSpec{
		Schedule: "0 3 * * *", Suspend: true, Clusters: v1alpha1.BackupSelection{All: true},
		Destination: v1alpha1.BackupDestination{Volume: &v1alpha1.BackupVolume{}}, Encryption: v1alpha1.BackupEncryption{Plaintext: true},
	}}
	harness.Must(t, c.Create(ctx, b))
	harness.Await(ctx, t, "the BackupSchedule has a status", func() string {
		now := &v1alpha1.BackupSchedule{}
		if err := c.Get(ctx, client.ObjectKeyFromObject(b), now); err != nil {
			return err.Error()
		}
		if now.Status.ObservedGeneration == 0 {
			return "it has none"
		}
		return ""
	})
	harness.Must(t, c.Delete(ctx, b))
}

// pausesAndResumes creates a Pause of a Cluster that does not exist, waits until its status names the Cluster, and
// deletes it.
func pausesAndResumes(ctx context.Context, t *testing.T, namespace string) {
	t.Helper()
	c, err := shared.blue.Client()
	harness.Must(t, err)
	p := &v1alpha1.Pause{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "held"}, Spec: v1alpha1.PauseSpec{Clusters: []string{"none"}}}
	harness.Must(t, c.Create(ctx, p))
	eventually := func(what string, is func(err error, now *v1alpha1.Pause) bool) {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			now := &v1alpha1.Pause{}
			if is(c.Get(ctx, client.ObjectKeyFromObject(p), now), now) {
				return
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				t.Fatalf("timed out waiting until the Pause %s: %+v", what, now.Status)
			}
		}
	}
	eventually("shows what it waits for", func(_ error, now *v1alpha1.Pause) bool { return len(now.Status.WaitingFor) == 1 })
	harness.Must(t, c.Delete(ctx, p))
	eventually("is gone", func(err error, _ *v1alpha1.Pause) bool { return apierrors.IsNotFound(err) })
}

// allUsed checks that every verb on every resource of a role was used. The resources of providers count together,
// because no cluster has objects of all of them.
func allUsed(t *testing.T, role string, rules []rbacv1.PolicyRule, requests []request, except ...string) {
	t.Helper()
	used, granted := make(map[string]bool), make(map[string]bool)
	ofProvider := func(group string) bool {
		return strings.HasSuffix(group, "cluster.x-k8s.io") && group != "runtime.cluster.x-k8s.io" && group != "clusterctl.cluster.x-k8s.io" ||
			strings.HasSuffix(group, "metal3.io") || group == "k0smotron.io" || group == "kamaji.clastix.io" || group == "kubevirt.io"
	}
	for _, r := range requests {
		used[r.Verb+" "+r.resource()] = true
		if ofProvider(r.ObjectRef.Group) {
			used[r.Verb+" a provider's resource"] = true
		}
	}
	for _, rule := range rules {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				name := verb + " " + resource
				switch group := rule.APIGroups[0]; {
				case ofProvider(group):
					name = verb + " a provider's resource"
				case group != "":
					name += "." + group
				}
				granted[name] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(granted)) {
		if strings.Contains(name, "*") {
			t.Errorf("%s grants a wildcard: %s", role, name)
		}
		if !used[name] && !slices.Contains(except, name) {
			t.Errorf("%s grants an unused permission: %s", role, name)
		}
	}
}

// lack removes a verb on a resource from the daemon's role until the test ends.
func lack(ctx context.Context, t *testing.T, verb, resource string) {
	t.Helper()
	admin := shared.blue.Side.Client()
	set := func(ctx context.Context, rules []rbacv1.PolicyRule, allowed bool) error {
		role := &rbacv1.ClusterRole{}
		if err := admin.Get(ctx, client.ObjectKey{Name: "scute-daemon"}, role); err != nil {
			return err
		}
		role.Rules = rules
		if err := admin.Update(ctx, role); err != nil {
			return err
		}
		for { // the authorizer watches roles, so the change arrives later
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User:               daemonUser,
				ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Group: "cluster.x-k8s.io", Resource: resource},
			}}
			if err := admin.Create(ctx, review); err != nil || review.Status.Allowed == allowed {
				return err
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	role := &rbacv1.ClusterRole{}
	harness.Must(t, admin.Get(ctx, client.ObjectKey{Name: "scute-daemon"}, role))
	harness.Must(t, set(ctx, without(verb, resource)(role.Rules), false))
	cleanup(t, func(ctx context.Context) error { return set(ctx, role.Rules, true) })
}
