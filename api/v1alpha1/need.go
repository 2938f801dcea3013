package v1alpha1

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// UnmarshalJSON decodes a string as the required success of a task. It decodes the key true as
// `on`, because YAML 1.1 parsers, for example kubectl's, convert an unquoted `on` to the boolean
// true.
func (n *Need) UnmarshalJSON(data []byte) error {
	*n = Need{}
	if len(data) > 0 && data[0] == '"' {
		return json.Unmarshal(data, &n.Task)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return fmt.Errorf("a need is the name of a task or {task, on, optional, timeout}: %w", err)
	}
	if on, ok := fields["true"]; ok && fields["on"] == nil {
		delete(fields, "true")
		fields["on"] = on
		var err error
		if data, err = json.Marshal(fields); err != nil {
			return err
		}
	}
	type plain Need
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode((*plain)(n)); err != nil {
		return fmt.Errorf("a need is the name of a task or {task, on, optional, timeout}: %w", err)
	}
	return nil
}
