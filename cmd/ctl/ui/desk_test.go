package ui

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"scute.dev/cmd/ctl/cli"
)

// TestDesk checks that only the pages of a management cluster allow changes, and only without --read-only.
func TestDesk(t *testing.T) {
	config := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(config, []byte(`{"apiVersion":"v1","kind":"Config","current-context":"c","clusters":[{"name":"c","cluster":{"server":"https://127.0.0.1:1"}}],"contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],"users":[{"name":"u","user":{}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want bool
	}{
		{[]string{}, true},
		{[]string{"--nats", "nats://127.0.0.1:1"}, true},
		{[]string{"--read-only"}, false},
		{[]string{"--nats", "nats://127.0.0.1:1", "--read-only"}, false},
		{[]string{"--local"}, false},
		{[]string{"--log", "somewhere"}, false},
		{[]string{"--from", "export.jsonl"}, false},
		{[]string{"--nats", "nats://127.0.0.1:1", "--kubeconfig", config + ".none"}, false},
	} {
		o := &options{}
		env := &cli.Env{Name: "scutectl", Now: time.Now, Getenv: func(string) string { return "" }}
		cmd := &cobra.Command{}
		o.flags(env, cmd)
		if err := cmd.ParseFlags(append([]string{"--kubeconfig", config}, c.args...)); err != nil {
			t.Fatal(err)
		}
		if err := o.validate(); err != nil {
			t.Fatal(err)
		}
		if got := o.desk() != nil; got != c.want {
			t.Errorf("%v: changes allowed = %t, want %t", c.args, got, c.want)
		}
	}
}
