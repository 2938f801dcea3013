package e2e

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/mover"
	"scute.dev/test/harness"
	"scute.dev/test/rotation"
	"scute.dev/test/scuted"
	"scute.dev/test/testbed"
)

// TestSharedObjects moves clusters that use objects that others use too: a cluster-scoped identity with its
// credentials, and a ClusterClass of another namespace. Both are copied unless they exist on the target, and stay at
// the source.
func TestSharedObjects(t *testing.T) {
	ctx := harness.Deadline(t, 8*time.Minute)
	harness.Daemon(t, shared.blue, scuted.DaemonOptions{Args: []string{"--share-credentials-with", "identities,elsewhere-apps"}})
	for name, test := range rotation.Cases(t, 2, map[string]func(context.Context, *testing.T){
		"identity": withIdentity, "class": withClassElsewhere,
	}) {
		t.Run(name, func(t *testing.T) { test(ctx, t) })
	}
}

// The namespace of the test bed's infrastructure provider, and kinds of the AWS provider, which the chart lists.
const (
	providerNS  = "capd-system"
	credentials = "prod-credentials"
)

func identity(kind, name, secret string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"secretRef": secret}}}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta2", Kind: kind})
	u.SetName(name)
	return u
}

func identities() (static, controller *unstructured.Unstructured) {
	return identity("AWSClusterStaticIdentity", "prod", credentials), identity("AWSClusterControllerIdentity", "default", "")
}

func withIdentity(ctx context.Context, t *testing.T) {
	const ns = "identities"
	shared.cluster(ctx, t, shared.blue, testbed.Tiny(ns, "tiny"))
	harness.Must(t, shared.blue.PutTarget(ctx, ns, shared.green))
	for _, side := range []*scuted.Installation{shared.blue, shared.green} {
		defines(ctx, t, side, definition("awsclusterstaticidentities", "AWSClusterStaticIdentity", apiextensionsv1.ClusterScoped, "clusterctl.cluster.x-k8s.io/move-hierarchy"))
		defines(ctx, t, side, definition("awsclustercontrolleridentities", "AWSClusterControllerIdentity", apiextensionsv1.ClusterScoped, "clusterctl.cluster.x-k8s.io/move"))
	}
	here, there := shared.blue.Side.Client(), shared.green.Side.Client()
	static, controller := identities()
	harness.Must(t, here.Create(ctx, static))
	harness.Must(t, here.Create(ctx, controller))
	harness.Must(t, here.Create(ctx, ownedSecret(credentials, static)))
	// The author of a Move chooses the target and can read the copied objects there. So the credentials are copied only
	// for the namespaces that the operator listed.
	const strangers = "strangers"
	harness.Must(t, client.IgnoreAlreadyExists(here.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: strangers}})))
	harness.Must(t, shared.blue.PutTarget(ctx, strangers, shared.green))
	over := move(ctx, t, shared.blue, scuted.NewMove(strangers, "none", shared.green, "none"))
	isRefused(t, over, []v1alpha1.MoveFinding{
		finding("spec.selection", "none", ""),
		finding("target: Secret "+providerNS+"/"+credentials, "not shared with namespace "+strangers, "shareCredentialsWith"),
	})
	if err := there.Get(ctx, client.ObjectKey{Namespace: providerNS, Name: credentials}, &corev1.Secret{}); !apierrors.IsNotFound(err) {
		t.Errorf("Get of the credentials on the target, moved from a namespace without permission = %v, want not found", err)
	}
	other := identity("AWSClusterStaticIdentity", "prod", "others-credentials")
	harness.Must(t, there.Create(ctx, other))
	for _, admin := range []client.Client{here, there} {
		cleanup(t, func(ctx context.Context) error {
			return client.IgnoreNotFound(admin.Delete(ctx, ownedSecret(credentials, static)))
		})
	}

	over = move(ctx, t, shared.blue, scuted.NewMove(ns, "other", shared.green, "tiny"))
	isRefused(t, over, []v1alpha1.MoveFinding{
		finding("target: AWSClusterStaticIdentity.infrastructure.cluster.x-k8s.io prod", "is different: field .spec.secretRef differs", "rename or delete one"),
	})
	same := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"secretRef":"`+credentials+`"}}`))
	harness.Must(t, there.Patch(ctx, other, same))

	w := shared.witness(ctx, t)
	over = move(ctx, t, shared.blue, scuted.NewMove(ns, "same", shared.green, "tiny"))
	if over.Status.Phase != mover.PhaseSucceeded {
		t.Fatalf("phase = %s, want Succeeded: %s\nfindings: %v", over.Status.Phase, over.Status.Message, over.Status.Findings)
	}
	harness.Must(t, shared.green.Side.WaitAvailable(ctx, ns, "tiny"))
	// The garbage collector deletes a Secret whose owner never existed, so it knows the kind by now.
	orphan := ownedSecret("orphan", identity("AWSClusterStaticIdentity", "nobody", ""))
	orphan.OwnerReferences[0].UID = "00000000-0000-0000-0000-000000000001"
	harness.Must(t, there.Create(ctx, orphan))
	waitGone(ctx, t, shared.green, orphan)
	copied := &corev1.Secret{}
	harness.Must(t, there.Get(ctx, client.ObjectKey{Namespace: providerNS, Name: credentials}, copied))
	if owners := copied.OwnerReferences; len(owners) != 1 || owners[0].UID != other.GetUID() || string(copied.Data["key"]) != "value" {
		t.Errorf("owners of the credentials on the target = %+v, want the existing identity %s", owners, other.GetUID())
	}
	for _, admin := range []client.Client{here, there} {
		static, controller := identities()
		for _, u := range []*unstructured.Unstructured{static, controller} {
			harness.Must(t, admin.Get(ctx, client.ObjectKeyFromObject(u), u))
			untouched(t, map[string]*unstructured.Unstructured{u.GetName(): u})
		}
		harness.Must(t, admin.Get(ctx, client.ObjectKeyFromObject(copied), &corev1.Secret{}))
	}
	w.clean(ctx, t)
}

func ownedSecret(name string, owner *unstructured.Unstructured) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: providerNS, Name: name, OwnerReferences: []metav1.OwnerReference{{
			APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID(),
		}}},
		StringData: map[string]string{"key": "value"},
	}
}

// withClassElsewhere moves a cluster whose class is in the namespace of another cluster, which stays. Nothing rolls out
// on the target.
func withClassElsewhere(ctx context.Context, t *testing.T) {
	const classes, apps = "elsewhere-classes", "elsewhere-apps"
	shared.cluster(ctx, t, shared.blue, testbed.Tiny(classes, "resident"))
	resident := objects(ctx, t, shared.blue, classes)["Cluster resident"]
	spec, _, _ := unstructured.NestedMap(resident.Object, "spec", "topology")
	harness.Must(t, unstructured.SetNestedField(spec, classes, "classRef", "namespace"))
	tenant := clusterObject("tenant")
	tenant.SetNamespace(apps)
	network, _, _ := unstructured.NestedMap(resident.Object, "spec", "clusterNetwork")
	tenant.Object["spec"] = map[string]any{"topology": spec, "clusterNetwork": network}
	harness.Must(t, shared.blue.Side.Client().Create(ctx, namespace(apps)))
	harness.Must(t, shared.blue.Side.Client().Create(ctx, tenant))
	harness.Must(t, shared.blue.Side.WaitAvailable(ctx, apps, "tenant"))
	harness.Must(t, shared.blue.PutTarget(ctx, apps, shared.green))

	before, stays := objects(ctx, t, shared.blue, apps), objects(ctx, t, shared.blue, classes)
	w := shared.witness(ctx, t)
	over := move(ctx, t, shared.blue, scuted.NewMove(apps, "tenant", shared.green, "tenant"))
	if over.Status.Phase != mover.PhaseSucceeded {
		t.Fatalf("phase = %s, want Succeeded: %s\nfindings: %v", over.Status.Phase, over.Status.Message, over.Status.Findings)
	}
	harness.Must(t, shared.green.Side.WaitAvailable(ctx, apps, "tenant"))
	after, class := objects(ctx, t, shared.green, apps), objects(ctx, t, shared.green, classes)
	if !slices.Equal(names(before), names(after)) {
		t.Errorf("objects changed: before %v\nafter %v", names(before), names(after))
	}
	if class["ClusterClass in-memory"] == nil || class["Cluster resident"] != nil {
		t.Errorf("objects in the class's namespace on the target = %v, want the class and not the other Cluster", names(class))
	}
	untouched(t, after)
	untouched(t, class)
	sameManagers(t, before, after)
	sameManagers(t, only(stays, class), class)
	sameContents(t, contents(stays), contents(objects(ctx, t, shared.blue, classes)))
	if err := shared.blue.Side.Client().Get(ctx, client.ObjectKeyFromObject(tenant), tenant); !apierrors.IsNotFound(err) {
		t.Errorf("Get of the Cluster at the source = %v, want not found", err)
	}
	w.clean(ctx, t) // no machine was created or deleted
}
