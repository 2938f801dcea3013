package evidence

// Names in the ConfigMap that the daemon publishes.
const (
	// Label is a label of the ConfigMap, with the value LabelCheckpoint.
	Label           = "scute.dev/audit"
	LabelCheckpoint = "checkpoint"
	// CheckpointField is the signed checkpoint, KeyField the public key, and logField the log's ID. sequenceField is the sequence of the last covered
	// commit, and timeField the time of the publication.
	CheckpointField = "checkpoint"
	KeyField        = "key"
	logField        = "logID"
	sequenceField   = "sequence"
	timeField       = "publishedAt"
)
