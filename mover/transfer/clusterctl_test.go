package transfer

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	clienttesting "k8s.io/client-go/testing"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/cluster"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"scute.dev/kube/object"
)

// storeProxy is a management cluster in memory, for the library of clusterctl.
type storeProxy struct {
	cluster.Proxy // for methods that are not used
	client.Client
}

func (p *storeProxy) NewClient(context.Context) (client.Client, error) { return p, nil }

// List ignores the namespace of cluster-scoped kinds, as an API server does.
func (p *storeProxy) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	kind := strings.TrimSuffix(list.GetObjectKind().GroupVersionKind().Kind, "List")
	if slices.ContainsFunc(realKinds(), func(k realKind) bool { return k.kind == kind && !k.namespaced }) {
		opts = nil
	}
	return p.Client.List(ctx, list, opts...)
}

// clusterctlMoves moves namespace fleet of a world with clusterctl, and returns the objects of the target and of the
// source afterwards.
func clusterctlMoves(ctx context.Context, t testing.TB, w *randomCluster) (there, here map[object.Ref]bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute) // it retries failures
	defer cancel()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, apiextensionsv1.AddToScheme, clusterv1.AddToScheme, addonsv1.AddToScheme, clusterctlv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	var provided []client.Object
	for _, p := range providers() {
		provided = append(provided, &clusterctlv1.Provider{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: p.prefix}, ProviderName: p.prefix, Type: "InfrastructureProvider", Version: "v1.0.0"})
	}
	for _, k := range realKinds() {
		if len(k.labels) > 0 {
			provided = append(provided, definition(k))
		}
	}
	for _, k := range fakeKinds() {
		if strings.HasSuffix(k.group, object.CoreGroup) {
			provided = append(provided, definition(realKind{k, []string{clusterctlv1.ClusterctlLabel}}))
		}
	}
	objects := slices.Clone(provided)
	for _, o := range w.objects {
		objects = append(objects, o.object())
	}
	sides := make([]client.Client, 2)
	for i, have := range [][]client.Object{objects, provided} {
		tracker := clienttesting.NewObjectTracker(scheme, serializer.NewCodecFactory(scheme).UniversalDecoder()) // without managed fields: much faster
		sides[i] = fake.NewClientBuilder().WithScheme(scheme).WithObjectTracker(tracker).WithObjects(have...).Build()
	}
	from := cluster.New(cluster.Kubeconfig{}, nil, cluster.InjectProxy(&storeProxy{Client: sides[0]}))
	to := cluster.New(cluster.Kubeconfig{}, nil, cluster.InjectProxy(&storeProxy{Client: sides[1]}))
	if err := from.ObjectMover().Move(ctx, "fleet", to, false); err != nil {
		return nil, nil, err
	}
	found := make([]map[object.Ref]bool, 2)
	for i, c := range sides {
		found[i] = make(map[object.Ref]bool)
		for _, o := range w.objects {
			if err := c.Get(ctx, client.ObjectKey{Namespace: o.ref.Namespace, Name: o.ref.Name}, o.object()); err == nil {
				found[i][o.ref] = true
			} else if client.IgnoreNotFound(err) != nil {
				return nil, nil, err
			}
		}
	}
	return found[1], found[0], nil
}

func definition(k realKind) client.Object {
	scope := apiextensionsv1.NamespaceScoped
	if !k.namespaced {
		scope = apiextensionsv1.ClusterScoped
	}
	labels := make(map[string]string)
	for _, l := range k.labels {
		labels[l] = ""
	}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: k.plural + "." + k.group, Labels: labels},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: k.group, Scope: scope, Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: k.kind, Plural: k.plural},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: k.version, Storage: true, Served: true}},
		},
	}
}
