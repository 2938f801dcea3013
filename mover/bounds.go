package mover

import (
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"

	"scute.dev/kube/object"
)

// Bounds of what one event holds, so that it stays far below the log's message limit of 1 MiB whatever the names are:
// a reference takes at most 0.5 KiB, an object of the plan 2 KiB, a finding 2 KiB.
const (
	perEvent      = 250
	findingsNamed = 250
	leftNamed     = 500
	messageBytes  = 1000
)

// parts cuts a map into pieces that fit into an event each, in the order of the references.
func parts[V any](objects map[object.Ref]V) iter.Seq[map[object.Ref]V] {
	return func(yield func(map[object.Ref]V) bool) {
		for refs := range slices.Chunk(slices.SortedFunc(maps.Keys(objects), object.Compare), perEvent) {
			part := make(map[object.Ref]V, len(refs))
			for _, r := range refs {
				part[r] = objects[r]
			}
			if !yield(part) {
				return
			}
		}
	}
}

// boundFindings keeps the first findings, errors before warnings, and counts the rest.
func boundFindings(list []Finding) []Finding {
	kept := slices.Clone(list)
	slices.SortStableFunc(kept, func(a, b Finding) int { return strings.Compare(string(a.Severity), string(b.Severity)) })
	if more := len(kept) - findingsNamed; more > 0 {
		kept = append(kept[:findingsNamed:findingsNamed], Finding{
			Severity: kept[findingsNamed].Severity, Field: "spec",
			Message: fmt.Sprintf("%d more findings are not listed", more), Remedy: "see to those listed first",
		})
	}
	for i := range kept {
		kept[i].Message = Clean(kept[i].Message)
	}
	return kept
}

func cleanWaits(list []Wait) []Wait {
	list = slices.Clone(list)
	for i := range list {
		list[i].Why = Clean(list[i].Why)
	}
	return list
}

// Clean makes a message of another program fit for the log, which keeps it for ever: it is cut to a sane length, and
// what looks like a key or a token is taken out. (An API server that refuses an object quotes the field's value.)
func Clean(message string) string {
	message = regexp.MustCompile(
		`(?s)-----BEGIN [A-Z0-9 ]+-----.*?(-----END [A-Z0-9 ]+-----|$)`+ // PEM
			`|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*`+ // a JSON web token
			`|\b[a-z0-9]{6}\.[a-z0-9]{16}\b`+ // a bootstrap token
			`|[A-Za-z0-9+/=]{80,}`, // a key or a whole kubeconfig in base64
	).ReplaceAllString(message, "(removed)")
	if len(message) > messageBytes {
		message = strings.ToValidUTF8(message[:messageBytes], "") + "..."
	}
	return message
}
