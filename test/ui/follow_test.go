package ui

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"k8s.io/apimachinery/pkg/util/duration"
)

// TestPageFollowsThoughItsFirstConnectionFailed checks that a page whose first connection for updates failed reconnects
// by itself.
func TestPageFollowsThoughItsFirstConnectionFailed(t *testing.T) {
	p := newPlace(t)
	p.example("01-order")
	b := open(t, p.serve())
	b.block("*://*:*/live/*")
	b.visit("/")
	b.until(`document.querySelector("#live") !== null && performance.getEntriesByType("resource").some(e => e.name.includes("/live/"))`)
	b.block()
	p.example("09-approval")
	b.until(`document.querySelector("#waiting ~ .cards")?.innerText.includes("default/approval")`)
}

// TestPageFollowsThoughAScriptCameLate checks that the extension for streams is registered before htmx processes the
// page, in whatever order the scripts are loaded.
func TestPageFollowsThoughAScriptCameLate(t *testing.T) {
	p := newPlace(t)
	p.example("01-order")
	b := open(t, p.serve())
	b.delay("*/static/hx-sse.min.js", time.Second)
	b.visit("/")
	p.example("09-approval")
	b.until(`document.querySelector("#waiting ~ .cards")?.innerText.includes("default/approval")`)
	b.quiet()
}

// delay delays requests whose URLs match a pattern.
func (b *browser) delay(pattern string, by time.Duration) {
	b.t.Helper()
	continued := func(event any) {
		paused, ok := event.(*fetch.EventRequestPaused)
		if !ok {
			return
		}
		time.AfterFunc(by, func() {
			_, _ = chromedp.Call(b.ctx, fetch.ContinueRequest, fetch.ContinueRequestParams{RequestID: paused.RequestID}) // the tab may be closed
		})
	}
	if err := chromedp.Listen(b.ctx, continued); err != nil {
		b.t.Fatal(err)
	}
	if _, err := chromedp.Call(b.ctx, fetch.Enable, fetch.EnableParams{Patterns: []*fetch.RequestPattern{{URLPattern: pattern}}}); err != nil {
		b.t.Fatal(err)
	}
}

// block blocks requests whose URLs match a pattern.
func (b *browser) block(patterns ...string) {
	b.t.Helper()
	var params network.SetBlockedURLsParams
	for _, pattern := range patterns {
		params.URLPatterns = append(params.URLPatterns, &network.BlockPattern{URLPattern: pattern, Block: true})
	}
	if _, err := chromedp.Call(b.ctx, network.SetBlockedURLs, params); err != nil {
		b.t.Fatal(err)
	}
}

// TestAnOpenPageCountsOn checks that the title of the tab, the slider and the links to other moments are updated
// together with the rest of the page.
func TestAnOpenPageCountsOn(t *testing.T) {
	p := newPlace(t)
	p.example("01-order")
	b := open(t, p.serve())
	b.visit("/")
	b.until(`document.title === "Now · scute"`)
	first := eval[string](b, `document.querySelector(".travel input[type=range]").max`)
	p.example("09-approval")
	b.until(`document.title === "(1) Now · scute"`)
	b.until(`document.querySelectorAll(".travel").length === 1 && document.querySelector("main .moment").innerText.includes("Up to commit " + document.querySelector(".travel input[type=range]").max)`)
	if last := eval[string](b, `document.querySelector(".travel input[type=range]").max`); last == first {
		t.Errorf("the slider still ends at commit %s", last)
	}
	b.until(`document.querySelector(".travel a[aria-label^='Previous commit']").href.endsWith("at=" + (document.querySelector(".travel input[type=range]").max - 1))`)
	eval[bool](b, `(slider => { slider.value = 2; return slider.dispatchEvent(new Event("input", {bubbles: true})) })(document.querySelector(".travel input[type=range]"))`)
	b.until(`document.querySelector("main .moment").innerText.includes("as it was after commit 2 of") && location.search === "?at=2"`)
	b.quiet()
}

// TestDurationsCountOn checks that an open page updates its durations even if nothing is recorded, with the same
// wording as everywhere else.
func TestDurationsCountOn(t *testing.T) {
	p := newPlace(t)
	p.example("09-approval")
	b := open(t, p.serve())
	for _, page := range []string{"/", "/run?id=default/approval/1"} {
		b.visit(page)
		first := eval[string](b, `document.querySelector(".ago").textContent`)
		b.until(fmt.Sprintf(`document.querySelector(".ago").textContent !== %q`, first))
	}
	var ages []int
	for _, age := range []string{"30s", "119s", "2m30s", "5m", "9m45s", "12m30s", "2h59m30s", "3h30m30s", "7h59m30s", "8h30m", "47h30m", "60h30m", "191h30m", "204h", "17508h", "17532h", "27252h", "80000h"} {
		d, err := time.ParseDuration(age)
		must(t, err)
		ages = append(ages, int(d.Seconds()))
	}
	list, err := json.Marshal(ages)
	must(t, err)
	eval[bool](b, fmt.Sprintf(`%s.map(s => { const e = document.createElement("i"); e.className = "probe"; e.dataset.since = new Date(Date.now() - 1000 * s).toISOString(); document.querySelector("#live").append(e) }) && true`, list))
	b.until(`[...document.querySelectorAll(".probe")].every(e => e.textContent)`)
	for i, got := range eval[[]string](b, `[...document.querySelectorAll(".probe")].map(e => e.textContent)`) {
		said := func(late int) string { return duration.HumanDuration(time.Duration(ages[i]+late) * time.Second) }
		near := false
		for late := -60; late <= 60; late++ { // the browser answers a moment later, and the page uses the server's clock
			near = near || got == said(late)
		}
		if !near {
			t.Errorf("the page shows %d seconds as %q, other places as %q", ages[i], got, said(0))
		}
	}
	b.quiet()
}
