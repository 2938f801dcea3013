package seal

import "golang.org/x/mod/sumdb/tlog"

// Sum computes the checkpoint of the commits of a log. It keeps only the edge of their tree. The zero value has no commits.
type Sum struct {
	hasher Hasher
	edge   edge
	spare  []tlog.Hash
}

// Add adds the next commit.
func (s *Sum) Add(m Message) { s.spare = s.edge.add(s.hasher.Hash(m), s.spare) }

// Checkpoint returns the checkpoint of the added commits for a log with an ID.
func (s *Sum) Checkpoint(logID string) Checkpoint {
	return Checkpoint{LogID: logID, Size: s.edge.size, Root: s.edge.root()}
}
