package usage

import (
	"fmt"
	"maps"
	"slices"

	"scute.dev/internal/fields"
)

// Snapshot hands what each namespace appended to put, by its name.
func (u *Usage) Snapshot(put func(namespace string, data []byte) error) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	var buffer []byte
	for _, name := range slices.Sorted(maps.Keys(u.spaces)) {
		var err error
		if buffer, err = fields.Append(buffer[:0], u.spaces[name]); err != nil {
			return fmt.Errorf("saving the usage of namespace %s: %w", name, err)
		}
		if err := put(name, buffer); err != nil {
			return err
		}
	}
	return nil
}

// Restore takes in what Snapshot handed on.
func (u *Usage) Restore(namespace string, data []byte) error {
	s := new(space)
	if err := fields.Read(data, s); err != nil {
		return fmt.Errorf("restoring the usage of namespace %s: %w", namespace, err)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.spaces[namespace] = s
	return nil
}
