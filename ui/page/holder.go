package page

import (
	"scute.dev/cmd/ctl/pause"
	"scute.dev/pause/request"
	"scute.dev/ui/feed"
)

type holder struct {
	chip
	Name, Link string
}

// holders returns the unfinished Pauses by cluster (namespace/name).
func (v *view) holders() map[string][]holder {
	by := make(map[string][]holder)
	for a, f := range feed.All[*pause.Fold](v.Snapshot) {
		f.WithState(func(s *request.State) {
			if s.Finished() {
				return
			}
			h := holder{chip: newChip(s.Phase), Name: s.Spec.Name, Link: v.link(a)}
			for _, root := range s.Roots {
				name := root.Ref.Namespace + "/" + root.Ref.Name
				by[name] = append(by[name], h)
			}
		})
	}
	return by
}
