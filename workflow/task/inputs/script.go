package inputs

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"scute.dev/workflow"
)

// CheckScripts returns a warning if a reference to an output is in the script of a shell. It finds
// the shell anywhere in a command, for example after env or timeout. The command consists of the
// words of the field command, followed by the words of the field args.
func CheckScripts(commandField string, command []string, argsField string, args []string, remedy string) []workflow.Problem {
	words := slices.Concat(command, args)
	for i := 0; i < len(words); {
		if !isShell(words[i]) {
			i++
			continue
		}
		script, at := skipOptions(words, i+1)
		i = at // another shell may follow the options
		if !script || at == len(words) {
			continue
		}
		if refs, _ := workflow.References(json.RawMessage(words[at])); len(refs) == 0 {
			continue
		}
		field := fmt.Sprintf("%s[%d]", commandField, at)
		if at >= len(command) {
			field = fmt.Sprintf("%s[%d]", argsField, at-len(command))
		}
		return []workflow.Problem{{
			Field: field, Warning: true, Message: "the script contains an output, whose content the shell would run",
			Remedy: remedy,
		}}
	}
	return nil
}

// skipOptions skips the options of a shell and returns the index of the next word. script reports whether -c is among them ("sh -ce", "bash -c -o
// pipefail --"): then the next word is a script, and the words after it are its arguments, which the shell does not run.
func skipOptions(words []string, i int) (script bool, next int) {
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
