package remediator

// escalationEndedV1 is version 1 of EscalationEnded. A step without Failed had timed out, was cancelled, or had ended because the machine recovered.
// Older programs recorded the recovery as Cured.
type escalationEndedV1 struct {
	Machine Subject `json:"machine"`
	Step    string  `json:"rung"`
	Failed  string  `json:"failed,omitempty"`
	Cured   bool    `json:"cured,omitempty"`
}

// v2 returns the event in version 2. It must not be changed for a version 3: it must then return a separate struct.
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
