package workflow

// Cancelled reports whether the run was stopped while attempts are still running.
func Cancelled(s *State) bool { return s.stopping != nil && s.running.n > 0 }
