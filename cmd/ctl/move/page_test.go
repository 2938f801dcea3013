package move

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/mover"
)

func page(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile("../../../" + file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestPagesShowTheAnswer checks that the pages show the output of `create move`.
func TestPagesShowTheAnswer(t *testing.T) {
	var out bytes.Buffer
	o := &createOptions{Kit: &kit.Kit{Env: &cli.Env{
		Name: "scutectl", Out: &out, Color: cli.ColorNever, Now: now, Size: func(any) (int, int, bool) { return 0, 0, false },
	}, Flags: connect.New()}}
	m := newMove(mover.PhasePausing, v1alpha1.MoveCounts{})
	m.Name = "prod-to-green"
	if err := o.printPreflight(m, "`scutectl watch move prod-to-green -n fleet`"); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"README.md", "docs/move.md"} {
		if !strings.Contains(page(t, file), "\n"+out.String()) {
			t.Errorf("%s does not show this output:\n%s", file, &out)
		}
	}
}

// TestTheGuideMakesItsKubeconfigs checks that the guide creates the kubeconfigs that its commands use.
func TestTheGuideMakesItsKubeconfigs(t *testing.T) {
	text := page(t, "docs/move.md")
	taken := regexp.MustCompile(`(?:--to-kubeconfig |--from-file=value=)(\S+)`).FindAllStringSubmatch(text, -1)
	if len(taken) == 0 {
		t.Fatal("the guide uses no kubeconfig")
	}
	for _, file := range taken {
		if !strings.Contains(text, "> "+file[1]+" ") {
			t.Errorf("no command of the guide writes %s", file[1])
		}
	}
}
