package archive

import (
	"fmt"
	"time"

	"scute.dev/kube/object"
	"scute.dev/mover"
)

// Version is that of the format. A folder of another version is refused.
const Version = "scute.dev/backup/v1"

// Index says what an archive holds. It has no content of any object.
type Index struct {
	Version string    `json:"version"`
	ID      string    `json:"id"`
	TakenAt time.Time `json:"takenAt"`
	// Program is the one that wrote the archive, with its version.
	Program string `json:"program,omitempty"`
	Source  Source `json:"source"`
	// Namespace and Clusters are what was selected; All says that it was the whole namespace.
	Namespace string   `json:"namespace"`
	Clusters  []string `json:"clusters"`
	All       bool     `json:"all,omitempty"`
	// Recipients are the public keys that the objects are encrypted to; empty for an archive in plain text.
	Recipients []string `json:"recipients,omitempty"`
	// Kinds of the objects, as the source served them.
	Kinds []Kind `json:"kinds,omitempty"`
	// Providers are the versions that clusterctl's inventory or Cluster API's operator records, by type and name.
	Providers map[string]string `json:"providers,omitempty"`
	// Objects in the order in which they are created.
	Objects []Entry `json:"objects"`
	// Left are objects near the selection that are not in the archive, and why.
	Left []mover.Wait `json:"left,omitempty"`
	// Hosted are control planes of which the archive has nothing but the objects, and why they are judged so.
	Hosted []mover.Wait `json:"hosted,omitempty"`
	// Changed are objects that changed until the end of the reading: they may not be of the same moment as the others.
	Changed []object.Ref `json:"changed,omitempty"`
}

// Source is the management cluster that was read.
type Source struct {
	// Cluster is the UID of its namespace kube-system; empty where it is not known.
	Cluster string `json:"cluster,omitempty"`
	// Server is the address at which it was read.
	Server string `json:"server,omitempty"`
}

// Kind is a kind as the source served it.
type Kind struct {
	Group      string   `json:"group,omitempty"`
	Kind       string   `json:"kind"`
	Plural     string   `json:"plural"`
	Versions   []string `json:"versions"`
	Namespaced bool     `json:"namespaced"`
	Contracts  []string `json:"contracts,omitempty"`
}

// Entry is an object of the archive.
type Entry struct {
	mover.Item

	// FoundPaused: a user had paused it. It stays paused after the restore.
	FoundPaused bool `json:"foundPaused,omitempty"`
	// Answers: its controller says by a condition whether it is paused.
	Answers bool `json:"answers,omitempty"`
	// File has the object, relative to the folder.
	File string `json:"file"`
}

// check finds what a program that writes the format could not have written.
func (x *Index) check() error {
	if x.Version != Version {
		return fmt.Errorf("%s is of format %q: this program reads %s", IndexFile, x.Version, Version)
	}
	if x.ID == "" || x.Namespace == "" || len(x.Clusters) == 0 {
		return fmt.Errorf("%s has no ID, no namespace or no clusters", IndexFile)
	}
	known := make(map[object.Ref]bool, len(x.Objects))
	for i, e := range x.Objects {
		switch {
		case known[e.Ref]:
			return fmt.Errorf("%s has %s twice", IndexFile, e.Ref)
		case i > 0 && e.Level < x.Objects[i-1].Level:
			return fmt.Errorf("%s is not in order at %s", IndexFile, e.Ref)
		}
		for _, owner := range e.Owners {
			if !known[owner.Ref] {
				return fmt.Errorf("%s has %s before its owner %s", IndexFile, e.Ref, owner.Ref)
			}
		}
		known[e.Ref] = true
	}
	return nil
}
