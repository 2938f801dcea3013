package resource

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"scute.dev/api/v1alpha1"
	"scute.dev/pause"
)

// Duration returns a duration of a spec, or otherwise if the resource was written without the schema's defaults.
func Duration(d *v1alpha1.Duration, otherwise time.Duration) pause.Duration {
	return pause.Duration(d.Or(otherwise))
}

// Durations returns the durations of a spec by kind; nil if there are none.
func Durations(kinds map[string]v1alpha1.Duration) map[string]pause.Duration {
	if len(kinds) == 0 {
		return nil
	}
	all := make(map[string]pause.Duration, len(kinds))
	for kind, d := range kinds {
		all[kind] = pause.Duration(d.Duration)
	}
	return all
}

// Selector returns a label selector as text; nil selects nothing.
func Selector(s *metav1.LabelSelector) (text string, set bool, err error) {
	if s == nil {
		return "", false, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return "", false, err
	}
	return selector.String(), true, nil
}

// InvalidSelector returns the first error in a label selector that the schema permits, or nil.
func InvalidSelector(s *metav1.LabelSelector, at *field.Path) *v1alpha1.UnreadablePart {
	for _, err := range validation.ValidateLabelSelector(s, validation.LabelSelectorValidationOptions{}, at) {
		return &v1alpha1.UnreadablePart{Field: err.Field, Problem: err.ErrorBody()}
	}
	return nil
}
