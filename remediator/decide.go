package remediator

import "time"

// RuleStorm is the rule of a decision that waits for a storm to pass.
const RuleStorm = "storm"

// Asks says that a decision on these facts needs etcd's members asked: something is sick, or under way.
func Asks(s *State, f *Facts, now time.Time) bool { return false }

// Decide says which facts follow from a look.
func Decide(s *State, f *Facts, now time.Time) []Event { return nil }

// Actions are the writes that the state calls for and the facts do not show, in their order: one that fails keeps all
// that follow it from being performed.
func Actions(s *State, f *Facts) []Action { return nil }

// Wake is when, at the latest, facts should be looked at again though nothing changed; zero for never.
func Wake(s *State, f *Facts, now time.Time) time.Duration { return 0 }
