package cloud

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Verb is the verb of a write.
type Verb string

// The verbs of the journal.
const (
	Create Verb = "create"
	Update Verb = "update"
	Patch  Verb = "patch"
	Delete Verb = "delete"
)

// The kinds that matter most to a witness.
const (
	clusterKind = "CloudCluster" // one workload cluster as a whole
	MachineKind = "CloudMachine"
	NodeKind    = "Node"
)

// Write is one attempt to write to the cloud.
type Write struct {
	Time    time.Time
	By      string // name of the side, or WorkloadAPI
	Verb    Verb
	Cluster string // workload cluster, "namespace/name"
	Kind    string
	Name    string // with its namespace in the workload cluster, if it has one
	Changed bool   // false if it was refused or had no effect
	Error   string // reason of the error, such as AlreadyExists
}

func (w Write) String() string {
	outcome := ""
	switch {
	case w.Error != "":
		outcome = " refused: " + w.Error
	case !w.Changed:
		outcome = " (no change)"
	}
	return fmt.Sprintf("%s %s: %s %s %s of %s%s", w.Time.UTC().Format("15:04:05.000"), w.By, w.Verb, w.Kind, w.Name, w.Cluster, outcome)
}

// Journal is a list of writes in their order.
type Journal []Write

// Where returns the writes for which keep is true.
func (j Journal) Where(keep func(Write) bool) Journal {
	var kept Journal
	for _, w := range j {
		if keep(w) {
			kept = append(kept, w)
		}
	}
	return kept
}

// Replacements returns the writes that created or deleted machines, nodes or whole workload clusters. A correct move
// between two management clusters causes none.
func (j Journal) Replacements() Journal {
	return j.Where(func(w Write) bool {
		return w.Changed && (w.Verb == Create || w.Verb == Delete) && slices.Contains([]string{clusterKind, MachineKind, NodeKind}, w.Kind)
	})
}

func (j Journal) String() string {
	var b strings.Builder
	for _, w := range j {
		b.WriteString(w.String())
		b.WriteByte('\n')
	}
	return b.String()
}

// Mark is a position in the journal.
type Mark int

// remembered bounds the memory of the journal. A cluster of five machines causes some hundreds of writes per minute.
const remembered = 1 << 18

// recorder keeps the last writes.
type recorder struct {
	mu        sync.Mutex
	writes    Journal
	forgotten int
}

func (r *recorder) add(w Write) {
	w.Time = time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.writes) == 2*remembered {
		r.writes = slices.Clone(r.writes[remembered:])
		r.forgotten += remembered
	}
	r.writes = append(r.writes, w)
}

// Mark returns the current end of the journal, for a later Since.
func (c *Cloud) Mark() Mark {
	c.journal.mu.Lock()
	defer c.journal.mu.Unlock()
	return Mark(c.journal.forgotten + len(c.journal.writes))
}

// Since returns the writes after the mark, or all for 0. It returns an error if the first of them are no longer kept.
func (c *Cloud) Since(m Mark) (Journal, error) {
	c.journal.mu.Lock()
	defer c.journal.mu.Unlock()
	from := int(m) - c.journal.forgotten
	if from < 0 {
		return nil, fmt.Errorf("reading the journal of the cloud from write %d: the first %d are forgotten", m, c.journal.forgotten)
	}
	return slices.Clone(c.journal.writes[from:]), nil
}
