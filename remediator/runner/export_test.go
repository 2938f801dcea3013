package runner

// Owners is the number of owners that the view knows.
func (v *Remediations) Owners() int {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return len(v.owners)
}
