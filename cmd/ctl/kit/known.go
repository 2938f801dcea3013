package kit

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

// versionPattern matches the version at the end of an event type, and typePattern an event type, with its kind as a group.
var (
	versionPattern = regexp.MustCompile(`\.v[1-9][0-9]*$`)
	typePattern    = regexp.MustCompile(`^dev\.scute\.([a-z]+)\.[a-z0-9-]+\.v[1-9][0-9]*$`)
)

// checkType returns an error for a pattern that matches neither a fact nor a type in any version, and that is not a type of a newer scute.
func checkType(env *cli.Env, pattern string) error {
	types := slices.Sorted(maps.Keys(show.EventTypes()))
	names, anyVersion := names(types), versionPattern.ReplaceAllString(pattern, "")
	matchesName := func(name string) bool { return matches(pattern, name) }
	matchesType := func(t string) bool { return matches(anyVersion, versionPattern.ReplaceAllString(t, "")) }
	if slices.ContainsFunc(names, matchesName) || anyVersion != pattern && slices.ContainsFunc(types, matchesType) {
		return nil
	}
	// A log contains unknown types while its daemon is newer than this program. A type that is similar to a known one is a mistake.
	if parts := typePattern.FindStringSubmatch(pattern); len(parts) > 0 && slices.Contains(show.Kinds(), parts[1]) && cli.Nearest(pattern, types) == "" {
		return nil
	}
	remedy := env.Hint("log", "schema") + " lists the types, " + env.Hint("log", "grep", "PATTERN") + " searches for other words"
	return cli.Usagef("--type is %q, which is no event type and no fact: %s%s", pattern, DidYouMean(pattern, names), remedy)
}

// names returns the values that --type can match: the types, and the facts of their events.
func names(types []string) []string {
	return slices.Concat(types, slices.Sorted(maps.Keys(show.FactNames())))
}

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
