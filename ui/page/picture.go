package page

import (
	"cmp"
	"fmt"
	"strings"

	"scute.dev/api/v1alpha1"
	"scute.dev/ui/draw"
	"scute.dev/workflow"
)

type box struct {
	chip
	draw.Point
	Name, Kind string
	Link       string
	Tally      string // counts of several tasks
	Chosen     bool
	Several    bool
}

type line struct {
	Path  string
	Class string
}

type picture struct {
	Width, Height        int
	BoxWidth, BoxHeight  int
	Boxes                []box
	Lines                []line
	Tasks                int
	Folded               bool
	Alternatives, Staged bool
}

func (v *view) picture(tasks []workflow.Task, status []v1alpha1.TaskStatus) picture {
	edges, needs := edgesOf(tasks)
	groups := bundles(tasks, edges)
	of := make([]int, len(tasks))
	for i, g := range groups {
		for _, t := range g.tasks {
			of[t] = i
		}
	}
	folded, classes := lines(edges, needs, of, status)
	g := draw.Layout(len(groups), folded)
	p := picture{Width: g.Width, Height: g.Height, BoxWidth: draw.BoxWidth, BoxHeight: draw.BoxHeight, Tasks: len(tasks), Folded: len(groups) < len(tasks)}
	for i, path := range g.Paths {
		p.Lines = append(p.Lines, line{path, classes[i]})
		p.Alternatives = p.Alternatives || strings.Contains(classes[i], "failure")
		p.Staged = p.Staged || strings.Contains(classes[i], "stage")
	}
	for i, group := range groups {
		p.Boxes = append(p.Boxes, v.box(group, i, g.Boxes[i], tasks, status))
	}
	return p
}

// lines returns the edges between boxes, without duplicates, and the style class of each edge.
func lines(edges []draw.Edge, needs []workflow.Need, of []int, status []v1alpha1.TaskStatus) (out []draw.Edge, classes []string) {
	seen := make(map[draw.Edge]bool)
	for i, e := range edges {
		folded := draw.Edge{From: of[e.From], To: of[e.To]}
		if folded.From == folded.To || seen[folded] {
			continue
		}
		seen[folded] = true
		out, classes = append(out, folded), append(classes, class(needs[i], status[e.From].Phase))
	}
	return out, classes
}

// class returns the style class of an edge. It shows for what the edge waits, and whether that has
// happened.
func class(n workflow.Need, from v1alpha1.TaskPhase) string {
	c, met := "success", from == v1alpha1.TaskSucceeded || from == v1alpha1.TaskIgnored
	switch {
	case n.Task == "":
		c = "stage"
	case n.On == v1alpha1.OnFailure:
		c, met = "failure", from == v1alpha1.TaskFailed
	case n.On == v1alpha1.OnCompletion:
		c, met = "completion", met || from == v1alpha1.TaskFailed
	}
	if n.Optional {
		c += " optional"
	}
	if met {
		c += " met"
	}
	return c
}

func (v *view) box(g bundle, n int, at draw.Point, tasks []workflow.Task, status []v1alpha1.TaskStatus) box {
	first := g.tasks[0]
	if len(g.tasks) == 1 {
		s := status[first]
		return box{
			chip: newChip(s.Phase), Point: at, Name: s.Name, Kind: s.Kind, Chosen: v.Query.Get("task") == s.Name,
			Link: v.With("task", s.Name, "group", "", "page", "") + "#task",
		}
	}
	phases := make(map[v1alpha1.TaskPhase]int)
	for _, t := range g.tasks {
		phases[status[t].Phase]++
	}
	group := fmt.Sprint(n + 1)
	return box{
		chip: newChip(worst(phases)), Point: at, Name: g.name, Kind: tasks[first].Kind(), Tally: tally(phases), Several: true,
		Chosen: v.Query.Get("group") == group, Link: v.With("group", group, "task", "", "page", "") + "#tasks",
	}
}

// order lists the phases, most important first.
var order = [...]v1alpha1.TaskPhase{
	v1alpha1.TaskFailed, v1alpha1.TaskUndoFailed, v1alpha1.TaskPaused, v1alpha1.TaskInterrupted, v1alpha1.TaskUndoing, v1alpha1.TaskRetrying, v1alpha1.TaskRunning,
	v1alpha1.TaskPending, v1alpha1.TaskKept, v1alpha1.TaskUndone, v1alpha1.TaskIgnored, v1alpha1.TaskSucceeded, v1alpha1.TaskSkipped,
}

func worst(phases map[v1alpha1.TaskPhase]int) v1alpha1.TaskPhase {
	for _, p := range order {
		if phases[p] > 0 {
			return p
		}
	}
	return ""
}

func tally(phases map[v1alpha1.TaskPhase]int) string {
	var parts []string
	for _, p := range order {
		if n := phases[p]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, strings.ToLower(string(p))))
		}
	}
	return strings.Join(parts, ", ")
}

// rank returns the rank of a phase in a list. Tasks that need attention have the lowest rank.
func rank(p v1alpha1.TaskPhase) int {
	for i, o := range order {
		if o == p {
			return cmp.Compare(i, 6) // failed to retrying, then running, then all others
		}
	}
	return 1
}
