package ui

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"scute.dev/test/histories"
)

// TestPagesHaveNoErrorAndNoBarrier opens each page, of the present and of the past, in light and dark colors.
func TestPagesHaveNoErrorAndNoBarrier(t *testing.T) {
	p := newPlace(t)
	p.example("03-retry", "04-rollback", "05-ignore-children", "06-pause", "07-alternative", "08-hooks", "09-approval")
	b := open(t, p.serve())
	if got := eval[string](b, `location.search`); got != "" {
		t.Errorf("the address still has the token: %q", got)
	}
	for _, page := range []string{
		"/", "/?at=20", "/fleet", "/facts", "/facts?kind=run&text=pause", "/run?id=default/alternative/1&task=slow", "/run?id=default/pause/1&task=check",
		"/run?id=default/rollback/1", "/run?id=default/hooks/1", "/run?id=default/retry/1&at=4", "/run?id=default/none/1",
	} {
		for _, scheme := range []string{"light", "dark"} {
			b.colors(scheme)
			b.visit(page)
			b.accessible(page + " " + scheme)
		}
		if page == "/run?id=default/none/1" { // the browser also reports a page that does not exist as an error
			b.forget()
		}
		b.quiet()
	}
}

// TestPagesOfSavedHistories opens the pages about clusters with saved histories of real ones.
func TestPagesOfSavedHistories(t *testing.T) {
	p := newPlace(t)
	p.saved("saved",
		"pause/request/timed-out", // at the commits in the addresses below
		"remediator/quorum-lost", "remediator/mass-failure",
		"mover/target-wiped", "mover/killed-before-every-write",
		"remediator/two-of-five",
	)
	b := open(t, p.serve("--log", "saved"))
	for page, shown := range map[string]string{
		"/": "Waiting for you", "/fleet?at=10": "Mass failure", "/pause?id=fleet/timed-out/1": "Released", "/pause?id=fleet/timed-out/1&at=2&cluster=a": "The past",
		"/owner?id=fleet/quorum-lost/1": "quorum", "/owner?id=fleet/mass-failure/1&at=10": "Mass failure", "/owner?id=fleet/two-of-five/1": "replacement",
		"/move?id=fleet/target-wiped/1": "RolledBack", "/move?id=fleet/killed-before-every-write/1": "Succeeded",
	} {
		b.visit(page)
		says(t, eval[string](b, `document.body.innerText`), shown)
		for _, scheme := range []string{"light", "dark"} {
			b.colors(scheme)
			b.visit(page)
			b.accessible(page + " " + scheme)
		}
		b.quiet()
	}
}

// TestPagesOfTheDemo checks that the demo has content for each page.
func TestPagesOfTheDemo(t *testing.T) {
	p := newPlace(t)
	must(t, histories.Demo(t.Context(), p.dir, built.scutectl))
	b := open(t, p.serve())
	for page, shown := range map[string][]string{
		"/": {"default/approval", "refused-and-killed", "mute/maintenance"}, "/fleet": {"testfailure/c03"}, "/facts?kind=move": {"move"},
	} {
		b.visit(page)
		says(t, eval[string](b, `document.body.innerText`), shown...)
		b.accessible(page)
	}
	b.quiet()
}

// TestPagesWithoutScripts checks that without scripts everything can be read, and that links and forms lead to every
// page and moment.
func TestPagesWithoutScripts(t *testing.T) {
	p := newPlace(t)
	p.example("06-pause")
	b := open(t, p.serve())
	if _, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}); err != nil {
		t.Fatal(err)
	}
	b.visit("/")
	says(t, eval[string](b, `document.body.innerText`), "default/pause", "scutectl decide run")
	if eval[bool](b, `window.htmx !== undefined`) {
		t.Fatal("scripts run")
	}
	b.click(`#waiting ~ .cards a[href^="/run"]`, "#tasks")
	b.click(`#tasks th a`, "#task")
	b.click(`a[aria-label^="Previous commit"]`, "body.past #task")
	b.visit("/facts")
	b.do(chromedp.SendKeys(chromedp.CSS(`form.filter [name=text]`), "pause"))
	b.click("form.filter button", `form.filter [name=text][value="pause"]`)
	b.click(`form.travel button`, "body.past main")
	b.quiet()
}

// TestPagesFollowTheLog checks that an open page shows a run that begins, waits and is decided, without a reload.
func TestPagesFollowTheLog(t *testing.T) {
	p := newPlace(t)
	p.example("01-order")
	b := open(t, p.serve())
	b.until(`document.body.innerText.includes("Nothing waits for a decision.")`)
	eval[int](b, `window.loaded = 1`)
	p.example("09-approval")
	b.until(`document.querySelector("#waiting ~ .cards")?.innerText.includes("default/approval")`)
	p.scutectl("decide", "run", "approval", "--local", "--task", "ask", "--action", "succeed", "--reason", "the change was announced")
	p.scutectl("resume", "run", "approval", "--local")
	b.until(`document.querySelector("#ended ~ .rows")?.innerText.includes("default/approval")`)
	if eval[int](b, `window.loaded`) != 1 {
		t.Error("the page was reloaded")
	}
	b.quiet()
}

// TestThePastStandsStill checks that a page of the past is marked as such, has a link to the present, and does not
// follow the log.
func TestThePastStandsStill(t *testing.T) {
	p := newPlace(t)
	p.example("06-pause")
	b := open(t, p.serve())
	b.visit("/run?id=default/pause/1")
	b.click(`a[aria-label^="Previous commit"]`, "body.past #past")
	if eval[bool](b, `document.querySelector("[hx-sse\\:connect]") !== null`) {
		t.Error("a page of the past follows the log")
	}
	const shown = `document.querySelector("main").innerText.replace(/^(The past: as it was after commit \d+) of \d+,/, "$1,")` // the log may grow
	before := eval[string](b, shown)
	p.scutectl("decide", "run", "pause", "--local", "--task", "check", "--action", "ignore", "--reason", "as announced")
	b.do(chromedp.Reload(), chromedp.WaitReady(chromedp.CSS("body.past main")))
	if after := eval[string](b, shown); after != before {
		t.Errorf("the page of the past has changed:\n%s\n\n%s", before, after)
	}
	b.click("a.present", "#live")
	b.until(`document.querySelector("main").innerText.includes("as announced")`)
	b.quiet()
}

// TestMarkupInALogStaysText checks that the pages do not interpret markup in a user's workflow, in the output of its
// commands, in a reason, or in the texts of events about clusters.
func TestMarkupInALogStaysText(t *testing.T) {
	const markup = `"'></script><hostile-element onclick=alert(1)><img src=x onerror="window.hostile=1"><script>window.hostile=1</script>`
	p := newPlace(t)
	quoted, err := json.Marshal(markup)
	must(t, err)
	workflow := fmt.Sprintf(`{"apiVersion": "scute.dev/v1alpha1", "kind": "WorkflowRun", "metadata": {"name": "hostile", "namespace": "default"}, "spec": {"tasks": [
		{"name": "print", "kind": "Exec", "with": {"command": ["sh", "-c", "echo \"$0\"; echo \"$0\" >&2; exit 1", %[1]s]}, "failurePolicy": "Ignore"},
		{"name": "ask", "kind": "Approve", "with": {"message": %[1]s}}]}}`, quoted)
	must(t, os.WriteFile(filepath.Join(p.dir, "hostile.yaml"), []byte(workflow), 0o600))
	p.scutectl("run", "-f", "hostile.yaml", "--local")
	p.scutectl("decide", "run", "hostile", "--local", "--task", "ask", "--action", "succeed", "--reason", markup)
	harmless(t, open(t, p.serve()), "/", "/facts", "/facts?text=hostile-element", "/event", "/run?id=default/hostile/1&task=ask", "/run?id=default/hostile/1&task=print")

	p = newPlace(t)
	p.spoil = func(word string) string { return word + markup }
	p.saved("saved",
		"remediator/two-of-five", "mover/target-wiped", "pause/request/timed-out",
	)
	harmless(t, open(t, p.serve("--log", "saved")), "/facts", "/fleet?at=4", "/owner?id=fleet/two-of-five/1", "/move?id=fleet/target-wiped/1", "/pause?id=fleet/timed-out/1&at=23")
}

// harmless checks that the pages show a hostile log's markup, and only as text.
func harmless(t *testing.T, b *browser, pages ...string) {
	t.Helper()
	for _, page := range pages {
		b.visit(page)
		if !eval[bool](b, `document.body.innerText.includes("<hostile-element")`) {
			t.Errorf("%s does not show the hostile text: %s", page, eval[string](b, `document.body.innerText`))
		}
		if eval[bool](b, `document.querySelector("hostile-element, [onclick], main img, main script") !== null || window.hostile === 1`) {
			t.Errorf("%s interprets the markup of a log", page)
		}
		b.quiet()
	}
}
