package ui

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

// pictureSize is the maximum size of a picture in the documentation.
const pictureSize = 192 << 10

// TestPictures takes the pictures of the documentation, in light and dark colors. `go test ./ui -run TestPictures -args
// pictures DIR` keeps them.
func TestPictures(t *testing.T) {
	dir := t.TempDir()
	if flag.NArg() == 2 && flag.Arg(0) == "pictures" {
		dir = flag.Arg(1)
	}
	manifest, err := filepath.Abs(filepath.Join("testdata", "upgrade.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	p := newPlace(t)
	p.example("01-order", "04-rollback", "07-alternative", "09-approval")
	p.scutectl("run", "-f", manifest, "--local")
	pictures(t, open(t, p.serve()), dir, map[string]string{"ui-now": "/", "ui-run": "/run?id=fleet/upgrade-prod/1&task=smoke-test"})

	p = newPlace(t)
	p.saved("saved",
		"mover/moved-back", "pause/request/timed-out",
		"remediator/two-of-five", "remediator/mass-failure",
		"remediator/zone-lost",
	)
	pictures(t, open(t, p.serve("--log", "saved")), dir, map[string]string{
		"ui-move": "/move?id=fleet/moved-back/1&at=14", "ui-owner": "/owner?id=fleet/two-of-five/1&at=28", "ui-fleet": "/fleet?at=32", "ui-pause": "/pause?id=fleet/timed-out/1",
		"ui-facts": "/facts?text=c-control-plane-4f7nn&at=28", "ui-event": "/event?at=32&n=2",
	})
}

// pictures takes a picture of each page in both color schemes. The keys are the names of the files.
func pictures(t *testing.T, b *browser, dir string, pages map[string]string) {
	t.Helper()
	for name, page := range pages {
		for _, scheme := range []string{"light", "dark"} {
			b.colors(scheme)
			b.visit(page)
			png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
			if err != nil {
				t.Fatal(err)
			}
			if len(png) > pictureSize {
				t.Errorf("%s has %d bytes, want at most %d", name, len(png), pictureSize)
			}
			if err := os.WriteFile(filepath.Join(dir, name+"-"+scheme+".png"), png, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	b.quiet()
}
