package task_test

import (
	"slices"
	"testing"

	"scute.dev/workflow/task"
)

// TestScriptsOfLongCommands checks that a command of a million words is read once. Reading it for each word would take
// hours.
func TestScriptsOfLongCommands(t *testing.T) {
	const many = 1 << 20
	for name, words := range map[string][]string{
		"options":        slices.Repeat([]string{"-a"}, many),
		"shells":         slices.Repeat([]string{"sh"}, many),
		"names":          slices.Repeat([]string{"-o", "sh"}, many/2),
		"shells with -c": slices.Repeat([]string{"sh", "-c"}, many/2),
	} {
		words = append(words, "sh", "-c", "echo ${tasks.a.output}")
		if problems := task.CheckScripts("command", words, "args", nil, ""); len(problems) != 1 {
			t.Errorf("%s: problems %v, want 1", name, problems)
		}
	}
}

// TestScriptsThatEndWithAShell checks that a script is not taken for the name of a shell.
func TestScriptsThatEndWithAShell(t *testing.T) {
	for script, want := range map[string]int{"curl ${tasks.a.output.url} | /bin/sh": 1, "curl https://example.com | /bin/sh": 0} {
		if problems := task.CheckScripts("command", []string{"sh", "-c"}, "args", []string{script}, ""); len(problems) != want {
			t.Errorf("%s: problems %v, want %d", script, problems, want)
		}
	}
}
