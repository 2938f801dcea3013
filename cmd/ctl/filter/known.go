package filter

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/fact"
	"scute.dev/cmd/ctl/schema"
)

// checkKind refuses a kind that is in no log.
func checkKind(what, kind string) error {
	if slices.Contains(kinds(), kind) {
		return nil
	}
	return cli.Usagef("%s is %q: it must be one of %s", what, kind, strings.Join(kinds(), ", "))
}

// checkType refuses a pattern that matches no type of any version and no fact, and is not a type that is unknown here.
func checkType(env *cli.Env, pattern string) error {
	types := slices.Sorted(maps.Keys(schema.Types()))
	names := names(types)
	if slices.ContainsFunc(names, func(name string) bool { return matches(pattern, name) }) || slices.ContainsFunc(types, func(t string) bool { return earlier(pattern, t) }) {
		return nil
	}
	if later(pattern, types) {
		return nil
	}
	remedy := env.Hint("log", "schema") + " lists the types, " + env.Hint("log", "grep", "PATTERN") + " finds other words"
	return cli.Usagef("--type is %q, which is no event type and no fact: %s%s", pattern, Meant(pattern, names), remedy)
}

// names are what --type takes: the types, and what their events are called.
func names(types []string) []string {
	return slices.Concat(types, slices.Sorted(maps.Keys(fact.Names(types))))
}

// earlier says that a pattern matches an earlier version of a type.
func earlier(pattern, eventType string) bool {
	at := strings.LastIndex(eventType, ".v")
	for n, _ := strconv.Atoi(eventType[at+len(".v"):]); n > 1; n-- {
		if matches(pattern, eventType[:at]+".v"+strconv.Itoa(n-1)) {
			return true
		}
	}
	return false
}

// later says that a pattern is a type that a later version of scute may have written: a later form of a known one, or one that is not
// near any. A log has them while its daemon is newer than this program.
func later(pattern string, types []string) bool {
	parts := whole.FindStringSubmatch(pattern)
	if len(parts) == 0 || !slices.Contains(kinds(), parts[2]) {
		return false
	}
	return cli.Nearest(pattern, types) == "" || slices.ContainsFunc(types, func(t string) bool { return strings.HasPrefix(t, parts[1]) })
}

// whole matches an event type: what is before its version, and in that the kind.
var whole = regexp.MustCompile(`^(dev\.scute\.([a-z]+)\.[a-z0-9-]+\.)v[1-9][0-9]*$`)

// Meant asks about the names that were probably meant, the nearest one or the first few with the word in them; "" if there is none.
func Meant(typed string, names []string) string {
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
