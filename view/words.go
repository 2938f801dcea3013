package view

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"scute.dev/internal/plural"
	"scute.dev/kube/object"
)

// Named is the maximum number of objects that a line names.
const Named = 2

// Objects counts objects and names the first ones, beginning with Cluster API's core: "12 objects: Cluster prod, Machine prod-abc, …".
func Objects(list []object.Ref) string {
	list = slices.SortedFunc(slices.Values(list), func(a, b object.Ref) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), object.Compare(a, b))
	})
	var names []string
	for _, r := range list[:min(len(list), Named)] {
		names = append(names, r.Short())
	}
	switch {
	case len(list) == 0:
		return "no objects"
	case len(list) == 1:
		return names[0]
	case len(list) > Named:
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

// Join joins the parts that are not empty with semicolons.
func Join(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; ")
}

// First returns the first names, and the number of omitted elements.
func First(names []string) string {
	const most = 5
	return strings.Join(plural.More(slices.Clone(names[:min(len(names), most)]), len(names)), ", ")
}

// Hash returns the first characters of a hash.
func Hash(hash string) string { return hash[:min(len(hash), 12)] }

// Second formats a time to the second, in UTC.
func Second(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z07:00") }

// Exact formats a time to the millisecond, in UTC.
func Exact(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }
