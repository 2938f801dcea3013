package ui

import (
	"fmt"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// The widths in pixels of a telephone, and of an A4 sheet between its margins.
const (
	telephone = 390
	sheet     = 718
)

// TestPagesFitATelephoneAndASheet checks that on a narrow screen only tables and pictures are wider than the page, and
// that the text columns of tables are not squeezed. On paper, tables are complete.
func TestPagesFitATelephoneAndASheet(t *testing.T) {
	p := newPlace(t)
	p.example("05-ignore-children", "07-alternative")
	runs := open(t, p.serve())
	p = newPlace(t)
	p.saved("saved",
		"remediator/quorum-lost", "mover/target-wiped", "pause/request/timed-out",
	)
	clusters := open(t, p.serve("--log", "saved"))
	for page, b := range map[string]*browser{
		"/": runs, "/facts": runs, "/run?id=default/alternative/1&task=slow": runs,
		"/fleet": clusters, "/owner?id=fleet/quorum-lost/1": clusters, "/move?id=fleet/target-wiped/1&at=18": clusters, "/pause?id=fleet/timed-out/1": clusters, "/event?at=1": clusters,
	} {
		b.shownOn("screen", telephone)
		b.visit(page)
		if wide := eval[int](b, `document.documentElement.scrollWidth`); wide > telephone {
			t.Errorf("%s is %d pixels wide on a screen of %d", page, wide, telephone)
		}
		const columns = `[...document.querySelectorAll("td.say, td.about")].filter(c => c.innerText && c.scrollWidth < 140).map(c => c.innerText)`
		for _, column := range eval[[]string](b, columns) {
			t.Errorf("%s has a squeezed column: %q", page, column)
		}
		b.shownOn("print", sheet)
		b.visit(page)
		for _, cut := range eval[[]string](b, `[...document.querySelectorAll(".scroll, pre")].filter(e => e.getBoundingClientRect().left + e.scrollWidth > `+fmt.Sprint(sheet)+` || e.scrollHeight > e.clientHeight + 2).map(e => e.ariaLabel)`) {
			t.Errorf("%s: %s is cut off on paper", page, cut)
		}
		if eval[bool](b, `document.querySelector(".travel").checkVisibility()`) {
			t.Errorf("%s has a slider on paper", page)
		}
	}
}

// shownOn sets a medium and its width.
func (b *browser) shownOn(medium string, width int64) {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: medium}); err != nil {
		b.t.Fatal(err)
	}
	metrics := emulation.SetDeviceMetricsOverrideParams{Width: width, Height: 1000, DeviceScaleFactor: 1}
	if _, err := chromedp.Call(b.ctx, emulation.SetDeviceMetricsOverride, metrics); err != nil {
		b.t.Fatal(err)
	}
}
