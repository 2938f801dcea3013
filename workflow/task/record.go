package task

import (
	"encoding/json"
	"fmt"
)

// Recorded returns the record of the attempts so far; the zero value if there is none.
func Recorded[R any](c *Call) (record R, err error) {
	if len(c.Undo) == 0 {
		return record, nil
	}
	if err := json.Unmarshal(c.Undo, &record); err != nil {
		return record, Final(fmt.Errorf("reading the earlier record: %w", err))
	}
	return record, nil
}
