package archive

import (
	"fmt"
	"time"

	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/mover"
)

// Version is the version of the format. Archives of other versions are refused.
const Version = "scute.dev/backup/v1"

// Index describes an archive. It contains no content of an object.
type Index struct {
	Version string    `json:"version"`
	ID      string    `json:"id"`
	TakenAt time.Time `json:"takenAt"`
	// Program is the name and the version of the program that wrote the archive.
	Program string `json:"program,omitempty"`
	Source  Source `json:"source"`
	// Namespace and Clusters are the selection. All means that the whole namespace was selected.
	Namespace string   `json:"namespace"`
	Clusters  []string `json:"clusters"`
	All       bool     `json:"all,omitempty"`
	// Recipients contains the public keys of the encryption; empty for an archive in plain text.
	Recipients []string `json:"recipients,omitempty"`
	// Kinds are the kinds of the objects, as the source served them.
	Kinds []kube.Type `json:"kinds,omitempty"`
	// Providers contains the versions of the source's providers, according to clusterctl's
	// inventory or Cluster API's operator, by type and name.
	Providers map[string]string `json:"providers,omitempty"`
	// Objects are in the order of their creation.
	Objects []Entry `json:"objects"`
	// Excluded contains objects that are related to the selection but not in the archive.
	Excluded []mover.ObjectReason `json:"excluded,omitempty"`
	// Hosted contains control planes and machines that run as workloads of the source, with the
	// evidence. The archive does not contain their data.
	Hosted []mover.ObjectReason `json:"hosted,omitempty"`
	// Changed contains objects that changed during the backup, and may be inconsistent with other
	// objects.
	Changed []object.Ref `json:"changed,omitempty"`
}

// Source is the management cluster that was read.
type Source struct {
	// Cluster is the UID of its namespace kube-system; empty if unknown.
	Cluster string `json:"cluster,omitempty"`
	Server  string `json:"server,omitempty"`
}

// Entry is an object of the archive.
type Entry struct {
	mover.Item

	// FoundPaused means that a user had paused the object. It stays paused after a restore.
	FoundPaused bool `json:"foundPaused,omitempty"`
	// ReportsPause means that the object has a Paused condition.
	ReportsPause bool `json:"reportsPause,omitempty"`
	// File is relative to the folder.
	File string `json:"file"`
}

func (x *Index) check() error {
	if x.Version != Version {
		return fmt.Errorf("%s has format %q: this program reads %s", IndexFile, x.Version, Version)
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
