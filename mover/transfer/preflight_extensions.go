package transfer

import (
	"context"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"scute.dev/mover"
)

// checkExtensions makes sure that the target has the handlers of runtime extensions that the ClusterClasses name, and warns of each
// ExtensionConfig of the source that the target lacks: its hooks are called for every Cluster.
func (t *Transfer) checkExtensions(ctx context.Context, members mover.Members, w *world, f *findings) error {
	kind := "ExtensionConfig." + runtimev1.GroupVersion.Group
	wanted := make(map[string]string) // a handler, and a class that names it
	for _, m := range members.Objects {
		for _, handler := range m.Extensions {
			wanted[handler] = m.Ref.String()
		}
	}
	there := make(map[string]bool) // ExtensionConfigs, and their handlers
	if typ, served := t.onto[kind]; served {
		err := t.target.List(ctx, typ, "", func(u *unstructured.Unstructured) error {
			there[u.GetName()] = true
			handlers, _, _ := unstructured.NestedSlice(u.Object, "status", "handlers")
			for _, handler := range handlers {
				handler, _ := handler.(map[string]any)
				name, _ := handler["name"].(string)
				there[name] = true
			}
			return nil
		})
		if apierrors.IsForbidden(err) {
			if len(wanted) > 0 {
				f.warn("target: "+kind, "the runtime extensions of ClusterClasses were not looked for: "+err.Error(), "grant list on extensionconfigs there")
			}
			return nil
		}
		if err != nil {
			return err
		}
	}
	for _, handler := range slices.Sorted(maps.Keys(wanted)) {
		_, name, _ := strings.Cut(handler, ".")
		switch field := "target: " + kind + " " + name; {
		case !there[name]:
			f.fail(field, "it does not exist, and "+wanted[handler]+" calls its handler "+handler, "install the runtime extension on the target, with its ExtensionConfig")
		case !there[handler]:
			f.fail(field, "it has no handler "+handler+", which "+wanted[handler]+" calls", "bring the runtime extension on the target to the source's version, and see why its ExtensionConfig is not Discovered")
		}
		there[name] = true
	}
	for _, o := range w.objects {
		if o.Ref.GroupKind() == kind && !there[o.Ref.Name] {
			f.warn("target: "+o.Ref.String(), "it does not exist there, and the source calls its hooks", "install the runtime extension on the target first, if its hooks are for the Clusters that move")
		}
	}
	return nil
}
