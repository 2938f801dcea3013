package object

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Reference is a field of an object that names another one. Group and Kind of Ref are empty if the object does not state them, and
// Namespace is that of the object if the reference has none.
type Reference struct {
	Field string
	Ref   Ref
	// Weak references have neither the name nor the shape of a reference: they count only if what they name exists.
	Weak bool
}

// references reads what an object names: every field of its spec that has the name or the shape of a reference, and the annotations of
// providers. Variables and patches of a ClusterClass are left out: the objects made from them are read. So are virtual machines of
// KubeVirt: what they name is in the cluster that they run in.
func references(u *unstructured.Unstructured, of Ref) []Reference {
	if of.Group == "" {
		return nil
	}
	r := referrer{of: of}
	r.annotations("metadata.annotations", u.GetAnnotations())
	r.read("spec", u.Object["spec"], nil)
	return r.found
}

type referrer struct {
	of    Ref
	found []Reference
}

// read reads a value; around is the map that it is a field of.
func (r *referrer) read(path string, v any, around map[string]any) {
	switch v := v.(type) {
	case string:
		r.text(path, v, around)
	case []any:
		for i, e := range v {
			r.read(fmt.Sprintf("%s[%d]", path, i), e, nil)
		}
	case map[string]any:
		r.object(path, v)
		for _, key := range slices.Sorted(maps.Keys(v)) {
			switch key {
			case "variables", "patches", "virtualMachineTemplate":
			case "metadata":
				annotations, _, _ := unstructured.NestedStringMap(v, key, "annotations")
				r.annotations(path+".metadata.annotations", annotations)
			default:
				r.read(path+"."+key, v[key], v)
			}
		}
	}
}

// object reads a map that names an object.
func (r *referrer) object(path string, v map[string]any) {
	ref := reference(v, r.of)
	subject := subjectOf(path)
	if text, _ := v["type"].(string); ref.Kind == "" && text == "Secret" {
		ref.Kind = text
	}
	_, elsewhere := v["namespace"].(string)
	named := isReference(path) || kindOf(subject) != "" || ref.Kind != ""
	ref.Kind = cmp.Or(ref.Kind, kindOf(subject))
	if named || onlyNames(v) {
		r.add(Reference{Field: path, Ref: ref, Weak: !named && !elsewhere && !credential(subject)})
	}
}

// text reads a text whose field is called after an object: credentialsName, secretRef. A text of any other field with "secret" in its
// name may be the secret.
func (r *referrer) text(path, v string, around map[string]any) {
	key := path[strings.LastIndex(path, ".")+1:]
	key, _, _ = strings.Cut(key, "[")
	singular := strings.TrimSuffix(key, "s")
	isName := strings.HasSuffix(singular, "Name") && key != "clusterName"
	_, source, _ := strings.Cut(strings.ToUpper(key[:min(1, len(key))])+key[min(1, len(key)):], "From") // fromSecret, ipAddressFromIPPool
	if !isName && !isReference(path) && singular != "failureDomain" && (source == "" || !isUpper(source[0])) {
		return
	}
	subject := subjectOf(path)
	ref := Ref{Kind: kindOf(subject), Namespace: r.of.Namespace, Name: v}
	if namespace, name, ok := strings.Cut(v, "/"); ok {
		ref.Namespace, ref.Name = namespace, name
	} else if namespace, _ := around[strings.TrimSuffix(key, "Name")+"Namespace"].(string); namespace != "" {
		ref.Namespace = namespace
	}
	r.add(Reference{Field: path, Ref: ref, Weak: ref.Kind == "" && !isReference(path) && !credential(subject)})
}

// annotations reads those that name an object: metal3.io/BareMetalHost has the name of its kind, others end in secret or credential-from.
func (r *referrer) annotations(path string, annotations map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		kind := key[strings.LastIndex(key, "/")+1:]
		switch {
		case kind == "credential-from", strings.HasSuffix(kind, "-secret"):
			kind = "Secret"
		case kind == "" || !isUpper(kind[0]):
			continue
		}
		ref := Ref{Kind: kind, Namespace: r.of.Namespace, Name: annotations[key]}
		if namespace, name, ok := strings.Cut(ref.Name, "/"); ok {
			ref.Namespace, ref.Name = namespace, name
		}
		r.add(Reference{Field: path + "[" + key + "]", Ref: ref})
	}
}

func (r *referrer) add(one Reference) {
	isName := func(s string) bool { return len(validation.IsDNS1123Subdomain(s)) == 0 }
	ofCluster := one.Ref.GroupKind() == "Cluster."+CoreGroup || strings.EqualFold(subjectOf(one.Field), "cluster")
	if isName(one.Ref.Name) && (one.Ref.Namespace == "" || isName(one.Ref.Namespace)) && !ofCluster { // that is membership
		r.found = append(r.found, one)
	}
}

// reference reads a reference of either contract: by apiGroup, or by apiVersion.
func reference(v map[string]any, of Ref) Ref {
	text := func(key string) string { s, _ := v[key].(string); return s }
	group := text("apiGroup")
	if of, _, ok := strings.Cut(text("apiVersion"), "/"); ok && group == "" { // "v1" is without a group
		group = of
	}
	return Ref{Group: group, Kind: text("kind"), Namespace: cmp.Or(text("namespace"), of.Namespace), Name: text("name")}
}

// referenceAt returns the object that a field of the spec names. A reference to a pool has no namespace, also where the pool is one
// of the whole cluster.
func referenceAt(u *unstructured.Unstructured, of Ref, field string) *Ref {
	v, _, _ := unstructured.NestedMap(u.Object, "spec", field)
	if ref := reference(v, of); ref.Group != "" && ref.Kind != "" && ref.Name != "" {
		return &ref
	}
	return nil
}

// Names reports whether a field of the object names another one.
func (o Observed) Names(field string) bool {
	return slices.ContainsFunc(o.References, func(r Reference) bool { return r.Field == field })
}

// onlyNames reports whether a map has no field but those of a reference.
func onlyNames(v map[string]any) bool {
	for key := range v {
		switch key {
		case "apiGroup", "apiVersion", "kind", "name", "namespace", "key", "optional", "uid", "resourceVersion", "fieldPath", "type":
		default:
			return false
		}
	}
	return true
}

// isReference reports whether a field is called a reference.
func isReference(path string) bool {
	path, _, _ = strings.Cut(path[strings.LastIndex(path, ".")+1:], "[")
	path = strings.TrimSuffix(path, "s")
	return strings.HasSuffix(path, "Ref") || strings.HasSuffix(path, "Reference")
}

// subjectOf is what a field is about: "clientSecret" of spec.clientSecretRefs[0].
func subjectOf(path string) string {
	path, _, _ = strings.Cut(path[strings.LastIndex(path, ".")+1:], "[")
	for _, suffix := range []string{"s", "Reference", "Ref", "Name", "Key", "s"} {
		path = strings.TrimSuffix(path, suffix)
	}
	return path
}

// kindOf returns Secret or ConfigMap if the subject of a field ends with it.
func kindOf(subject string) string {
	subject = strings.ToLower(subject)
	switch {
	case strings.HasSuffix(subject, "secret"):
		return "Secret"
	case strings.HasSuffix(subject, "configmap"):
		return "ConfigMap"
	default:
		return ""
	}
}

func credential(subject string) bool {
	subject = strings.ToLower(subject)
	return strings.HasSuffix(subject, "credential") || strings.HasSuffix(subject, "identity")
}

// Credential reports whether the field names a Secret that the object cannot be without. A Secret that files are taken from does not
// count: they may have been taken long ago.
func (r Reference) Credential() bool {
	if r.Ref.Group != "" || r.Weak || strings.Contains(r.Field, "From.") {
		return false
	}
	return r.Ref.Kind == "Secret" || r.Ref.Kind == "" && credential(subjectOf(r.Field))
}

// Fits returns how well an object of a kind fits a reference by its kind; 0 is not at all. Where the object states no kind, the name of
// the field does: dataTemplate is a Metal3DataTemplate, and else a Secret.
func (r Reference) Fits(group, kind string) int {
	const certain, secret, configMap, failureDomain = 1000, 2, 1, "failureDomain"
	switch {
	case r.Ref.Kind != "":
		if r.Ref.Kind == kind && (r.Ref.Group == "" || r.Ref.Group == group) {
			return certain
		}
		return 0
	case group == "" && kind == "Secret":
		return secret
	case group == "" && kind == "ConfigMap":
		return configMap
	case strings.HasSuffix(kind, "DeploymentZone") && subjectOf(r.Field) == failureDomain:
		return len(failureDomain) + 1 // of vSphere; the zone names its VSphereFailureDomain in a field that is called the same
	default:
		return commonWords(subjectOf(r.Field), kind)
	}
}

// commonWords returns the length of the last words that two names in camel case share.
func commonWords(field, kind string) (length int) {
	for i := 1; i <= min(len(field), len(kind)) && strings.EqualFold(field[len(field)-i:], kind[len(kind)-i:]); i++ {
		in, of := len(kind)-i, len(field)-i
		if isUpper(kind[in]) && (in == 0 || !isUpper(kind[in-1])) && (of == 0 || isUpper(field[of])) {
			length = i
		}
	}
	if length < 3 { // as VPC has
		return 0
	}
	return length
}

func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }
