package sequence

import (
	"encoding/json"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"scute.dev/api/v1alpha1"
)

// The tasks that keep the controllers of others still for a while: of the kinds Pause and Resume.
const (
	pauseTask  = "pause-controllers"
	resumeTask = "resume-controllers"
)

// Paused adds a task of the kind Pause with these inputs; nothing for nil.
func Paused[C any](s Sequence[C], with json.RawMessage) Sequence[C] {
	if len(with) == 0 {
		return s
	}
	return generic(s, v1alpha1.TaskSpec{StepSpec: v1alpha1.StepSpec{Name: pauseTask, Kind: "Pause", With: &apiextensionsv1.JSON{Raw: with}}})
}

// Resumed adds the task that gives back what Paused has paused.
func Resumed[C any](s Sequence[C], with json.RawMessage) Sequence[C] {
	if len(with) == 0 {
		return s
	}
	return generic(s, v1alpha1.TaskSpec{StepSpec: v1alpha1.StepSpec{
		Name: resumeTask, Kind: "Resume", With: &apiextensionsv1.JSON{Raw: []byte(`{"task":"` + pauseTask + `"}`)},
	}})
}
