package manifest

import (
	"fmt"

	"scute.dev/api/v1alpha1"
	"scute.dev/workflow"
)

// expandNeeds replaces the needs of tasks for an expanded base by needs for its parts: for all parts if the need is for success
// or completion, for any part if it is for failure. It removes needs for a base without parts.
//
// The Field of a problem is relative to the task.
func expandNeeds(tasks []v1alpha1.TaskSpec, base string, parts []v1alpha1.TaskSpec) (problems []workflow.Problem) {
	for i := range tasks {
		t := &tasks[i]
		var needs []v1alpha1.Need
		optional := 0
		for _, n := range t.Needs {
			if n.Optional {
				optional++
			}
		}
		for j, n := range t.Needs {
			if n.Task != base {
				needs = append(needs, n)
				continue
			}
			failure := n.On == v1alpha1.OnFailure
			// One of the optional edges of a task is enough to start it. This is only right if all of them are for "any part failed".
			if len(parts) > 1 && (n.Optional && (!failure || optional > 1) || failure && !n.Optional && optional > 0) {
				problems = append(problems, workflow.Problem{
					Task: t.Name, Field: fmt.Sprintf("needs[%d]", j),
					Message: fmt.Sprintf("%s expands to %d parts, and edges to them cannot be combined with other optional edges", base, len(parts)),
					Remedy:  "use an edge to one part, for example " + parts[0].Name + ", or add a task in between",
				})
				continue
			}
			for _, part := range parts {
				edge := *n.DeepCopy()
				edge.Task = part.Name
				edge.Optional = n.Optional || failure && len(parts) > 1
				needs = append(needs, edge)
			}
		}
		t.Needs = needs
	}
	return problems
}
