package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// part is the part of a step's record for one note or for one task kind that the step performs.
type part struct {
	Name    string          `json:"name"`
	Adopted bool            `json:"adopted,omitempty"`
	Undo    json.RawMessage `json:"undo,omitempty"`
	Output  json.RawMessage `json:"output,omitempty"`
}

type record struct {
	Parts []part `json:"parts"`
}

// findPart finds a part stored by this attempt or an earlier one.
func (c *Context) findPart(name string) (p part, found bool, err error) {
	r, err := task.Recorded[record](c.call)
	if i := r.index(name); i >= 0 {
		return r.Parts[i], true, nil
	}
	return p, false, err
}

func (r *record) index(name string) int {
	return slices.IndexFunc(r.Parts, func(p part) bool { return p.Name == name })
}

// putPart stores a part. It marks the step as adopted if all parts stored so far are adopted.
func (c *Context) putPart(p part) error {
	r, err := task.Recorded[record](c.call)
	if err != nil {
		return err
	}
	if i := r.index(p.Name); i >= 0 {
		r.Parts[i] = p
	} else {
		r.Parts = append(r.Parts, p)
	}
	adopted := !slices.ContainsFunc(r.Parts, func(p part) bool { return !p.Adopted })
	return c.call.Prepare(c.Context, r, adopted)
}

// Record stores value under a name. value describes the change that the step is about to make, and
// the state before it. The record is durable when Record returns. adopted means that everything
// existed already, so a rollback keeps it.
func (c *Context) Record(name string, value any, adopted bool) error {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("recording %s: %w", name, err)
	}
	return c.putPart(part{Name: name, Adopted: adopted, Undo: data})
}

// Recorded reads into value what Record stored in this attempt or an earlier one. It returns false
// if there is no record.
func (c *Context) Recorded(name string, value any) (bool, error) {
	p, found, err := c.findPart(name)
	if !found {
		return false, err
	}
	if err := json.Unmarshal(p.Undo, value); err != nil {
		return false, task.Final(fmt.Errorf("reading what was recorded as %s: %w", name, err))
	}
	return true, nil
}

// Perform runs a task kind as a part of this step.
func (c *Context) Perform(name string, kind task.Kind, with any) (json.RawMessage, error) {
	if err := c.ReacquireSlot(); err != nil {
		return nil, err
	}
	call, err := c.part(name, with)
	if err != nil {
		return nil, err
	}
	output, err := kind.Run(c.Context, call)
	if err != nil {
		return nil, err
	}
	p, found, err := c.findPart(name)
	if p.Output = output; found && len(output) > 0 {
		return output, c.putPart(p) // the undo may need the output
	}
	return output, err
}

// Output returns the output of a part, from this attempt or an earlier one; nil if there is none.
func (c *Context) Output(name string) json.RawMessage {
	p, _, _ := c.findPart(name)
	return p.Output
}

// Created reports whether a part created the object, judging by the object's annotation.
func (c *Context) Created(name string, u *unstructured.Unstructured) (bool, error) {
	call, err := c.part(name, nil)
	if err != nil {
		return false, err
	}
	return access.StepKeyOf(u) == call.StepKey(), nil
}

// StepKeyOf returns the step key that objects of a part of another task have in their annotation.
func (c *Context) StepKeyOf(task, name string) string {
	call := *c.call
	call.Task, call.Step = task, name
	return call.StepKey()
}

// Revert undoes a part that Perform ran in this attempt or an earlier one. It does nothing if the
// part never began.
func (c *Context) Revert(name string, kind task.Kind, with any) error {
	p, found, err := c.findPart(name)
	if !found || p.Adopted {
		return err
	}
	if err := c.ReacquireSlot(); err != nil {
		return err
	}
	call, err := c.part(name, with)
	if err != nil {
		return err
	}
	call.Output = p.Output
	return kind.Undo(c.Context, call)
}

// part returns a call with its own key and record for a part of this step.
func (c *Context) part(name string, with any) (*task.Call, error) {
	data, err := json.Marshal(with)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	p, _, err := c.findPart(name)
	if err != nil {
		return nil, err
	}
	call := *c.call
	call.Step = name
	if c.call.Step != "" {
		call.Step = c.call.Step + "/" + name
	}
	call.With, call.Output, call.Undo = data, nil, p.Undo
	call.Record = func(_ context.Context, undo json.RawMessage, adopted bool) error {
		return c.putPart(part{Name: name, Adopted: adopted, Undo: undo})
	}
	return &call, nil
}

// Started reports whether a part has recorded that it is about to change something. If the record
// cannot be read, Started returns true.
func (c *Context) Started(name string) bool {
	p, found, err := c.findPart(name)
	return err != nil || found && !p.Adopted
}
