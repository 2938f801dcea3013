package run

import (
	"slices"
	"strings"
	"testing"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
)

// TestWhatContinuesAnApprovalIsKnownFromItsResource checks that the actions offered for a paused Approve task are valid
// for it if only the resource could be read.
func TestWhatContinuesAnApprovalIsKnownFromItsResource(t *testing.T) {
	r := &Run{Namespace: "fleet", Name: "rollout", Status: v1alpha1.WorkflowRunStatus{Tasks: []v1alpha1.TaskStatus{
		{Name: "checked", Kind: "Approve", Phase: v1alpha1.TaskPaused, Question: 1},
		{Name: "web", Kind: "Apply", Phase: v1alpha1.TaskPaused, Question: 2},
	}}}
	k := &kit.Kit{Env: cli.System("scutectl", "test"), Flags: connect.New()}
	for task, want := range map[string]string{
		"checked": "--task checked --question 1 --action succeed --reason ... -n fleet`; or with --action ignore-children, rollback, abort",
		"web":     "--task web --question 2 --action retry --reason ... -n fleet`; or with --action ignore, ignore-children, succeed, rollback, abort",
	} {
		if got := DecideCommand(k, r, task); !strings.HasSuffix(got, want) {
			t.Errorf("DecideHint = %s, want suffix %s", got, want)
		}
	}
}

// TestNextCommandsOfARunThatIsDriven checks that only a run that no process drives is resumed after
// a decision. A page cannot know that, and only looks at the location of the log.
func TestNextCommandsOfARunThatIsDriven(t *testing.T) {
	k := &kit.Kit{Env: cli.System("scutectl", "test"), Flags: connect.New()}
	k.Flags.Dir = "logs"
	r := &Run{Namespace: "fleet", Name: "prod", Status: v1alpha1.WorkflowRunStatus{
		Phase: v1alpha1.RunPaused, Tasks: []v1alpha1.TaskStatus{{Name: "checked", Kind: approve, Phase: v1alpha1.TaskPaused, Question: 1}},
	}}
	resumes := func(lines []string) bool {
		return slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, "then continues the run") })
	}
	if resumes(nextCommands(k, r)) || !resumes(PageCommands(k, r)) {
		t.Errorf("nextCommands = %q, PageCommands = %q", nextCommands(k, r), PageCommands(k, r))
	}
}
