package v1alpha1

// MarshalJSON implements json.Marshaler.
func (m *Move) MarshalJSON() ([]byte, error) {
	type plain Move
	return encode((*plain)(m), m.Unreadable)
}

// UnmarshalJSON implements json.Unmarshaler: see Unreadable.
func (m *Move) UnmarshalJSON(data []byte) error {
	type plain Move
	return decode(data, (*plain)(m), &m.Unreadable)
}

// MarshalJSON implements json.Marshaler.
func (w *WorkflowRun) MarshalJSON() ([]byte, error) {
	type plain WorkflowRun
	return encode((*plain)(w), w.Unreadable)
}

// UnmarshalJSON implements json.Unmarshaler: see Unreadable.
func (w *WorkflowRun) UnmarshalJSON(data []byte) error {
	type plain WorkflowRun
	return decode(data, (*plain)(w), &w.Unreadable)
}

// MarshalJSON implements json.Marshaler.
func (p *RepairPolicy) MarshalJSON() ([]byte, error) {
	type plain RepairPolicy
	return encode((*plain)(p), p.Unreadable)
}

// UnmarshalJSON implements json.Unmarshaler: see Unreadable.
func (p *RepairPolicy) UnmarshalJSON(data []byte) error {
	type plain RepairPolicy
	return decode(data, (*plain)(p), &p.Unreadable)
}

// MarshalJSON implements json.Marshaler.
func (l *RepairLimits) MarshalJSON() ([]byte, error) {
	type plain RepairLimits
	return encode((*plain)(l), l.Unreadable)
}

// UnmarshalJSON implements json.Unmarshaler: see Unreadable.
func (l *RepairLimits) UnmarshalJSON(data []byte) error {
	type plain RepairLimits
	return decode(data, (*plain)(l), &l.Unreadable)
}

// MarshalJSON implements json.Marshaler.
func (r *SurgeRemediation) MarshalJSON() ([]byte, error) {
	type plain SurgeRemediation
	return encode((*plain)(r), r.Unreadable)
}

// UnmarshalJSON implements json.Unmarshaler: see Unreadable.
func (r *SurgeRemediation) UnmarshalJSON(data []byte) error {
	type plain SurgeRemediation
	return decode(data, (*plain)(r), &r.Unreadable)
}

// MarshalJSON implements json.Marshaler.
func (t *SurgeRemediationTemplate) MarshalJSON() ([]byte, error) {
	type plain SurgeRemediationTemplate
	return encode((*plain)(t), t.Unreadable)
}

// UnmarshalJSON implements json.Unmarshaler: see Unreadable.
func (t *SurgeRemediationTemplate) UnmarshalJSON(data []byte) error {
	type plain SurgeRemediationTemplate
	return decode(data, (*plain)(t), &t.Unreadable)
}

// MarshalJSON implements json.Marshaler.
func (p *Pause) MarshalJSON() ([]byte, error) {
	type plain Pause
	return encode((*plain)(p), p.Unreadable)
}

// UnmarshalJSON implements json.Unmarshaler: see Unreadable.
func (p *Pause) UnmarshalJSON(data []byte) error {
	type plain Pause
	return decode(data, (*plain)(p), &p.Unreadable)
}

// MarshalJSON implements json.Marshaler.
func (b *BackupSchedule) MarshalJSON() ([]byte, error) {
	type plain BackupSchedule
	return encode((*plain)(b), b.Unreadable)
}

// UnmarshalJSON implements json.Unmarshaler: see Unreadable.
func (b *BackupSchedule) UnmarshalJSON(data []byte) error {
	type plain BackupSchedule
	return decode(data, (*plain)(b), &b.Unreadable)
}
