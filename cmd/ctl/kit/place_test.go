package kit

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
)

// phasesSource is a source whose object has one phase after the other, and then stays in the last
// one.
type phasesSource struct {
	Source[string]
	phases []string
}

func (s *phasesSource) Watch(ctx context.Context, _ types.NamespacedName, fn func(string) bool) error {
	for _, phase := range s.phases {
		if fn(phase) {
			return nil
		}
	}
	<-ctx.Done()
	return ctx.Err()
}

// TestAwaitNamesTheCause checks that an error about a timeout blames the daemon only if it did
// nothing.
func TestAwaitNamesTheCause(t *testing.T) {
	for name, c := range map[string]struct {
		phases    []string
		want, not string
	}{
		"no daemon":          {[]string{"", ""}, "no daemon has answered within 1m; the Pause is created", "not finished"},
		"objects are silent": {[]string{"", "Acknowledging"}, "it has not finished within 1m; the Pause is created", "daemon"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				env := cli.System("scutectl", "test")
				env.Out, env.Err = new(bytes.Buffer), new(bytes.Buffer)
				p := &Session[string]{
					Kit: &Kit{Env: env, Flags: connect.New()}, Noun: &Noun[string]{Phase: func(phase string) string { return phase }},
					Source: &phasesSource{phases: c.phases},
				}
				err := p.Await(t.Context(), types.NamespacedName{Namespace: "fleet", Name: "p"}, time.Minute, "the Pause is created", func(string) bool { return false })
				if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), c.not) {
					t.Errorf("Await = %v, want %q without %q", err, c.want, c.not)
				}
			})
		})
	}
}
