package kit

import (
	"testing"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
)

// TestAHintNamesTheNamespace checks that a pasted hint applies to the same object, whatever the namespace of the
// kubeconfig is.
func TestAHintNamesTheNamespace(t *testing.T) {
	for name, c := range map[string]struct {
		flags           connect.Flags
		namespace, want string
	}{
		"in a cluster":                         {connect.Flags{ScuteNamespace: "scute-system"}, "fleet", "`scutectl describe run a -n fleet`"},
		"in a cluster's namespace default":     {connect.Flags{ScuteNamespace: "scute-system"}, "default", "`scutectl describe run a -n default`"},
		"in a log alone":                       {connect.Flags{ScuteNamespace: "scute-system", Dir: "/log"}, "fleet", "`scutectl describe run a --log /log -n fleet`"},
		"in a log's namespace default":         {connect.Flags{ScuteNamespace: "scute-system", Dir: "/log"}, "default", "`scutectl describe run a --log /log`"},
		"in a log with others of that name":    {connect.Flags{ScuteNamespace: "scute-system", Dir: "/log", Namespace: "default"}, "default", "`scutectl describe run a --log /log -n default`"},
		"of another context":                   {connect.Flags{ScuteNamespace: "scute-system", Context: "blue prod", As: "jane", AsGroups: []string{"a", "b"}}, "fleet", "`scutectl describe run a --context 'blue prod' --as jane --as-group a,b -n fleet`"},
		"of local runs":                        {connect.Flags{ScuteNamespace: "scute-system", Local: true, Dir: connect.LocalDir}, "default", "`scutectl describe run a --local`"},
		"of local runs elsewhere":              {connect.Flags{ScuteNamespace: "scute-system", Local: true, Dir: "/my runs"}, "default", "`scutectl describe run a --local --log '/my runs'`"},
		"in a log's namespace that is unknown": {connect.Flags{ScuteNamespace: "scute-system", URL: "nats://x"}, "", "`scutectl describe run a --nats nats://x`"},
	} {
		t.Run(name, func(t *testing.T) {
			env := cli.System("scutectl", "test")
			k := &Kit{Env: env, Flags: &c.flags}
			if got := k.Hint(c.namespace, "describe", "run", "a"); got != c.want {
				t.Errorf("Hint = %s, want %s", got, c.want)
			}
		})
	}
}
