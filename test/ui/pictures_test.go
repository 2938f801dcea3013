package ui

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

// pictureSize bounds a picture of the documentation.
const pictureSize = 150 << 10

// TestPictures takes the pictures of the documentation, light and dark: `go test ./ui -run TestPictures -args pictures DIR` keeps them.
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
	b := open(t, p.serve())
	for name, page := range map[string]string{"ui-now": "/", "ui-run": "/run?id=fleet/upgrade-prod/1&task=smoke-test"} {
		for _, scheme := range []string{"light", "dark"} {
			b.colors(scheme)
			b.visit(page)
			png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
			if err != nil {
				t.Fatal(err)
			}
			if len(png) > pictureSize {
				t.Errorf("%s has %d bytes, more than %d", name, len(png), pictureSize)
			}
			if err := os.WriteFile(filepath.Join(dir, name+"-"+scheme+".png"), png, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	b.quiet()
}
