package comparison

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Sides is the state of the moved objects on two management clusters.
type Sides struct {
	// Source and Target are numbers of objects.
	Source, Target int
	// SourcePaused and TargetPaused mean that some object is paused there, or has an annotation of a move.
	SourcePaused, TargetPaused bool
	// Missing is the number of objects that are on neither side, New of those that did not exist before the move.
	Missing, New int
}

// whole reports whether every object is on exactly one side and nothing is paused.
func (s Sides) whole() bool {
	return s.Missing == 0 && s.New == 0 && (s.Source == 0) != (s.Target == 0) && !s.SourcePaused && !s.TargetPaused
}

// Ending is the result of one program for a move during which it was killed.
type Ending struct {
	// Left is the state that the killed process left behind.
	Left Sides
	// Again is the result of the same command, or of the next process. Then is the state after it.
	Again string
	Then  Sides
	// ByHand describes what was done manually and its result. It is empty if nothing was.
	ByHand string
	// End is the final state.
	End Sides
	// Made and Removed are numbers of machines in the cloud. A move creates and deletes none.
	Made, Removed int
}

// Whole reports whether the move ended without damage: every object is on exactly one side, nothing is paused, and no
// machine was created or deleted.
func (e *Ending) Whole() bool { return e.End.whole() && e.Made == 0 && e.Removed == 0 }

// Crash is one moment at which the process of a move is killed, and the results of two programs.
type Crash struct {
	Name              string
	Clusterctl, Scute Ending
}

// Worse returns in which respects the result with scute is worse than that of an undisturbed move.
func (c *Crash) Worse() []string {
	var worse []string
	add := func(is bool, format string, values ...any) {
		if is {
			worse = append(worse, fmt.Sprintf(format, values...))
		}
	}
	e := &c.Scute
	add(e.Again != "Succeeded" && e.Again != "RolledBack", "the move is %s", e.Again)
	add(e.ByHand != "", "somebody had to do something: %s", e.ByHand)
	add(e.End.Source > 0 && e.End.Target > 0, "%d objects are at the source and %d on the target", e.End.Source, e.End.Target)
	add(e.End.Missing > 0, "%d objects are on neither side", e.End.Missing)
	add(e.End.New > 0, "%d objects were not there before", e.End.New)
	add(e.End.SourcePaused || e.End.TargetPaused, "something is still paused, or has a mark of the move")
	add(e.Made > 0 || e.Removed > 0, "%d machines were made and %d removed", e.Made, e.Removed)
	return worse
}

// crashTable returns a table with two lines for each crash, sorted by name.
func crashTable(version string, crashes []Crash) string {
	crashes = slices.Clone(crashes)
	slices.SortFunc(crashes, func(a, b Crash) int { return strings.Compare(a.Name, b.Name) })
	var b strings.Builder
	fmt.Fprintf(&b, "### Cluster API %s\n\n", version)
	b.WriteString("| killed | program | source, target | run again | source, target | by hand | source, target | machines |\n" +
		"|---|---|---|---|---|---|---|---|\n")
	for i := range crashes {
		c := &crashes[i]
		fmt.Fprintf(&b, "| %s | clusterctl | %s |\n", c.Name, c.Clusterctl.cells())
		fmt.Fprintf(&b, "| | scute | %s |\n", c.Scute.cells())
	}
	return b.String()
}

func (e *Ending) cells() string {
	machines := "the same"
	if e.Made > 0 || e.Removed > 0 {
		machines = fmt.Sprintf("**%d made, %d removed**", e.Made, e.Removed)
	}
	end := e.End.String()
	if !e.End.whole() {
		end = "**" + end + "**"
	}
	cells := []string{e.Left.String(), e.Again, e.Then.String(), cmp.Or(e.ByHand, "nothing"), end, machines}
	for i := range cells {
		cells[i] = strings.ReplaceAll(cells[i], "|", `\|`)
	}
	return strings.Join(cells, " | ")
}

func (s Sides) String() string {
	side := func(n int, paused bool) string {
		if paused {
			return fmt.Sprintf("%d paused", n)
		}
		return fmt.Sprint(n)
	}
	words := side(s.Source, s.SourcePaused) + ", " + side(s.Target, s.TargetPaused)
	if s.Missing > 0 {
		words += fmt.Sprintf("; %d on neither", s.Missing)
	}
	if s.New > 0 {
		words += fmt.Sprintf("; %d new", s.New)
	}
	return words
}
