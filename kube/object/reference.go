package object

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Reference is a field of an object that names another one.
type Reference struct {
	Field string
	Ref   Ref
}

// references reads what the spec of a core object or of a control plane refers to: its infrastructure, its bootstrap
// configuration and the Secret of that, its templates, its class. Free-form parts are left out.
func references(u *unstructured.Unstructured, of Ref) []Reference {
	if of.Group != CoreGroup && !strings.HasSuffix(of.Kind, "ControlPlane") {
		return nil
	}
	spec, _ := u.Object["spec"].(map[string]any)
	var found []Reference
	within("spec", spec, of, &found)
	return found
}

func within(path string, v any, of Ref, found *[]Reference) {
	switch v := v.(type) {
	case []any:
		for i, e := range v {
			within(fmt.Sprintf("%s[%d]", path, i), e, of, found)
		}
	case map[string]any:
		if ref, ok := reference(v, of); ok {
			*found = append(*found, Reference{path, ref})
			return
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			name, isText := v[key].(string)
			switch {
			case key == "variables" || key == "patches" || key == "metadata":
			case key == "dataSecretName" && isText && name != "":
				*found = append(*found, Reference{path + "." + key, Ref{Kind: "Secret", Namespace: of.Namespace, Name: name}})
			default:
				within(path+"."+key, v[key], of, found)
			}
		}
	}
}

// files reads the Secrets that a bootstrap configuration of kubeadm names for files and for passwords of users. That of a Machine
// counts only until the Machine is there.
func files(u *unstructured.Unstructured, o *Observed) (found []Reference) {
	var path []string
	switch o.Ref.GroupKind() {
	case "KubeadmControlPlane.controlplane.cluster.x-k8s.io":
		path = []string{"spec", "kubeadmConfigSpec"}
	case "KubeadmControlPlaneTemplate.controlplane.cluster.x-k8s.io":
		path = []string{"spec", "template", "spec", "kubeadmConfigSpec"}
	case "KubeadmConfig.bootstrap.cluster.x-k8s.io":
		path = []string{"spec"}
	case "KubeadmConfigTemplate.bootstrap.cluster.x-k8s.io":
		path = []string{"spec", "template", "spec"}
	default:
		return nil
	}
	if slices.ContainsFunc(o.Owners, func(owner Owner) bool { return owner.Ref.GroupKind() == "Machine."+CoreGroup }) {
		return nil
	}
	for _, source := range []struct{ list, field string }{{"files", "contentFrom"}, {"users", "passwdFrom"}} {
		v, _, _ := unstructured.NestedFieldNoCopy(u.Object, append(path, source.list)...)
		list, _ := v.([]any)
		for i, e := range list {
			entry, _ := e.(map[string]any)
			if name, _, _ := unstructured.NestedString(entry, source.field, "secret", "name"); name != "" {
				field := fmt.Sprintf("%s.%s[%d].%s", strings.Join(path, "."), source.list, i, source.field)
				found = append(found, Reference{field, Ref{Kind: "Secret", Namespace: o.Ref.Namespace, Name: name}})
			}
		}
	}
	return found
}

// referenceAt returns the object that a field of the spec names. A reference to a pool has no namespace, also where the pool is one
// of the whole cluster.
func referenceAt(u *unstructured.Unstructured, of Ref, field string) *Ref {
	v, _, _ := unstructured.NestedMap(u.Object, "spec", field)
	if ref, ok := reference(v, of); ok {
		return &ref
	}
	return nil
}

// reference reads a reference of either contract: by apiGroup, or by apiVersion.
func reference(v map[string]any, of Ref) (Ref, bool) {
	text := func(key string) string { s, _ := v[key].(string); return s }
	group := text("apiGroup")
	if version := text("apiVersion"); group == "" && version != "" {
		group, _, _ = strings.Cut(version, "/")
	}
	ref := Ref{Group: group, Kind: text("kind"), Namespace: of.Namespace, Name: text("name")}
	if namespace := text("namespace"); namespace != "" {
		ref.Namespace = namespace
	}
	return ref, group != "" && ref.Kind != "" && ref.Name != ""
}
