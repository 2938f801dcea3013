package seal

import "golang.org/x/mod/sumdb/tlog"

// Sum adds the commits of a log up, in their order, to what a checkpoint of them says. It keeps no more than the edge of their tree.
// The zero value has none.
type Sum struct {
	hasher Hasher
	edge   edge
	spare  []tlog.Hash
}

// Add takes the next commit.
func (s *Sum) Add(m Message) { s.spare = s.edge.add(s.hasher.Hash(m), s.spare) }

// Checkpoint is that of what was added, as a log with an ID has it.
func (s *Sum) Checkpoint(logID string) Checkpoint {
	return Checkpoint{LogID: logID, Size: s.edge.size, Root: s.edge.root()}
}
