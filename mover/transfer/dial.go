package transfer

import (
	"cmp"
	"context"
	"encoding/base64"
	"maps"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/kube"
	"scute.dev/kube/guard"
	"scute.dev/kube/object"
	"scute.dev/mover"
)

// Dialer returns a function for Transfer.Dial that reads the target's kubeconfig from a Secret in
// the Move's namespace. The guard limits the addresses that the connection may use. wrap wraps its
// transport, and may be nil.
func Dialer(source *kube.Cluster, g *guard.Guard, wrap func(http.RoundTripper) http.RoundTripper) func(context.Context, mover.Spec) (*kube.Cluster, error) {
	secrets := kube.Type{Kind: "Secret", Plural: "secrets", Versions: []string{"v1"}, Namespaced: true}
	return func(ctx context.Context, spec mover.Spec) (*kube.Cluster, error) {
		secret, key := object.Ref{Kind: "Secret", Namespace: spec.Namespace, Name: spec.Target.SecretName}, spec.Target.SecretKey
		u, err := source.Find(ctx, secrets, secret)
		if err != nil {
			return nil, err
		}
		if u == nil {
			return nil, finalError("create the Secret with the target's kubeconfig", "%s does not exist", secret)
		}
		encoded, found, _ := unstructured.NestedStringMap(u.Object, "data")
		value, ok := encoded[key]
		if !found || !ok {
			return nil, finalError("put the kubeconfig under that key, or name the key in spec.target.kubeconfigSecretRef.key",
				"%s has no key %q; it has: %s", secret, key, cmp.Or(strings.Join(slices.Sorted(maps.Keys(encoded)), ", "), "none"))
		}
		data, err := base64.StdEncoding.DecodeString(value)
		if err != nil {
			return nil, finalError("create the Secret again", "%s, key %q is not base64", secret, key)
		}
		config, err := kube.ParseKubeconfig(data)
		if err != nil {
			return nil, finalError("create a self-contained kubeconfig: kubectl config view --minify --flatten", "%s, key %q: %w", secret, key, err)
		}
		if err := kube.CheckTransportSecurity(config); err != nil && !spec.Target.AllowInsecure {
			return nil, finalError("correct the kubeconfig, because the move sends keys of clusters to the target; or set spec.target.allowInsecure in "+
				"another Move", "%s, key %q: %w", secret, key, err)
		}
		g.Protect(config, spec.Namespace)
		if wrap != nil {
			config.Wrap(wrap)
		}
		return kube.Connect("target", config)
	}
}
