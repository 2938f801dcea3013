package audit

// What the daemon publishes in a ConfigMap.
const (
	// Label marks it, with the value LabelCheckpoint.
	Label           = "scute.dev/audit"
	LabelCheckpoint = "checkpoint"
	// CheckpointField is the signed checkpoint, KeyField the public key, logField the log's ID, sequenceField the sequence of the
	// last commit that is covered, and timeField when it was published.
	CheckpointField = "checkpoint"
	KeyField        = "key"
	logField        = "logID"
	sequenceField   = "sequence"
	timeField       = "publishedAt"
)
