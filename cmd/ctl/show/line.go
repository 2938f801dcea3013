package show

import (
	"cmp"
	"fmt"
	"strings"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/term"
	"scute.dev/mover"
)

// Fact is a Move's standing in one line, for a pipe: two that are alike say that nothing worth a line has happened.
func Fact(m *v1alpha1.Move) string {
	s := m.Status
	line := string(cmp.Or(s.Phase, mover.PhasePending))
	if s.Message != "" {
		line += ": " + s.Message
	}
	if len(s.WaitingFor) > 0 {
		parts := make([]string, 0, namedInLine)
		for _, w := range s.WaitingFor[:min(len(s.WaitingFor), namedInLine)] {
			parts = append(parts, w.Object+" ("+w.Why+")")
		}
		line += "; waits for " + strings.Join(parts, ", ")
		if more := len(s.WaitingFor) - namedInLine; more > 0 {
			line += fmt.Sprintf(" and %d more", more)
		}
	}
	if s.Next != "" {
		line += "; next: " + s.Next
	}
	return term.Clean(line)
}

const namedInLine = 3
