package page

import (
	"fmt"
	"slices"
	"strings"

	"scute.dev/ui/draw"
	"scute.dev/workflow"
)

// boxes is how many boxes a picture has at most: more than that nobody can read.
const boxes = 48

// bundle is tasks that a picture shows as one box.
type bundle struct {
	name  string
	tasks []int
}

// bundles are the boxes of a picture: a task each while they are few; else tasks that need the same and are needed by the same; else all
// tasks of a layer, and of several layers in a row.
func bundles(tasks []workflow.Task, edges []draw.Edge) []bundle {
	if len(tasks) <= boxes {
		return by(tasks, func(i int) string { return tasks[i].Name })
	}
	if twins := by(tasks, twinsOf(tasks, edges)); len(twins) <= boxes {
		return twins
	}
	ranks := draw.Ranks(len(tasks), edges)
	each := 1 + slices.Max(ranks)/boxes
	return by(tasks, func(i int) string { return fmt.Sprint(ranks[i] / each) })
}

// by bundles tasks of the same key, in the order of their first ones.
func by(tasks []workflow.Task, key func(int) string) (out []bundle) {
	at := make(map[string]int)
	for i := range tasks {
		k := key(i)
		n, ok := at[k]
		if !ok {
			n = len(out)
			at[k] = n
			out = append(out, bundle{name: tasks[i].Name})
		}
		out[n].tasks = append(out[n].tasks, i)
	}
	for i := range out {
		if n := len(out[i].tasks); n > 1 {
			out[i].name = fmt.Sprintf("%s and %d more", out[i].name, n-1)
		}
	}
	return out
}

// twinsOf names what a task needs, what needs it, and its kind.
func twinsOf(tasks []workflow.Task, edges []draw.Edge) func(int) string {
	up, down := make([][]string, len(tasks)), make([][]string, len(tasks))
	for _, e := range edges {
		up[e.To], down[e.From] = append(up[e.To], fmt.Sprint(e.From)), append(down[e.From], fmt.Sprint(e.To))
	}
	return func(i int) string {
		return strings.Join(up[i], ",") + ">" + strings.Join(down[i], ",") + ">" + tasks[i].Kind() + fmt.Sprint(tasks[i].Stage)
	}
}

// edgesOf are the needs between tasks, and those from the hooks before the run and to the hooks behind it.
func edgesOf(tasks []workflow.Task) (edges []draw.Edge, needs []workflow.Need) {
	index := make(map[string]int, len(tasks))
	for i := range tasks {
		index[tasks[i].Name] = i
	}
	for i := range tasks {
		for _, n := range tasks[i].Needs {
			if from, ok := index[n.Task]; ok {
				edges, needs = append(edges, draw.Edge{From: from, To: i}), append(needs, n)
			}
		}
	}
	for _, e := range between(tasks, edges) {
		edges, needs = append(edges, e), append(needs, workflow.Need{})
	}
	return edges, needs
}

// most edges between two stages: no picture is readable with more.
const staged = 40

// between leads from the last tasks of a stage to the first ones of the next.
func between(tasks []workflow.Task, edges []draw.Edge) (out []draw.Edge) {
	needs, needed := make([]bool, len(tasks)), make([]bool, len(tasks))
	for _, e := range edges {
		needs[e.To], needed[e.From] = true, true
	}
	ends := func(stage workflow.Stage, not []bool) (of []int) {
		for i := range tasks {
			if tasks[i].Stage == stage && !not[i] {
				of = append(of, i)
			}
		}
		return of
	}
	var last []int
	for stage := workflow.StagePre; stage <= workflow.StagePost; stage++ {
		first := ends(stage, needs)
		if len(first) == 0 {
			continue
		}
		if len(last)*len(first) <= staged {
			for _, from := range last {
				for _, to := range first {
					out = append(out, draw.Edge{From: from, To: to})
				}
			}
		}
		last = ends(stage, needed)
	}
	return out
}
