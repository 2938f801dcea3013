package filter

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/show"
)

// checkKind returns an error for a kind that no log contains.
func checkKind(what, kind string) error {
	if slices.Contains(show.Kinds(), kind) {
		return nil
	}
	return cli.Usagef("%s is %q: it must be one of %s", what, kind, strings.Join(show.Kinds(), ", "))
}

// checkType returns an error for a pattern that matches neither a fact nor a type of any version, and that is not a type of a newer scute.
func checkType(env *cli.Env, pattern string) error {
	types := slices.Sorted(maps.Keys(show.EventTypes()))
	names := names(types)
	if slices.ContainsFunc(names, func(name string) bool { return matches(pattern, name) }) || slices.ContainsFunc(types, func(t string) bool { return matchesEarlier(pattern, t) }) {
		return nil
	}
	if mayBeNewer(pattern, types) {
		return nil
	}
	remedy := env.Hint("log", "schema") + " lists the types, " + env.Hint("log", "grep", "PATTERN") + " searches for other words"
	return cli.Usagef("--type is %q, which is no event type and no fact: %s%s", pattern, DidYouMean(pattern, names), remedy)
}

// names returns the values that --type can match: the types, and the facts of their events.
func names(types []string) []string {
	return slices.Concat(types, slices.Sorted(maps.Keys(show.FactNames())))
}

// matchesEarlier reports whether a pattern matches an earlier version of a type.
func matchesEarlier(pattern, eventType string) bool {
	at := strings.LastIndex(eventType, ".v")
	for n, _ := strconv.Atoi(eventType[at+len(".v"):]); n > 1; n-- {
		if matches(pattern, eventType[:at]+".v"+strconv.Itoa(n-1)) {
			return true
		}
	}
	return false
}

// mayBeNewer reports whether a later version of scute may have written a type: a later version of a known type, or a type that is similar to no known one.
// A log contains such types while its daemon is newer than this program.
func mayBeNewer(pattern string, types []string) bool {
	parts := eventTypePattern.FindStringSubmatch(pattern)
	if len(parts) == 0 || !slices.Contains(show.Kinds(), parts[2]) {
		return false
	}
	return cli.Nearest(pattern, types) == "" || slices.ContainsFunc(types, func(t string) bool { return strings.HasPrefix(t, parts[1]) })
}

// eventTypePattern matches an event type. Its groups are the part before the version, and the kind in that part.
var eventTypePattern = regexp.MustCompile(`^(dev\.scute\.([a-z]+)\.[a-z0-9-]+\.)v[1-9][0-9]*$`)

// DidYouMean returns a question that suggests similar names: the nearest one, or the first few that contain the word. It returns "" if there are none.
func DidYouMean(typed string, names []string) string {
	var near []string
	switch name := cli.Nearest(typed, names); {
	case name != "":
		near = []string{strconv.Quote(name)}
	case len(typed) > 2:
		for _, name := range names {
			if strings.Contains(name, strings.ToLower(typed)) && len(near) < 3 {
				near = append(near, strconv.Quote(name))
			}
		}
	}
	if len(near) == 0 {
		return ""
	}
	return "did you mean " + strings.Join(near, ", ") + "? "
}
