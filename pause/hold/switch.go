package hold

import (
	"context"
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/pause"
)

// Switch is the boolean field of the spec or the annotation that pauses an object.
type Switch struct {
	Field, Annotation string
	// On is the value that pauses the object; "" means any value of the annotation. Off is the
	// value that Restore writes; nil removes the field or the annotation.
	On, Off any
	// Exact makes Set fail with ErrChanged if the value is not Off, even if neither pauses the object.
	Exact bool
}

// SwitchOf returns the switch of a root.
func SwitchOf(ref object.Ref) Switch {
	if pause.IsCluster(ref) {
		return Switch{Field: "paused", On: true}
	}
	return Switch{Annotation: object.PausedAnnotation, On: ""}
}

// Read returns the value of the switch, nil for none, and whether it pauses the object.
func (s Switch) Read(u *unstructured.Unstructured) (value any, on bool) {
	if s.Annotation != "" {
		v, found := u.GetAnnotations()[s.Annotation]
		if !found {
			return nil, false
		}
		return v, s.On == "" || s.On == v
	}
	v, found, err := unstructured.NestedBool(u.Object, "spec", s.Field)
	if !found || err != nil {
		return nil, false
	}
	return v, v
}

// wasPaused reports whether the object was paused before any holder.
func (s Switch) wasPaused(u *unstructured.Unstructured) bool {
	_, on := s.Read(u)
	if before, held := u.GetAnnotations()[object.PausedBeforeAnnotation]; held && len(holders(u)) > 0 {
		return on && (before == "true" || s.isSetByOthers(u))
	}
	return on
}

// write patches annotations and, with turn, the switch, only in the given UID and resource version.
func (s Switch) write(
	ctx context.Context, c *kube.Cluster, t kube.Type, root pause.Root, version string, annotations map[string]any, turn bool, value any,
) error {
	body := map[string]any{"metadata": map[string]any{"uid": root.UID, "resourceVersion": version, "annotations": annotations}}
	switch {
	case turn && s.Annotation != "":
		annotations[s.Annotation] = value
	case turn:
		body["spec"] = map[string]any{s.Field: value}
	}
	return c.Patch(ctx, "pause or resume "+root.Ref.String(), t, root.Ref, body)
}

// Owner returns the field manager that set the switch, "" if the server does not know it.
func (s Switch) Owner(u *unstructured.Unstructured) string {
	if managers := s.owners(u); len(managers) > 0 {
		return managers[0]
	}
	return ""
}

// isSetByOthers reports whether a client other than scute set the value of the switch. The API
// server knows this only after a server-side apply or a change of the value. The two excluded names
// are placeholders for managers that it no longer distinguishes.
func (s Switch) isSetByOthers(u *unstructured.Unstructured) bool {
	return slices.ContainsFunc(s.owners(u), func(manager string) bool {
		return manager != kube.FieldManager && manager != "ancient-changes" && manager != "before-first-apply"
	})
}

func (s Switch) owners(u *unstructured.Unstructured) (managers []string) {
	path := []string{"f:spec", "f:" + s.Field}
	if s.Annotation != "" {
		path = []string{"f:metadata", "f:annotations", "f:" + s.Annotation}
	}
	for _, entry := range u.GetManagedFields() {
		if entry.FieldsV1 == nil || entry.Subresource != "" {
			continue
		}
		var fields map[string]any
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err != nil {
			continue
		}
		if _, owns, err := unstructured.NestedFieldNoCopy(fields, path...); owns && err == nil {
			managers = append(managers, entry.Manager)
		}
	}
	return managers
}
