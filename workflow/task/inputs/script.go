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
	for shell, word := range words {
		i := scriptOf(words, shell)
		if i == len(words) || !isShell(word) {
			continue
		}
		if refs, _ := workflow.References(json.RawMessage(words[i])); len(refs) == 0 {
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

// scriptOf is the word that a shell runs as its script: the one behind -c, which may stand among other options ("sh -ce", "bash -c -o pipefail --").
// It is len(words) when there is none. What follows it are the arguments of the script, which are not run.
func scriptOf(words []string, shell int) int {
	given := false
	for i := shell + 1; i < len(words); i++ {
		word := words[i]
		switch {
		case word == "-" || word == "--":
			i++
		case strings.HasPrefix(word, "--"):
			continue
		case strings.HasPrefix(word, "-") || strings.HasPrefix(word, "+"):
			given = given || word[0] == '-' && strings.Contains(word, "c")
			if strings.ContainsAny(word, "oO") {
				i++ // the name of the option
			}
			continue
		}
		if !given {
			break
		}
		return min(i, len(words))
	}
	return len(words)
}

func isShell(word string) bool {
	return slices.Contains([]string{"sh", "bash", "dash", "ash", "ksh", "zsh"}, path.Base(word))
}
