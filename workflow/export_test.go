package workflow

// Cancelled says that attempts are still in flight that the run has stopped.
func Cancelled(s *State) bool { return s.stopping != nil && s.running.n > 0 }
