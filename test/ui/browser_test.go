package ui

import (
	"context"
	"errors"
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

// open opens a tab, and hands over the token.
func open(t *testing.T, address string) *browser {
	t.Helper()
	profile, err := os.MkdirTemp("", "scute-ui-profile-*") //nolint:usetesting // t.TempDir fails a test if something is written while it is removed
	if err != nil {
		t.Fatal(err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath("chromium"), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(profile), chromedp.WindowSize(1280, 1000),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.WSURLReadTimeout(2*time.Minute))
	allocated, stop := chromedp.NewExecAllocator(t.Context(), options...)
	ctx, cancel := chromedp.NewContext(allocated)
	t.Cleanup(func() {
		cancel()
		stop()
		_ = os.RemoveAll(profile) // processes of Chromium may still write there when it has ended
	})
	base, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	b := &browser{t: t, ctx: ctx, base: base}
	if err := chromedp.Listen(ctx, b.listen); err != nil {
		t.Fatal(err)
	}
	b.do(chromedp.Navigate(address))
	return b
}

// listen collects whatever the page complains about.
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

// forget forgets what the page complained about.
func (b *browser) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.errors = nil
}

// quiet fails the test if the page complained.
func (b *browser) quiet() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.errors) > 0 {
		b.t.Errorf("the browser complains:\n%s", strings.Join(b.errors, "\n"))
	}
	b.errors = nil
}

func (b *browser) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
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

// colors chooses light or dark.
func (b *browser) colors(scheme string) {
	b.t.Helper()
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}}
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, media); err != nil {
		b.t.Fatal(err)
	}
}

// pageLeft is the code of the error of who asks a page that another one takes the place of.
const pageLeft = -32000

// eval evaluates an expression, when all of the page is there.
func eval[T any](b *browser, expression string) T {
	b.t.Helper()
	loaded := `(async () => { if (document.readyState !== "complete") await new Promise(r => addEventListener("load", r, {once: true})); return (` + expression + `) })()`
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](loaded, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatal(err)
	}
	return value
}

// until waits for an expression to become true, also of the page that is opened meanwhile.
func (b *browser) until(expression string) {
	b.t.Helper()
	poll := chromedp.Poll[chromedp.Void](expression, chromedp.WithPollingInterval(100*time.Millisecond), chromedp.WithPollingTimeout(2*time.Minute))
	_, err := chromedp.Run(b.ctx, poll)
	for left := (&cdproto.Error{}); errors.As(err, &left) && left.Code == pageLeft; {
		_, err = chromedp.Run(b.ctx, poll)
	}
	if err != nil {
		b.quiet()
		b.t.Fatalf("waiting until %s: %v: %s shows\n%s", expression, err, eval[string](b, `location.href`), eval[string](b, `document.body.innerText`))
	}
}

// accessible holds the page to the rules of axe-core.
func (b *browser) accessible(what string) {
	b.t.Helper()
	b.do(chromedp.Evaluate[chromedp.Void](built.axe))
	const ask = `axe.run(document, {resultTypes: ["violations"]}).then(r => r.violations.flatMap(v => v.nodes.map(n => v.id + ": " + n.html.slice(0, 200) + " " + n.failureSummary)))`
	for _, violation := range eval[[]string](b, ask) {
		b.t.Errorf("%s: axe: %s", what, violation)
	}
}
