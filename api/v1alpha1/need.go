package v1alpha1

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// UnmarshalJSON reads a bare string as a required success.
func (n *Need) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		*n = Need{}
		return json.Unmarshal(data, &n.Task)
	}
	type plain Need
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode((*plain)(n)); err != nil {
		return fmt.Errorf("a need is the name of a task or {task, on, optional, timeout}: %w", err)
	}
	return nil
}
