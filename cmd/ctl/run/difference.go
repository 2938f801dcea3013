package run

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"scute.dev/cmd/ctl/term"
	"scute.dev/workflow"
)

// Migration is the adoption of another definition by a run.
type Migration struct {
	At    time.Time
	Actor string
	// From and To are the hashes of the definitions.
	From, To string
	// Changes are the changes of tasks, without the unchanged tasks that are kept or have not run.
	Changes []workflow.Change
	// Fields are the differing fields of changed tasks.
	Fields []FieldChange
}

// FieldChange is a field of a task with its values in two definitions. Values are JSON, or "" if the field is missing.
type FieldChange struct{ Task, Field, Before, After string }

func migration(e workflow.Migrated, from string, before, after *workflow.Definition) Migration {
	m := Migration{From: from, To: e.Hash, Fields: fieldChanges(before, after, e.Plan)}
	for _, c := range e.Plan {
		if c.Kind != workflow.Unchanged || c.Action != workflow.Keep && c.Action != workflow.Run {
			m.Changes = append(m.Changes, c)
		}
	}
	return m
}

// fieldChanges returns the differing fields of the tasks that a plan lists as changed.
func fieldChanges(before, after *workflow.Definition, plan []workflow.Change) (all []FieldChange) {
	for _, c := range plan {
		if c.Kind != workflow.Changed {
			continue
		}
		old, now := fieldsOf(before, c.Task), fieldsOf(after, c.Task)
		names := maps.Clone(old)
		maps.Copy(names, now)
		for _, field := range slices.Sorted(maps.Keys(names)) {
			if old[field] != now[field] {
				all = append(all, FieldChange{Task: c.Task, Field: field, Before: old[field], After: now[field]})
			}
		}
	}
	return all
}

// fieldsOf returns the fields of a task by their paths. The fields of the task's own step have no prefix, as in a manifest.
func fieldsOf(d *workflow.Definition, name string) map[string]string {
	fields := make(map[string]string)
	i := slices.IndexFunc(d.Tasks, func(t workflow.Task) bool { return t.Name == name })
	if i < 0 {
		return fields
	}
	task := d.Tasks[i]
	for _, step := range task.Steps {
		prefix := step.Name
		if step.Name = ""; prefix != "" {
			prefix += "."
		}
		flatten(fields, prefix, step)
	}
	task.Steps = nil
	flatten(fields, "", task)
	return fields
}

// flatten adds the fields of an object. Lists are values.
func flatten(fields map[string]string, prefix string, object any) {
	text, err := json.Marshal(object)
	if err != nil {
		return // never: it was decoded from JSON
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(text, &members) != nil {
		return
	}
	for name, value := range members {
		if bytes.HasPrefix(value, []byte("{")) {
			flatten(fields, prefix+name+".", value)
		} else if name != "steps" || prefix != "" {
			fields[prefix+name] = string(value)
		}
	}
}

// differences returns a table of changed fields.
func (d *deps) differences(fields []FieldChange) []string {
	if len(fields) == 0 {
		return nil
	}
	v := d.View()
	t := term.Table{Header: []string{"TASK", "FIELD", "BEFORE", "AFTER"}, Wrap: 1}
	for _, f := range fields {
		t.Add(f.Task, f.Field, term.Clean(f.Before), term.Clean(f.After))
	}
	return append([]string{""}, t.Lines(v.Paint, v.Width)...)
}
