package manifest

import (
	"fmt"

	"scute.dev/api/v1alpha1"
	"scute.dev/workflow"
)

// needParts makes tasks that need an expanded base need its parts: all of them for its success or its end, any of them
// for its failure. A base without parts is needed by nobody. Tasks that do not need the base are left as they are.
//
// The Field of a problem is relative to the task.
func needParts(tasks []v1alpha1.TaskSpec, base string, parts []v1alpha1.TaskSpec) (problems []workflow.Problem) {
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
			// Among optional edges one is enough: that is right for "any part failed" alone, and wrong for everything else.
			if len(parts) > 1 && (n.Optional && (!failure || optional > 1) || failure && !n.Optional && optional > 0) {
				problems = append(problems, workflow.Problem{
					Task: t.Name, Field: fmt.Sprintf("needs[%d]", j),
					Message: fmt.Sprintf("%s is expanded, and this edge cannot be made to its %d parts together with other optional ones", base, len(parts)),
					Remedy:  "name the part that is meant, for example " + parts[0].Name + ", or put a separate task in between",
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
