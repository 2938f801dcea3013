package fact

import (
	"cmp"
	"slices"
	"strings"

	"scute.dev/cmd/ctl/term"
	"scute.dev/eventlog"
	"scute.dev/internal/plural"
	"scute.dev/kube/object"
)

// Actor returns an actor for display, safe for a terminal. It marks an actor that is only a client's claim.
func Actor(actor string) string {
	if eventlog.Unverified(actor) {
		return term.Clean(actor) + " (unverified)"
	}
	return term.Clean(actor)
}

// named is the maximum number of objects in a line.
const named = 2

// refs counts objects and names the first ones, beginning with Cluster API's core: "12 objects: Cluster prod, Machine prod-abc, …".
func refs(list []object.Ref) string {
	list = slices.SortedFunc(slices.Values(list), func(a, b object.Ref) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), object.Compare(a, b))
	})
	var names []string
	for _, r := range list[:min(len(list), named)] {
		names = append(names, r.Short())
	}
	switch {
	case len(list) == 0:
		return "nothing"
	case len(list) == 1:
		return names[0]
	case len(list) > named:
		names = append(names, "…")
	}
	return plural.Of(len(list), "object") + ": " + strings.Join(names, ", ")
}

func rank(r object.Ref) int {
	if r.Group == object.CoreGroup {
		return 0
	}
	return 1
}

func join(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; ")
}

// short returns the first characters of a hash.
func short(hash string) string { return hash[:min(len(hash), 12)] }
