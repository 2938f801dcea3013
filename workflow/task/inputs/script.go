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
	for i := 0; i < len(words); {
		if !isShell(words[i]) {
			i++
			continue
		}
		given, at := options(words, i+1)
		i = at // what is behind the options may be another shell
		if !given || at == len(words) {
			continue
		}
		if refs, _ := workflow.References(json.RawMessage(words[at])); len(refs) == 0 {
			continue
		}
		field := fmt.Sprintf("%s[%d]", commandField, at)
		if at >= len(command) {
			field = fmt.Sprintf("%s[%d]", argsField, at-len(command))
		}
		return []workflow.Problem{{Field: field, Warning: true, Message: "an output is put into a script, where the shell runs what it holds", Remedy: remedy}}
	}
	return nil
}

// options reads those of a shell. With -c among them ("sh -ce", "bash -c -o pipefail --") the word behind them is a script, and what follows that are
// its arguments, which are not run.
func options(words []string, i int) (script bool, behind int) {
	for ; i < len(words); i++ {
		word := words[i]
		switch {
		case word == "-" || word == "--":
			return script, i + 1
		case word == "--rcfile" || word == "--init-file":
			i++ // its value
		case strings.HasPrefix(word, "--"):
		case strings.HasPrefix(word, "-") || strings.HasPrefix(word, "+"):
			script = script || word[0] == '-' && strings.Contains(word, "c")
			if strings.ContainsAny(word, "oO") {
				i++ // the name of the option
			}
		default:
			return script, i
		}
	}
	return script, len(words)
}

func isShell(word string) bool {
	return slices.Contains([]string{"sh", "bash", "dash", "ash", "ksh", "zsh"}, path.Base(word))
}
