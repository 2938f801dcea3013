package view

import (
	"slices"

	"scute.dev/kube/object"
)

// Line is an event of the log in words. It contains only known fields of the event, never its encoded data.
type Line struct {
	// Name names the event in a few words, for example "objects created". If it is empty, the
	// event's type is used.
	Name string
	// About is the task of a run or the machine that the event is about; may be empty.
	About string
	// Detail is one sentence with details; may be empty.
	Detail string
	// Observed is the evidence for a decision; may be empty.
	Observed string
	// Next is what happens next, or what the reader can do; may be empty.
	Next string
	// Objects are the objects of the event unless Detail names them. Place is where they are, for
	// example "on the target".
	Objects []object.Ref
	Place   string
	// Clusters are the clusters that the aggregate is about from this event on; nil if the event
	// does not change them. AllClusters stands for all clusters of a namespace.
	Clusters    []string
	AllClusters bool
}

// Text returns the line without its name.
func (l Line) Text() string {
	text := l.text()
	if l.Observed != "" {
		text = Join(text, "observed: "+l.Observed)
	}
	if l.Next != "" {
		text = Join(text, "next: "+l.Next)
	}
	return text
}

func (l Line) text() string {
	switch {
	case l.About != "" && l.Detail != "":
		return l.About + ": " + l.Detail
	case l.About != "":
		return l.About
	case len(l.Objects) == 0:
		return l.Detail
	case l.Place != "":
		return Join(l.Place+": "+Objects(l.Objects), l.Detail)
	default:
		return Join(Objects(l.Objects), l.Detail)
	}
}

// Merge merges two consecutive lines that differ only in their objects.
func (l Line) Merge(next Line) (merged Line, ok bool) {
	if l.Name != next.Name || len(l.Objects) == 0 || len(next.Objects) == 0 {
		return l, false
	}
	l.Objects = slices.Concat(l.Objects, next.Objects)
	l.Detail = "" // it is about the objects of one commit
	return l, true
}
