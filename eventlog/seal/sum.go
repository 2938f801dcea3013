package seal

import (
	"golang.org/x/mod/sumdb/tlog"

	"scute.dev/eventlog"
)

// Sum computes the checkpoint of the commits of a log. It keeps only the edge of their tree. The zero value has no commits.
type Sum struct {
	hasher Hasher
	edge   edge
	spare  []tlog.Hash
}

// Add adds the next commit.
func (s *Sum) Add(r eventlog.Record) { s.spare = s.edge.add(s.hasher.Hash(r), s.spare) }

// Checkpoint returns the checkpoint of the added commits for a log with an ID.
func (s *Sum) Checkpoint(logID string) Checkpoint {
	return Checkpoint{LogID: logID, Size: s.edge.size, Root: s.edge.root()}
}
