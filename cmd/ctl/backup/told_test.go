package backup

import (
	"bytes"
	"strings"
	"testing"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/mover/archive"
)

// TestAnIndexDoesNotControlTheTerminal checks that control sequences from the index of a backup are not printed.
func TestAnIndexDoesNotControlTheTerminal(t *testing.T) {
	var said bytes.Buffer
	o := &restoreOptions{DryRun: true}
	o.Kit = &kit.Kit{Env: &cli.Env{Out: &said}}
	if err := o.report(&archive.Index{ID: "b\x1b[2J", Namespace: "fleet\r", Clusters: []string{"prod\x1b]0;t\x07"}}, nil, nil); err != nil {
		t.Fatal(err)
	}
	if text := strings.TrimSuffix(said.String(), "\n"); strings.ContainsAny(text, "\x1b\r\a\n") {
		t.Errorf("got %q", text)
	}
}
