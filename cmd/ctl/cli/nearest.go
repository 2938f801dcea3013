package cli

import (
	"fmt"
	"slices"
	"strings"
)

// Suggest returns the end of an error about an unknown name. It names the most similar name or, if
// none is similar, the first valid names.
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

// DidYouMean returns the end of an error that suggests the most similar name, or "".
func DidYouMean(typed string, names []string) string {
	if meant := Nearest(typed, names); meant != "" {
		return fmt.Sprintf(", did you mean %q?", meant)
	}
	return ""
}

const maxListed = 10

// Nearest returns the name that is most similar to what the user typed, or "" if none is similar.
func Nearest(typed string, names []string) string {
	meant, least := "", len(typed)/2+1
	for _, name := range names {
		if d := distance(strings.ToLower(typed), name); d < least && d <= 2 {
			meant, least = name, d
		}
	}
	return meant
}

// distance returns how many letters must be added, removed, replaced, or swapped with their
// neighbor to change a into b.
func distance(a, b string) int {
	rows := [3][]int{make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)}
	for j := range rows[1] {
		rows[1][j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last, row := rows[0], rows[1], rows[2]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		rows = [3][]int{last, row, before}
	}
	return rows[1][len(b)]
}
