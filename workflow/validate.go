package workflow

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"scute.dev/api/v1alpha1"
)

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
				b.addError(t.Name, field+".task", fmt.Sprintf("there is no task %q", need.Task), "check the spelling")
				known = false
			case need.Task == t.Name:
				b.addError(t.Name, field+".task", "a task cannot need itself", "remove the edge")
				known = false
			case d.Tasks[to].Stage != t.Stage:
				b.addError(t.Name, field+".task", fmt.Sprintf("%q is a hook of the run", need.Task),
					"remove the edge, because hooks always run before or after all tasks")
				known = false
			case seen[Need{Task: need.Task, On: need.On}]:
				b.addError(t.Name, field, fmt.Sprintf("the same edge to %q is listed twice", need.Task), "remove one of the two")
			}
			seen[Need{Task: need.Task, On: need.On}] = true
		}
	}
	if !known {
		return
	}
	b.parents = make([][]int, len(d.Tasks))
	for i := range d.Tasks {
		for _, n := range d.Tasks[i].Needs {
			b.parents[i] = append(b.parents[i], b.names[n.Task])
		}
	}
	order, left := topologicalOrder(b.parents)
	if len(order) < len(d.Tasks) {
		cycle := b.cycle(d, left)
		b.addError(cycle[0], b.fields[b.names[cycle[0]]]+".needs", "the needs form a cycle: "+strings.Join(append(cycle, cycle[0]), " needs "),
			"remove one of these edges")
		return
	}
	b.checkBranches(d, order)
	b.checkPointsOfNoReturn(d, order)
	b.checkOutputs(d, order)
}

// topologicalOrder returns the tasks in topological order, without the tasks on or after a cycle.
// left contains for each task the number of its parents that order lacks.
func topologicalOrder(parents [][]int) (order, left []int) {
	order, left = make([]int, 0, len(parents)), make([]int, len(parents))
	children := make([][]int, len(parents))
	for i := range parents {
		for _, p := range parents[i] {
			children[p] = append(children[p], i)
		}
		if left[i] = len(parents[i]); left[i] == 0 {
			order = append(order, i)
		}
	}
	for at := 0; at < len(order); at++ {
		for _, c := range children[order[at]] {
			if left[c]--; left[c] == 0 {
				order = append(order, c)
			}
		}
	}
	return order, left
}

// cycle returns the names of the tasks of a cycle. It follows the parents that left counts: each
// task on or after a cycle has one.
func (b *builder) cycle(d *Definition, left []int) (names []string) {
	remains := func(i int) bool { return left[i] > 0 }
	var walk []int
	at := make(map[int]int)
	for i := slices.IndexFunc(left, func(n int) bool { return n > 0 }); ; {
		if from, seen := at[i]; seen {
			for _, j := range walk[from:] {
				names = append(names, d.Tasks[j].Name)
			}
			return names
		}
		at[i], walk = len(walk), append(walk, i)
		i = b.parents[i][slices.IndexFunc(b.parents[i], remains)]
	}
}

// checkBranches rejects tasks that need both success and failure of one task, and warns of policies
// that make a branch unreachable. In large graphs it considers only direct needs.
func (b *builder) checkBranches(d *Definition, order []int) {
	const deepest = 2000
	deep := len(d.Tasks) <= deepest
	succeed, fail := make([]big.Int, len(d.Tasks)), make([]big.Int, len(d.Tasks)) // sets of tasks
	for _, i := range order {
		for n, need := range d.Tasks[i].Needs {
			p := b.parents[i][n]
			if parent := &d.Tasks[p]; need.On == v1alpha1.OnFailure && parent.ownPolicyText() != "" {
				b.addWarning(d.Tasks[i].Name, fmt.Sprintf("%s.needs[%d].on", b.fields[i], n),
					fmt.Sprintf("%q has %s, which takes precedence over this edge", parent.Name, parent.ownPolicyText()), "remove that policy, or this edge")
			}
			if need.Optional || need.On == v1alpha1.OnCompletion {
				continue
			}
			needed := &succeed[i]
			if need.On == v1alpha1.OnFailure {
				needed = &fail[i]
			}
			needed.SetBit(needed, p, 1)
			if deep { // a task that succeeded or failed has run, so its needs were satisfied
				succeed[i].Or(&succeed[i], &succeed[p])
				fail[i].Or(&fail[i], &fail[p])
			}
		}
		if both := new(big.Int).And(&succeed[i], &fail[i]); both.Sign() != 0 {
			b.addError(d.Tasks[i].Name, b.fields[i]+".needs",
				fmt.Sprintf("it can never run: it needs both the success and the failure of %q", d.Tasks[both.TrailingZeroBits()].Name),
				"make one of the edges optional, or remove it")
		}
		if !deep {
			succeed[i], fail[i] = big.Int{}, big.Int{}
		}
	}
}

// checkPointsOfNoReturn rejects the policy Rollback for a task that may fail after a point of no return.
func (b *builder) checkPointsOfNoReturn(d *Definition, order []int) {
	if !slices.ContainsFunc(d.Tasks, func(t Task) bool { return t.Policy == v1alpha1.Rollback }) {
		return
	}
	var points []int
	for p := range d.Tasks {
		if d.Tasks[p].PointOfNoReturn {
			points = append(points, p)
		}
	}
	crossed := make([]int, len(d.Tasks)) // 1 + the index of the crossed point; 0 for none
	for block := range slices.Chunk(points, wordBits) {
		below := b.reached(order, block, true)
		for _, i := range order {
			t := &d.Tasks[i]
			if crossed[i] > 0 || t.Policy != v1alpha1.Rollback {
				continue
			}
			for n, p := range block {
				if before := below[i]&(1<<n) != 0; !before && i != p && t.Stage >= d.Tasks[p].Stage {
					crossed[i] = p + 1
					break
				}
			}
		}
	}
	for _, i := range order {
		if t := &d.Tasks[i]; crossed[i] > 0 {
			point := d.Tasks[crossed[i]-1].Name
			b.addError(t.Name, b.fields[i]+".failurePolicy", fmt.Sprintf("Rollback (from: %s) would cross %q, a point of no return", t.PolicySource, point),
				"choose Abort or Pause, or make it run before "+point)
		}
	}
}

const wordBits = 64

// reached returns a bit set for each task. It contains the tasks in few that the task needs or,
// with below, the tasks in few that need the task.
func (b *builder) reached(order, few []int, below bool) []uint64 {
	set, own := make([]uint64, len(order)), make([]uint64, len(order))
	for n, p := range few {
		own[p] = 1 << n
	}
	for n := range order {
		if !below {
			i := order[n]
			for _, p := range b.parents[i] {
				set[i] |= set[p] | own[p]
			}
			continue
		}
		i := order[len(order)-1-n]
		for _, p := range b.parents[i] {
			set[p] |= set[i] | own[i]
		}
	}
	return set
}

func (b *builder) checkKeptEffects(d *Definition) {
	if d.Policy == v1alpha1.Rollback || slices.ContainsFunc(d.Tasks, func(t Task) bool { return t.Policy == v1alpha1.Rollback }) {
		b.problems = append(b.problems, b.keptEffects...)
	}
}

// checkSize adds a problem for each part of the definition that does not fit into one event.
func (b *builder) checkSize(d *Definition) {
	check := func(task, field string, v any) {
		if data, err := json.Marshal(v); err == nil && len(data) > taskLimit {
			b.addError(task, field, fmt.Sprintf("it has %d bytes, and at most %d are allowed", len(data), taskLimit),
				"store large data in a file, a ConfigMap or a Secret, and refer to it")
		}
	}
	for i := range d.Tasks {
		check(d.Tasks[i].Name, b.fields[i], &d.Tasks[i])
	}
	check("", "spec.hooks.onFailure", d.OnFailure)
	if d.Workflow != nil {
		check("", "spec.workflow.params", d.Workflow)
	}
}

type use struct {
	Reference
	task, step int // -1 for a failure handler
	undo       bool
	field      string
}

func (b *builder) checkOutputs(d *Definition, order []int) {
	var uses []use
	look := func(u use, with json.RawMessage) {
		if !bytes.Contains(with, []byte("${tasks.")) {
			return
		}
		refs, err := References(with)
		if err != nil {
			b.addError(b.taskName(d, u.task), u.field, err.Error(), "write ${tasks.NAME.output.PATH}, or ${tasks.NAME.output.PATH:-DEFAULT}; write "+
				"$${tasks. for the text ${tasks.")
		}
		if m := fieldReference.FindSubmatch(with); m != nil {
			b.addError(b.taskName(d, u.task), u.field, fmt.Sprintf("the name of the field %q contains a reference, but outputs are only filled into values",
				m[1]), "use a field name without references")
		}
		for _, ref := range refs {
			if strings.Contains(ref.Default, "{") {
				b.addError(b.taskName(d, u.task), u.field, fmt.Sprintf("the default of a reference to the output of %q contains a brace, but a default ends "+
					"at the first closing brace", ref.Task), "use a default without braces")
			}
			u.Reference = ref
			uses = append(uses, u)
		}
	}
	for i := range d.Tasks {
		for n := range d.Tasks[i].Steps {
			step, field := &d.Tasks[i].Steps[n], b.steps[i][n]
			look(use{task: i, step: n, field: field + ".with"}, step.With)
			if step.Undo != nil {
				look(use{task: i, step: n, field: field + ".undo", undo: true}, step.Undo.With)
			}
		}
	}
	for i := range d.OnFailure {
		look(use{task: -1, field: fmt.Sprintf("spec.hooks.onFailure[%d].with", i)}, d.OnFailure[i].With)
	}
	needed := b.needed(order, uses)
	for n := range uses {
		b.checkUse(d, &uses[n], needed[n])
	}
}

// needed reports for each use of an output whether the task that uses it needs the task that
// produces it.
func (b *builder) needed(order []int, uses []use) []bool {
	var used []int // in the order of their first use
	at := make(map[int][]int)
	for n, u := range uses {
		if p, ok := b.names[u.Task]; ok && u.task >= 0 {
			if at[p] == nil {
				used = append(used, p)
			}
			at[p] = append(at[p], n)
		}
	}
	needed := make([]bool, len(uses))
	for block := range slices.Chunk(used, wordBits) {
		above := b.reached(order, block, false)
		for bit, p := range block {
			for _, n := range at[p] {
				needed[n] = above[uses[n].task]&(1<<bit) != 0
			}
		}
	}
	return needed
}

func (b *builder) checkUse(d *Definition, u *use, needed bool) {
	p, ok := b.names[u.Task]
	task := b.taskName(d, u.task)
	switch i := u.task; {
	case !ok:
		b.addError(task, u.field, fmt.Sprintf("there is no task %q, whose output it uses", u.Task), "check the spelling")
	case i < 0 || d.Tasks[p].Stage < d.Tasks[i].Stage:
	case p == i && u.step > d.Tasks[i].OwnStep(): // a hook after the task
	case p == i && !u.undo:
		b.addError(task, u.field, "it uses the task's own output, which does not exist yet", "use it in a hook after the task, or in undo")
	case p == i && !u.HasDefault:
		b.addWarning(task, u.field, "it uses the task's own output, which a failed attempt may not have recorded: a rollback then keeps its effects",
			"add a default, ${tasks.NAME.output.PATH:-DEFAULT}")
	case p == i:
	case d.Tasks[p].Stage > d.Tasks[i].Stage:
		b.addError(task, u.field, fmt.Sprintf("it uses the output of %q, which runs later", u.Task), "use it in a task that runs after that task")
	case !needed:
		b.addError(task, u.field, fmt.Sprintf("it uses the output of %q, which it does not need", u.Task), "add it to needs")
	}
}

func (b *builder) taskName(d *Definition, i int) string {
	if i < 0 {
		return ""
	}
	return d.Tasks[i].Name
}
