package audit

import (
	"bytes"
	"strings"
	"testing"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/eventlog/seal"
)

// TestAnEmptyCheckpointVerifiesNothing checks that the output says so if the checkpoint covers no commit, as the first
// checkpoint of a log.
func TestAnEmptyCheckpointVerifiesNothing(t *testing.T) {
	var out bytes.Buffer
	o := &options{Kit: &kit.Kit{Env: &cli.Env{Out: &out}}}
	if err := o.text(verdict{Log: "b", Intact: true, Report: seal.Report{LogID: "a", Beyond: 6}}); err != nil {
		t.Fatal(err)
	}
	want := "intact: log a at b, no commit was verified because the checkpoint covers none; use a later checkpoint\n" +
		"  6 commits are after the checkpoint and not covered by it\n"
	if out.String() != want {
		t.Errorf("got %q", out.String())
	}
	for _, format := range []string{"", formatHTML} {
		out.Reset()
		r := &auditReport{filter: &kit.Filter{}, verification: verification{Checked: true, Beyond: 6}}
		if err := r.write(&out, format); err != nil {
			t.Fatal(err)
		}
		if text := out.String(); !strings.Contains(text, "not verified: the checkpoint covers no commit") || strings.Contains(text, "1 to 0 are") {
			t.Errorf("format %s: got %s", format, text)
		}
	}
}
