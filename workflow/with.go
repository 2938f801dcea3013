package workflow

import "encoding/json"

// CurrentInputs returns the kind and the inputs of a task's current step, before outputs of other tasks are filled in.
func (s *State) CurrentInputs(task string) (kind string, with json.RawMessage, ok bool) {
	i, ok := s.index(task)
	if !ok {
		return "", nil, false
	}
	e := s.effect(EffectAct, i, s.tasks[i].step)
	return e.Spec.Kind, e.With, true
}
