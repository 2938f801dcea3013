package usage

import (
	"fmt"
	"maps"
	"slices"

	"scute.dev/internal/fields"
)

// Snapshot hands what each namespace appended to put, by its name. What counts no more is left out: when it is dropped depends on where the
// view began.
func (u *Usage) Snapshot(put func(namespace string, data []byte) error) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	latest := int64(0)
	for _, s := range u.spaces {
		latest = max(latest, slices.Max(s.at[:]))
	}
	var buffer []byte
	for _, name := range slices.Sorted(maps.Keys(u.spaces)) {
		s := u.spaces[name].since(latest - slots)
		if s == (space{}) {
			continue
		}
		var err error
		if buffer, err = fields.Append(buffer[:0], &s); err != nil {
			return fmt.Errorf("saving the usage of namespace %s: %w", name, err)
		}
		if err := put(name, buffer); err != nil {
			return err
		}
	}
	return nil
}

// since is a space without what it counted up to a minute.
func (s *space) since(minute int64) space {
	out := *s
	for i := range out.at {
		if out.at[i] <= minute {
			out.at[i], out.events[i], out.bytes[i] = 0, 0, 0
		}
	}
	return out
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
