package logcmd

import "testing"

func TestNoFormula(t *testing.T) {
	for cell, want := range map[string]string{
		"": "", "plain": "plain", "a=b": "a=b", "=cmd|' /C calc'!A0": "'=cmd|' /C calc'!A0", "+1": "'+1", "-1": "'-1", "@SUM(A1)": "'@SUM(A1)",
	} {
		if got := noFormula(cell); got != want {
			t.Errorf("noFormula(%q) = %q, want %q", cell, got, want)
		}
	}
}
