package run

import (
	"testing"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/reach"
)

// A hint that is pasted leads to the run that it is about, whatever the kubeconfig's own namespace is.
func TestAHintNamesTheNamespace(t *testing.T) {
	for name, c := range map[string]struct {
		flags           reach.Flags
		namespace, want string
	}{
		"in a cluster":                         {reach.Flags{}, "fleet", "`scutectl describe run a -n fleet`"},
		"in a cluster's namespace default":     {reach.Flags{}, "default", "`scutectl describe run a -n default`"},
		"in a log alone":                       {reach.Flags{Dir: "/log"}, "fleet", "`scutectl describe run a --log /log -n fleet`"},
		"in a log's namespace default":         {reach.Flags{Dir: "/log"}, "default", "`scutectl describe run a --log /log`"},
		"in a log with others of that name":    {reach.Flags{Dir: "/log", Namespace: "default"}, "default", "`scutectl describe run a --log /log -n default`"},
		"in a log's namespace that is unknown": {reach.Flags{URL: "nats://x"}, "", "`scutectl describe run a --nats nats://x`"},
	} {
		t.Run(name, func(t *testing.T) {
			env := cli.System("scutectl", "test")
			d := &deps{Env: env, Flags: &c.flags}
			if got := d.hint(c.namespace, "describe", "run", "a"); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}
