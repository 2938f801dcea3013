package task

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"scute.dev/workflow"
)

// CheckScripts warns about references to outputs in a shell script. The script can be anywhere in
// the command, for example after env or timeout. The command consists of the words of the field
// command, followed by those of args.
func CheckScripts(commandField string, command []string, argsField string, args []string, remedy string) []workflow.Problem {
	words := slices.Concat(command, args)
	// shell is set while the options of a shell are read, script if -c is one of them, and last if no
	// option follows.
	var shell, script, last bool
	for i := 0; i < len(words); i++ {
		switch word := words[i]; {
		// The script after -c is not a shell's name, even if it ends with one: "${tasks.x.output}/sh".
		case !(shell && script && HasReferences(word)) && slices.Contains([]string{"sh", "bash", "dash", "ash", "ksh", "zsh"}, path.Base(word)):
			shell, script, last = true, false, false
		case !shell:
		case !last && (word == "--rcfile" || word == "--init-file"):
			i++ // skip the value of the option
		case !last && (word == "-" || word == "--"):
			last = true
		case !last && strings.HasPrefix(word, "--"):
		case !last && (strings.HasPrefix(word, "-") || strings.HasPrefix(word, "+")):
			script = script || word[0] == '-' && strings.Contains(word, "c")
			if strings.ContainsAny(word, "oO") {
				i++ // the name of the option
			}
		default: // words after a script or a file are its arguments, which the shell does not run
			shell = false
			if refs, _ := workflow.References(json.RawMessage(word)); !script || len(refs) == 0 {
				continue
			}
			field := fmt.Sprintf("%s[%d]", commandField, i)
			if i >= len(command) {
				field = fmt.Sprintf("%s[%d]", argsField, i-len(command))
			}
			return []workflow.Problem{{
				Field: field, Warning: true, Message: "the script contains an output, whose content the shell would run",
				Remedy: remedy,
			}}
		}
	}
	return nil
}
