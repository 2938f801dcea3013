package sequence

import (
	"encoding/json"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"scute.dev/api/v1alpha1"
)

// WithPause adds a task of the kind Pause with these inputs, which pauses other controllers until the run ends, including the hooks after the last task.
// It adds nothing if with is nil.
func WithPause[C any](s Sequence[C], with json.RawMessage) Sequence[C] {
	if len(with) == 0 {
		return s
	}
	return addTask(s, v1alpha1.TaskSpec{StepSpec: v1alpha1.StepSpec{Name: "pause-controllers", Kind: "Pause", With: &apiextensionsv1.JSON{Raw: with}}})
}
