package manifest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"scute.dev/api/v1alpha1"
)

func TestNeedParts(t *testing.T) {
	parts := []v1alpha1.TaskSpec{{StepSpec: v1alpha1.StepSpec{Name: "app/a"}}, {StepSpec: v1alpha1.StepSpec{Name: "app/b"}}}
	tasks := func(needs ...v1alpha1.Need) []v1alpha1.TaskSpec { return []v1alpha1.TaskSpec{{Needs: needs}} }
	for name, c := range map[string]struct {
		tasks    []v1alpha1.TaskSpec
		parts    []v1alpha1.TaskSpec
		want     []v1alpha1.Need
		problems int
	}{
		"all of them":     {tasks(v1alpha1.Need{Task: "x"}, v1alpha1.Need{Task: "app"}), parts, []v1alpha1.Need{{Task: "x"}, {Task: "app/a"}, {Task: "app/b"}}, 0},
		"none":            {tasks(v1alpha1.Need{Task: "app"}), nil, nil, 0},
		"any that failed": {tasks(v1alpha1.Need{Task: "app", On: "Failure"}), parts, []v1alpha1.Need{{Task: "app/a", On: "Failure", Optional: true}, {Task: "app/b", On: "Failure", Optional: true}}, 0},
		"optional":        {tasks(v1alpha1.Need{Task: "app", Optional: true}), parts, nil, 1},
		"optional one":    {tasks(v1alpha1.Need{Task: "app", Optional: true}), parts[:1], []v1alpha1.Need{{Task: "app/a", Optional: true}}, 0},
		"mixed":           {tasks(v1alpha1.Need{Task: "app", On: "Failure"}, v1alpha1.Need{Task: "x", Optional: true}), parts, []v1alpha1.Need{{Task: "x", Optional: true}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			problems := expandNeeds(c.tasks, "app", c.parts)
			if len(problems) != c.problems {
				t.Errorf("problems = %v", problems)
			}
			if diff := cmp.Diff(c.want, c.tasks[0].Needs); diff != "" {
				t.Error(diff)
			}
		})
	}
}
