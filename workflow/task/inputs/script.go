package inputs

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"scute.dev/workflow"
)

// Scripts warns of outputs that are put into the script of a shell, wherever in a command the shell is: behind env or timeout, too. The words
// of a command are those of the field named command, and then those of args.
func Scripts(commandField string, command []string, argsField string, args []string, remedy string) []workflow.Problem {
	words := slices.Concat(command, args)
	shell := slices.IndexFunc(words, isShell)
	if shell < 0 {
		return nil
	}
	for i := shell + 2; i < len(words); i++ {
		flag := words[i-1]
		script := strings.HasPrefix(flag, "-") && !strings.HasPrefix(flag, "--") && strings.HasSuffix(flag, "c")
		if refs, _ := workflow.References(json.RawMessage(words[i])); !script || len(refs) == 0 {
			continue
		}
		field := fmt.Sprintf("%s[%d]", commandField, i)
		if i >= len(command) {
			field = fmt.Sprintf("%s[%d]", argsField, i-len(command))
		}
		return []workflow.Problem{{Field: field, Warning: true, Message: "an output is put into a script, where the shell runs what it holds", Remedy: remedy}}
	}
	return nil
}

func isShell(word string) bool {
	return slices.Contains([]string{"sh", "bash", "dash", "ash", "ksh", "zsh"}, path.Base(word))
}
