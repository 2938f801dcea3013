package remediator

import (
	"fmt"
	"io"
	"reflect"
)

// WriteReference writes the tables of the state machine in Markdown, for docs/design/remediation-states.md.
func WriteReference(w io.Writer) {
	fmt.Fprint(w, "## Steps\n\n| step | what it means |\n|---|---|\n")
	for _, s := range steps {
		fmt.Fprintf(w, "| `%s` | %s |\n", s.name, s.meaning)
	}
	fmt.Fprint(w, "\n## Transitions\n\nThe lines of a step are tried in their order. The first one that applies is recorded.\n")
	for _, s := range steps {
		fmt.Fprintf(w, "\n### %s\n\n%s\n\n| condition | event | next step |\n|---|---|---|\n", s.name, s.meaning)
		for _, t := range s.exits {
			fmt.Fprintf(w, "| %s | %s | %s |\n", t.when, eventName(t), nextState(t))
		}
	}
	fmt.Fprint(w, "\n## Freezing\n\nIn every step, the first of these that applies freezes the remediation (event `Frozen`, with the rule). "+
		"When none applies any more, it is `Thawed`. The time in between does not count for a timeout.\n\n"+
		"| rule | condition | what is written |\n|---|---|---|\n")
	for _, s := range suspensions {
		fmt.Fprintf(w, "| `%s` | %s | %s |\n", s.rule, s.when, s.writes)
	}
}

func eventName(t transition) string {
	name := reflect.TypeOf(t.event).Name()
	switch e := t.event.(type) {
	case CancelStarted:
		return "`" + name + "`, cause " + string(e.Cause)
	case Cancelled:
		if e.Cause != "" {
			return "`CancelStarted` and `" + name + "`, cause " + string(e.Cause)
		}
	}
	return "`" + name + "`"
}

func nextState(t transition) string {
	switch t.to {
	case same:
		return ""
	case ended:
		return "the end"
	default:
		return "`" + string(t.to) + "`"
	}
}
