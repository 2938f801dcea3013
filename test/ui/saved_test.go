package ui

import (
	"encoding/json"
	"path"
	"path/filepath"
	"regexp"

	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
	"scute.dev/internal/pinned"
	"scute.dev/test/assets"
)

// history is a saved history of a real cluster: DOMAIN/NAME becomes fleet/NAME/1.
type history struct {
	name string
	kind eventlog.Kind
}

// saved writes histories to a log, one after the other.
func (p *place) saved(dir string, histories ...history) {
	p.t.Helper()
	root, err := assets.Root()
	must(p.t, err)
	log, err := embedded.Open(p.t.Context(), embedded.Options{Dir: filepath.Join(p.dir, dir)})
	must(p.t, err)
	for _, h := range histories {
		events, err := pinned.Load(filepath.Join(root, path.Dir(h.name), "testdata", "histories", path.Base(h.name)+".jsonl"))
		must(p.t, err)
		if p.spoil != nil {
			words := regexp.MustCompile(`"(reason|message|why|next)": ?"[^"\\]*"`)
			for i := range events {
				events[i].Data = words.ReplaceAllFunc(events[i].Data, func(of []byte) []byte {
					var pair map[string]string
					must(p.t, json.Unmarshal([]byte("{"+string(of)+"}"), &pair))
					for name := range pair {
						pair[name] = p.spoil(pair[name])
					}
					spoiled, err := json.Marshal(pair)
					must(p.t, err)
					return spoiled[1 : len(spoiled)-1]
				})
			}
		}
		c := eventlog.Commit{Aggregate: eventlog.Aggregate{Kind: h.kind, ID: "fleet/" + path.Base(h.name) + "/1"}}
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
