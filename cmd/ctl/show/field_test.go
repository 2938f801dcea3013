package show

import (
	"strings"
	"testing"
)

// What a daemon has said something about was not overlooked, also if it has no phase: its spec is refused, for example.
func TestOutlookOfWhatWasRefused(t *testing.T) {
	if told := strings.Join(View{}.Outlook(false, true, "spec.schedule is wrong", "correct it"), "\n"); strings.Contains(told, "no daemon") {
		t.Error(told)
	}
	if told := strings.Join(View{}.Outlook(false, true, "", ""), "\n"); !strings.Contains(told, "no daemon has taken note of it yet") {
		t.Error(told)
	}
}
