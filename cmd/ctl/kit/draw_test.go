package kit

import (
	"strings"
	"testing"
	"time"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/output"
)

func TestNewsAndPrintedLinesAreClean(t *testing.T) {
	var out strings.Builder
	p := &Place[int]{Kit: &Kit{Env: &cli.Env{Out: &out, Now: time.Now}}}
	if err := p.lines(&output.Format{}).write(Key("fleet", "prod"), News{About: "task\x1b[2J", Text: "failed:\x1b[31m\nprod is gone"}); err != nil {
		t.Fatal(err)
	}
	if err := p.Print([]string{"one\x1b[2J\ntwo"}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "\x1b") || strings.Count(out.String(), "\n") != 2 {
		t.Errorf("%q", out.String())
	}
}
