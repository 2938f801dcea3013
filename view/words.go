package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"scute.dev/kube/object"
)

// Named is the maximum number of objects that a line names.
const Named = 2

// Objects counts objects and names the first ones, beginning with Cluster API's core: "12 objects:
// Cluster prod, Machine prod-abc, …".
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
	return Count(len(list), "object") + ": " + strings.Join(names, ", ")
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

// First returns the first names and the number of the others.
func First(names []string) string {
	const most = 5
	return strings.Join(More(slices.Clone(names[:min(len(names), most)]), len(names)), ", ")
}

// Truncate cuts a text to about limit bytes.
func Truncate(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "..."
}

// Count returns a number with its noun: "1 machine", "3 machines". many is a plural that is not formed with an s.
func Count[N int | uint64](n N, noun string, many ...string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case len(many) > 0:
		return fmt.Sprintf("%d %s", n, many[0])
	default:
		return fmt.Sprintf("%d %ss", n, noun)
	}
}

// More adds to the first of all names how many are missing: "and 3 more".
func More(first []string, all int) []string {
	if more := all - len(first); more > 0 {
		return append(first, fmt.Sprintf("and %d more", more))
	}
	return first
}

// Duration returns a duration in Go's notation without trailing zero units: "1h", not "1h0m0s". It
// is exact, and time.ParseDuration parses it.
func Duration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// NormalizeDuration formats a duration that was stored in Go's notation as Duration does. It
// returns any other string unchanged.
func NormalizeDuration(s string) string {
	d, err := time.ParseDuration(s)
	if err != nil {
		return s
	}
	return Duration(d)
}

// Hash returns the first characters of a hash.
func Hash(hash string) string { return hash[:min(len(hash), 12)] }

// Second formats a time to the second, in UTC.
func Second(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z07:00") }

// Exact formats a time to the millisecond, in UTC.
func Exact(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }
