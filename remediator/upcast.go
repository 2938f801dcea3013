package remediator

// escalationEndedV1 is EscalationEnded as it was stored first. A step without Failed had timed out, was cancelled, or was over
// because the machine had recovered: older programs said the latter with Cured.
type escalationEndedV1 struct {
	Machine Subject `json:"machine"`
	Step    string  `json:"rung"`
	Failed  string  `json:"failed,omitempty"`
	Cured   bool    `json:"cured,omitempty"`
}

// v2 is the next version of it. It is not changed when there is a third: then it returns another struct.
func (v1 escalationEndedV1) v2() EscalationEnded {
	v2 := EscalationEnded{Machine: v1.Machine, Step: v1.Step, Reason: v1.Failed}
	switch {
	case v1.Cured:
		v2.Outcome = StepRecovered
	case v1.Failed != "":
		v2.Outcome = StepFailed
	}
	return v2
}
