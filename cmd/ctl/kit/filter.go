package kit

import (
	"cmp"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/eventlog"
)

// Filter selects events. The zero value selects all. Call Check before use.
type Filter struct {
	// Aggregate is KIND/ID.
	Aggregate string
	// Kind is the kind of the aggregate. Namespace is the namespace of the object that an event is
	// about.
	Kind, Namespace  string
	Cluster, Machine string
	// Actor and Type are patterns in which * matches any characters but a slash.
	Actor, Type string
	// Since is inclusive, Until exclusive.
	Since, Until Moment
	// Pattern must match the text of an event; nil matches all.
	Pattern *regexp.Regexp
}

const sinceUsage = "Only events since this time: 10m (before now), 2026-07-30T12:00:00Z or 2026-07-30"

// AddFlags adds the filter's flags and their shell completion to the command, and returns the
// flags.
func (f *Filter) AddFlags(cmd *cobra.Command) *pflag.FlagSet {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.StringVar(&f.Aggregate, "aggregate", "", "Only the events of this aggregate, KIND/ID")
	flags.StringVar(&f.Kind, "kind", "", "Only events about this kind: "+strings.Join(Kinds(), ", "))
	flags.StringVarP(&f.Namespace, "namespace", "n", "", "Only events about this namespace; all namespaces if empty")
	flags.StringVar(&f.Cluster, "cluster", "", "Only events of moves, remediations and Pauses of this cluster")
	flags.StringVar(&f.Machine, "machine", "", "Only events about this machine")
	flags.StringVar(&f.Actor, "actor", "", "Only events of this actor; * matches any characters but a slash: 'user/*'")
	flags.StringVar(&f.Type, "type", "", "Only events of this type, or this fact: 'dev.scute.move.*', 'decided'")
	flags.Var(&f.Since, "since", sinceUsage)
	flags.Var(&f.Until, "until", "Only events before this time, in the same formats")
	cmd.Flags().AddFlagSet(flags)
	types := slices.Sorted(maps.Keys(EventTypes()))
	_ = cmd.RegisterFlagCompletionFunc("aggregate", cobra.NoFileCompletions)
	_ = cmd.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions(Kinds(), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("type", cobra.FixedCompletions(names(types), cobra.ShellCompDirectiveNoFileComp))
	return flags
}

// Check rejects flags that are invalid or that can match no event. It converts relative times to
// absolute ones.
func (f *Filter) Check(env *cli.Env) error {
	if f.Kind != "" {
		if err := checkKind("--kind", f.Kind); err != nil {
			return err
		}
	}
	for _, p := range []struct{ flag, pattern string }{{"--actor", f.Actor}, {"--type", f.Type}} {
		if _, err := path.Match(p.pattern, ""); err != nil {
			return cli.Usagef("%s is %q: it is not a pattern: %w", p.flag, p.pattern, err)
		}
	}
	if f.Type != "" {
		if err := checkType(env, f.Type); err != nil {
			return err
		}
	}
	if f.Aggregate != "" {
		aggregate, err := ParseAggregate(f.Aggregate)
		if err != nil {
			return err
		}
		if err := checkKind("the kind in --aggregate", string(aggregate.Kind)); err != nil {
			return err
		}
	}
	now := env.Now()
	f.Since.Resolve(now)
	f.Until.Resolve(now)
	if !f.Until.IsZero() && !f.Since.Time.Before(f.Until.Time) {
		return cli.Usagef("--until is %s: it must be later than --since, which is %s", &f.Until, &f.Since)
	}
	return nil
}

// ParseAggregate parses KIND/ID, the value of --aggregate.
func ParseAggregate(s string) (eventlog.Aggregate, error) {
	kind, id, ok := strings.Cut(s, "/")
	if !ok || kind == "" || id == "" {
		return eventlog.Aggregate{}, cli.Usagef("--aggregate is %q: it must be KIND/ID, for example move/fleet/prod/1a2b3c4d", s)
	}
	return eventlog.Aggregate{Kind: eventlog.Kind(kind), ID: id}, nil
}

// All reports whether the filter selects every event.
func (f *Filter) All() bool { return *f == Filter{} }

// Select returns the selected events. It reuses the slice.
func (f *Filter) Select(events []Event) []Event {
	return slices.DeleteFunc(events, func(e Event) bool { return !f.Match(e) })
}

// Match reports whether an event is selected.
func (f *Filter) Match(e Event) bool {
	namespace, _, _ := strings.Cut(e.Aggregate.ID, "/")
	s := e.Subject
	return (f.Kind == "" || f.Kind == string(e.Aggregate.Kind)) &&
		(f.Aggregate == "" || f.Aggregate == e.Aggregate.String()) &&
		(f.Namespace == "" || f.Namespace == namespace && e.Aggregate.Kind != eventlog.KindDaemon) &&
		!e.Time.Before(f.Since.Time) && (f.Until.IsZero() || e.Time.Before(f.Until.Time)) &&
		(f.Cluster == "" || s.AnyCluster || slices.Contains(s.Clusters, f.Cluster)) &&
		(f.Machine == "" || slices.Contains(s.Machines, f.Machine)) &&
		(f.Actor == "" || matches(f.Actor, e.Actor)) &&
		(f.Type == "" || matches(f.Type, e.Type) || matches(f.Type, e.Line.Name)) &&
		(f.Pattern == nil || f.matchText(e))
}

func (f *Filter) matchText(e Event) bool {
	return slices.ContainsFunc([]string{e.Aggregate.String(), e.Line.Name, e.Text(), e.Actor, e.Type}, f.Pattern.MatchString) ||
		f.Pattern.Match(e.Data)
}

// matches reports whether value matches a pattern that Check has validated.
func matches(pattern, value string) bool {
	ok, err := path.Match(pattern, value)
	return ok && err == nil
}

func checkKind(what, kind string) error {
	if slices.Contains(Kinds(), kind) {
		return nil
	}
	return cli.Usagef("%s is %q: it must be one of %s", what, kind, strings.Join(Kinds(), ", "))
}

// typePattern matches an event type, with its kind as a group.
var (
	versionPattern = regexp.MustCompile(`\.v[1-9][0-9]*$`)
	typePattern    = regexp.MustCompile(`^dev\.scute\.([a-z]+)\.[a-z0-9-]+\.v[1-9][0-9]*$`)
)

// checkType checks the value of --type. The pattern must match a fact, or a type in any version, or
// it can be the type of a newer scute.
func checkType(env *cli.Env, pattern string) error {
	types := slices.Sorted(maps.Keys(EventTypes()))
	names, anyVersion := names(types), versionPattern.ReplaceAllString(pattern, "")
	matchesName := func(name string) bool { return matches(pattern, name) }
	matchesType := func(t string) bool { return matches(anyVersion, versionPattern.ReplaceAllString(t, "")) }
	if slices.ContainsFunc(names, matchesName) || anyVersion != pattern && slices.ContainsFunc(types, matchesType) {
		return nil
	}
	// While the daemon is newer than this program, the log has unknown types. A type that is
	// similar to a known one is a mistake.
	if parts := typePattern.FindStringSubmatch(pattern); len(parts) > 0 && slices.Contains(Kinds(), parts[1]) && cli.Nearest(pattern, types) == "" {
		return nil
	}
	return cli.Usagef("--type is %q, which is no event type and no fact%s %s lists the types, %s searches for other words",
		pattern, cmp.Or(cli.DidYouMean(pattern, names), ":"), env.Hint("log", "schema"), env.Hint("log", "grep", "PATTERN"))
}

// names returns the values that --type can match: the types, and the facts of events of these
// types.
func names(types []string) []string {
	return slices.Concat(types, slices.Sorted(maps.Keys(factNames())))
}
