package page

import (
	"fmt"
	"slices"
	"strings"

	"scute.dev/ui/draw"
	"scute.dev/workflow"
)

// maxBoxes limits the number of boxes in a picture. A picture with more boxes is not readable.
const maxBoxes = 48

// bundle is a box of a picture, which contains one or more tasks.
type bundle struct {
	name  string
	tasks []int
}

// bundles returns the boxes of a picture. If there are few tasks, each task has its own box.
// Otherwise tasks with the same needs and dependents share a box. If there are still too many
// boxes, all tasks of one layer or of several adjacent layers share a box.
func bundles(tasks []workflow.Task, edges []draw.Edge) []bundle {
	if len(tasks) <= maxBoxes {
		return groupBy(tasks, func(i int) string { return tasks[i].Name })
	}
	if twins := groupBy(tasks, twinKey(tasks, edges)); len(twins) <= maxBoxes {
		return twins
	}
	ranks := draw.Ranks(len(tasks), edges)
	each := 1 + slices.Max(ranks)/maxBoxes
	return groupBy(tasks, func(i int) string { return fmt.Sprint(ranks[i] / each) })
}

// groupBy groups tasks by key. The groups are in the order of their first tasks.
func groupBy(tasks []workflow.Task, key func(int) string) (out []bundle) {
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

// twinKey returns the same key for tasks with the same needs, dependents, kind and stage.
func twinKey(tasks []workflow.Task, edges []draw.Edge) func(int) string {
	up, down := make([][]string, len(tasks)), make([][]string, len(tasks))
	for _, e := range edges {
		up[e.To], down[e.From] = append(up[e.To], fmt.Sprint(e.From)), append(down[e.From], fmt.Sprint(e.To))
	}
	return func(i int) string {
		return strings.Join(up[i], ",") + ">" + strings.Join(down[i], ",") + ">" + tasks[i].Kind() + fmt.Sprint(tasks[i].Stage)
	}
}

// edgesOf returns the needs between tasks as edges. It adds edges between the three stages: the
// hooks before the run, the run, and the hooks after it.
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

// maxStageEdges limits the number of edges between two stages. A picture with more edges is not
// readable.
const maxStageEdges = 40

// between connects the last tasks of each stage with the first tasks of the next stage.
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
		if len(last)*len(first) <= maxStageEdges {
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
