package ui

import (
	"encoding/json"
	"path/filepath"
	"regexp"

	"scute.dev/eventlog"
	"scute.dev/test/histories"
)

// saved writes saved histories to a log, and changes their texts if p.spoil is set.
func (p *place) saved(dir string, list ...string) {
	p.t.Helper()
	change := p.spoilt
	if p.spoil == nil {
		change = nil
	}
	must(p.t, histories.Write(p.t.Context(), filepath.Join(p.dir, dir), change, list...))
}

func (p *place) spoilt(e *eventlog.Event) {
	words := regexp.MustCompile(`"(reason|message|why|next)": ?"[^"\\]*"`)
	e.Data = words.ReplaceAllFunc(e.Data, func(of []byte) []byte {
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
