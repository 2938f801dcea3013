package kube

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// TestWithoutValues checks that the message names each invalid field and quotes no values.
func TestWithoutValues(t *testing.T) {
	spec := field.NewPath("spec")
	err := error(apierrors.NewInvalid(schema.GroupKind{Group: "bootstrap.cluster.x-k8s.io", Kind: "KubeadmConfig"}, "a", field.ErrorList{
		field.Invalid(spec.Child("users").Index(0).Child("passwd"), "hunter2", "hunter2 is no hash"),
		field.NotSupported(spec.Child("format"), "hunter2", []string{"ignition"}),
		field.Required(spec.Child("name"), "every user has one"),
	}))
	clean := withoutValues(err)
	want := `KubeadmConfig "a" is invalid: spec.users[0].passwd: Invalid value; spec.format: Unsupported value; spec.name: Required value: every user has one`
	if clean.Error() != want || !apierrors.IsInvalid(clean) {
		t.Errorf("withoutValues = %v\nwant %s", clean, want)
	}
	for _, other := range []error{errors.New("x"), apierrors.NewConflict(schema.GroupResource{}, "a", fmt.Errorf("y"))} {
		if got := withoutValues(other); !errors.Is(got, other) || got.Error() != other.Error() {
			t.Errorf("withoutValues(%v) = %v, want it unchanged", other, got)
		}
	}
}
