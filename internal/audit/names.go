package audit

// What the daemon publishes in a ConfigMap.
const (
	// Label marks it, with the value LabelCheckpoint.
	Label           = "scute.dev/audit"
	LabelCheckpoint = "checkpoint"
	// CheckpointField is the signed checkpoint, KeyField the public key, LogField the log's ID, SequenceField the sequence of the
	// last commit that is covered, and TimeField when it was published.
	CheckpointField = "checkpoint"
	KeyField        = "key"
	LogField        = "logID"
	SequenceField   = "sequence"
	TimeField       = "publishedAt"
)
