package show

import (
	"fmt"
	"strings"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/term"
)

// Tolerance returns the color for the number of members that may still fail.
func Tolerance(tolerates int) term.Style {
	switch {
	case tolerates < 0:
		return term.Red
	case tolerates == 0:
		return term.Yellow
	default:
		return term.Green
	}
}

// Quorum renders etcd's quorum in a line: how many voters respond, and how many of them may still fail.
func (v View) Quorum(q *v1alpha1.QuorumStatus) string {
	if q.External {
		return "external: its members are not part of the control plane and are not counted"
	}
	as := Tolerance(q.Tolerates)
	dots := v.Paint.Text(term.Green, strings.Repeat("●", max(0, q.Answering))) + v.Paint.Text(term.Red, strings.Repeat("○", max(0, q.Voters-q.Answering)))
	return fmt.Sprintf("%s %d of %d voters answer; %s", dots, q.Answering, q.Voters, v.EachWord(as, ToleranceText(q.Tolerates)))
}

// EachWord colors each word of a text separately, because the text may be wrapped and a color must not continue on the next line.
func (v View) EachWord(as term.Style, s string) string {
	words := strings.Fields(s)
	for i, w := range words {
		words[i] = v.Paint.Text(as, w)
	}
	return strings.Join(words, " ")
}

// ToleranceText returns in words how many members of etcd may still fail.
func ToleranceText(tolerates int) string {
	switch {
	case tolerates < 0:
		return "quorum is lost"
	case tolerates == 0:
		return "none of them may fail"
	default:
		return fmt.Sprintf("%d may still fail", tolerates)
	}
}
