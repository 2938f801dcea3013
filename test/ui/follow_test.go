package ui

import (
	"testing"

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
