package ui

import (
	"testing"
	"time"

	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// TestPageFollowsThoughItsFirstConnectionFailed: a page whose first connection for what changes failed takes it up again by itself.
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

// TestPageFollowsThoughAScriptCameLate: the extension for streams is there before htmx looks what the page asks for, whichever comes first.
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

// delay holds requests up whose addresses match a pattern.
func (b *browser) delay(pattern string, by time.Duration) {
	b.t.Helper()
	continued := func(event any) {
		paused, ok := event.(*fetch.EventRequestPaused)
		if !ok {
			return
		}
		time.AfterFunc(by, func() {
			_, _ = chromedp.Call(b.ctx, fetch.ContinueRequest, fetch.ContinueRequestParams{RequestID: paused.RequestID}) // the tab may be gone
		})
	}
	if err := chromedp.Listen(b.ctx, continued); err != nil {
		b.t.Fatal(err)
	}
	if _, err := chromedp.Call(b.ctx, fetch.Enable, fetch.EnableParams{Patterns: []*fetch.RequestPattern{{URLPattern: pattern}}}); err != nil {
		b.t.Fatal(err)
	}
}

// block has requests fail whose addresses match a pattern.
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

// TestAnOpenPageCountsOn: the title of the tab, and the slider and the links to other moments, are those of the present as what is between them.
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
	b.until(`document.querySelector(".travel a[aria-label^='The commit before']").href.endsWith("at=" + (document.querySelector(".travel input[type=range]").max - 1))`)
	eval[bool](b, `(slider => { slider.value = 2; return slider.dispatchEvent(new Event("input", {bubbles: true})) })(document.querySelector(".travel input[type=range]"))`)
	b.until(`document.querySelector("main .moment").innerText.includes("as it was after commit 2 of") && location.search === "?at=2"`)
	b.quiet()
}
