package plural

import "fmt"

// Of returns a number with its noun: "1 machine", "3 machines". many is the plural if it is not formed with an s.
func Of[N int | uint64](n N, noun string, many ...string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case len(many) > 0:
		return fmt.Sprintf("%d %s", n, many[0])
	default:
		return fmt.Sprintf("%d %ss", n, noun)
	}
}

// More adds to the first names how many of all there are beside them: "and 3 more".
func More(first []string, all int) []string {
	if more := all - len(first); more > 0 {
		return append(first, fmt.Sprintf("and %d more", more))
	}
	return first
}
