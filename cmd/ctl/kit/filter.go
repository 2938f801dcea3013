package kit

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/eventlog"
)

// Filter selects events. The zero value selects all. Call Check before use.
type Filter struct {
	// Aggregate is KIND/ID.
	Aggregate string
	// Kind is the kind of the aggregate, and Namespace the namespace that it is about.
	Kind, Namespace string
	// Cluster and Machine are names.
	Cluster, Machine string
	// Actor and Type are patterns in which * matches any characters but a slash.
	Actor, Type string
	// Since is inclusive, Until is exclusive.
	Since, Until Moment
	// Pattern must match the text of an event; nil matches all.
	Pattern *regexp.Regexp
}

// SinceUsage is the usage of --since in all commands.
const SinceUsage = "Only events since this time: 10m (before now), 2026-07-30T12:00:00Z or 2026-07-30"

// AddFlags registers the options.
func (f *Filter) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&f.Kind, "kind", "", "Only events about this kind: "+strings.Join(Kinds(), ", "))
	flags.StringVarP(&f.Namespace, "namespace", "n", "", "Only events about this namespace; all namespaces if empty")
	flags.StringVar(&f.Cluster, "cluster", "", "Only events of moves, remediations and Pauses of this cluster")
	flags.StringVar(&f.Machine, "machine", "", "Only events about this machine")
	flags.StringVar(&f.Actor, "actor", "", "Only events of this actor; * matches any characters but a slash: 'user/*'")
	flags.StringVar(&f.Type, "type", "", "Only events of this type, or this fact: 'dev.scute.move.*', 'decided'")
	flags.Var(&f.Since, "since", SinceUsage)
	flags.Var(&f.Until, "until", "Only events before this time, in the same formats")
}

// CompleteFilter registers completion by a shell for the options of a Filter with many values.
func CompleteFilter(cmd *cobra.Command) {
	types := slices.Sorted(maps.Keys(EventTypes()))
	_ = cmd.RegisterFlagCompletionFunc("aggregate", cobra.NoFileCompletions)
	_ = cmd.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions(Kinds(), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("type", cobra.FixedCompletions(names(types), cobra.ShellCompDirectiveNoFileComp))
}

// Check returns an error for options that are invalid or match nothing by mistake. It converts times relative to now to exact times.
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
		one, err := f.SingleAggregate()
		if err != nil {
			return err
		}
		if err := checkKind("the kind in --aggregate", string(one.Kind)); err != nil {
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

// SingleAggregate returns the aggregate of --aggregate, or nil without this option.
func (f *Filter) SingleAggregate() (*eventlog.Aggregate, error) {
	if f.Aggregate == "" {
		return nil, nil //nolint:nilnil // --aggregate is optional
	}
	a, err := ParseAggregate(f.Aggregate)
	return &a, err
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

// BySubject reports whether earlier events of an aggregate decide whether a later one is selected.
func (f *Filter) BySubject() bool { return f.Cluster != "" || f.Machine != "" }

// Select returns the selected events. It passes an event to subjects if the filter depends on subjects, or if the event is of a remediation, whose
// machine it fills in.
func (f *Filter) Select(events []Event, subjects *Subjects) []Event {
	selected := events[:0]
	for _, e := range events {
		var about Subject
		if f.BySubject() || e.Aggregate.Kind == eventlog.KindRemediation {
			about = subjects.Of(e)
		}
		if e = about.Name(e); f.Match(e, about) {
			selected = append(selected, e)
		}
	}
	return selected
}

// Match reports whether an event is selected.
func (f *Filter) Match(e Event, s Subject) bool {
	return f.matchAggregate(e.Aggregate) && f.matchTime(e.Time) && f.matchSubject(s) &&
		(f.Actor == "" || matches(f.Actor, e.Actor)) &&
		(f.Type == "" || matches(f.Type, e.Type) || matches(f.Type, e.Line.Name)) &&
		(f.Pattern == nil || f.matchText(e))
}

func (f *Filter) matchAggregate(a eventlog.Aggregate) bool {
	namespace, _, _ := strings.Cut(a.ID, "/")
	return (f.Kind == "" || f.Kind == string(a.Kind)) && (f.Aggregate == "" || f.Aggregate == a.String()) &&
		(f.Namespace == "" || f.Namespace == namespace && a.Kind != eventlog.KindDaemon)
}

func (f *Filter) matchTime(t time.Time) bool {
	return !t.Before(f.Since.Time) && (f.Until.IsZero() || t.Before(f.Until.Time))
}

func (f *Filter) matchSubject(s Subject) bool {
	return (f.Cluster == "" || s.AnyCluster || slices.Contains(s.Clusters, f.Cluster)) && (f.Machine == "" || slices.Contains(s.Machines, f.Machine))
}

func (f *Filter) matchText(e Event) bool {
	return slices.ContainsFunc([]string{e.Aggregate.String(), e.Line.Name, e.Text(), e.Actor, e.Type}, f.Pattern.MatchString) ||
		f.Pattern.Match(e.Data)
}

// matches reports whether a value matches a pattern that Check has validated.
func matches(pattern, value string) bool {
	ok, err := path.Match(pattern, value)
	return ok && err == nil
}

// checkKind returns an error for a kind that no log contains.
func checkKind(what, kind string) error {
	if slices.Contains(Kinds(), kind) {
		return nil
	}
	return cli.Usagef("%s is %q: it must be one of %s", what, kind, strings.Join(Kinds(), ", "))
}

// versionPattern matches the version at the end of an event type, and typePattern an event type, with its kind as a group.
var (
	versionPattern = regexp.MustCompile(`\.v[1-9][0-9]*$`)
	typePattern    = regexp.MustCompile(`^dev\.scute\.([a-z]+)\.[a-z0-9-]+\.v[1-9][0-9]*$`)
)

// checkType returns an error for a pattern that matches neither a fact nor a type in any version, and that is not a type of a newer scute.
func checkType(env *cli.Env, pattern string) error {
	types := slices.Sorted(maps.Keys(EventTypes()))
	names, anyVersion := names(types), versionPattern.ReplaceAllString(pattern, "")
	matchesName := func(name string) bool { return matches(pattern, name) }
	matchesType := func(t string) bool { return matches(anyVersion, versionPattern.ReplaceAllString(t, "")) }
	if slices.ContainsFunc(names, matchesName) || anyVersion != pattern && slices.ContainsFunc(types, matchesType) {
		return nil
	}
	// A log contains unknown types while its daemon is newer than this program. A type that is similar to a known one is a mistake.
	if parts := typePattern.FindStringSubmatch(pattern); len(parts) > 0 && slices.Contains(Kinds(), parts[1]) && cli.Nearest(pattern, types) == "" {
		return nil
	}
	return cli.Usagef("--type is %q, which is no event type and no fact%s; %s lists the types, %s searches for other words",
		pattern, cli.DidYouMean(pattern, names), env.Hint("log", "schema"), env.Hint("log", "grep", "PATTERN"))
}

// names returns the values that --type can match: the types, and the facts of their events.
func names(types []string) []string {
	return slices.Concat(types, slices.Sorted(maps.Keys(FactNames())))
}
