package ui

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// browser is a tab of a Chromium with an empty profile.
type browser struct {
	t    *testing.T
	ctx  context.Context //nolint:containedctx // a tab is a context
	base *url.URL

	mu     sync.Mutex
	errors []string
}

// open opens a tab and the page with the token.
func open(t *testing.T, address string) *browser {
	t.Helper()
	profile, err := os.MkdirTemp("", "scute-ui-profile-*") //nolint:usetesting // t.TempDir fails a test if something is written while it is removed
	if err != nil {
		t.Fatal(err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath("chromium"), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(profile), chromedp.WindowSize(1280, 1000),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.WSURLReadTimeout(2*time.Minute),
		// Without this flag, Chromium silently drops a click on a page that is loaded but not yet painted. On a busy
		// machine this may happen to any click.
		chromedp.Flag("allow-pre-commit-input", true))
	allocated, stop := chromedp.NewExecAllocator(t.Context(), options...)
	ctx, cancel := chromedp.NewContext(allocated)
	t.Cleanup(func() {
		cancel()
		stop()
		_ = os.RemoveAll(profile) // processes of Chromium may still write there after it has exited
	})
	base, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	b := &browser{t: t, ctx: ctx, base: base}
	if err := chromedp.Listen(ctx, b.listen); err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Do(ctx); err != nil { // it starts Chromium, which runs until the context ends
		t.Fatal(err)
	}
	b.do(chromedp.Navigate(address))
	return b
}

// listen collects the errors and warnings of the page.
func (b *browser) listen(event any) {
	said := ""
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		said = "exception: " + e.ExceptionDetails.Text
	case *runtime.EventConsoleAPICalled:
		if e.Type == "error" || e.Type == "warning" {
			said = "console: " + string(e.Args[0].Value)
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError {
			said = e.Entry.Text + " " + e.Entry.URL
		}
	}
	if said != "" {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.errors = append(b.errors, said)
	}
}

// forget discards the collected errors.
func (b *browser) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.errors = nil
}

// quiet fails the test if the page has reported an error or a warning.
func (b *browser) quiet() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.errors) > 0 {
		b.t.Errorf("the browser complains:\n%s", strings.Join(b.errors, "\n"))
	}
	b.errors = nil
}

// patience bounds every wait for a page.
const patience = 2 * time.Minute

// patient runs an action with the timeout patience.
func patient[T any](b *browser, action chromedp.Action[T]) (T, error) {
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	return chromedp.Run(ctx, action)
}

func (b *browser) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	for _, action := range actions {
		if _, err := patient(b, action); err != nil {
			b.fail(err)
		}
	}
}

// click clicks the first element of a selector, and waits until shows appears.
func (b *browser) click(selector, shows string) {
	b.t.Helper()
	if _, err := patient(b, chromedp.Click(chromedp.CSS(selector))); err != nil {
		b.fail(fmt.Errorf("clicking %s: %w", selector, err))
	}
	if _, err := patient(b, chromedp.WaitReady(chromedp.CSS(shows))); err != nil {
		b.fail(fmt.Errorf("waiting for %s after a click on %s: %w", shows, selector, err))
	}
}

// fail ends the test with what the page shows.
func (b *browser) fail(err error) {
	b.t.Helper()
	b.quiet()
	shown, failed := patient(b, chromedp.Evaluate[string](`location.href + " shows\n" + document.body.innerText`))
	if failed != nil {
		shown = "the page cannot be asked: " + failed.Error()
	}
	b.t.Fatalf("%v\n%s", err, shown)
}

// visit opens a page.
func (b *browser) visit(page string) {
	b.t.Helper()
	at, err := b.base.Parse(page)
	if err != nil {
		b.t.Fatal(err)
	}
	b.do(chromedp.Navigate(at.String()), chromedp.WaitReady(chromedp.CSS("main")))
}

// colors selects the light or the dark color scheme.
func (b *browser) colors(scheme string) {
	b.t.Helper()
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}}
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, media); err != nil {
		b.t.Fatal(err)
	}
}

// pageLeft is the error code of a request to a page that is being replaced.
const pageLeft = -32000

// eval evaluates an expression after the page has been loaded.
func eval[T any](b *browser, expression string) T {
	b.t.Helper()
	loaded := `(async () => { if (document.readyState !== "complete") await new Promise(r => addEventListener("load", r, {once: true})); return (` + expression + `) })()`
	value, err := patient(b, chromedp.Evaluate[T](loaded, chromedp.EvalAwaitPromise))
	if err != nil {
		b.fail(err)
	}
	return value
}

// until waits until an expression is true, even if a new page is opened meanwhile.
func (b *browser) until(expression string) {
	b.t.Helper()
	poll := chromedp.Poll[chromedp.Void](expression, chromedp.WithPollingInterval(100*time.Millisecond), chromedp.WithPollingTimeout(patience))
	_, err := chromedp.Run(b.ctx, poll)
	for left := (&cdproto.Error{}); errors.As(err, &left) && left.Code == pageLeft; {
		_, err = chromedp.Run(b.ctx, poll)
	}
	if err != nil {
		b.fail(fmt.Errorf("waiting until %s: %w", expression, err))
	}
}

// accessible checks the page with axe-core.
func (b *browser) accessible(what string) {
	b.t.Helper()
	b.do(chromedp.Evaluate[chromedp.Void](built.axe))
	const ask = `axe.run(document, {resultTypes: ["violations"]}).then(r => r.violations.flatMap(v => v.nodes.map(n => v.id + ": " + n.html.slice(0, 200) + " " + n.failureSummary)))`
	for _, violation := range eval[[]string](b, ask) {
		b.t.Errorf("%s: axe: %s", what, violation)
	}
}
