package ui

import (
	"path"
	"path/filepath"

	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
	"scute.dev/internal/pinned"
	"scute.dev/test/assets"
)

// saved writes saved histories of real clusters to a log: DOMAIN/NAME becomes fleet/NAME/1.
func (p *place) saved(dir string, histories map[string]eventlog.Kind) {
	p.t.Helper()
	root, err := assets.Root()
	must(p.t, err)
	log, err := embedded.Open(p.t.Context(), embedded.Options{Dir: filepath.Join(p.dir, dir)})
	must(p.t, err)
	for name, kind := range histories {
		events, err := pinned.Load(filepath.Join(root, path.Dir(name), "testdata", "histories", path.Base(name)+".jsonl"))
		must(p.t, err)
		c := eventlog.Commit{Aggregate: eventlog.Aggregate{Kind: kind, ID: "fleet/" + path.Base(name) + "/1"}}
		for len(events) > 0 {
			n := min(3, len(events))
			c.Events, events = events[:n], events[n:]
			c.ID = c.IDFor("test")
			receipt, err := log.Append(p.t.Context(), c)
			must(p.t, err)
			c.Expected = receipt.Seq
		}
	}
	must(p.t, log.Close())
}
