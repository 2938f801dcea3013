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

// Reference describes a field that names another object. Group and Kind of Ref are empty if the
// field does not contain them. If the field contains no namespace, Ref has the namespace of the
// referring object.
type Reference struct {
	Field string
	Ref   Ref
	// Uncertain means that neither the name nor the shape of the field shows a reference. It counts
	// only if the named object exists.
	Uncertain bool
}

// references returns every field of a spec with the name or the shape of a reference, and the
// annotations of providers. It omits the variables and patches of a ClusterClass, because the
// objects made from them are read, and the templates of KubeVirt's virtual machines, because they
// refer to the cluster that they run in.
func references(u *unstructured.Unstructured, of Ref) []Reference {
	if of.Group == "" {
		return nil
	}
	r := referenceReader{owner: of}
	r.addAnnotations("metadata.annotations", u.GetAnnotations())
	r.read("spec", u.Object["spec"], nil)
	return r.found
}

type referenceReader struct {
	owner Ref
	found []Reference
}

// read adds the references in v. around is the map of which v is a field, or nil.
func (r *referenceReader) read(path string, v any, around map[string]any) {
	switch v := v.(type) {
	case string:
		r.addText(path, v, around)
	case []any:
		for i, e := range v {
			r.read(fmt.Sprintf("%s[%d]", path, i), e, nil)
		}
	case map[string]any:
		r.addObject(path, v)
		for _, key := range slices.Sorted(maps.Keys(v)) {
			switch key {
			case "variables", "patches", "virtualMachineTemplate":
			case "metadata":
				annotations, _, _ := unstructured.NestedStringMap(v, key, "annotations")
				r.addAnnotations(path+".metadata.annotations", annotations)
			default:
				r.read(path+"."+key, v[key], v)
			}
		}
	}
}

func (r *referenceReader) addObject(path string, v map[string]any) {
	ref := reference(v, r.owner)
	subject := subjectOf(path)
	if text, _ := v["type"].(string); ref.Kind == "" && text == "Secret" {
		ref.Kind = text
	}
	_, elsewhere := v["namespace"].(string)
	named := isReference(path) || kindOf(subject) != "" || ref.Kind != ""
	ref.Kind = cmp.Or(ref.Kind, kindOf(subject))
	if named || isReferenceMap(v) {
		r.add(Reference{Field: path, Ref: ref, Uncertain: !named && !elsewhere && !isCredential(subject)})
	}
}

// addText adds a string if its field's name shows a reference: credentialsName, secretRef. It
// ignores other fields with "secret" in their name, whose value may be the secret.
func (r *referenceReader) addText(path, v string, around map[string]any) {
	key := path[strings.LastIndex(path, ".")+1:]
	key, _, _ = strings.Cut(key, "[")
	singular := strings.TrimSuffix(key, "s")
	isName := strings.HasSuffix(singular, "Name") && key != "clusterName"
	_, source, _ := strings.Cut(strings.ToUpper(key[:min(1, len(key))])+key[min(1, len(key)):], "From") // fromSecret, ipAddressFromIPPool
	if !isName && !isReference(path) && singular != "failureDomain" && (source == "" || !isUpper(source[0])) {
		return
	}
	subject := subjectOf(path)
	ref := Ref{Kind: kindOf(subject), Namespace: r.owner.Namespace, Name: v}
	if namespace, name, ok := strings.Cut(v, "/"); ok {
		ref.Namespace, ref.Name = namespace, name
	} else if namespace, _ := around[strings.TrimSuffix(key, "Name")+"Namespace"].(string); namespace != "" {
		ref.Namespace = namespace
	}
	r.add(Reference{Field: path, Ref: ref, Uncertain: ref.Kind == "" && !isReference(path) && !isCredential(subject)})
}

// addAnnotations adds the annotations whose key has a kind, as in metal3.io/BareMetalHost, or ends
// in -secret or is credential-from.
func (r *referenceReader) addAnnotations(path string, addAnnotations map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(addAnnotations)) {
		kind := key[strings.LastIndex(key, "/")+1:]
		switch {
		case kind == "credential-from", strings.HasSuffix(kind, "-secret"):
			kind = "Secret"
		case kind == "" || !isUpper(kind[0]):
			continue
		}
		ref := Ref{Kind: kind, Namespace: r.owner.Namespace, Name: addAnnotations[key]}
		if namespace, name, ok := strings.Cut(ref.Name, "/"); ok {
			ref.Namespace, ref.Name = namespace, name
		}
		r.add(Reference{Field: path + "[" + key + "]", Ref: ref})
	}
}

func (r *referenceReader) add(one Reference) {
	isName := func(s string) bool { return len(validation.IsDNS1123Subdomain(s)) == 0 }
	ofCluster := one.Ref.GroupKind() == "Cluster."+CoreGroup || strings.EqualFold(subjectOf(one.Field), "cluster")
	if isName(one.Ref.Name) && (one.Ref.Namespace == "" || isName(one.Ref.Namespace)) && !ofCluster { // a reference to its Cluster is membership
		r.found = append(r.found, one)
	}
}

// reference decodes an object reference of Cluster API's v1beta2, with apiGroup, or of v1beta1,
// with apiVersion.
func reference(v map[string]any, of Ref) Ref {
	text := func(key string) string { s, _ := v[key].(string); return s }
	group := text("apiGroup")
	if of, _, ok := strings.Cut(text("apiVersion"), "/"); ok && group == "" { // "v1" has no group
		group = of
	}
	return Ref{Group: group, Kind: text("kind"), Namespace: cmp.Or(text("namespace"), of.Namespace), Name: text("name")}
}

// referenceAt returns the object that a field of the spec names, or nil. Without a namespace it
// assumes the object's own, even for a cluster-scoped pool.
func referenceAt(u *unstructured.Unstructured, of Ref, field string) *Ref {
	v, _, _ := unstructured.NestedMap(u.Object, "spec", field)
	if ref := reference(v, of); ref.Group != "" && ref.Kind != "" && ref.Name != "" {
		return &ref
	}
	return nil
}

// HasReference reports whether a field refers to another object.
func (o Observed) HasReference(field string) bool {
	return slices.ContainsFunc(o.References, func(r Reference) bool { return r.Field == field })
}

func isReferenceMap(v map[string]any) bool {
	for key := range v {
		switch key {
		case "apiGroup", "apiVersion", "kind", "name", "namespace", "key", "optional", "uid", "resourceVersion", "fieldPath", "type":
		default:
			return false
		}
	}
	return true
}

func isReference(path string) bool {
	path, _, _ = strings.Cut(path[strings.LastIndex(path, ".")+1:], "[")
	path = strings.TrimSuffix(path, "s")
	return strings.HasSuffix(path, "Ref") || strings.HasSuffix(path, "Reference")
}

// subjectOf returns a field's name without the suffixes of references: "clientSecret" for
// spec.clientSecretRefs[0].
func subjectOf(path string) string {
	path, _, _ = strings.Cut(path[strings.LastIndex(path, ".")+1:], "[")
	for _, suffix := range []string{"s", "Reference", "Ref", "Name", "Key", "s"} {
		path = strings.TrimSuffix(path, suffix)
	}
	return path
}

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

func isCredential(subject string) bool {
	subject = strings.ToLower(subject)
	return strings.HasSuffix(subject, "credential") || strings.HasSuffix(subject, "identity")
}

// IsCredential reports whether the field names a Secret with credentials that the object needs. A
// Secret from which files are read ("From") does not count: they may have been read long ago.
func (r Reference) IsCredential() bool {
	if r.Ref.Group != "" || r.Uncertain || strings.Contains(r.Field, "From.") {
		return false
	}
	return r.Ref.Kind == "Secret" || r.Ref.Kind == "" && isCredential(subjectOf(r.Field))
}

// MatchScore returns how well a kind matches a reference; 0 is no match. Without a kind in the
// reference, the field's name decides: dataTemplate matches a Metal3DataTemplate best. A Secret and
// a ConfigMap always match a little.
func (r Reference) MatchScore(group, kind string) int {
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
		return len(failureDomain) + 1 // of vSphere, whose zone names its VSphereFailureDomain in a field of this name
	default:
		return commonWords(subjectOf(r.Field), kind)
	}
}

// commonWords returns the length of the last words that two camel-case names share; 0 if less than
// 3.
func commonWords(field, kind string) (length int) {
	for i := 1; i <= min(len(field), len(kind)) && strings.EqualFold(field[len(field)-i:], kind[len(kind)-i:]); i++ {
		in, of := len(kind)-i, len(field)-i
		if isUpper(kind[in]) && (in == 0 || !isUpper(kind[in-1])) && (of == 0 || isUpper(field[of])) {
			length = i
		}
	}
	if length < 3 { // the shortest useful word is VPC
		return 0
	}
	return length
}

func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }
