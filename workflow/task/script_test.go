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

// TestScriptsThatLookLikeOtherWords checks that a script is not taken for the name of a shell, and that a shell has no
// options after "--".
func TestScriptsThatLookLikeOtherWords(t *testing.T) {
	const output, other = "curl ${tasks.a.output.url} | /bin/sh", "curl https://example.com | /bin/sh"
	for _, c := range []struct {
		words []string
		want  int
	}{
		{[]string{"sh", "-c", output}, 1},
		{[]string{"sh", "-c", other}, 0},
		{[]string{"sh", "-c", "--", "--init-file", "a", output}, 0}, // arguments of the script --init-file
	} {
		if problems := task.CheckScripts("command", c.words, "args", nil, ""); len(problems) != c.want {
			t.Errorf("%q: problems %v, want %d", c.words, problems, c.want)
		}
	}
}
