package object_test

import (
	"strings"
	"testing"

	"scute.dev/kube/object"
)

// TestPrintable checks that control characters are removed that could move the cursor, color a terminal, forge a line
// or change the text direction.
func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"etcdserver: no leader":                "etcdserver: no leader",
		"\x1b]0;owned\x07 a\x1b[2Jb":           "]0;owned a[2Jb",
		"one\r\ntwo\tthree\u2028four\u0085":    "one two three four",
		"a\u202eb\u200bc\x00d\xffe":            "abcde",
		"Grüße, 世界":                            "Grüße, 世界",
		strings.Repeat(" \n", 100) + "x\u009b": "x",
	} {
		if got := object.Printable(text); got != want {
			t.Errorf("Printable(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestBrief(t *testing.T) {
	if got := object.Truncate(strings.Repeat("ä", 500), 201); got != strings.Repeat("ä", 100)+"..." {
		t.Error(got)
	}
	if got := object.Truncate("a\nb", 3); got != "a b" {
		t.Error(got)
	}
	if got := object.Truncate(strings.Repeat("\x1b", 1<<20), 3); got != "" {
		t.Error(got)
	}
}
