package runner

// Owners returns the number of owners in the view.
func (v *Remediations) Owners() int {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return len(v.owners)
}
