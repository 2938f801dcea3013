package scuted

import (
	"os"
	"strings"
	"testing"
)

func TestPassedOver(t *testing.T) {
	for name, c := range map[string]struct {
		faults Faults
		deaths int
		noted  string
		inLog  int
		want   string
	}{
		"every write":              {EveryWrite("move"), 2, "reached move APPEND a|done move APPEND a|counted move APPEND a|counted move PATCH b", 1, ""},
		"one went on":              {EveryWrite("move"), 1, "counted move POST a|counted move PATCH b", 0, "1 lives ended at their fault points, want 2"},
		"before":                   {BeforeEveryWrite("move"), 1, "counted move POST a|counted move PATCH b|counted move PATCH b", 0, ""},
		"steps":                    {Faults{Class: "move", First: 2, Step: 3}, 2, strings.Repeat("counted move POST a|", 7), 0, ""},
		"growing, 1 and 2 and 2":   {Faults{Class: "bookkeeping", Growing: true}, 2, strings.Repeat("counted bookkeeping PUT a|", 5), 0, ""},
		"nothing of the class":     {EveryWrite("run"), 0, "reached move POST a|counted move POST a", 0, "no write of class run was reached"},
		"an append unseen":         {EveryWrite("run"), 1, "reached run PATCH a|counted run PATCH a", 1, "the log has 1 commits of class run"},
		"an append that is lost":   {EveryWrite("run"), 1, "reached run APPEND a|done run APPEND a|counted run APPEND a", 0, "the log has 0 commits of class run"},
		"stored, and not answered": {EveryWrite("run"), 1, "reached run APPEND a|reached run PATCH b|counted run PATCH b", 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			j := NewJournal(t.TempDir())
			if err := os.WriteFile(j.Path(), []byte(strings.ReplaceAll(c.noted, "|", "\n")), 0o600); err != nil {
				t.Fatal(err)
			}
			r, err := j.Read(c.faults)
			if err != nil {
				t.Fatal(err)
			}
			if got := c.faults.PassedOver(c.deaths, r, c.inLog); (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
				t.Errorf("PassedOver = %q, want %q", got, c.want)
			}
		})
	}
}
