package cli

import (
	"fmt"
	"slices"
	"strings"
)

// Suggest returns the end of an error about an unknown name: the most similar name, or the first valid names.
func Suggest(typed string, names []string) string {
	if meant := DidYouMean(typed, names); meant != "" || len(names) == 0 {
		return meant
	}
	names = slices.Sorted(slices.Values(names))
	if len(names) > maxListed {
		names = append(names[:maxListed], "...")
	}
	return ": there are " + strings.Join(names, ", ")
}

// DidYouMean returns the end of an error that suggests the most similar name; "" if none is similar.
func DidYouMean(typed string, names []string) string {
	if meant := Nearest(typed, names); meant != "" {
		return fmt.Sprintf(", did you mean %q?", meant)
	}
	return ""
}

// maxListed is the maximum number of names in an error.
const maxListed = 10

// Nearest returns the name that is most similar to what the user typed; "" if none is similar.
func Nearest(typed string, names []string) string {
	meant, least := "", min(3, len(typed))
	for _, name := range names {
		if d := distance(strings.ToLower(typed), name); d < least {
			meant, least = name, d
		}
	}
	return meant
}

// distance returns how many bytes must be added, removed or replaced.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
