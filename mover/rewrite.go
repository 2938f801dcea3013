package mover

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/kube/object"
)

// ContentHash returns the hash of an object without its status, the server's metadata, owner
// references, and scute's annotations. It returns "" for a Secret, because a reader of the log
// could guess a short secret from its hash.
func ContentHash(u *unstructured.Unstructured) (string, error) {
	if ref := object.RefOf(u); ref.Group == "" && ref.Kind == "Secret" {
		return "", nil
	}
	content := strip(u)
	content.SetOwnerReferences(nil)
	if IsRecord(object.RefOf(content)) {
		content.Object["spec"] = map[string]any{"clusterName": object.Observe(content).BoundCluster, "bindings": setNamesOf(content)}
	}
	raw, err := json.Marshal(content.Object) // keys are sorted
	if err != nil {
		return "", fmt.Errorf("hashing %s %s/%s: %w", u.GetKind(), u.GetNamespace(), u.GetName(), err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), nil
}

// Rewrite returns the copy of source to create on the target: without the server's metadata, with
// the UIDs that the owners have on the target (uids), and with the move's annotations (marks). It
// returns an error if uids does not contain an owner.
func Rewrite(source *unstructured.Unstructured, item Item, marks map[string]string, uids map[object.Ref]types.UID) (*unstructured.Unstructured, error) {
	u := strip(source)
	var owners []metav1.OwnerReference
	for _, o := range item.Owners {
		uid := uids[o.Ref]
		if uid == "" {
			return nil, fmt.Errorf("%s: its owner %s is not on the target yet", item.Ref, o.Ref)
		}
		owners = append(owners, metav1.OwnerReference{
			APIVersion: schema.GroupVersion{Group: o.Ref.Group, Version: o.Version}.String(), Kind: o.Ref.Kind, Name: o.Ref.Name, UID: uid,
			Controller: o.Controller, BlockOwnerDeletion: o.BlockOwnerDeletion,
		})
	}
	u.SetOwnerReferences(owners)
	annotations := u.GetAnnotations()
	if annotations == nil {
		annotations = make(map[string]string, len(marks))
	}
	maps.Copy(annotations, marks)
	u.SetAnnotations(annotations)
	return u, nil
}

func strip(u *unstructured.Unstructured) *unstructured.Unstructured {
	c := u.DeepCopy()
	object.StripServerFields(c)
	c.SetGenerateName("")
	annotations := c.GetAnnotations()
	for key := range annotations {
		if strings.HasPrefix(key, object.OwnPrefix) || key == object.DeleteForMoveAnnotation {
			delete(annotations, key)
		}
	}
	if len(annotations) == 0 {
		annotations = nil
	}
	c.SetAnnotations(annotations)
	return c
}

// Contains reports whether have contains the content of want. If not, it returns the first field
// that differs. have may contain more, because the target's webhooks may set defaults and its
// controllers may add finalizers and labels. Quantities and durations in a spec may be written
// differently (1000m and 1, 10m and 10m0s).
func Contains(want, have *unstructured.Unstructured) (field string, ok bool) {
	w := want.DeepCopy()
	w.SetFinalizers(nil)
	if IsRecord(object.RefOf(want)) {
		if object.Observe(want).BoundCluster != object.Observe(have).BoundCluster {
			return ".spec.clusterName", false
		}
		if _, missing := MergedRecord(want, have); missing {
			return ".spec.bindings", false
		}
		w.SetOwnerReferences(nil)
		delete(w.Object, "spec")
	}
	return containsValue(w.Object, have.Object, "")
}

func containsValue(want, have any, path string) (string, bool) {
	switch want := want.(type) {
	case nil:
		return "", true
	case map[string]any:
		h, _ := have.(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(want)) {
			value := want[key]
			if isEmpty(value) && h[key] == nil {
				continue
			}
			if field, ok := containsValue(value, h[key], path+"."+key); !ok {
				return field, false
			}
		}
		return "", true
	case []any:
		h, ok := have.([]any)
		if !ok || len(h) != len(want) {
			return path, false
		}
		for i := range want {
			if field, ok := containsValue(want[i], h[i], fmt.Sprintf("%s[%d]", path, i)); !ok {
				return field, false
			}
		}
		return "", true
	default:
		return path, reflect.DeepEqual(normalizeNumber(want), normalizeNumber(have)) || strings.HasPrefix(path, ".spec") && equalQuantities(want, have)
	}
}

func equalQuantities(want, have any) bool {
	w, isText := want.(string)
	h, isTextToo := have.(string)
	if !isText || !isTextToo {
		return false
	}
	long, err := time.ParseDuration(w)
	if other, errToo := time.ParseDuration(h); err == nil && errToo == nil {
		return long == other
	}
	if !strings.ContainsAny(w+h, "numkKMGTPEi") {
		return false // without a unit it may be a version: 1.30 is not 1.3
	}
	a, err := resource.ParseQuantity(w)
	if err != nil {
		return false
	}
	b, err := resource.ParseQuantity(h)
	return err == nil && a.Cmp(b) == 0
}

// normalizeNumber converts integers to float64, so that numbers are comparable however they were
// decoded.
func normalizeNumber(v any) any {
	switch v := v.(type) {
	case int64:
		return float64(v)
	case int:
		return float64(v)
	default:
		return v
	}
}

func isEmpty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	case string:
		return v == ""
	default:
		return false
	}
}
