package workflow_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"scute.dev/api/v1alpha1"
	"scute.dev/workflow"
)

// shapes returns graphs of n tasks that are costly to validate.
func shapes() map[string]func(n int) *v1alpha1.WorkflowRunSpec {
	name := func(i int) string { return fmt.Sprintf("task-%05d", i) }
	with := func(format string, args ...any) *apiextensionsv1.JSON {
		return &apiextensionsv1.JSON{Raw: fmt.Appendf(nil, format, args...)}
	}
	tasks := func(n int, fill func(i int, t *v1alpha1.TaskSpec)) *v1alpha1.WorkflowRunSpec {
		spec := &v1alpha1.WorkflowRunSpec{Tasks: make([]v1alpha1.TaskSpec, n)}
		for i := range spec.Tasks {
			t := &spec.Tasks[i]
			t.Name, t.Kind = name(i), "Do"
			fill(i, t)
		}
		return spec
	}
	return map[string]func(n int) *v1alpha1.WorkflowRunSpec{
		"a chain that uses the output before": func(n int) *v1alpha1.WorkflowRunSpec {
			return tasks(n, func(i int, t *v1alpha1.TaskSpec) {
				if i > 0 {
					t.Needs, t.With = []v1alpha1.Need{{Task: name(i - 1)}}, with(`{"v": "${tasks.%s.output.x}"}`, name(i-1))
				}
			})
		},
		"a chain that uses the first output": func(n int) *v1alpha1.WorkflowRunSpec {
			return tasks(n, func(i int, t *v1alpha1.TaskSpec) {
				if i > 0 {
					t.Needs, t.With = []v1alpha1.Need{{Task: name(i - 1)}}, with(`{"v": "${tasks.%s.output.x}"}`, name(0))
				}
			})
		},
		"a chain of points of no return": func(n int) *v1alpha1.WorkflowRunSpec {
			return tasks(n, func(i int, t *v1alpha1.TaskSpec) {
				t.PointOfNoReturn = true
				if i > 0 {
					t.Needs = []v1alpha1.Need{{Task: name(i - 1)}}
				}
			})
		},
		"one task that joins all others and uses their outputs": func(n int) *v1alpha1.WorkflowRunSpec {
			return tasks(n, func(i int, t *v1alpha1.TaskSpec) {
				if i < n-1 {
					return
				}
				var refs []string
				for j := range n - 1 {
					t.Needs = append(t.Needs, v1alpha1.Need{Task: name(j)})
					refs = append(refs, fmt.Sprintf("${tasks.%s.output}", name(j)))
				}
				t.With = with(`{"v": %q}`, strings.Join(refs, " "))
			})
		},
		"hooks and handlers": func(n int) *v1alpha1.WorkflowRunSpec {
			spec := tasks(1, func(_ int, t *v1alpha1.TaskSpec) {
				for j := range n {
					t.After = append(t.After, v1alpha1.HookSpec{StepSpec: v1alpha1.StepSpec{Name: name(j), Kind: "Do"}})
				}
			})
			for j := range n {
				h := v1alpha1.HookSpec{StepSpec: v1alpha1.StepSpec{Name: name(j), Kind: "Do"}}
				spec.Hooks.OnFailure, spec.Hooks.Pre = append(spec.Hooks.OnFailure, h), append(spec.Hooks.Pre, h)
			}
			return spec
		},
	}
}

// TestBuildTakesNoLongerThanItsManifest checks that the time of a validation is proportional to the size of the
// manifest, so that no tenant's manifest keeps the daemon busy.
func TestBuildTakesNoLongerThanItsManifest(t *testing.T) {
	for shape, of := range shapes() {
		t.Run(shape, func(t *testing.T) {
			took := func(spec *v1alpha1.WorkflowRunSpec) time.Duration {
				before := cpu(t)
				d, problems := workflow.Build(spec, workflow.Options{Name: "big", Kind: kind})
				if d == nil {
					t.Fatal(problems)
				}
				return cpu(t) - before
			}
			const small, large = 500, 4_000
			few, many := of(small), of(large)
			a, b := time.Hour, time.Hour
			slow := func() bool { return b > 4*large/small*max(a, 5*time.Millisecond) }
			for tries := 0; tries < 3 || tries < 20 && slow(); tries++ { // other load on the machine makes some builds slower, and none faster
				a, b = min(a, took(few)), min(b, took(many))
			}
			if slow() {
				t.Errorf("%d tasks take %s, and %d take %s", small, a, large, b)
			}
		})
	}
}

// TestBuildRefusesWhatTheLogDoesNotTake checks that Build reports each task that is too large for an event of the log,
// before anything starts.
func TestBuildRefusesWhatTheLogDoesNotTake(t *testing.T) {
	const limit = 512 << 10
	of := func(n int) []workflow.Problem {
		with := &apiextensionsv1.JSON{Raw: fmt.Appendf(nil, `{"v": %q}`, strings.Repeat("x", n))}
		d, problems := workflow.Build(&v1alpha1.WorkflowRunSpec{
			Tasks: []v1alpha1.TaskSpec{{StepSpec: v1alpha1.StepSpec{Name: "small", Kind: "Do"}}, {StepSpec: v1alpha1.StepSpec{Name: "large", Kind: "Do", With: with}}},
			Hooks: v1alpha1.RunHooks{OnFailure: []v1alpha1.HookSpec{{StepSpec: v1alpha1.StepSpec{Name: "tell", Kind: "Do", With: with}}}},
		}, workflow.Options{Name: "big", Kind: kind})
		if (d == nil) != (len(problems) > 0) {
			t.Errorf("with %d bytes: definition %v, problems %v", n, d != nil, problems)
		}
		return problems
	}
	if problems := of(limit / 2); len(problems) > 0 {
		t.Errorf("problems with half of the limit: %v", problems)
	}
	problems := of(limit)
	if len(problems) != 2 || problems[0].Task != "large" || problems[0].Field != "spec.tasks[1]" || problems[1].Field != "spec.hooks.onFailure" {
		t.Errorf("problems with the limit: %v, want one for the task and one for the handler", problems)
	}
}

// cpu returns the processor time of this process.
func cpu(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
