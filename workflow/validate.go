package workflow

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"scute.dev/api/v1alpha1"
)

// checkGraph finds what is wrong with the graph as a whole.
func (b *builder) checkGraph(d *Definition) {
	known := true
	for i := range d.Tasks {
		t := &d.Tasks[i]
		seen := make(map[Need]bool)
		for n, need := range t.Needs {
			field := fmt.Sprintf("%s.needs[%d]", b.fields[i], n)
			to, ok := b.names[need.Task]
			switch {
			case !ok:
				b.bad(t.Name, field+".task", fmt.Sprintf("there is no task %q", need.Task), "check its spelling")
				known = false
			case need.Task == t.Name:
				b.bad(t.Name, field+".task", "a task cannot need itself", "remove the edge")
				known = false
			case d.Tasks[to].Stage != t.Stage:
				b.bad(t.Name, field+".task", fmt.Sprintf("%q is a hook of the run", need.Task), "hooks run before or after all tasks by themselves")
				known = false
			case seen[Need{Task: need.Task, On: need.On}]:
				b.bad(t.Name, field, fmt.Sprintf("the same edge to %q stands there twice", need.Task), "remove one")
			}
			seen[Need{Task: need.Task, On: need.On}] = true
		}
	}
	if !known {
		return
	}
	order, cycle := b.sorted(d)
	if cycle != nil {
		b.bad(cycle[0], b.fields[b.names[cycle[0]]]+".needs", "the needs go in a circle: "+strings.Join(append(cycle, cycle[0]), " needs "), "remove one of these edges")
		return
	}
	b.checkBranches(d, order)
	b.checkReturn(d, order)
	b.checkOutputs(d)
}

// sorted is an order in which every task stands after those that it needs, or a circle.
func (b *builder) sorted(d *Definition) (order []int, cycle []string) {
	left := make([]int, len(d.Tasks))
	kids := make([][]int, len(d.Tasks))
	for i := range d.Tasks {
		for _, n := range d.Tasks[i].Needs {
			left[i]++
			kids[b.names[n.Task]] = append(kids[b.names[n.Task]], i)
		}
		if left[i] == 0 {
			order = append(order, i)
		}
	}
	for at := 0; at < len(order); at++ {
		for _, k := range kids[order[at]] {
			if left[k]--; left[k] == 0 {
				order = append(order, k)
			}
		}
	}
	if len(order) == len(d.Tasks) {
		return order, nil
	}
	// Every task that is left has a need that is left: walking along them ends in a circle.
	i := slices.IndexFunc(left, func(n int) bool { return n > 0 })
	at := make(map[int]int)
	var walk []int
	for {
		if from, seen := at[i]; seen {
			for _, j := range walk[from:] {
				cycle = append(cycle, d.Tasks[j].Name)
			}
			return nil, cycle
		}
		at[i] = len(walk)
		walk = append(walk, i)
		for _, n := range d.Tasks[i].Needs {
			if left[b.names[n.Task]] > 0 {
				i = b.names[n.Task]
				break
			}
		}
	}
}

// checkBranches finds tasks that can never run, because they would need the success and the failure of the same task, and
// warns about policies that make a branch unreachable. Large graphs are looked at one step deep only.
func (b *builder) checkBranches(d *Definition, order []int) {
	type musts struct{ succeed, fail map[int]bool }
	all := make([]musts, len(d.Tasks))
	deep := len(d.Tasks) <= 2000
	for _, i := range order {
		m := musts{map[int]bool{}, map[int]bool{}}
		for _, n := range d.Tasks[i].Needs {
			if n.Optional || n.On == v1alpha1.OnCompletion {
				continue
			}
			p := b.names[n.Task]
			if n.On == v1alpha1.OnFailure {
				m.fail[p] = true
			} else {
				m.succeed[p] = true
			}
			if deep { // that it has succeeded or failed says that it ran, and so what it needs was met
				for k := range all[p].succeed {
					m.succeed[k] = true
				}
				for k := range all[p].fail {
					m.fail[k] = true
				}
			}
		}
		all[i] = m
		for p := range m.fail {
			if m.succeed[p] {
				b.bad(d.Tasks[i].Name, b.fields[i]+".needs",
					fmt.Sprintf("it can never run: it needs both the success and the failure of %q", d.Tasks[p].Name), "make one of the edges optional, or remove it")
				break
			}
		}
		for n, need := range d.Tasks[i].Needs {
			p := &d.Tasks[b.names[need.Task]]
			if need.On == v1alpha1.OnFailure && (p.PolicyFrom == "task" || p.PolicyFrom == "kind") {
				b.warn(d.Tasks[i].Name, fmt.Sprintf("%s.needs[%d].on", b.fields[i], n),
					fmt.Sprintf("%q has the failure policy %s of its own, which wins over this edge", p.Name, p.Policy), "remove that policy, or this edge")
			}
		}
	}
}

// checkReturn refuses a rollback across a point of no return: a task whose policy is Rollback and that may fail when the
// point has been passed.
func (b *builder) checkReturn(d *Definition, order []int) {
	for p := range d.Tasks {
		if !d.Tasks[p].PointOfNoReturn {
			continue
		}
		before := b.ancestors(d, p)
		for _, i := range order {
			t := &d.Tasks[i]
			if i == p || before[i] || t.Stage < d.Tasks[p].Stage || t.Policy != v1alpha1.Rollback {
				continue
			}
			where, remedy := b.fields[i]+".failurePolicy", "choose Abort or Pause, or make it run before "+d.Tasks[p].Name
			b.bad(t.Name, where, fmt.Sprintf("Rollback (from: %s) would cross %q, a point of no return", t.PolicyFrom, d.Tasks[p].Name), remedy)
		}
	}
}

// ancestors are the tasks that have always ended when one begins: those it needs, whatever the edge.
func (b *builder) ancestors(d *Definition, i int) map[int]bool {
	up := make(map[int]bool)
	queue := []int{i}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for _, n := range d.Tasks[at].Needs {
			if p := b.names[n.Task]; !up[p] {
				up[p] = true
				queue = append(queue, p)
			}
		}
	}
	return up
}

// checkKept warns of what a rollback would leave, where a failure or the deadline leads to one.
func (b *builder) checkKept(d *Definition) {
	if d.Policy == v1alpha1.Rollback || slices.ContainsFunc(d.Tasks, func(t Task) bool { return t.Policy == v1alpha1.Rollback }) {
		b.problems = append(b.problems, b.kept...)
	}
}

// checkOutputs finds references to outputs that need not be there.
func (b *builder) checkOutputs(d *Definition) {
	for i := range d.Tasks {
		own := d.Tasks[i].Own()
		for n := range d.Tasks[i].Steps {
			step, field := &d.Tasks[i].Steps[n], b.steps[i][n]
			b.checkReferences(d, i, field+".with", step.With, func(ref Reference, at string) {
				if n <= own {
					b.bad(d.Tasks[i].Name, at, "it uses the task's own output, which is not there yet", "use it in a hook after the task, or in undo")
				}
			})
			if step.Undo == nil {
				continue
			}
			b.checkReferences(d, i, field+".undo", step.Undo.With, func(ref Reference, at string) {
				if n <= own && !ref.HasDefault {
					b.warn(d.Tasks[i].Name, at, "it uses the task's own output, which a failed attempt may not have recorded: a rollback then leaves what it did",
						"give a default, ${tasks.NAME.output.PATH:-DEFAULT}")
				}
			})
		}
	}
	for i := range d.OnFailure {
		b.checkReferences(d, -1, fmt.Sprintf("spec.hooks.onFailure[%d].with", i), d.OnFailure[i].With, nil)
	}
}

// checkReferences looks at the inputs of one step; of no task if i is -1. own judges a reference to the task's own output.
func (b *builder) checkReferences(d *Definition, i int, field string, with json.RawMessage, own func(ref Reference, field string)) {
	task := ""
	if i >= 0 {
		task = d.Tasks[i].Name
	}
	refs, err := References(with)
	if err != nil {
		b.bad(task, field, err.Error(), "write ${tasks.NAME.output.PATH}, or ${tasks.NAME.output.PATH:-DEFAULT}; $${ is the text ${")
	}
	for _, ref := range refs {
		p, ok := b.names[ref.Task]
		switch {
		case !ok:
			b.bad(task, field, fmt.Sprintf("there is no task %q, whose output it uses", ref.Task), "check its spelling")
		case i < 0 || d.Tasks[p].Stage < d.Tasks[i].Stage:
		case p == i:
			own(ref, field)
		case d.Tasks[p].Stage > d.Tasks[i].Stage:
			b.bad(task, field, fmt.Sprintf("it uses the output of %q, which runs later", ref.Task), "use it in a task that runs after that one")
		case !b.ancestors(d, i)[p]:
			b.bad(task, field, fmt.Sprintf("it uses the output of %q, which it does not need", ref.Task), "add it to needs")
		}
	}
}

func strict(data []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	return dec.Decode(into)
}
