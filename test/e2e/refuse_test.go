package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/test/harness"
	"scute.dev/test/scuted"
	"scute.dev/test/testbed"
)

const (
	refusalsNS  = "refusals"
	targetField = "spec.target.kubeconfigSecretRef"
	// older is a version before every version of a provider, also before v0.0.0, the version of a build without one.
	older = "v0.0.0-older"
	// prompt bounds a refusal: the slowest waits for an address that does not answer. It stops a test that hangs, and
	// is no measure of speed.
	prompt = 2 * time.Minute
)

// refusal is a Move that must be refused before anything is changed.
type refusal struct {
	name string
	// prepare creates the cause of the refusal. Its Cleanup removes it.
	prepare func(ctx context.Context, t *testing.T)
	spoil   func(*v1alpha1.Move)
	// want has all errors: the field, and parts of the message and of the remedy.
	want []v1alpha1.MoveFinding
}

// TestRefusals checks that every problem is reported before anything is changed, with its field and a remedy.
func TestRefusals(t *testing.T) {
	ctx := harness.Deadline(t, 15*time.Minute)
	shared.cluster(ctx, t, shared.blue, testbed.Tiny(refusalsNS, "tiny"))
	harness.Must(t, shared.blue.PutTarget(ctx, refusalsNS, shared.green))
	harness.Must(t, shared.green.Side.Client().Create(ctx, namespace(refusalsNS)))
	harness.Daemon(t, shared.blue, scuted.DaemonOptions{})

	list := slices.Concat(badTargets(), badPermissions(), badKinds(), badSources(), badParts(), badCopies())
	for i, r := range list {
		t.Run(r.name, func(t *testing.T) { refused(ctx, t, fmt.Sprintf("refused-%d", i), r) })
	}
	t.Run("a namespace without clusters", refusedEmpty(ctx))
	t.Run("by the API server", refusedByAPI(ctx))
	t.Run("a dry run changes nothing", dryRun(ctx))
	t.Run("two moves of one cluster", rivals(ctx))
}

func finding(field, message, remedy string) v1alpha1.MoveFinding {
	return v1alpha1.MoveFinding{Severity: string(mover.Error), Field: field, Message: message, Remedy: remedy}
}

func refused(ctx context.Context, t *testing.T, name string, r refusal) {
	ctx, cancel := context.WithTimeout(ctx, prompt)
	defer cancel()
	if r.prepare != nil {
		r.prepare(ctx, t)
	}
	m := scuted.NewMove(refusalsNS, name, shared.green, "tiny")
	if r.spoil != nil {
		r.spoil(m)
	}
	before := contents(objects(ctx, t, shared.blue, refusalsNS))
	here, there := auditTrail(t, shared.blue), auditTrail(t, shared.green)
	over := move(ctx, t, shared.blue, m)
	isRefused(t, over, r.want)
	here.unchanged(t, ofDaemon)
	there.unchanged(t, onTarget)
	sameContents(t, before, contents(objects(ctx, t, shared.blue, refusalsNS)))
}

func isRefused(t *testing.T, over *v1alpha1.Move, want []v1alpha1.MoveFinding) {
	t.Helper()
	s := over.Status
	if s.Phase != mover.PhaseFailed || !strings.Contains(s.Message, "refused, nothing was changed") || s.Next == "" {
		t.Errorf("phase %s: %q, next %q; want a refusal", s.Phase, s.Message, s.Next)
	}
	var errs []v1alpha1.MoveFinding
	for _, f := range s.Findings {
		if f.Severity == string(mover.Error) {
			errs = append(errs, f)
		}
		if f.Field == "" || f.Message == "" || f.Remedy == "" {
			t.Errorf("finding lacks a field, a message or a remedy: %+v", f)
		}
	}
	missing := slices.DeleteFunc(slices.Clone(want), func(w v1alpha1.MoveFinding) bool {
		return slices.ContainsFunc(errs, func(f v1alpha1.MoveFinding) bool { return matches(f, w) })
	})
	surplus := slices.DeleteFunc(slices.Clone(errs), func(f v1alpha1.MoveFinding) bool {
		return slices.ContainsFunc(want, func(w v1alpha1.MoveFinding) bool { return matches(f, w) })
	})
	for _, f := range missing {
		t.Errorf("missing finding: %+v", f)
	}
	for _, f := range surplus {
		t.Errorf("unexpected finding: %+v", f)
	}
}

func matches(f, want v1alpha1.MoveFinding) bool {
	return strings.HasPrefix(f.Field, want.Field) && strings.Contains(f.Message, want.Message) && strings.Contains(f.Remedy, want.Remedy)
}

// contents returns hashes of objects without the fields that controllers may write at any time.
func contents(list map[string]*unstructured.Unstructured) map[string]string {
	found := make(map[string]string, len(list))
	for name, u := range list {
		u = u.DeepCopy()
		delete(u.Object, "status")
		for _, field := range []string{"managedFields", "resourceVersion"} {
			unstructured.RemoveNestedField(u.Object, "metadata", field)
		}
		raw, _ := json.Marshal(u.Object)
		found[name] = fmt.Sprintf("%x", sha256.Sum256(raw))
	}
	return found
}

func sameContents(t *testing.T, before, after map[string]string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if before[name] != after[name] {
			t.Errorf("%s was changed or deleted", name)
		}
	}
	for name := range after {
		if before[name] == "" {
			t.Errorf("%s was created", name)
		}
	}
}

// secretTarget returns a refusal that is caused by the target's Secret. Without a kubeconfig there is no Secret.
func secretTarget(name, key string, kubeconfig func(context.Context, *testing.T) string, want ...v1alpha1.MoveFinding) refusal {
	secret := "target-" + strings.ToLower(strings.ReplaceAll(name, " ", "-"))
	return refusal{
		name: name, want: want,
		prepare: func(ctx context.Context, t *testing.T) {
			if kubeconfig == nil {
				return
			}
			harness.Must(t, shared.blue.Side.Client().Create(ctx, &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: refusalsNS, Name: secret}, StringData: map[string]string{key: kubeconfig(ctx, t)},
			}))
		},
		spoil: func(m *v1alpha1.Move) { m.Spec.Target.KubeconfigSecretRef.Name = secret },
	}
}

// allowed returns the refusal of a Move that accepts any kubeconfig.
func allowed(r refusal) refusal {
	spoil := r.spoil
	r.spoil = func(m *v1alpha1.Move) {
		spoil(m)
		m.Spec.Target.AllowInsecure = true
	}
	return r
}

func text(format string, args ...any) func(context.Context, *testing.T) string {
	return func(context.Context, *testing.T) string { return fmt.Sprintf(format, args...) }
}

const kubeconfig = `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: k, user: u}}],
 clusters: [{name: k, cluster: {server: "https://%s"%s}}], users: [{name: u, user: {%s}}]}`

func badTargets() []refusal {
	here := func(_ context.Context, t *testing.T) string {
		config, err := shared.blue.Side.Kubeconfig()
		harness.Must(t, err)
		return string(config)
	}
	stale := func(context.Context, *testing.T) string {
		config := shared.green.Side.Config()
		ca := base64.StdEncoding.EncodeToString(config.CAData)
		return fmt.Sprintf(kubeconfig, strings.TrimPrefix(config.Host, "https://"), ", certificate-authority-data: "+ca, "token: expired")
	}
	insecure := func(context.Context, *testing.T) string {
		return fmt.Sprintf(kubeconfig, strings.TrimPrefix(shared.green.Side.Config().Host, "https://"), ", insecure-skip-tls-verify: true", "token: expired")
	}
	return []refusal{
		secretTarget("nobody listens", "value", text(kubeconfig, "127.0.0.1:1", "", "token: t"),
			finding(targetField, "127.0.0.1:1", "scuted can reach the target")),
		secretTarget("no Secret", "value", nil, finding(targetField, "does not exist", "create the Secret")),
		secretTarget("another key", "kubeconfig", text(kubeconfig, "127.0.0.1:1", "", "token: t"),
			finding(targetField, `has no key "value"; it has: kubeconfig`, "spec.target.kubeconfigSecretRef.key")),
		secretTarget("an exec plugin", "value", text(kubeconfig, "127.0.0.1:1", "", "exec: {apiVersion: client.authentication.k8s.io/v1, command: touch, interactiveMode: Never}"),
			finding(targetField, "runs a program to log in", "--flatten")),
		secretTarget("a file", "value", text(kubeconfig, "127.0.0.1:1", ", certificate-authority: /etc/passwd", "token: t"),
			finding(targetField, "names a file", "--flatten")),
		secretTarget("a private address", "value", text(kubeconfig, "10.255.255.1:6443", "", "token: t"),
			finding(targetField, "10.255.255.1 is a private address", "--allow-addresses")),
		secretTarget("a metadata service in disguise", "value", text(kubeconfig, "[64:ff9b::a9fe:a9fe]", "", "token: t"),
			finding(targetField, "169.254.169.254 is a link-local address", "--allow-addresses")),
		secretTarget("a proxy", "value", text(kubeconfig, "127.0.0.1:1", `, proxy-url: "http://127.0.0.1:3128"`, "token: t"),
			finding(targetField, "has a proxy-url", "--flatten")),
		secretTarget("an unchecked certificate", "value", insecure,
			finding(targetField, "insecure-skip-tls-verify", "spec.target.allowInsecure")),
		secretTarget("no encryption", "value", text(strings.Replace(kubeconfig, "https", "http", 1), "127.0.0.1:1", "", "token: t"),
			finding(targetField, "uses http,", "spec.target.allowInsecure")),
		allowed(secretTarget("an unchecked certificate that is accepted", "value", insecure, finding(targetField, "Unauthorized", "new credentials"))),
		secretTarget("no kubeconfig", "value", text("what is this?"), finding(targetField, "kubeconfig not usable", "--flatten")),
		secretTarget("this very cluster", "value", here, finding(targetField, "the source cluster itself", "another management cluster")),
		secretTarget("credentials that are not accepted", "value", stale, finding(targetField, "Unauthorized", "new credentials")),
		{
			name:  "the kubeconfig is part of what moves",
			spoil: func(m *v1alpha1.Move) { m.Spec.Target.KubeconfigSecretRef.Name = "tiny-kubeconfig" },
			want: []v1alpha1.MoveFinding{
				finding(targetField, "Secret tiny-kubeconfig belongs to the moved objects", "copy the kubeconfig"),
				finding(targetField, "not a management cluster", "clusterctl init"),
			},
		},
	}
}

// accountOnGreen returns a function that creates an account on the target with the given permissions and returns its
// kubeconfig.
func accountOnGreen(name string, rules func([]rbacv1.PolicyRule) []rbacv1.PolicyRule) func(context.Context, *testing.T) string {
	return func(ctx context.Context, t *testing.T) string {
		admin := shared.green.Side.Client()
		meta := metav1.ObjectMeta{Namespace: scuted.Namespace, Name: name}
		role := &rbacv1.ClusterRole{}
		harness.Must(t, admin.Get(ctx, client.ObjectKey{Name: "scute-move-target"}, role))
		given := rules(role.Rules)
		harness.Must(t, admin.Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta}))
		harness.Must(t, admin.Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: given}))
		harness.Must(t, admin.Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: scuted.Namespace, Name: name}},
		}))
		if len(given) > 0 {
			harness.Allowed(ctx, t, admin, "system:serviceaccount:"+scuted.Namespace+":"+name,
				authorizationv1.ResourceAttributes{Verb: "list", Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"})
		}
		_, config, err := shared.green.Side.ServiceAccountConfig(ctx, scuted.Namespace, name)
		harness.Must(t, err)
		return string(config)
	}
}

// without returns a function that removes a verb on a resource from rules.
func without(verb, resource string) func([]rbacv1.PolicyRule) []rbacv1.PolicyRule {
	return func(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
		var kept []rbacv1.PolicyRule
		for _, rule := range rules {
			if i := slices.Index(rule.Resources, resource); i >= 0 {
				less := *rule.DeepCopy()
				less.Resources = []string{resource}
				less.Verbs = slices.DeleteFunc(less.Verbs, func(v string) bool { return v == verb })
				kept = append(kept, less)
				rule.Resources = slices.Delete(slices.Clone(rule.Resources), i, i+1)
			}
			if len(rule.Resources) > 0 {
				kept = append(kept, rule)
			}
		}
		return kept
	}
}

func badPermissions() []refusal {
	nothing := func([]rbacv1.PolicyRule) []rbacv1.PolicyRule { return nil }
	return []refusal{
		secretTarget("an identity without rights", "value", accountOnGreen("without-rights", nothing), finding(targetField, "forbidden", "scute-move-target")),
		secretTarget("an identity that may not create Machines", "value", accountOnGreen("without-machines", without("create", "machines")),
			finding(targetField, "may not create Machine.cluster.x-k8s.io", "grant create on machines.cluster.x-k8s.io")),
		{
			name:    "a provider that the chart was not told of",
			prepare: provider,
			want:    []v1alpha1.MoveFinding{finding("source", "Gadget.infrastructure.cluster.x-k8s.io", "`providers`")},
		},
	}
}

func badSources() []refusal {
	half := func(finalizers ...string) func(context.Context, *testing.T) {
		return func(ctx context.Context, t *testing.T) { halfMade(ctx, t, shared.blue, "half", finalizers...) }
	}
	name := func(clusters ...string) func(*v1alpha1.Move) {
		return func(m *v1alpha1.Move) { m.Spec.Selection.Clusters = clusters }
	}
	const object = "Cluster.cluster.x-k8s.io refusals/half"
	unready := []v1alpha1.MoveFinding{
		finding(object, "infrastructure is not provisioned", "wait"), finding(object, "control plane is not initialized", "wait"),
		finding(object+": spec.infrastructureRef", "does not exist", "correct the reference"),
		finding(object+": spec.controlPlaneRef", "does not exist", "correct the reference"),
	}
	return []refusal{
		{
			name: "unknown clusters", spoil: name("tiny", "nope", "neither"),
			want: []v1alpha1.MoveFinding{
				finding("spec.selection.clusters", `"nope" does not exist`, " has: tiny"), finding("spec.selection.clusters", `"neither" does not exist`, " has: tiny"),
			},
		},
		{name: "a cluster that is half made", prepare: half(), spoil: name("half"), want: unready},
		{
			name: "a cluster that is being deleted", spoil: name("half"),
			prepare: func(ctx context.Context, t *testing.T) {
				half("example.org/hold")(ctx, t)
				harness.Must(t, shared.blue.Side.Client().Delete(ctx, clusterObject("half")))
			},
			want: append(unready, finding(object, "it is being deleted", "finalizers")),
		},
		{
			name: "three errors at a time",
			prepare: func(ctx context.Context, t *testing.T) {
				half()(ctx, t)
				providerVersion(ctx, t, shared.green, older)
			},
			spoil: func(m *v1alpha1.Move) {
				name("tiny", "half", "nope")(m)
				m.Spec.CarryStatus = []string{"Gadget.example.org"}
			},
			want: append(unready, finding("spec.selection.clusters", `"nope" does not exist`, "half, tiny"),
				finding("spec.carryStatus", "Gadget.example.org", "Kind.group"), finding("target: ControlPlaneProvider", "the target has "+older+", the source", "clusterctl upgrade")),
		},
	}
}

// badParts returns refusals because of objects of a cluster that cannot move with it.
func badParts() []refusal {
	return []refusal{
		{
			name:    "an address that would leave its pool",
			prepare: func(ctx context.Context, t *testing.T) { strays(ctx, t, addressOf(ctx, t, "tiny")) },
			want:    []v1alpha1.MoveFinding{finding("IPAddress.ipam.cluster.x-k8s.io refusals/tiny-address", "may assign the address again", object.AddressesReservedAnnotation)},
		},
		{
			name:    "a Secret of the cluster that somebody else owns",
			prepare: func(ctx context.Context, t *testing.T) { strays(ctx, t, secretOf("tiny-apiserver-etcd-client")) },
			want:    []v1alpha1.MoveFinding{finding("Secret refusals/tiny-apiserver-etcd-client", "Cluster tiny needs it, but it would not be moved", "remove the owner reference")},
		},
	}
}

func badKinds() []refusal {
	const crd, kind = "devclustertemplates.infrastructure.cluster.x-k8s.io", "target: DevClusterTemplate.infrastructure.cluster.x-k8s.io"
	return []refusal{
		{
			name:    "a kind that the target lacks",
			prepare: func(ctx context.Context, t *testing.T) { serve(ctx, t, shared.green, crd, "") },
			want:    []v1alpha1.MoveFinding{finding(kind, "does not serve this kind", "install its provider")},
		},
		{
			name:    "another version on the target",
			prepare: func(ctx context.Context, t *testing.T) { serve(ctx, t, shared.green, crd, "v1beta9") },
			want:    []v1alpha1.MoveFinding{finding(kind, "serves only [v1beta9]", "upgrade the provider on the target to the source's version")},
		},
		{
			name:    "an older provider on the target",
			prepare: func(ctx context.Context, t *testing.T) { providerVersion(ctx, t, shared.green, older) },
			want:    []v1alpha1.MoveFinding{finding("target: ControlPlaneProvider", "the target has "+older+", the source", "clusterctl upgrade")},
		},
	}
}

func badCopies() []refusal {
	return []refusal{
		{
			name:    "a name that is taken on the target",
			prepare: func(ctx context.Context, t *testing.T) { halfMade(ctx, t, shared.green, "tiny") },
			want:    []v1alpha1.MoveFinding{finding("target: Cluster.cluster.x-k8s.io refusals/tiny", "an object with this name already exists and is different", "rename or delete one")},
		},
		{
			name:    "an admission policy of the target",
			prepare: func(ctx context.Context, t *testing.T) { refuse(ctx, t, shared.green, refusalsNS) },
			want:    []v1alpha1.MoveFinding{finding("target: DevMachine.infrastructure.cluster.x-k8s.io", "no more devmachines here", "admission")},
		},
		{
			name: "an admission policy of the target that refuses one Secret",
			prepare: func(ctx context.Context, t *testing.T) {
				refuseNamed(ctx, t, shared.green, refusalsNS, "secrets", "tiny-sa", &corev1.Secret{})
			},
			want: []v1alpha1.MoveFinding{finding("target: Secret refusals/tiny-sa", "no more secrets here", "admission")},
		},
	}
}

func refusedEmpty(ctx context.Context) func(*testing.T) {
	return func(t *testing.T) {
		const ns = "refusals-empty"
		harness.Must(t, shared.blue.Side.Client().Create(ctx, namespace(ns)))
		harness.Must(t, shared.blue.PutTarget(ctx, ns, shared.green))
		m := scuted.NewMove(ns, "nothing", shared.green)
		m.Spec.Selection.All = true
		isRefused(t, move(ctx, t, shared.blue, m), []v1alpha1.MoveFinding{finding("spec.selection.all", "has no Clusters", "in the namespace of the Clusters")})
	}
}

// refusedByAPI checks the refusals of the schema, which need no daemon.
func refusedByAPI(ctx context.Context) func(*testing.T) {
	return func(t *testing.T) {
		no := func(what string, err error, says string) {
			t.Helper()
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v, want a refusal with %q", what, err, says)
			}
		}
		both := scuted.NewMove(refusalsNS, "both", shared.green, "tiny")
		both.Spec.Selection.All = true
		no("clusters and all", shared.blue.Create(ctx, both), "set either clusters")
		no("neither clusters nor all", shared.blue.Create(ctx, scuted.NewMove(refusalsNS, "neither", shared.green)), "set either clusters")
		unnamed := scuted.NewMove(refusalsNS, "unnamed", shared.green, "tiny")
		unnamed.Spec.Target.KubeconfigSecretRef.Name = ""
		no("no Secret", shared.blue.Create(ctx, unnamed), "spec.target.kubeconfigSecretRef.name")

		admin, err := shared.blue.Client()
		harness.Must(t, err)
		m := scuted.NewMove(refusalsNS, "fixed", shared.green, "nope")
		over := move(ctx, t, shared.blue, m)
		change := func(what, says string, f func(*v1alpha1.Move)) {
			t.Helper()
			changed := over.DeepCopy()
			f(changed)
			no(what, admin.Patch(ctx, changed, client.MergeFrom(over)), says)
		}
		change("another target", "target cannot be changed", func(m *v1alpha1.Move) { m.Spec.Target.KubeconfigSecretRef.Name = "other" })
		change("another selection", "selection cannot be changed", func(m *v1alpha1.Move) { m.Spec.Selection.Clusters = []string{"tiny"} })
		change("a dry run made real", "dryRun cannot be changed", func(m *v1alpha1.Move) { m.Spec.DryRun = true })
		if err := shared.blue.Create(ctx, scuted.NewMove(refusalsNS, "fixed", shared.green, "tiny")); !apierrors.IsAlreadyExists(err) {
			t.Errorf("creating a second Move with the same name = %v, want AlreadyExists", err)
		}
	}
}

func dryRun(ctx context.Context) func(*testing.T) {
	return func(t *testing.T) {
		before := contents(objects(ctx, t, shared.blue, refusalsNS))
		here, there := auditTrail(t, shared.blue), auditTrail(t, shared.green)
		m := scuted.NewMove(refusalsNS, "dry", shared.green, "tiny")
		m.Spec.DryRun = true
		over := move(ctx, t, shared.blue, m)
		if over.Status.Phase != mover.PhaseSucceeded || over.Status.Counts.Objects != len(before) || over.Status.Counts.Created > 0 {
			t.Errorf("phase = %s: %s; counts %+v, want %d objects", over.Status.Phase, over.Status.Message, over.Status.Counts, len(before))
		}
		here.unchanged(t, ofDaemon)
		there.unchanged(t, onTarget)
		tried := make(map[string]int)
		for _, r := range there.requests(t, func(r request) bool {
			return onTarget(r) && r.Verb == "create" && strings.Contains(r.RequestURI, "dryRun=All")
		}) {
			tried[r.resource()]++
		}
		guarded := guardedCreations(ctx, t, shared.green)
		if len(guarded) == 0 {
			t.Error("the target has no webhooks")
		}
		for resource, n := range count(t, shared.blue, objects(ctx, t, shared.blue, refusalsNS)) {
			switch {
			case guarded[resource] && tried[resource] != n:
				t.Errorf("a webhook may refuse %s: %d were tried on the target, want %d", resource, tried[resource], n)
			case tried[resource] == 0:
				t.Errorf("none of %d %s was tried on the target", n, resource)
			}
		}
		sameContents(t, before, contents(objects(ctx, t, shared.blue, refusalsNS)))
		if left := objects(ctx, t, shared.green, refusalsNS); len(left) > 0 {
			t.Errorf("objects on the target: %v", names(left))
		}
	}
}

// guardedCreations returns the resources of Cluster API whose creation a webhook of a side may refuse.
func guardedCreations(ctx context.Context, t *testing.T, on *scuted.Installation) map[string]bool {
	t.Helper()
	guarded := make(map[string]bool)
	hooks := &admissionv1.ValidatingWebhookConfigurationList{}
	harness.Must(t, on.Side.Client().List(ctx, hooks))
	for _, config := range hooks.Items {
		for _, hook := range config.Webhooks {
			for _, rule := range hook.Rules {
				for _, resource := range rule.Resources {
					guarded[resource+"."+rule.APIGroups[0]] = slices.Contains(rule.Operations, admissionv1.Create)
				}
			}
		}
	}
	return guarded
}

// count returns the number of objects of each resource.
func count(t *testing.T, on *scuted.Installation, list map[string]*unstructured.Unstructured) map[string]int {
	t.Helper()
	n := make(map[string]int)
	for _, u := range list {
		m, err := on.Side.Client().RESTMapper().RESTMapping(u.GroupVersionKind().GroupKind())
		harness.Must(t, err)
		n[strings.TrimSuffix(m.Resource.Resource+"."+m.Resource.Group, ".")]++
	}
	return n
}

// rivals checks that one of two simultaneous Moves moves the cluster and the other has no effect. A later Move is
// refused with the name of the first.
func rivals(ctx context.Context) func(*testing.T) {
	return func(t *testing.T) {
		w := shared.witness(ctx, t)
		release := annotation(ctx, t, shared.blue, refusalsNS, "DevCluster", "clusterctl.cluster.x-k8s.io/block-move")
		both := []string{"rival-a", "rival-b"}
		for _, name := range both {
			harness.Must(t, shared.blue.Create(ctx, scuted.NewMove(refusalsNS, name, shared.green, "tiny")))
		}
		var first string
		for _, name := range both {
			m, err := shared.blue.Wait(ctx, refusalsNS, name, func(m *v1alpha1.Move) bool {
				return scuted.Over(m) || m.Status.Phase == mover.PhaseAwaitingAcks && len(m.Status.WaitingFor) == 1
			})
			harness.Must(t, err)
			switch {
			case !scuted.Over(m):
				first += name
			case m.Status.Phase != mover.PhaseFailed && m.Status.Phase != mover.PhaseRolledBack, !strings.Contains(m.Status.Message, "moved by") && !strings.Contains(m.Status.Message, "held by"):
				t.Errorf("%s: phase = %s, want Failed: %s", name, m.Status.Phase, m.Status.Message)
			default:
				t.Logf("%s: %s: %s", name, m.Status.Phase, m.Status.Message)
			}
		}
		if !slices.Contains(both, first) {
			t.Fatalf("moves in progress: %q, want one of them", first)
		}
		late := move(ctx, t, shared.blue, scuted.NewMove(refusalsNS, "rival-late", shared.green, "tiny"))
		isRefused(t, late, []v1alpha1.MoveFinding{
			finding("Cluster.cluster.x-k8s.io refusals/tiny", "it is being moved by refusals/"+first, "wait for that move"),
			finding("ClusterClass.cluster.x-k8s.io refusals/in-memory", "it is being moved by refusals/"+first, "wait for that move"),
		})
		release()
		over, err := shared.blue.Wait(ctx, refusalsNS, first, scuted.Over)
		harness.Must(t, err)
		if over.Status.Phase != mover.PhaseSucceeded {
			t.Errorf("phase = %s, want Succeeded: %s", over.Status.Phase, over.Status.Message)
		}
		if left := objects(ctx, t, shared.blue, refusalsNS); len(left) > 0 {
			t.Errorf("objects remain at the source: %v", names(left))
		}
		harness.Must(t, shared.green.Side.WaitAvailable(ctx, refusalsNS, "tiny"))
		w.clean(ctx, t)
	}
}
