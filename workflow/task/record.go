package task

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
)

// recorded is what the attempts so far have recorded; the zero record if nothing.
func recorded[R any](c *Call) (record R, err error) {
	if len(c.Undo) == 0 {
		return record, nil
	}
	if err := json.Unmarshal(c.Undo, &record); err != nil {
		return record, Final(fmt.Errorf("reading what was recorded before: %w", err))
	}
	return record, nil
}

// errElsewhere: the record is of one cluster, and the undo of what was done on the other would be lost.
var errElsewhere = errors.New("with.cluster: it was changed after an earlier attempt had worked on another cluster: put it back, or roll the task back first")

// onSameCluster refuses inputs that lead a task with a record of one cluster to another.
func onSameCluster(was, now ClusterRef) error {
	if !reflect.DeepEqual(was, now) {
		return Final(errElsewhere)
	}
	return nil
}
