package ui

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scute.dev/eventlog/embedded"
	"scute.dev/eventlog/seal"
)

// TestProofOfAFact follows the links from a fact to its event and to the event's proof, which `audit check` verifies
// with only the public key.
func TestProofOfAFact(t *testing.T) {
	p := newPlace(t)
	p.example("06-pause")
	p.seal(filepath.Join(p.dir, ".scute"))
	b := open(t, p.serve("--key", "scute.pub", "--checkpoint", "checkpoint"))
	b.visit("/run?id=default/pause/1&at=2") // there are more commits, but their number varies, because tasks that end at the same time share one
	b.click("table.facts tbody tr:last-child a.event", "pre[aria-label='Data of the event']")
	says(t, eval[string](b, `document.querySelector("main").innerText`), "event 1/0", "dev.scute.run.", "Leaf hash")
	b.click("#seal ~ p a.act", "pre[aria-label='Proof']")
	for _, scheme := range []string{"light", "dark"} {
		b.colors(scheme)
		b.accessible("the proof " + scheme)
	}
	shown := eval[string](b, `document.querySelector("pre[aria-label='Proof']").textContent`)
	file := eval[string](b, `fetch(document.querySelector("a[download]").href).then(r => r.text())`)
	if shown != file {
		t.Errorf("page =\n%s\nfile =\n%s\nwant the same", shown, file)
	}
	must(t, os.WriteFile(filepath.Join(p.dir, "proof"), []byte(shown), 0o600))
	if said := p.scutectl("audit", "check", "proof", "--key", "scute.pub"); !strings.Contains(said, "Proven        commit 1 of log ") {
		t.Errorf("audit check: %s", said)
	}
	b.quiet()
}

// seal seals a log, and writes the key and the checkpoint to the folder.
func (p *place) seal(dir string) {
	p.t.Helper()
	log, err := embedded.Open(p.t.Context(), embedded.Options{Dir: dir})
	must(p.t, err)
	key, err := seal.NewKey()
	must(p.t, err)
	sealer, err := seal.OpenSealer(p.t.TempDir(), log, key)
	must(p.t, err)
	_, signed, err := sealer.Seal(p.t.Context())
	must(p.t, err)
	public, err := key.Public(log.ID())
	must(p.t, err)
	must(p.t, sealer.Close())
	must(p.t, log.Close())
	must(p.t, os.WriteFile(filepath.Join(p.dir, "scute.pub"), []byte(public), 0o600))
	must(p.t, os.WriteFile(filepath.Join(p.dir, "checkpoint"), signed, 0o600))
}
